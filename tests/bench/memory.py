#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The tables of docs/memory.md: what plans need over the size of frames, from `vidgen plan --json`.

    memory.py VIDGEN BUDGET MODEL.onnx ... > table.md
"""
import json
import re
import subprocess
import sys

SIZES = [("720p", "1280x720"), ("1080p", "1920x1080"), ("4K", "3840x2160"), ("8K", "7680x4320")]


def ask(vidgen, model, size, budget):
    return subprocess.run([vidgen, "plan", model, "--size=" + size, "--max-device-memory=" + budget, "--json"],
                          capture_output=True, text=True)


def whole_bytes(vidgen, model, size):
    """Of the frame at once, which need not be what a plan without a limit takes."""
    return json.loads(ask(vidgen, model, size, "1024G").stdout)["ways"][0]["bytes"]


def plan(vidgen, model, size, budget):
    p = ask(vidgen, model, size, budget)
    need = re.search(r"at least (\d+) bytes", p.stdout + p.stderr)
    return json.loads(p.stdout).get("plan") if not need else None, int(need.group(1)) if need else None


def mib(n):
    return f"{n / 2**20:.1f}"


def way(p):
    words = []
    if p["tiles"] > 1:
        words.append(f"{len(p['x']['origins'])} x {len(p['y']['origins'])} tiles")
    words.append(f"{p['bands']} bands" if p["bands"] > 1 else "at once")
    if p["levels"] > 1:
        words.append(f"{p['levels']} passes")
    if p["spilled"]:
        words.append(f"{p['spilled']} pictures in host memory")
    if p["streams"]:
        words.append("weights in host memory")
    return ", ".join(words)


def main():
    vidgen, budget, models = sys.argv[1], sys.argv[2], sys.argv[3:]
    for model in models:
        name = model.rsplit("/", 1)[-1].removesuffix(".onnx")
        print(f"\n### {name}, budget {budget}iB\n")
        print("| frame | all at once, MiB | taken, MiB | how | computed twice | host, MiB | moved, MiB | least budget, MiB |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for label, size in SIZES:
            p, _ = plan(vidgen, model, size, budget)
            _, least = plan(vidgen, model, size, "64K")
            cells = ["refused"] + [""] * 4
            if p:
                cells = [mib(p["bytes"]["arena"]), way(p), f"{100 * p['waste']:.0f} %", mib(p["bytes"]["host"]),
                         mib(p["bytes"]["moved"] * p["tiles"])]
            print(f"| {label} | {mib(whole_bytes(vidgen, model, size))} | " + " | ".join(cells) + f" | {mib(least)} |")


if __name__ == "__main__":
    main()
