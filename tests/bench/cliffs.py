#!/usr/bin/env python3
"""Hunts for slow kernels: draws networks of current block types and reports kernels far below their roof.

    cliffs.py FIRST COUNT [--isa LEVEL] [--share 0.1] [--keep FOLDER]

Each seed draws one network: pictures (1xCxHxW) and tokens (1xLxC) pass through convolutions, depthwise layers, views,
normalisations, attention, gates and gathers, in an order that nobody tuned for. The network is packed by the svod-pack
of SVOD_BUILD, run with --profile, and a kernel is a cliff when it takes at least 1 % of the run and less than `share` of
its roof: the larger of its share of the multiply-add probe's peak and of the stream probe's bandwidth. Prints a line
per cliff (seed, kernel, microseconds, GFLOP/s, GB/s, nodes) and a summary; the exit code is 1 when there is one.
Timings of a busy machine are no less wrong here than elsewhere: repeat a seed before looking for its reason.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import kernels
from cliff_blocks import ModernBlocks
from cliff_exports import ExportedBlocks
from cliff_quantised import QuantisedBlocks

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", HERE.parent.parent / "build")).resolve()


class Network(ModernBlocks, ExportedBlocks, QuantisedBlocks):
    """A network under construction; `value` and `shape` are its current tensor's."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.blocks = [], [], []
        size = self.pick(7, 13, 14, 20, 24, 26, 28, 33, 40, 56, 65)
        channels = self.pick(12, 16, 20, 24, 32, 36, 40, 48, 64, 72, 96, 112, 128, 160, 192)
        if size * size * channels > 200000:
            channels = self.pick(12, 16, 20, 24, 32)
        self.start = [1, channels, size, size]
        self.value, self.shape = "input", list(self.start)

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def const(self, array, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def weight(self, *shape):
        return self.const(self.rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:]))))

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind.lower()}_{len(self.nodes)}" + (f"_{i}" if outputs > 1 else "") for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names[0] if outputs == 1 else names

    def step(self, kind, *inputs, **attributes):
        self.value = self.op(kind, self.value, *inputs, **attributes)

    def ints(self, *numbers):
        return self.const(numbers, np.int64)

    # Forms of the current tensor.
    def is_picture(self):
        return len(self.shape) == 4

    def to_picture(self):
        if self.is_picture():
            return
        _, length, channels = self.shape
        side = next(n for n in range(int(length ** 0.5), 0, -1) if length % n == 0)
        self.step("Transpose", perm=[0, 2, 1])
        self.step("Reshape", self.ints(1, channels, side, length // side))
        self.shape = [1, channels, side, length // side]

    def to_tokens(self):
        if not self.is_picture():
            return
        _, channels, height, width = self.shape
        if self.rng.random() < 0.3:
            self.step("Transpose", perm=[0, 2, 3, 1])
            self.step("Reshape", self.ints(1, height * width, channels))
        else:
            self.step("Reshape", self.ints(1, channels, height * width))
            self.step("Transpose", perm=[0, 2, 1])
        self.shape = [1, height * width, channels]

    # Pieces of blocks.
    def activation(self):
        kind = self.pick("relu", "gelu", "gelu", "silu", "hardswish", "tanh_gelu", "none")
        if kind == "relu":
            self.step("Relu")
        elif kind == "gelu":
            x = self.value
            inner = self.op("Erf", self.op("Div", x, self.const(2 ** 0.5)))
            self.value = self.op("Mul", self.op("Mul", x, self.op("Add", inner, self.const(1.0))), self.const(0.5))
        elif kind == "silu":
            self.value = self.op("Mul", self.value, self.op("Sigmoid", self.value))
        elif kind == "hardswish":
            self.step("HardSwish")
        elif kind == "tanh_gelu":
            self.step("Gelu", approximate="tanh")

    def convolve(self, out, window=1, stride=1, groups=1):
        channels = self.shape[1]
        pad = window // 2
        self.step("Conv", self.weight(out, channels // groups, window, window), self.weight(out),
                  kernel_shape=[window] * 2, pads=[pad] * 4, strides=[stride] * 2, group=groups)
        self.shape = [1, out] + [(n + 2 * pad - window) // stride + 1 for n in self.shape[2:]]

    def linear(self, out, bias=True):
        self.step("MatMul", self.const(self.rng.standard_normal((self.shape[-1], out)) / self.shape[-1] ** 0.5))
        if bias:
            self.step("Add", self.weight(out))
        self.shape = self.shape[:-1] + [out]

    def layer_norm(self):
        width = self.shape[-1]
        self.step("LayerNormalization", self.weight(width), self.weight(width), axis=-1)

    def residual(self, before, shape):
        if self.shape == shape:
            self.step("Add", before)

    # Blocks.
    def conv_block(self):
        self.to_picture()
        self.convolve(self.pick(self.shape[1], self.shape[1], 2 * self.shape[1] if self.shape[1] <= 96 else 64),
                      self.pick(1, 3, 3), self.pick(1, 1, 1, 2) if self.shape[2] >= 14 else 1)
        self.activation()

    def grouped(self):
        self.to_picture()
        groups = self.pick(2, 4, 8)
        if self.shape[1] % groups == 0:
            self.convolve(self.shape[1], 3, 1, groups)
            self.activation()

    def depthwise(self):
        self.to_picture()
        self.convolve(self.shape[1], self.pick(3, 3, 5, 7), self.pick(1, 1, 2) if self.shape[2] >= 14 else 1,
                      self.shape[1])
        if self.rng.random() < 0.5:
            self.to_tokens()
        self.activation()

    def inverted_residual(self):
        self.to_picture()
        before, shape, channels = self.value, self.shape, self.shape[1]
        self.convolve(channels * self.pick(2, 4))
        self.activation()
        self.convolve(self.shape[1], self.pick(3, 5), 1, self.shape[1])
        self.activation()
        if self.rng.random() < 0.5:
            self.squeeze()
        self.convolve(channels)
        self.residual(before, shape)

    def squeeze(self):
        x, channels = self.value, self.shape[1]
        inner = max(8, channels // 4)
        self.value = self.op("ReduceMean", x, self.ints(2, 3), keepdims=1)
        for out, into in ((inner, channels), (channels, inner)):
            self.step("Conv", self.weight(out, into, 1, 1), self.weight(out), kernel_shape=[1, 1])
            self.step("Relu" if out == inner else "Sigmoid")
        self.value = self.op("Mul", x, self.value)

    def shuffle(self):
        self.to_picture()
        groups = self.pick(2, 4)
        _, channels, height, width = self.shape
        if channels % groups:
            return
        self.step("Reshape", self.ints(1, groups, channels // groups, height, width))
        self.step("Transpose", perm=[0, 2, 1, 3, 4])
        self.step("Reshape", self.ints(1, channels, height, width))

    def split_halves(self):
        self.to_picture()
        half = self.shape[1] // 2
        shape = self.shape
        a, b = self.op("Split", self.value, self.ints(half, shape[1] - half), outputs=2, axis=1)
        self.value, self.shape = b, [1, shape[1] - half] + shape[2:]
        kind = self.pick(1, 3)
        self.convolve(self.shape[1], kind, 1, self.shape[1] if kind == 3 else 1)
        self.activation()
        self.value, self.shape = self.op("Concat", a, self.value, axis=1), shape

    def dense(self):
        self.to_picture()
        before, shape = self.value, self.shape
        self.convolve(self.pick(16, 32), 3)
        self.activation()
        self.value = self.op("Concat", before, self.value, axis=1)
        self.shape = [1, shape[1] + self.shape[1]] + shape[2:]

    def mlp(self):
        self.to_tokens()
        before, shape = self.value, self.shape
        self.layer_norm()
        self.linear(shape[-1] * self.pick(2, 4))
        if self.rng.random() < 0.4:
            self.mixed_tokens()
        self.activation()
        self.linear(shape[-1])
        self.residual(before, shape)

    def mixed_tokens(self):
        """A depthwise layer between linear ones, as in segmentation transformers."""
        self.to_picture()
        self.convolve(self.shape[1], 3, 1, self.shape[1])
        self.to_tokens()

    def gated(self):
        self.to_tokens()
        before, shape = self.value, self.shape
        self.linear(2 * shape[-1], bias=False)
        a, b = self.op("Split", self.value, outputs=2, axis=-1, num_outputs=2)
        self.value, self.shape = a, shape
        self.activation()
        self.step("Mul", b)
        self.residual(before, shape)

    def attention(self):
        self.to_tokens()
        before, shape = self.value, self.shape
        _, length, width = shape
        heads = self.pick(1, 2, 4)
        if length > 800 or width % heads:
            return
        self.layer_norm()
        self.linear(3 * width)
        each = width // heads
        self.step("Reshape", self.ints(1, length, 3, heads, each))
        self.step("Transpose", perm=[2, 0, 3, 1, 4])
        q, k, v = (self.op("Gather", self.value, self.const(i, np.int64), axis=0) for i in range(3))
        scores = self.op("MatMul", self.op("Mul", q, self.const(each ** -0.5)), self.op("Transpose", k, perm=[0, 1, 3, 2]))
        if self.rng.random() < 0.4:
            scores = self.op("Add", scores, self.weight(1, heads, length, length))
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        self.value = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.ints(1, length, width))
        self.shape = shape
        self.linear(width)
        self.residual(before, shape)

    def windows(self):
        """Tokens of a picture in windows, rolled or not, and back."""
        self.to_picture()
        _, channels, height, width = self.shape
        side = 7 if height % 7 == 0 else 4 if height % 4 == 0 else 0
        if not side or height != width:
            return
        x = self.op("Transpose", self.value, perm=[0, 2, 3, 1])
        if self.rng.random() < 0.5:
            tail = self.op("Slice", x, self.ints(side // 2), self.ints(height), self.ints(1))
            head = self.op("Slice", x, self.ints(0), self.ints(side // 2), self.ints(1))
            x = self.op("Concat", tail, head, axis=1)
        count = height // side
        x = self.op("Reshape", x, self.ints(1, count, side, count, side, channels))
        x = self.op("Transpose", x, perm=[0, 1, 3, 2, 4, 5])
        self.value = self.op("Reshape", x, self.ints(count * count, side * side, channels))
        self.shape = [count * count, side * side, channels]
        self.layer_norm()
        self.linear(channels)
        self.activation()
        x = self.op("Reshape", self.value, self.ints(1, count, count, side, side, channels))
        x = self.op("Transpose", x, perm=[0, 1, 3, 2, 4, 5])
        self.value = self.op("Reshape", x, self.ints(1, height * width, channels))
        self.shape = [1, height * width, channels]

    def token_mixer(self):
        """A product over the tokens instead of over the channels."""
        self.to_tokens()
        before, shape = self.value, self.shape
        if shape[1] > 800:
            return
        self.step("Transpose", perm=[0, 2, 1])
        self.shape = [1, shape[2], shape[1]]
        self.linear(shape[1])
        self.activation()
        self.step("Transpose", perm=[0, 2, 1])
        self.shape = shape
        self.residual(before, shape)

    def experts(self):
        """Weights picked along the batch axis of a stack of matrices."""
        self.to_tokens()
        _, length, width = self.shape
        stack = self.const(self.rng.standard_normal((4, width, width)) / width ** 0.5)
        choice = self.op("Cast", self.op("Clip", self.op("ReduceMax", self.value, self.ints(1, 2), keepdims=0),
                                         self.const(0.0), self.const(3.0)), to=TensorProto.INT64)
        if self.rng.random() < 0.5:
            picked = self.op("Gather", stack, choice, axis=0)
        else:
            picked = self.op("GatherND", stack, self.op("Unsqueeze", choice, self.ints(1)))
        self.value = self.op("MatMul", self.value, picked)
        self.activation()

    def resize(self):
        self.to_picture()
        if self.shape[2] > 28:
            return
        self.step("Resize", "", self.const([1, 1, 2, 2]), mode=self.pick("nearest", "linear"),
                  coordinate_transformation_mode=self.pick("asymmetric", "half_pixel"))
        self.shape = self.shape[:2] + [2 * n for n in self.shape[2:]]

    def pool(self):
        self.to_picture()
        if self.shape[2] < 8:
            return
        self.step(self.pick("MaxPool", "AveragePool"), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        self.shape = self.shape[:2] + [(n - 1) // 2 + 1 for n in self.shape[2:]]

    def depth_to_space(self):
        self.to_picture()
        if self.shape[1] % 4 == 0 and self.shape[1] >= 64 and self.shape[2] <= 40:
            self.step("DepthToSpace", blocksize=2, mode=self.pick("DCR", "CRD"))
            self.shape = [1, self.shape[1] // 4] + [2 * n for n in self.shape[2:]]
        elif self.shape[2] % 2 == 0 and self.shape[1] <= 48:
            self.step("SpaceToDepth", blocksize=2)
            self.shape = [1, self.shape[1] * 4] + [n // 2 for n in self.shape[2:]]

    def group_norm(self):
        self.to_picture()
        groups = self.pick(1, 4, 8)
        channels = self.shape[1]
        if channels % groups:
            return
        if self.rng.random() < 0.5:
            self.step("GroupNormalization", self.weight(channels), self.weight(channels), num_groups=groups)
        else:
            self.step("InstanceNormalization", self.weight(channels), self.weight(channels))
        self.activation()

    def channel_norm(self):
        """A normalisation over the channels of a picture, as ConvNeXt's."""
        self.to_picture()
        self.step("Transpose", perm=[0, 2, 3, 1])
        self.shape = [1] + self.shape[2:] + [self.shape[1]]
        self.layer_norm()
        self.step("Transpose", perm=[0, 3, 1, 2])
        self.shape = [1, self.shape[3]] + self.shape[1:3]

    def recurrent(self):
        self.to_tokens()
        _, length, width = self.shape
        if length > 400 or width > 128:
            return
        hidden = self.pick(32, 64)
        x = self.op("Transpose", self.value, perm=[1, 0, 2])
        kind, gates = self.pick(("GRU", 3), ("LSTM", 4))
        y = self.op(kind, x, self.weight(1, gates * hidden, width), self.weight(1, gates * hidden, hidden),
                    hidden_size=hidden)
        self.value = self.op("Transpose", self.op("Squeeze", y, self.ints(1)), perm=[1, 0, 2])
        self.shape = [1, length, hidden]

    FIRST_BLOCKS = ("conv_block grouped depthwise depthwise inverted_residual shuffle split_halves dense mlp mlp gated attention "
                    "windows token_mixer experts resize pool depth_to_space group_norm channel_norm recurrent").split()
    ALL_BLOCKS = FIRST_BLOCKS + 2 * (ModernBlocks.BLOCKS + ExportedBlocks.BLOCKS + QuantisedBlocks.BLOCKS)

    def draw(self, count):
        for _ in range(count):
            name = self.pick(*self.ALL_BLOCKS)
            self.blocks.append(name)
            getattr(self, name)()
        graph = helper.make_graph(self.nodes, "cliffs", [helper.make_tensor_value_info("input", 1, self.start)],
                                  [helper.make_tensor_value_info(self.value, 1, self.shape)], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def probes(folder):
    """Multiply-adds in GFLOP/s and stream in GB/s of this machine, of programs built once."""
    out = []
    for name in ("fma_probe", "stream_probe"):
        program = folder / name
        if not program.exists():
            subprocess.run(["c++", "-O3", "-march=native", "-std=c++20", HERE / f"{name}.cpp", "-o", program], check=True)
        out.append(float(subprocess.run([program], check=True, capture_output=True, text=True).stdout.split()[0]))
    return out


def cliffs_of(program, level, peak, stream, share):
    found = kernels.profile(program, ["--isa", level] if level else [], 1, 0.2)
    total = sum(k.us for k in found)
    for kernel in found:
        roof_us = max(kernel.flops / peak, kernel.bytes / stream) / 1e3
        if kernel.us >= 0.01 * total and roof_us < share * kernel.us:
            yield kernel, 100 * kernel.us / total


def main():
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("first", type=int)
    options.add_argument("count", type=int)
    options.add_argument("--isa")
    options.add_argument("--share", type=float, default=0.1)
    options.add_argument("--keep", type=pathlib.Path)
    options = options.parse_args()
    folder = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="svod-cliffs-"))
    folder.mkdir(parents=True, exist_ok=True)
    peak, stream = probes(folder)
    networks = cliffs = failed = 0
    for seed in range(options.first, options.first + options.count):
        network = Network(seed)
        onnx.save(network.draw(8), folder / f"{seed}.onnx")
        packed = subprocess.run([BUILD / "svod-pack", folder / f"{seed}.onnx", "-o", folder / f"{seed}", "-q"],
                                capture_output=True, text=True)
        if packed.returncode != 0:
            print(f"{seed}: not packed: {packed.stderr.strip()}", flush=True)
            failed += 1
            continue
        networks += 1
        for kernel, percent in cliffs_of(folder / f"{seed}", options.isa, peak, stream, options.share):
            cliffs += 1
            print(f"{seed} {kernel.name}: {kernel.us:.1f} us, {percent:.0f} % of the run, "
                  f"{kernel.flops / kernel.us / 1e3:.1f} GFLOP/s, {kernel.bytes / kernel.us / 1e3:.1f} GB/s: "
                  f"{','.join(kernel.nodes)[:100]}", flush=True)
        if not options.keep:
            (folder / f"{seed}").unlink()
    print(f"{networks} networks, {cliffs} cliffs below {options.share:g} of {peak:.0f} GFLOP/s and {stream:.0f} GB/s, "
          f"{failed} not packed")
    return 1 if cliffs or failed else 0


if __name__ == "__main__":
    sys.exit(main())
