#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes docs/models-time.md: the time of every model against onnxruntime's, in turn, in one run.

  models.py BENCH-MODEL MODEL.onnx|FOLDER ... [--size 320x240] [--threads 2] [--seconds 2] > docs/models-time.md

A folder stands for the .onnx files in it (the fixtures: tests/fixtures/make_fixtures.py OUTDIR).  What one of the two
does not run is told below the table.  Ratios of so short a run are good to a tenth at best."""
import argparse
import glob
import os
import subprocess
import sys

from contenders import Contender, race


def files(paths):
    for path in paths:
        yield from sorted(glob.glob(os.path.join(path, "*.onnx"))) if os.path.isdir(path) else [path]


def why(*command):
    """What it says for not running."""
    said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True).stderr.strip().splitlines()
    reason = said[-1].split(": ", 1)[-1] if said else "no reason given"
    return reason if len(reason) < 160 else reason[:reason.rfind(" ", 0, 160)] + " ..."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--size", default="320x240")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    print("# Time against onnxruntime\n\nMade by `tests/bench/models.py`: both in turn in one run, on the same input, "
          "%s, %d threads; medians in milliseconds.\nRatio: onnxruntime's over vidgen's, above 1 vidgen is the faster. "
          "vidgen's time contains the way from bytes to floats and back.\n" % (options.size, options.threads))
    print("| model | vidgen | onnxruntime | ratio | arena MiB |\n| --- | --- | --- | --- | --- |")
    left_out = []
    for model in files(options.models):
        name = os.path.basename(model)[:-5]
        command = options.program, model, str(width), str(height), "-threads", str(options.threads)
        contenders = []
        try:
            contenders.append(Contender(*command))
            contenders.append(Contender.peer("onnxruntime", model, width, height, options.threads))
            race(contenders, options.seconds)
        except RuntimeError:
            for contender in contenders:
                contender.stop()
            left_out.append("%s: %s" % (name, "onnxruntime does not run it on such an input" if contenders
                                        else why(*command)))
            continue
        a, b = contenders
        print("| %s | %.1f | %.1f | %.2f | %.1f |" % (name, a.median, b.median, b.median / a.median, a.arena / 2**20),
              flush=True)
    if left_out:
        print("\nLeft out:\n")
        print("\n".join("- " + line for line in left_out))


if __name__ == "__main__":
    sys.exit(main())
