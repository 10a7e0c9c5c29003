#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares the element vidgen with onnxruntime (fp32, on the CPU), and tiled with untiled.

  compare.py --build BUILD --clip CLIP --models DIRECTORY [MODEL.onnx ...]

Frames of the clip go through gst-launch-1.0 as raw RGB: filesrc ! rawvideoparse ! vidgen ! filesink.  Prints a table,
and one line a test: `ok NAME`, `FAIL NAME: why`.  A frame must be within 1 step of 255 on 99.9 % of its values, and
within 2 everywhere.  Tiled must equal untiled in every byte: untiled with the same way of products, as small tiles are
run without Winograd; that result comes from bench-model, which has no GStreamer in it.  Exit status 1 when something
failed."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime

SIZES = (320, 180), (640, 360), (321, 181)
TILED_SIZE = 641, 361
TILES = (256, 192), (400, 300), (480, 361)
FRAMES = 30, 75  # of the clip, from 0

# What a model is compared with.  align: sizes are padded to a multiple of it (the edge repeated), and cut afterwards.
# weights: values of its second input, and how the property `parameters` says the same.
MODELS = {
    "style3": dict(align=4, tiles=True, weights=[
        (None, [0, 1, 0]), ("<0.0,0.0,1.0>", [0, 0, 1]), ('(string)"0:0.5,1:0.5"', [0.5, 0.5, 0])]),
    "upscale2x": dict(align=1, tiles=True),
    "realesr-animevideov3-x2": dict(align=1, tiles=True),
    "multistyle26": dict(align=4, tiles=False, weights=[
        ('(string)"3:1"', {3: 1}), ('(string)"3:0.5,12:0.5"', {3: 0.5, 12: 0.5})]),
}


def gst_launch(*line):
    done = subprocess.run(["gst-launch-1.0", "-m", *line], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def stride(width):
    """GStreamer's rows of RGB begin at multiples of 4 bytes."""
    return (width * 3 + 3) // 4 * 4


def read_frames(path, width, height):
    """u8 [frames, height, width, 3]"""
    data = np.fromfile(path, np.uint8)
    if data.size == 0 or data.size % (height * stride(width)):
        raise RuntimeError("%d bytes are no frames of %dx%d" % (data.size, width, height))
    return data.reshape(-1, height, stride(width))[:, :, :width * 3].reshape(-1, height, width, 3)


def write_frames(path, frames):
    n, height, width, _ = frames.shape
    rows = np.zeros((n, height, stride(width)), np.uint8)
    rows[:, :, :width * 3] = frames.reshape(n, height, width * 3)
    rows.tofile(path)


def clip_frames(clip, width, height, directory):
    raw = os.path.join(directory, "clip.rgb")
    gst_launch("filesrc", "location=" + clip, "!", "decodebin", "!", "videoconvert", "!", "videoscale", "!",
               "video/x-raw,format=RGB,width=%d,height=%d,pixel-aspect-ratio=1/1" % (width, height), "!",
               "identity", "eos-after=%d" % (FRAMES[-1] + 2), "!", "filesink", "location=" + raw)
    frames = read_frames(raw, width, height)
    return frames[[min(i, len(frames) - 1) for i in FRAMES]]


class Element:
    """The element over raw frames.  After a run, `direct`: its plan has products without Winograd."""

    def __init__(self, directory):
        self.direct = None
        self.source, self.sink = (os.path.join(directory, name) for name in ("in.rgb", "out.rgb"))

    def run(self, model, frames, scale, parameters=None, tile=None):
        _, height, width, _ = frames.shape
        write_frames(self.source, frames)
        settings = ["model-file=" + os.path.abspath(model)]
        if parameters:
            settings.append("parameters=p,style_weights=" + parameters)
        if tile:
            settings += ["tile-width=%d" % tile[0], "tile-height=%d" % tile[1]]
        told = gst_launch("filesrc", "location=" + self.source, "!",
                          "rawvideoparse", "format=rgb", "width=%d" % width, "height=%d" % height,
                          "framerate=25/1", "!", "vidgen", *settings, "!", "filesink", "location=" + self.sink)
        self.direct = re.search(r'direct-products\W+(true|false)', told).group(1) == "true"
        result = read_frames(self.sink, width * scale, height * scale)
        if len(result) != len(frames):
            raise RuntimeError("%d frames went in, %d came out" % (len(frames), len(result)))
        return result


class Reference:
    def __init__(self, model, align):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.inputs, self.align = self.session.get_inputs(), align

    def run(self, frames, weights=None):
        n, height, width, _ = frames.shape
        pad = (0, -height % self.align), (0, -width % self.align)
        results = []
        for frame in frames:
            x = np.pad(frame, (*pad, (0, 0)), mode="edge").transpose(2, 0, 1)[None].astype(np.float32) / 255
            feed = {self.inputs[0].name: x}
            if weights is not None:
                feed[self.inputs[1].name] = self.weights(weights)
            y = self.session.run(None, feed)[0][0].transpose(1, 2, 0)
            scale = y.shape[0] // x.shape[2]
            y = y[:height * scale, :width * scale]
            results.append(np.rint(np.clip(y, 0, 1) * 255).astype(np.uint8))
        return np.stack(results), scale

    def weights(self, values):
        count = self.inputs[1].shape[-1]
        result = np.zeros(count, np.float32)
        for i, value in values.items() if isinstance(values, dict) else enumerate(values):
            result[i] = value
        return result.reshape([d if isinstance(d, int) else 1 for d in self.inputs[1].shape])


class Report:
    def __init__(self):
        self.failed, self.rows = False, []

    def test(self, name, function, *arguments):
        """function returns a text for the table, and None or what is wrong."""
        try:
            text, wrong = function(*arguments)
        except Exception as error:  # one model's failure must not hide the others' results
            text, wrong = "-", str(error).replace("\n", " ")
        self.rows.append((name, text))
        print("FAIL %s: %s" % (name, wrong) if wrong else "ok " + name, flush=True)
        self.failed |= wrong is not None


def against_onnxruntime(element, reference, model, frames, weights):
    worst, differ, beyond, count = 0, 0, 0, 0
    for parameters, values in weights:
        expected, scale = reference.run(frames, values)
        step = np.abs(element.run(model, frames, scale, parameters).astype(int) - expected)
        worst, count = max(worst, step.max()), count + step.size
        differ, beyond = differ + np.count_nonzero(step), beyond + np.count_nonzero(step > 1)
    text = "%8.4f %% differ, %8.5f %% by more than 1, most %d" % (100 * differ / count, 100 * beyond / count, worst)
    wrong = beyond > 0.001 * count or worst > 2
    return text, text if wrong else None


def untiled(program, model, frames, scale, direct, directory):
    source, result = (os.path.join(directory, name) for name in ("whole-in.rgb", "whole-out.rgb"))
    _, height, width, _ = frames.shape
    whole = []
    for frame in frames:
        frame.tofile(source)
        subprocess.run([program, model, str(width), str(height), *(["-direct"] if direct else []), "-in", source,
                        "-out", result], check=True, stdin=subprocess.DEVNULL)
        whole.append(np.fromfile(result, np.uint8).reshape(height * scale, width * scale, 3))
    return np.stack(whole)


def against_untiled(element, program, model, frames, scale, tile, directory):
    tiled = element.run(model, frames, scale, tile=tile)
    way = "direct" if element.direct else "Winograd"
    n = np.count_nonzero(untiled(program, model, frames, scale, element.direct, directory) != tiled)
    return "%d of %d bytes differ (%s)" % (n, tiled.size, way), "%d bytes differ" % n if n else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--clip", required=True)
    parser.add_argument("--models", required=True, help="where style3 and upscale2x lie")
    parser.add_argument("more", nargs="*", help="further models")
    options = parser.parse_args()
    paths = [os.path.join(options.models, name + ".onnx") for name in ("style3", "upscale2x")] + options.more
    program = os.path.join(options.build, "tests", "bench", "bench-model")
    report = Report()
    with tempfile.TemporaryDirectory() as directory:
        element = Element(directory)
        frames = {size: clip_frames(options.clip, *size, directory) for size in SIZES}
        tiled_frames = clip_frames(options.clip, *TILED_SIZE, directory)[:1]
        for path in paths:
            name = os.path.basename(path)[:-len(".onnx")]
            about = MODELS[name]
            reference = Reference(path, about["align"])
            for size in SIZES:
                report.test("compare/%s %dx%d" % (name, *size), against_onnxruntime, element, reference, path,
                            frames[size], about.get("weights", [(None, None)]))
            if about["tiles"]:
                _, scale = reference.run(frames[SIZES[0]], about.get("weights", [(None, None)])[0][1])
                for tile in TILES:
                    report.test("tiled/%s %dx%d in tiles of %dx%d" % (name, *TILED_SIZE, *tile), against_untiled,
                                element, program, path, tiled_frames, scale, tile, directory)
    print()
    for row in report.rows:
        print("%-55s %s" % row)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
