# SPDX-License-Identifier: LGPL-2.1-or-later
"""Faults put into the CUDA back end, one at a time: each must be found by a test.

    mutants.py BUILD WORK [NAME ...]     BUILD: a build with its tests, WORK: a folder for what is compiled here
    mutants.py --list

Prints `ok mutant/NAME: found by TEST` or `FAIL mutant/NAME: why`.  Each fault replaces one text, which must occur in its
file exactly once.  Only that file is compiled again, by BUILD's own commands, and linked to BUILD's objects; the function
of the test that should find the fault runs first, all of its tests if that does not.  They run on the stand-ins, without
a GPU."""
import concurrent.futures
import os
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = [("kernels-" + seed, "test-cuda-kernels", [seed], {"VIDGEN_STANDIN_SEED": seed, "VIDGEN_CUDNN": "no"})
           for seed in ("0", "1", "7")]
BACKEND = [("backend-" + seed, "test-cuda-backend", ["MODELS"], {"VIDGEN_STANDIN_SEED": seed}) for seed in ("0", "1", "5")]
BACKEND += [("backend-own", "test-cuda-backend", ["MODELS"], {"VIDGEN_STANDIN_SEED": "2", "VIDGEN_CUDNN": "no"})]
FLIGHTS = [("flights-" + seed, "test-cuda-flights", ["MODELS"], {"VIDGEN_STANDIN_SEED": seed}) for seed in ("0", "1", "5")]
DNN = [("dnn-run", "test-dnn-run", ["must"], {})]

# name, file in kernels/cuda, what it says, what it says instead, tests, the function that should find it
MUTANTS = [
    # kernels: barriers
    ("matmul-first-barrier", "matmul.cu", "        __syncthreads();\n        int steps = m.depth", "        int steps = m.depth",
     KERNELS, "products"),
    ("matmul-second-barrier", "matmul.cu", "right[k][t % 16 * 4 + j], sum[i][j]);\n        __syncthreads();",
     "right[k][t % 16 * 4 + j], sum[i][j]);", KERNELS, "products"),
    ("conv-first-barrier", "conv.cu", "        __syncthreads();\n        int steps = c.depth", "        int steps = c.depth",
     KERNELS, "convolutions"),
    ("conv-second-barrier", "conv.cu", "        __syncthreads();\n    }\n    for (int i = 0; i < MINE; i++) {\n        int64_t pixel",
     "    }\n    for (int i = 0; i < MINE; i++) {\n        int64_t pixel", KERNELS, "convolutions"),
    ("norm-sum-barrier", "norm.cu", "            part[threadIdx.x] += part[threadIdx.x + half];\n        __syncthreads();",
     "            part[threadIdx.x] += part[threadIdx.x + half];", KERNELS, "norms"),
    ("norm-last-barrier", "norm.cu", "    double all = part[0];\n    __syncthreads();", "    double all = part[0];",
     KERNELS, "norms"),
    ("moments-barrier", "norm.cu", "    squares[lane][mine] = square;\n    __syncthreads();",
     "    squares[lane][mine] = square;", KERNELS, "norms_in_steps"),
    ("reduce-tree-barrier", "reduce.cu", "part[threadIdx.x + half]);\n        __syncthreads();",
     "part[threadIdx.x + half]);", KERNELS, "reductions"),
    ("attention-score-barrier", "matmul.cu", "            score[t] = 0;\n        __syncthreads();", "            score[t] = 0;",
     KERNELS, "attentions"),
    ("attention-divergent-barrier", "matmul.cu", "        most[t] = score[t] = dot;\n        __syncthreads();",
     "        most[t] = score[t] = dot;\n        if (s < keys)\n            __syncthreads();", KERNELS, "attentions"),
    # kernels: warps
    ("softmax-half-a-warp", "reduce.cu", "__shfl_xor_sync(0xffffffffu, sum, lane)", "__shfl_xor_sync(0x0000ffffu, sum, lane)",
     KERNELS, "softmaxes"),
    ("softmax-one-step-less", "reduce.cu",
     "    for (int lane = 16; lane; lane /= 2)\n        sum +=", "    for (int lane = 8; lane; lane /= 2)\n        sum +=",
     KERNELS, "softmaxes"),
    # kernels: chains
    ("chain-result-not-kept", "pointwise.cu", "            c.keep[l->a - VGK_CHAIN_LINK] = true;", "            ;", KERNELS, "chains"),
    ("chain-single-values", "pointwise.cu", "float one = cu_load<float>(a.x[from], 0);", "float one = v[0];", KERNELS, "chains"),
    ("chain-operands-swapped", "pointwise.cu", "cu_binary_piece(l.two.fn, v, w);", "cu_binary_piece(l.two.fn, w, v);", KERNELS, "chains"),
    ("chain-ring", "pointwise.cu", "            CU_RING(b, 0);\n", "", KERNELS, "chains"),
    # kernels: addresses, edges
    ("matmul-past-the-rows", "matmul.cu", "            if (row >= m.rows || column >= m.columns)\n                continue;", "",
     KERNELS, "products"),
    ("conv-past-the-channels", "conv.cu", "n = c.cout - ch < TN ? c.cout - ch : TN;", "n = TN;",
     KERNELS, "convolutions"),
    ("conv-past-the-pixels", "conv.cu", "        if (pixel < c.pixels && n > 0)", "        if (n > 0)",
     KERNELS, "convolutions"),
    ("depthwise-past-the-end", "conv.cu", "    if (i >= c.pixels * pieces)\n        return;", "",
     KERNELS, "convolutions"),
    ("conv-wrong-group", "conv.cu", "(group * c.cin + k - tap * c.cin)", "(k - tap * c.cin)", KERNELS, "convolutions"),
    ("conv-no-scale", "conv.cu", "            f *= cu_load<float>(scale, ch * scale.stride[0]);", "            ;",
     KERNELS, "convolutions"),
    ("conv-residual-order", "conv.cu", "        if (q.residual_before_act)\n            f += add;",
     "        if (!q.residual_before_act)\n            f += add;", KERNELS, "convolutions"),
    ("pool-padding-counts", "move.cu", "padded &= i < x.dim[2 + d] + p.pad_end[d];", "padded &= i < x.dim[2 + d];",
     KERNELS, "pools"),
    ("resize-offset", "move.cu", "return t.index[d][at] - a.op.p.resize.in_begin[d];", "return t.index[d][at];",
     BACKEND, "shipped_models"),
    ("pad-constant", "move.cu", "beyond || i < 0 ? constant", "i < 0 ? constant", KERNELS, "pads"),
    ("merge-weights", "norm.cu", "d * d * count * more / total;", "d * d * count * more / (total + 1);",
     KERNELS, "norms_in_steps"),
    ("moments-one-lane-less", "norm.cu", "for (int k = 1; k < LANES; k++) {", "for (int k = 1; k < LANES - 1; k++) {",
     KERNELS, "norms_in_steps"),
    ("norm-epsilon", "norm.cu", "sqrt(square / (double)m.count + (double)p.epsilon)", "sqrt(square / (double)m.count)",
     KERNELS, "norms"),
    ("attention-shared-keys", "matmul.cu", "g = h * k.dim[1] / heads", "g = h % k.dim[1]", KERNELS, "attentions"),
    ("attention-no-shrink", "matmul.cu", "            total *= shrink;\n", "", KERNELS, "attentions"),
    ("reduce-last-element", "reduce.cu", "    for (int64_t i = threadIdx.x; i < s.count; i += blockDim.x) {\n        double v",
     "    for (int64_t i = threadIdx.x; i + 1 < s.count; i += blockDim.x) {\n        double v", KERNELS, "reductions"),
    # frames
    ("frame-not-clamped", "frame.cu", "fx = x < a.f.width ? (int)x : a.f.width - 1", "fx = (int)x", BACKEND, "frames"),
    ("frame-chroma-mean", "frame.cu", "* 0.25f);", "* 0.5f);", BACKEND, "frames"),
    ("frame-overflow-unseen", "frame.cu", "bad += !isfinite(e);", "", BACKEND, "frames"),
    ("frame-no-wait", "frames.c", "    VGK_CUDA_TRY(cudaStreamSynchronize(dev->stream), err);\n    if (nonfinite)",
     "    if (nonfinite)", BACKEND, "frames"),
    ("frame-flags-stay", "frames.c", "    VGK_CUDA_TRY(cudaMemsetAsync(dev->flags, 0, sizeof *dev->flags, dev->stream), err);\n", "",
     BACKEND, "frames"),
    ("frame-alpha-over-the-frame", "frames.c", "        stage(alpha, behind, &staged_alpha);",
     "        stage(alpha, scratch, &staged_alpha);", BACKEND, "frames"),
    # memory and streams
    ("memory-not-counted", "backend.c", "        dev->now -= b->bytes;\n", "", BACKEND, "cap"),
    ("cap-not-kept", "backend.c", "(take > dev->limit || dev->now > dev->limit - take)", "(take > dev->limit)",
     BACKEND, "cap"),
    # tiles in flight: waits, and room
    ("flight-no-wait-for-upload", "flights.c", "    VGK_CUDA_TRY(cudaStreamWaitEvent(dev->stream, g->up, 0), err);\n", "", FLIGHTS),
    ("flight-no-wait-for-result", "flights.c", "    VGK_CUDA_TRY(cudaStreamWaitEvent(f->down, g->computed, 0), err);\n", "",
     FLIGHTS),
    ("flight-no-wait-for-room", "frames.c", "        VGK_CUDA_TRY(cudaStreamWaitEvent(dev->stream, dev->before_write, 0), err);\n",
     "", FLIGHTS),
    ("flight-no-wait-at-the-end", "flights.c", "    VGK_CUDA_TRY(cudaEventSynchronize(g->down), err);\n", "", FLIGHTS),
    ("flight-waits-for-upload-only", "flights.c", "cudaEventSynchronize(g->down)", "cudaEventSynchronize(g->up)", FLIGHTS),
    ("flight-recorded-too-early", "flights.c",
     "        s = begin_in(f, g, before, i, &in[i], &in_there[i], err);\n    if (s)\n        return s;\n"
     "    VGK_CUDA_TRY(cudaEventRecord(g->up, f->up), err);\n",
     "        s = (i ? 0 : cudaEventRecord(g->up, f->up)), s = begin_in(f, g, before, i, &in[i], &in_there[i], err);\n"
     "    if (s)\n        return s;\n", FLIGHTS),
    ("flight-over-the-frame-before", "flights.c", "(before->ended && reads(f, before, p))", "false", FLIGHTS),
    ("flight-one-room-for-a-window", "flights.c", "while (reads(f, g, p) || ", "while (", FLIGHTS, "windows"),
    ("flight-one-room-for-results", "flights.c", "vgk_cuda_stage(&out[i], f->memory + g->out_bytes, &out_there[i]);",
     "vgk_cuda_stage(&out[i], f->memory, &out_there[i]);", FLIGHTS, "windows"),
    ("flight-brings-down-what-stays", "flights.c", "        if (out[i].device)\n            continue;\n", "", FLIGHTS, "in_device"),
    ("flight-no-room-for-the-device", "flights.c", "    if (size->there)\n        return 0;\n", "", FLIGHTS, "in_device"),
    ("flight-knows-no-frame", "flights.c", "if (f->place[i].number == number)", "if (0)", FLIGHTS),
    ("flight-sends-all-rows-again", "flights.c", "int begin = p->rows, n = end - begin;", "int begin = 0, n = end - begin;", FLIGHTS),
    ("flight-takes-the-first-tile", "flights.c", "vgk_frame_part(&there, in->x, in->y, in->width", "vgk_frame_part(&there, 0, in->y, in->width", FLIGHTS),
    ("flight-one-room-for-two", "flights.c", ".memory = f->memory};", ".memory = memory};", FLIGHTS),
    ("flight-flags-stay", "flights.c",
     "    VGK_CUDA_TRY(cudaMemsetAsync(dev->flags, 0, sizeof *dev->flags, dev->stream), err);\n"
     "    VGK_CUDA_TRY(cudaEventRecord", "    VGK_CUDA_TRY(cudaEventRecord", FLIGHTS),
    ("flight-closed-under-way", "flights.c",
     "    if (f->up)\n        cudaStreamSynchronize(f->up);\n    cudaStreamSynchronize(dev->stream);\n"
     "    if (f->down)\n        cudaStreamSynchronize(f->down);\n", "", FLIGHTS, "given_up"),
    ("flight-closed-while-it-comes-down", "flights.c", "    if (f->down)\n        cudaStreamSynchronize(f->down);\n", "", FLIGHTS,
     "given_up"),
    ("recording-not-freed", "recording.c", "    cudaGraphExecDestroy(r->exec); /* what is under way goes on */\n", "", FLIGHTS),
    ("recording-of-all-threads", "recording.c", "cudaStreamCaptureModeThreadLocal", "cudaStreamCaptureModeGlobal", FLIGHTS),
    ("recording-never-ends", "recording.c", "cudaStreamEndCapture(dev->stream, &graph);", "cudaErrorUnknown;", FLIGHTS),
    ("move-the-wrong-way", "backend.c", "on_device(dev, to) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost",
     "on_device(dev, to) ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice", BACKEND, "streamed_weights"),
    # cuDNN
    ("dnn-weights-order", "dnn_run.c", "place + (begin + i) * t->stride[last];", "place + begin + i;", DNN),
    ("dnn-scale-of-groups", "dnn_run.c", "index[0] / (weights->dim[0] / op->p.conv.groups) * weights->dim[1] + index[1]",
     "index[1]", DNN),
    ("dnn-padding-behind", "dnn_graph.c", "behind[at] = c->pad_end[i];", "behind[at] = c->pad_begin[i];", DNN),
    ("dnn-slope", "dnn_graph.c", "desc below = step(c, CUDNN_POINTWISE_SUB, x, above, NULL);",
     "desc below = step(c, CUDNN_POINTWISE_ADD, x, above, NULL);", DNN),
    ("dnn-workspace-at-the-padding", "products.c", "(char *)scratch + p.bytes : NULL", "(char *)scratch : NULL",
     BACKEND),
    ("dnn-reflected-rows", "products.c", "p.in[0].data = (char *)p.picture.data + p.skipped;",
     "p.in[0].data = p.picture.data;", BACKEND),
    ("dnn-alignment", "dnn_graph.c", "return least < INT64_MAX && least > run ? each : align;", "return 16;",
     DNN + BACKEND),
    ("dnn-wrong-stream", "dnn_run.c", "dnn->SetStream(dnn->handle, stream)", "dnn->SetStream(dnn->handle, NULL)",
     DNN + BACKEND),
    ("dnn-alike-but-constants", "dnn.c", "p->op.constant != op->constant ||", "", DNN),
]


def sh(command, cwd, log, **more):
    return subprocess.run(command, cwd=cwd, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          **more).returncode


class Build:
    def __init__(self, folder):
        self.folder = folder
        programs = sorted({"tests/cuda/" + t[1] for m in MUTANTS for t in m[4]})
        out = subprocess.run(["ninja", "-t", "commands"] + programs, cwd=folder, stdout=subprocess.PIPE,
                             check=True).stdout.decode()
        self.commands = {}
        for line in out.splitlines():
            words = shlex.split(line.split(" && ")[-1]) if line.startswith(("rm ", "ccache", "c", "g", "/")) else []
            if "-o" in words:
                self.commands[words[words.index("-o") + 1]] = words

    def compile(self, source, include, target, mutated, log):
        """The object that BUILD makes of a file, made of the mutated one."""
        words = [w for w in self.commands[target] if w != "-Werror"]
        for flag in ("-MQ", "-MF"):
            del words[words.index(flag):words.index(flag) + 2]
        words[words.index("-o") + 1] = mutated
        if source:
            words[words.index("-c") + 1] = source
        compiler = words.index("-c") - 1
        first = next(i for i, w in enumerate(words) if w.startswith("-"))
        words[first:first] = include
        assert compiler > 0
        return sh(words, self.folder, log) == 0

    def link(self, target, output, replaced, mutated, log):
        words = [mutated if w == replaced else w for w in self.commands[target]]
        at = words.index("-o")
        words[at + 1] = output
        if mutated not in words:  # an archive has the other one, which is then left there
            words.insert(at + 2, mutated)
        return sh(words, self.folder, log) == 0


def make(build, folder, file, text, tests, log):
    """Compiles and links the mutant: what to run in place of each program, and the environment for it, or None."""
    directory = os.path.dirname(file)
    path = os.path.join(folder, file)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write(text)
    include = ["-I" + folder, "-I" + os.path.join(ROOT, directory)]
    if file.endswith(".cu"):
        stem = os.path.basename(file)[:-3]
        target = f"tests/cuda/libstandin.so.p/meson-generated_.._standin-{stem}.cpp.o"
        mutated = os.path.join(folder, "mutated.o")
        library = os.path.join(folder, "libstandin.so")
        ok = build.compile(None, include, target, mutated, log) and \
            build.link("tests/cuda/libstandin.so", library, target, mutated, log)
        return ({}, {"LD_PRELOAD": library}) if ok else None
    programs = {}
    stem = os.path.basename(file)
    for program in sorted({t[1] for t in tests}):
        name = f".._.._{directory.replace('/', '_')}_{stem}.o"
        targets = [f"tests/cuda/{program}.p/{name}", f"tests/cuda/libstandin-backend.a.p/{name}"]
        target = next(t for t in targets if t in build.commands)
        mutated, output = os.path.join(folder, program + ".o"), os.path.join(folder, program)
        if not build.compile(path, include, target, mutated, log) or \
                not build.link("tests/cuda/" + program, output, target, mutated, log):
            return None
        programs[program] = output
    return programs, {}


def failing(build, tests, function, programs, more, log):
    for name, program, arguments, environment in tests:
        arguments = [os.path.join(ROOT, "pipelines/models") if a == "MODELS" else a for a in arguments]
        command = [programs.get(program, os.path.join(build.folder, "tests/cuda", program))] + arguments
        libraries = [os.path.join(build.folder, "tests/cuda", d) for d in ("", "standin_cudnn")]
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(libraries), "KIT_FIRST": "1", **environment, **more}
        if function:
            environment["KIT_ONLY"] = function
            name += "/" + function
        try:
            status = sh(command, build.folder, log, timeout=300, env=environment)
        except subprocess.TimeoutExpired:
            return name
        if status:
            return name
    return None


def attempt(build, work, mutant):
    name, file, old, new, tests = mutant[:5]
    function = mutant[5] if len(mutant) > 5 else None
    file = os.path.join("kernels/cuda", file)
    text = open(os.path.join(ROOT, file)).read()
    folder = os.path.join(work, name)
    os.makedirs(folder, exist_ok=True)
    if text.count(old) != 1:
        return f"FAIL mutant/{name}: its text occurs {text.count(old)} times in {file}"
    with open(os.path.join(folder, "log"), "w") as log:
        made = make(build, folder, file, text.replace(old, new), tests, log)
        if not made:
            return f"FAIL mutant/{name}: does not compile, see {log.name}"
        found = (function and failing(build, tests, function, *made, log)) or failing(build, tests, None, *made, log)
    return f"ok mutant/{name}: found by {found}" if found else f"FAIL mutant/{name}: not found"


def main():
    if "--list" in sys.argv:
        for name, file, *_ in MUTANTS:
            print(name, file)
        return 0
    build, work = Build(os.path.abspath(sys.argv[1])), os.path.abspath(sys.argv[2])
    mutants = [m for m in MUTANTS if not sys.argv[3:] or m[0] in sys.argv[3:]]
    os.makedirs(work, exist_ok=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        # What is to find them passes on the tree as it is.
        wanted = sorted({(tuple(t[0] for t in m[4]), m[5]) for m in mutants if len(m) > 5})
        every = {t[0]: t for m in MUTANTS for t in m[4]}
        with open(os.path.join(work, "log"), "w") as log:
            for wrong in pool.map(lambda w: failing(build, [every[n] for n in w[0]], w[1], {}, {}, log), wanted):
                if wrong:
                    sys.exit(f"FAIL mutant/none: {wrong} fails on the tree as it is, see {log.name}")
        for line in pool.map(lambda m: attempt(build, work, m), mutants):
            print(line, flush=True)
            failed += line.startswith("FAIL")
    return 1 if failed else 0


sys.exit(main())
