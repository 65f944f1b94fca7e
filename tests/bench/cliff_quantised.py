"""Block types for cliffs.py: what quantisers and converters to half precision make of layers.

Each method of QuantisedBlocks continues a network by one block, as those of ModernBlocks do, whose pieces it uses.
"""
import numpy as np
from onnx import TensorProto


class QuantisedBlocks:
    BLOCKS = "quantised_groups quantised_mlp odd_groups rounded_gate".split()

    def through_bytes(self, x, scale, dtype, zero):
        """x rounded to bytes and back, as a QDQ network has it behind each operation."""
        parameters = self.const(scale), self.const(zero, dtype)
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, *parameters), *parameters)

    def byte_weights(self, *shape):
        """Of each result its own scale."""
        return self.op("DequantizeLinear", self.const(self.rng.integers(-127, 128, shape), np.int8),
                       self.const(np.full(shape[0], 0.5 / 127 / np.prod(shape[1:]) ** 0.5)),
                       self.const(np.zeros(shape[0]), np.int8), axis=0)

    def byte_type(self):
        return self.pick((np.uint8, 0), (np.uint8, 118), (np.int8, -128), (np.int8, -3))

    def quantised_groups(self):
        """Groups of few channels between 1x1 layers, an odd number of them as RegNets have."""
        self.to_picture()
        dtype, zero = self.byte_type()
        width, groups = self.pick(8, 16, 24), self.pick(2, 3, 5, 7)
        channels, inner = self.shape[1], width * groups
        x = self.through_bytes(self.value, 0.03, dtype, zero)
        for shape, attributes in (((inner, channels, 1, 1), {}),
                                  ((inner, width, 3, 3), {"group": groups, "pads": [1] * 4}),
                                  ((channels, inner, 1, 1), {})):
            x = self.op("Conv", x, self.byte_weights(*shape), kernel_shape=list(shape[2:]), **attributes)
            x = self.through_bytes(self.op("Relu", x), 0.02, dtype, zero)
        self.value = x

    def quantised_mlp(self):
        """Two linear layers and a GELU, whose parts are bytes of their own."""
        self.to_tokens()
        dtype, zero = self.byte_type()
        width = self.shape[2]

        def product(x, into, out):
            weights = self.op("DequantizeLinear", self.const(self.rng.integers(-127, 128, (into, out)), np.int8),
                              self.const(1 / 127 / into ** 0.5), self.const(0, np.int8))
            return self.through_bytes(self.op("MatMul", x, weights), 0.03, dtype, zero)
        x = product(self.through_bytes(self.value, 0.03, dtype, zero), width, 2 * width)
        for kind, inputs in (("Div", [x, self.const(2 ** 0.5)]), ("Erf", []), ("Add", [self.const(1.0)]), ("Mul", [x])):
            y = self.op(kind, *(inputs if kind == "Div" else [y, *inputs]))
            y = self.through_bytes(y, 0.02, dtype, zero)
        self.value = product(y, 2 * width, width)

    def odd_groups(self):
        """Groups that are no multiple of those that fill a vector."""
        self.to_picture()
        width, groups = self.pick(4, 8, 24), self.pick(3, 5, 7, 13)
        channels, inner = self.shape[1], width * groups
        stride = self.pick(1, 2) if self.shape[2] >= 14 else 1
        x = self.op("Relu", self.conv_of(self.value, channels, inner))
        x = self.op("Conv", x, self.weight(inner, width, 3, 3), self.weight(inner), kernel_shape=[3, 3], pads=[1] * 4,
                    strides=[stride] * 2, group=groups)
        self.value = self.conv_of(self.op("Relu", x), inner, channels)
        self.shape = self.shape[:2] + [(n - 1) // stride + 1 for n in self.shape[2:]]

    def rounded_gate(self):
        """x times its sigmoid in float, between layers that are rounded to half precision."""
        self.to_picture()
        channels = self.shape[1]
        x = self.conv_of(self.value, channels, 2 * channels)
        x = self.op("Cast", self.op("Cast", x, to=TensorProto.FLOAT16), to=TensorProto.FLOAT)
        gated = self.op("Mul", x, self.op("Sigmoid", x))
        self.value = self.conv_of(gated, 2 * channels, channels)
