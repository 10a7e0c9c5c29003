#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recipe of docs/model-files.md, carried out: a network is exported from PyTorch, looked at in onnxruntime at a second
size, and run by vidgen, whose picture must be PyTorch's.

  export_recipe.py --program BUILD/tests/bench/bench-model [--keep FILE.onnx]

Needs a Python with torch, onnxscript and onnxruntime.  torch brings 3 GB of libraries along, so tests/run.sh runs this
only when VIDGEN_TORCH names such a Python.  Prints one line a test: `ok NAME`, `FAIL NAME: why`."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import torch
from torch import nn


class Attention(nn.Module):
    """Each 4 x 4 window of pixels attends to itself."""

    def __init__(self, channels, heads, window):
        super().__init__()
        self.norm, self.heads, self.window = nn.LayerNorm(channels), heads, window
        self.qkv, self.out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)

    def forward(self, x):
        b, c, h, w = x.shape
        n = self.window
        t = x.reshape(b, c, h // n, n, w // n, n).permute(0, 2, 4, 3, 5, 1).reshape(-1, n * n, c)
        q, k, v = self.qkv(self.norm(t)).reshape(-1, n * n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        t = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, n * n, c)
        t = self.out(t).reshape(b, h // n, w // n, n, n, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w)
        return x + t


class Upscaler(nn.Module):
    """Twice the size: residual blocks, a window attention, a pixel shuffle over a nearest base."""

    def __init__(self, channels=16):
        super().__init__()
        self.head = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.PReLU(channels),
                          nn.Conv2d(channels, channels, 3, padding=1)) for _ in range(3))
        self.attention = Attention(channels, 2, 4)
        self.mix = nn.Sequential(nn.Conv2d(channels, 2 * channels, 1), nn.GELU(), nn.Conv2d(2 * channels, channels, 1))
        self.tail = nn.Conv2d(channels, 12, 3, padding=1)

    def forward(self, image):
        x = self.head(image)
        for block in self.body:
            x = x + block(x)
        x = self.attention(x)
        x = x + self.mix(x)
        base = nn.functional.interpolate(image, scale_factor=2, mode="nearest")
        return base + 0.2 * nn.functional.pixel_shuffle(self.tail(x), 2)


def export(model, path):
    """What the page tells to do."""
    image = torch.rand(1, 3, 64, 96)
    size = {2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
    torch.onnx.export(model.eval(), (image,), path, dynamo=True, opset_version=18, input_names=["image"],
                      output_names=["result"], dynamic_shapes=(size,), external_data=False)


def fixed(model, path, height, width):
    torch.onnx.export(model.eval(), (torch.rand(1, 3, height, width),), path, dynamo=True, opset_version=18,
                      input_names=["image"], output_names=["result"], external_data=False)


def picture(height, width):
    y, x = np.mgrid[:height, :width]
    rgb = np.stack([127 + 120 * np.sin(x / 7 + y / 23), 127 + 120 * np.sin(x * y / 900), 255 * ((x // 8 + y // 8) % 2)], -1)
    return rgb.astype(np.uint8)


def tensor(frame):
    return frame.transpose(2, 0, 1)[None].astype(np.float32) / 255


def bytes_of(y):
    return np.rint(np.clip(y[0].transpose(1, 2, 0), 0, 1) * 255).astype(np.uint8)


def vidgen(program, path, frame, scale, folder):
    height, width, _ = frame.shape
    source, sink = os.path.join(folder, "in.rgb"), os.path.join(folder, "out.rgb")
    frame.tofile(source)
    done = subprocess.run([program, path, str(width), str(height), "-threads", "1", "-in", source, "-out", sink],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or done.stdout.strip())
    return np.fromfile(sink, np.uint8).reshape(height * scale, width * scale, 3)


def check(name, got, want):
    """Within a step of 255 everywhere, and mostly equal: the last digits of sums decide where a value lies on an edge."""
    off = np.abs(got.astype(int) - want)
    good = off.max() <= 1 and (off > 0).mean() < 1e-3
    print("ok" if good else "FAIL", name if good else "%s: up to %d steps off, %.4f %% of the values" % (
        name, off.max(), 100 * (off > 0).mean()), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--keep")
    options = parser.parse_args()
    torch.manual_seed(1)
    model, good = Upscaler().eval(), True
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or os.path.join(folder, "upscaler.onnx")
        export(model, path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        for height, width in (64, 96), (120, 68):
            frame = picture(height, width)
            with torch.no_grad():
                want = model(torch.from_numpy(tensor(frame))).numpy()
            name = "recipe/%dx%d" % (width, height)
            good &= check(name + "/onnxruntime", bytes_of(session.run(None, {"image": tensor(frame)})[0]), bytes_of(want))
            good &= check(name + "/vidgen", vidgen(options.program, path, frame, 2, folder), bytes_of(want))
        # The same at one size, which vidgen binds to others where the graph lets it: this one's windows do not.
        at = os.path.join(folder, "fixed.onnx")
        fixed(model, at, 64, 96)
        frame = picture(64, 96)
        with torch.no_grad():
            want = model(torch.from_numpy(tensor(frame))).numpy()
        good &= check("recipe/fixed/vidgen", vidgen(options.program, at, frame, 2, folder), bytes_of(want))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
