#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes a 2x upscaler of SPAN's shape (Wan et al., Swift Parameter-free Attention Network, 2024) and real width: 48
channels, six blocks of three convolutions with SiLU between them, attention by the sigmoid of a block's own output, a 1x1
convolution over four joined maps, pixel shuffle.  Weights are random: for the time, not for the picture.

  span.py OUTPUT.onnx"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures"))
import onnx
from make_fixtures import G, IMG

WIDTH, BLOCKS, SCALE = 48, 6, 2


def span():
    g = G("spanx2_ch48", 17, 48, scale=SCALE, align=1, norm="none")
    first = x = g.conv(g.inp("x", IMG), 3, WIDTH)
    inner = kept = None
    for i in range(BLOCKS):
        inner = g.silu(g.conv(x, WIDTH, WIDTH))
        y = g.conv(g.silu(g.conv(inner, WIDTH, WIDTH)), WIDTH, WIDTH)
        attention = g.op("Sub", g.op("Sigmoid", y), g.f(0.5))
        x = g.mul(g.add(y, x), attention)
        kept = x if i == 0 else kept
    last = g.conv(x, WIDTH, WIDTH)
    y = g.conv(g.cat(first, last, kept, inner), 4 * WIDTH, WIDTH, 1)
    y = g.op("DepthToSpace", g.conv(y, WIDTH, 3 * SCALE * SCALE), blocksize=SCALE, mode="CRD")
    g.out(y, "y", [1, 3, "H2", "W2"])
    return g.model()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    onnx.save(span(), sys.argv[1])
