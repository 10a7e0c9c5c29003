# SPDX-License-Identifier: LGPL-2.1-or-later
"""Faults put into the CUDA back end, one at a time: each must be found by a test.

    mutants.py WORK [NAME ...]     WORK: a folder to build in (made, kept for the next time)
    mutants.py --list

Prints `ok mutant/NAME: found by TEST` or `FAIL mutant/NAME: why`.  Each fault replaces one text, which must occur in its file
exactly once.  The tests run on the stand-ins, without a GPU; first all of them on the tree as it is."""
import filecmp
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KERNELS = [("kernels-" + seed, "test-cuda-kernels", [seed], {"VIDGEN_STANDIN_SEED": seed, "VIDGEN_CUDNN": "no"})
           for seed in ("0", "1", "7")]
BACKEND = [("backend-" + seed, "test-cuda-backend", ["MODELS"], {"VIDGEN_STANDIN_SEED": seed}) for seed in ("0", "1", "5")]
BACKEND += [("backend-own", "test-cuda-backend", ["MODELS"], {"VIDGEN_STANDIN_SEED": "2", "VIDGEN_CUDNN": "no"})]
FLIGHTS = [("flights-" + seed, "test-cuda-flights", ["MODELS"], {"VIDGEN_STANDIN_SEED": seed}) for seed in ("0", "1", "5")]
DNN = [("dnn-run", "test-dnn-run", ["must"], {})]

# name, file in kernels/cuda, what it says, what it says instead, tests
MUTANTS = [
    # kernels: barriers
    ("matmul-first-barrier", "matmul.cu", "        __syncthreads();\n        int steps = m.depth", "        int steps = m.depth",
     KERNELS),
    ("matmul-second-barrier", "matmul.cu", "right[k][t % 16 * 4 + j], sum[i][j]);\n        __syncthreads();",
     "right[k][t % 16 * 4 + j], sum[i][j]);", KERNELS),
    ("conv-first-barrier", "conv.cu", "        __syncthreads();\n        int steps = c.depth", "        int steps = c.depth",
     KERNELS),
    ("conv-second-barrier", "conv.cu", "        __syncthreads();\n    }\n    for (int i = 0; i < MINE; i++) {\n        int64_t pixel",
     "    }\n    for (int i = 0; i < MINE; i++) {\n        int64_t pixel", KERNELS),
    ("norm-sum-barrier", "norm.cu", "            part[threadIdx.x] += part[threadIdx.x + half];\n        __syncthreads();",
     "            part[threadIdx.x] += part[threadIdx.x + half];", KERNELS),
    ("norm-last-barrier", "norm.cu", "    double all = part[0];\n    __syncthreads();", "    double all = part[0];", KERNELS),
    ("moments-barrier", "norm.cu", "    squares[lane][mine] = square;\n    __syncthreads();",
     "    squares[lane][mine] = square;", KERNELS),
    ("reduce-tree-barrier", "reduce.cu", "part[threadIdx.x + half]);\n        __syncthreads();",
     "part[threadIdx.x + half]);", KERNELS),
    ("attention-score-barrier", "matmul.cu", "            score[t] = 0;\n        __syncthreads();", "            score[t] = 0;",
     KERNELS),
    ("attention-divergent-barrier", "matmul.cu", "        most[t] = score[t] = dot;\n        __syncthreads();",
     "        most[t] = score[t] = dot;\n        if (s < keys)\n            __syncthreads();", KERNELS),
    # kernels: warps
    ("softmax-half-a-warp", "reduce.cu", "__shfl_xor_sync(0xffffffffu, sum, lane)", "__shfl_xor_sync(0x0000ffffu, sum, lane)",
     KERNELS),
    ("softmax-one-step-less", "reduce.cu",
     "    for (int lane = 16; lane; lane /= 2)\n        sum +=", "    for (int lane = 8; lane; lane /= 2)\n        sum +=",
     KERNELS),
    # kernels: chains
    ("chain-result-not-kept", "pointwise.cu", "            c.keep[l->a - VGK_CHAIN_LINK] = true;", "            ;", KERNELS),
    ("chain-single-values", "pointwise.cu", "float one = cu_load<float>(a.x[from], 0);", "float one = v[0];", KERNELS),
    ("chain-operands-swapped", "pointwise.cu", "cu_binary_piece(l.two.fn, v, w);", "cu_binary_piece(l.two.fn, w, v);", KERNELS),
    ("chain-ring", "pointwise.cu", "            CU_RING(b, 0);\n", "", KERNELS),
    # kernels: addresses, edges
    ("matmul-past-the-rows", "matmul.cu", "            if (row >= m.rows || column >= m.columns)\n                continue;", "",
     KERNELS),
    ("conv-past-the-channels", "conv.cu", "n = c.cout - ch < TN ? c.cout - ch : TN;", "n = TN;", KERNELS),
    ("conv-past-the-pixels", "conv.cu", "        if (pixel < c.pixels && n > 0)", "        if (n > 0)", KERNELS),
    ("depthwise-past-the-end", "conv.cu", "    if (i >= c.pixels * pieces)\n        return;", "", KERNELS),
    ("conv-wrong-group", "conv.cu", "(group * c.cin + k - tap * c.cin)", "(k - tap * c.cin)", KERNELS),
    ("conv-no-scale", "conv.cu", "            f *= cu_load<float>(scale, ch * scale.stride[0]);", "            ;", KERNELS),
    ("conv-residual-order", "conv.cu", "        if (q.residual_before_act)\n            f += add;",
     "        if (!q.residual_before_act)\n            f += add;", KERNELS),
    ("pool-padding-counts", "move.cu", "padded &= i < x.dim[2 + d] + p.pad_end[d];", "padded &= i < x.dim[2 + d];", KERNELS),
    ("resize-offset", "move.cu", "return t.index[d][at] - a.op.p.resize.in_begin[d];", "return t.index[d][at];",
     KERNELS + BACKEND),
    ("pad-constant", "move.cu", "beyond || i < 0 ? constant", "i < 0 ? constant", KERNELS),
    ("merge-weights", "norm.cu", "d * d * count * more / total;", "d * d * count * more / (total + 1);", KERNELS),
    ("moments-one-lane-less", "norm.cu", "for (int k = 1; k < LANES; k++) {", "for (int k = 1; k < LANES - 1; k++) {",
     KERNELS),
    ("norm-epsilon", "norm.cu", "sqrt(square / (double)m.count + (double)p.epsilon)", "sqrt(square / (double)m.count)",
     KERNELS),
    ("attention-shared-keys", "matmul.cu", "g = h * k.dim[1] / heads", "g = h % k.dim[1]", KERNELS),
    ("attention-no-shrink", "matmul.cu", "            total *= shrink;\n", "", KERNELS),
    ("reduce-last-element", "reduce.cu", "    for (int64_t i = threadIdx.x; i < s.count; i += CU_THREADS) {\n        double v",
     "    for (int64_t i = threadIdx.x; i + 1 < s.count; i += CU_THREADS) {\n        double v", KERNELS),
    # frames
    ("frame-not-clamped", "frame.cu", "fx = x < a.f.width ? (int)x : a.f.width - 1", "fx = (int)x", KERNELS + BACKEND),
    ("frame-chroma-mean", "frame.cu", "* 0.25f);", "* 0.5f);", KERNELS + BACKEND),
    ("frame-overflow-unseen", "frame.cu", "bad += !isfinite(e);", "", KERNELS + BACKEND),
    ("frame-no-wait", "frames.c", "    VGK_CUDA_TRY(cudaStreamSynchronize(dev->stream), err);\n    if (nonfinite)",
     "    if (nonfinite)", BACKEND),
    ("frame-flags-stay", "frames.c", "    VGK_CUDA_TRY(cudaMemsetAsync(dev->flags, 0, sizeof *dev->flags, dev->stream), err);\n", "",
     BACKEND),
    ("frame-alpha-over-the-frame", "frames.c", "        stage(alpha, behind, &staged_alpha);",
     "        stage(alpha, scratch, &staged_alpha);", BACKEND),
    # memory and streams
    ("memory-not-counted", "backend.c", "        dev->now -= b->bytes;\n", "", BACKEND),
    ("cap-not-kept", "backend.c", "(take > dev->limit || dev->now > dev->limit - take)", "(take > dev->limit)", BACKEND),
    # tiles in flight: waits, and room
    ("flight-no-wait-for-upload", "flights.c", "    VGK_CUDA_TRY(cudaStreamWaitEvent(dev->stream, g->up, 0), err);\n", "", FLIGHTS),
    ("flight-no-wait-for-result", "flights.c", "    VGK_CUDA_TRY(cudaStreamWaitEvent(f->down, g->computed, 0), err);\n", "",
     FLIGHTS),
    ("flight-no-wait-for-room", "frames.c", "        VGK_CUDA_TRY(cudaStreamWaitEvent(dev->stream, dev->before_write, 0), err);\n",
     "", FLIGHTS),
    ("flight-no-wait-at-the-end", "flights.c", "    VGK_CUDA_TRY(cudaEventSynchronize(g->down), err);\n", "", FLIGHTS),
    ("flight-waits-for-upload-only", "flights.c", "cudaEventSynchronize(g->down)", "cudaEventSynchronize(g->up)", FLIGHTS),
    ("flight-recorded-too-early", "flights.c",
     "    VGK_CUDA_TRY(cudaMemcpyAsync(g->memory, g->host_in, bytes, cudaMemcpyHostToDevice, f->up), err);\n"
     "    VGK_CUDA_TRY(cudaEventRecord(g->up, f->up), err);\n",
     "    VGK_CUDA_TRY(cudaEventRecord(g->up, f->up), err);\n"
     "    VGK_CUDA_TRY(cudaMemcpyAsync(g->memory, g->host_in, bytes, cudaMemcpyHostToDevice, f->up), err);\n", FLIGHTS),
    ("flight-one-room-for-two", "flights.c", "(uint8_t *)memory + (size_t)k * f->in_bytes;", "memory;", FLIGHTS),
    ("flight-flags-stay", "flights.c",
     "    VGK_CUDA_TRY(cudaMemsetAsync(dev->flags, 0, sizeof *dev->flags, dev->stream), err);\n"
     "    VGK_CUDA_TRY(cudaEventRecord", "    VGK_CUDA_TRY(cudaEventRecord", FLIGHTS),
    ("flight-closed-under-way", "flights.c", "    cudaStreamSynchronize(dev->stream);\n    if (f->down)\n"
     "        cudaStreamSynchronize(f->down);\n", "", FLIGHTS),
    ("recording-not-freed", "recording.c", "    cudaGraphExecDestroy(r->exec); /* what is under way goes on */\n", "", FLIGHTS),
    ("recording-never-ends", "recording.c", "cudaStreamEndCapture(dev->stream, &graph);", "cudaErrorUnknown;", FLIGHTS),
    # cuDNN
    ("dnn-weights-order", "dnn_run.c", "place + (begin + i) * t->stride[last];", "place + begin + i;", DNN),
    ("dnn-scale-of-groups", "dnn_run.c", "index[0] / (weights->dim[0] / op->p.conv.groups) * weights->dim[1] + index[1]",
     "index[1]", DNN),
    ("dnn-padding-behind", "dnn_graph.c", "behind[at] = c->pad_end[i];", "behind[at] = c->pad_begin[i];", DNN),
    ("dnn-slope", "dnn_graph.c", "desc below = step(c, CUDNN_POINTWISE_SUB, x, above, NULL);",
     "desc below = step(c, CUDNN_POINTWISE_ADD, x, above, NULL);", DNN),
    ("dnn-workspace-at-the-padding", "products.c", "(char *)scratch + p.bytes : NULL", "(char *)scratch : NULL", BACKEND),
    ("dnn-reflected-rows", "products.c", "p.in[0].data = (char *)p.picture.data + p.skipped;",
     "p.in[0].data = p.picture.data;", BACKEND),
    ("dnn-alignment", "dnn_graph.c", "return least < INT64_MAX && least > run ? each : align;", "return 16;", DNN + BACKEND),
    ("dnn-wrong-stream", "dnn_run.c", "dnn->SetStream(dnn->handle, stream)", "dnn->SetStream(dnn->handle, NULL)",
     DNN + BACKEND),
    ("dnn-alike-but-constants", "dnn.c", "p->op.constant != op->constant ||", "", DNN),
]


def run(command, work, log, **more):
    return subprocess.run(command, cwd=work, stdout=log, stderr=subprocess.STDOUT, **more).returncode


def prepare(work, log):
    source = os.path.join(work, "source")
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode().split()
    for file in files:
        origin, target = os.path.join(ROOT, file), os.path.join(source, file)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target) or not filecmp.cmp(origin, target, shallow=False):
            shutil.copyfile(origin, target)
    build = os.path.join(work, "build")
    if not os.path.exists(os.path.join(build, "build.ninja")):
        if run(["meson", "setup", "-Dgst=disabled", "-Dcuda=disabled", build, source], work, log):
            sys.exit("FAIL mutant/build: meson, see " + log.name)
    return source, build


def build_targets(build, tests, work, log):
    return run(["ninja", "-C", build] + ["tests/cuda/standin_cudnn/libcudnn.so.9"] +
               sorted({"tests/cuda/" + t[1] for t in tests}), work, log)


def first_failing(build, source, tests, work, log):
    for name, program, arguments, environment in tests:
        arguments = [os.path.join(source, "pipelines/models") if a == "MODELS" else a for a in arguments]
        try:
            status = run([os.path.join(build, "tests/cuda", program)] + arguments, work, log, timeout=600,
                         env={**os.environ, **environment})
        except subprocess.TimeoutExpired:
            return name
        if status == 77:
            sys.exit("FAIL mutant/" + name + ": skipped on the tree as it is")
        if status:
            return name
    return None


def main():
    if "--list" in sys.argv:
        for name, file, *_ in MUTANTS:
            print(name, file)
        return 0
    work, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    os.makedirs(work, exist_ok=True)
    failed = 0
    with open(os.path.join(work, "log"), "w") as log:
        source, build = prepare(work, log)
        every = KERNELS + BACKEND + FLIGHTS + DNN
        if build_targets(build, every, work, log):
            sys.exit("FAIL mutant/build: see " + log.name)
        wrong = first_failing(build, source, every, work, log)
        if wrong:
            sys.exit(f"FAIL mutant/none: {wrong} fails on the tree as it is, see {log.name}")
        for name, file, old, new, tests in MUTANTS:
            if wanted and name not in wanted:
                continue
            path = os.path.join(source, "kernels/cuda", file)
            text = open(path).read()
            if text.count(old) != 1:
                print(f"FAIL mutant/{name}: its text occurs {text.count(old)} times in {file}", flush=True)
                failed += 1
                continue
            open(path, "w").write(text.replace(old, new))
            log.write(f"---- {name}\n")
            log.flush()
            if build_targets(build, tests, work, log):
                print(f"FAIL mutant/{name}: does not compile", flush=True)
                failed += 1
            else:
                found = first_failing(build, source, tests, work, log)
                print(f"ok mutant/{name}: found by {found}" if found else f"FAIL mutant/{name}: not found", flush=True)
                failed += not found
            open(path, "w").write(text)
    return 1 if failed else 0


sys.exit(main())
