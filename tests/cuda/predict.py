# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of docs/cuda.md: bytes that a model takes on a GPU of each capability, whole frames, as `vidgen plan` says.

    predict.py VIDGEN [--check docs/cuda.md]     --check: exit status 1 when the page has another row

Needs the CUDA module (VIDGEN_MODULE_PATH), cuDNN and the toolkit's stub of the driver, but no GPU; exit status 77
without them.  The two models that are not ours are in the table where tests/run.sh has fetched them (~/.cache/vidgen)."""
import concurrent.futures
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "vidgen")
MODELS = {"style3": f"{ROOT}/pipelines/models/style3.onnx", "upscale2x": f"{ROOT}/pipelines/models/upscale2x.onnx",
          "multistyle26": f"{CACHE}/multistyle26.onnx",
          "realesr-animevideov3-x2": f"{CACHE}/realesr-animevideov3-x2.onnx"}
SIZES = ("640x360", "1280x720", "1920x1080")
DEVICES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def arena(vidgen, path, size, device):
    made = subprocess.run([vidgen, "plan", "--json", "--device", device, "--size", size, "--bands", "1", "--only",
                           "--max-device-memory", "64G", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if made.returncode:
        why = made.stderr.decode().strip().splitlines()
        if "cannot be loaded" in " ".join(why) or "no vidgen-cuda.so" in " ".join(why):
            print("skipped:", why[-1])
            os._exit(77)
        sys.exit(f"{path}: {why}")
    return json.loads(made.stdout)["plan"]["bytes"]["arena"]


def main():
    vidgen, page = sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else None
    text, wrong = open(page).read() if page else "", 0
    print("| model | size | " + " | ".join(DEVICES) + " |", "| --- | --- |" + " ---: |" * len(DEVICES), sep="\n")
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name, path in MODELS.items():
            if not os.path.exists(path):
                print(f"{name} is not there: {path}")
                continue
            for size in SIZES:
                row = [f"{n / 2**20:.2f}" for n in pool.map(lambda d: arena(vidgen, path, size, d), DEVICES)]
                line = f"| {name} | {size} | " + " | ".join(row) + " |"
                print(line, flush=True)
                if page and line not in text:
                    print(f"FAIL: {page} has another row")
                    wrong += 1
    return 1 if wrong else 0


sys.exit(main())
