# SPDX-License-Identifier: LGPL-2.1-or-later
"""Contenders: processes that hold a model and run it once for every line they are sent, so that several can be timed in
turn on the same picture.

Ours are bench-model and bench-pipeline; the others are this file, run as
    contenders.py onnxruntime|openvino|ncnn MODEL WIDTH HEIGHT THREADS
All print "ready ARENA-BYTES PEAK-RESIDENT-BYTES ..." and then, for each line, seconds by the clock and of the CPUs."""
import os
import resource
import statistics
import subprocess
import sys
import time


def picture(width, height):
    import numpy as np

    y, x, c = np.mgrid[0:height, 0:width, 0:3]
    bytes_ = ((x * (c + 1) + y * (3 - c)) ^ (x * y >> 6)) % 256
    return np.ascontiguousarray((bytes_.astype(np.float32) / 255).transpose(2, 0, 1)[None])


def others_of(shapes):
    """Values for the inputs behind the first: one style of several."""
    import numpy as np

    for name, shape in shapes:
        values = np.zeros([d if isinstance(d, int) else 1 for d in shape], np.float32)
        values.flat[0] = 1
        yield name, values


def feeds(inputs, width, height, frames=8):
    """For onnxruntime: the picture, also in windows; states and maps of its size, whose dims are named after its own; else
    as others_of.  Open dims that are neither rows nor columns are frames where they come before them, else 1."""
    import re

    import numpy as np

    first, image = inputs[0], picture(width, height)
    rows, columns = (1, 2) if first.shape[-1] == 3 else (len(first.shape) - 2, len(first.shape) - 1)
    names = {first.shape[rows]: height, first.shape[columns]: width}
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}

    def size(dim, i):
        if isinstance(dim, int):
            return dim
        words = re.sub(r"[A-Za-z_]\w*", lambda m: str(names.get(m[0], frames if i else 1)), dim or "1")
        return int(eval(words.replace("/", "//"), {}))  # "2*H", "H/2"

    for one in inputs:
        shape = [size(d, i) for i, d in enumerate(one.shape)]
        if len(shape) >= 4 and one.shape[-2:] == first.shape[-2:] and one.shape[-3] == 3:
            values = np.broadcast_to(image[0], shape)
        else:
            values = np.zeros(shape, np.float32)
            values.flat[0] = 1
        yield one.name, np.ascontiguousarray(values, types[one.type])


def onnxruntime_run(model, width, height, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = dict(feeds(session.get_inputs(), width, height))
    return lambda: session.run(None, feed)


def openvino_run(model, width, height, threads):
    import openvino

    core = openvino.Core()
    net = core.read_model(model)
    first, *others = net.inputs
    feed = {first.any_name: picture(width, height)}
    feed.update(others_of((o.any_name, [d.get_length() if d.is_static else 1 for d in o.partial_shape]) for o in others))
    net.reshape({name: openvino.PartialShape(list(value.shape)) for name, value in feed.items()})
    request = core.compile_model(net, "CPU", {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32",
                                              "PERFORMANCE_HINT": "LATENCY"}).create_infer_request()
    return lambda: request.infer(feed)


def ncnn_run(model, width, height, threads):
    """MODEL: path of the .param file; the .bin lies beside it."""
    import ncnn

    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_vulkan_compute = False
    net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = net.opt.use_bf16_storage = False
    if net.load_param(model) or net.load_model(os.path.splitext(model)[0] + ".bin"):
        sys.exit("ncnn does not load " + model)
    values = picture(width, height)[0]

    def run():
        extractor = net.create_extractor()
        extractor.input(net.input_names()[0], ncnn.Mat(values))
        return extractor.extract(net.output_names()[0])
    return run


def serve(name, model, width, height, threads):
    run = {"onnxruntime": onnxruntime_run, "openvino": openvino_run, "ncnn": ncnn_run}[name](model, width, height, threads)
    run()
    print("ready 0 %d 1" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024), flush=True)
    for _ in sys.stdin:
        start, cpu = time.perf_counter(), time.process_time()
        run()
        print("%.6f %.6f" % (time.perf_counter() - start, time.process_time() - cpu), flush=True)


class Contender:
    """wall and cpu: milliseconds of each run."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline().split()
        if not ready:
            self.process.wait()
            raise RuntimeError("did not start: " + " ".join(command))
        self.arena, self.resident, self.tiles = (int(word) for word in ready[1:4])
        self.wall, self.cpu = [], []

    @classmethod
    def peer(cls, name, model, width, height, threads):
        return cls(sys.executable, os.path.abspath(__file__), name, model, *map(str, (width, height, threads)))

    def run(self, times=2):
        """The first of a turn finds cold caches, and threads of the one before that still spin: not counted."""
        for i in range(times):
            print(file=self.process.stdin, flush=True)
            wall, cpu = self.process.stdout.readline().split()
            if i or times == 1:
                self.wall.append(1000 * float(wall))
                self.cpu.append(1000 * float(cpu))

    def stop(self):
        self.process.stdin.close()
        self.process.wait()

    median = property(lambda self: statistics.median(self.wall))
    least = property(lambda self: min(self.wall))
    median_cpu = property(lambda self: statistics.median(self.cpu))


def race(contenders, seconds, most=31):
    """In turn, three rounds at least."""
    end = time.monotonic() + seconds
    rounds = 0
    while rounds < 3 or (time.monotonic() < end and rounds < most):
        for contender in contenders:
            contender.run()
        rounds += 1
    for contender in contenders:
        contender.stop()
    return rounds


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
