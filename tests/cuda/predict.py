# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of docs/cuda.md: bytes that a model takes on a GPU of each capability, whole frames, as `vidgen plan` says.

    predict.py VIDGEN [--check docs/cuda.md]     --check: exit status 1 when the page says something else

Needs the CUDA module (VIDGEN_MODULE_PATH), cuDNN and the toolkit's stub of the driver, but no GPU."""
import json
import subprocess
import sys

MODELS = ("style3", "upscale2x")
SIZES = ("640x360", "1280x720", "1920x1080")
DEVICES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def arena(vidgen, model, size, device):
    out = subprocess.run([vidgen, "plan", "--json", "--device", device, "--size", size, "--bands", "1", "--only",
                          "--max-device-memory", "64G", f"pipelines/models/{model}.onnx"],
                         stdout=subprocess.PIPE, check=True).stdout
    return json.loads(out)["plan"]["bytes"]["arena"]


def main():
    vidgen = sys.argv[1]
    lines = ["| model | size | " + " | ".join(DEVICES) + " |", "| --- | --- |" + " ---: |" * len(DEVICES)]
    for model in MODELS:
        for size in SIZES:
            row = [f"{arena(vidgen, model, size, device) / 2**20:.2f}" for device in DEVICES]
            lines.append(f"| {model} | {size} | " + " | ".join(row) + " |")
    table = "\n".join(lines)
    print(table)
    if len(sys.argv) > 3:
        return 0 if table in open(sys.argv[3]).read() else 1
    return 0


sys.exit(main())
