#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Times models against onnxruntime, in turn, on the same picture.

  bench-model.py BENCH-MODEL [--size 640x360] [--threads 2] [--seconds 10] MODEL.onnx ...

The models: pipelines/models, run.sh's cache (its span.py writes a SPAN-like one), or any other.

BENCH-MODEL is the program of that name in the build (tests/bench/bench-model; build with --buildtype=release).  Its time
contains the bytes to floats and back that onnxruntime's does not.  One line a model: median and least milliseconds of
both, ratio of the medians (onnxruntime's over ours), CPU milliseconds, peak memory: the plan's bytes, and what each
process held."""
import argparse
import os

from contenders import Contender, race


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--size", default="640x360")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    print("%-26s %18s %18s %6s %15s %28s" % ("%s, %d threads" % (options.size, options.threads), "vidgen ms med/min",
                                             "onnxruntime ms", "ratio", "CPU ms", "plan / process / onnxruntime MiB"))
    for model in options.models:
        a = Contender(options.program, model, str(width), str(height), "-threads", str(options.threads))
        b = Contender.peer("onnxruntime", model, width, height, options.threads)
        race([a, b], options.seconds)
        print("%-26s %9.1f %8.1f %9.1f %8.1f %6.2f %7.1f %7.1f %10.1f %8.1f %8.1f" % (
            os.path.basename(model)[:-5], a.median, a.least, b.median, b.least, b.median / a.median, a.median_cpu,
            b.median_cpu, a.arena / 2**20, a.resident / 2**20, b.resident / 2**20), flush=True)


if __name__ == "__main__":
    main()
