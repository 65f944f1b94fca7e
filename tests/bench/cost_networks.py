"""Small networks whose kernels the cost model is measured with: for each class of kernels layers of several sizes, one
behind the other, so that what a layer reads was written by the one before and weights are as cold as in a network.
"""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Chain:
    """A network under construction. Layers take what the last one gave, `now`, and its shape."""

    def __init__(self, name, shape):
        self.name, self.nodes, self.weights = name, [], []
        self.rng = np.random.default_rng(7)
        self.input = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        self.now = "x"

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def normal(self, *shape):
        scale = 1 / np.sqrt(max(1, np.prod(shape[1:])))
        return self.weight((self.rng.normal(0, 1, shape) * scale).astype(np.float32))

    def ints(self, *values):
        return self.weight(np.array(values, np.int64))

    def op(self, kind, *others, source=None, **attributes):
        out = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, [source or self.now, *others], [out],
                                           name=f"{kind.lower()}{len(self.nodes)}", **attributes))
        self.now = out
        return out

    def conv(self, channels, out, size=1, stride=1, group=1):
        pads = [size // 2] * 4
        self.op("Conv", self.normal(out, channels // group, size, size), self.normal(out), kernel_shape=[size, size],
                strides=[stride, stride], pads=pads, group=group)
        return self

    def linear(self, features, out):
        self.op("MatMul", self.normal(features, out))
        self.op("Add", self.normal(out))
        return self

    def model(self):
        outputs = [helper.make_empty_tensor_value_info(self.now)]
        graph = helper.make_graph(self.nodes, self.name, [self.input], outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
        return onnx.shape_inference.infer_shapes(model)


def convolutions():
    """Windows of several sizes and strides, pointwise and grouped layers."""
    c = Chain("convolutions", [1, 3, 128, 128])
    c.conv(3, 32, 5, 2).op("Relu")
    c.conv(32, 48, 3).op("Relu")
    c.op("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    c.conv(48, 128).op("Clip", c.weight(np.float32(0)), c.weight(np.float32(6)))
    c.conv(128, 64).conv(64, 64, 3, 2).op("Relu")
    c.conv(64, 96, 3, group=4).op("Relu")
    c.conv(96, 160).op("LeakyRelu", alpha=0.1)
    c.op("AveragePool", kernel_shape=[2, 2], strides=[2, 2])
    c.conv(160, 192, 5).op("Relu")
    c.conv(192, 384).conv(384, 64).op("Sigmoid")
    c.conv(64, 128, 7, group=2).op("Relu")
    c.op("GlobalAveragePool")
    return c


def mobile():
    """Inverted residuals: pointwise layers around depthwise ones, squeezes, swish."""
    c = Chain("mobile", [1, 16, 96, 96])
    channels = 16
    for out, size, stride in ((24, 3, 2), (32, 5, 1), (48, 3, 2), (96, 5, 2), (112, 3, 1)):
        wide = 4 * channels
        c.conv(channels, wide).op("Relu")
        c.conv(wide, wide, size, stride, wide).op("HardSwish")
        inside = c.now
        c.op("GlobalAveragePool")
        c.conv(wide, wide // 4).op("Relu")
        c.conv(wide // 4, wide).op("Sigmoid")
        c.op("Mul", inside)
        c.conv(wide, out)
        channels = out
    return c


def transformer():
    """An encoder layer by layer: attention, GELU, normalisations; then long rows."""
    c = Chain("transformer", [1, 96, 192])
    heads, width, rows = 4, 192, 96

    def normalise(features):
        c.op("LayerNormalization", c.weight(np.ones(features, np.float32)), c.normal(features), axis=-1)

    def head(source, order):
        c.now = source
        c.linear(width, width).op("Reshape", c.ints(1, rows, heads, width // heads))
        return c.op("Transpose", perm=order)

    before = c.now
    normalise(width)
    inside = c.now
    q, k, v = head(inside, [0, 2, 1, 3]), head(inside, [0, 2, 3, 1]), head(inside, [0, 2, 1, 3])
    c.now = q
    c.op("MatMul", k)
    c.op("Mul", c.weight(np.float32(0.14)))
    c.op("Softmax", axis=-1)
    c.op("MatMul", v)
    c.op("Transpose", perm=[0, 2, 1, 3])
    c.op("Reshape", c.ints(1, rows, width))
    c.linear(width, width).op("Add", before)
    normalise(width)
    c.linear(width, 768).op("Gelu")
    c.linear(768, width).op("Add", before)
    normalise(width)
    c.linear(width, 1024).op("Tanh")
    c.op("Softmax", axis=-1)
    c.op("ReduceMean", c.ints(1), keepdims=1)
    c.linear(1024, 1024).op("Relu")
    c.linear(1024, 512).op("Softmax", axis=-1)
    c.op("ArgMax", axis=-1)
    return c


def maps():
    """Scalar functions from cheap to dear, reductions along each axis, running sums, comparisons."""
    c = Chain("maps", [1, 64, 64, 96])
    stored = []

    def store(kind, *others, **attributes):
        stored.append(c.op(kind, *others, **attributes))
        c.op("Transpose", perm=[0, 2, 1, 3])  # what lies between two maps is stored

    for kind in ("Exp", "Tanh", "Erf", "Sin", "Sqrt", "Log", "Softplus"):
        c.op("Abs")
        c.op("Add", c.weight(np.float32(0.5)))
        store(kind)
    store("Pow", c.weight(np.float32(1.7)))
    store("Div", stored[1])
    c.op("ReduceMax", c.ints(3), keepdims=1)
    c.op("Sub", stored[0], source=stored[2])
    c.op("ReduceSum", c.ints(1), keepdims=1)
    c.op("Mul", stored[4])
    c.op("CumSum", c.weight(np.array(2, np.int64)))
    c.op("ReduceMean", c.ints(2), keepdims=1)
    c.op("Add", stored[6])
    c.op("ReduceL2", c.ints(1, 2), keepdims=1)
    c.op("Greater", c.weight(np.float32(3)))
    c.op("Where", stored[3], stored[5])
    c.op("ArgMax", axis=2)
    return c


def moves():
    """Copies in other orders, windows, borders, gathers, resizes."""
    c = Chain("moves", [1, 48, 64, 64])
    c.op("Transpose", perm=[0, 2, 3, 1])
    c.op("Relu")
    c.op("Transpose", perm=[0, 3, 2, 1])
    c.op("Pad", c.ints(0, 0, 2, 2, 0, 0, 2, 2))
    c.op("Slice", c.ints(1, 1), c.ints(65, 65), c.ints(2, 3), c.ints(1, 1))
    c.op("DepthToSpace", blocksize=2)
    c.op("AveragePool", kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    c.op("SpaceToDepth", blocksize=4)
    c.op("Reshape", c.ints(1, 192, 1024))
    c.op("Transpose", perm=[0, 2, 1])
    c.op("Gather", c.ints(*np.random.default_rng(3).integers(0, 1024, 700)), axis=1)
    c.op("Transpose", perm=[0, 2, 1])
    c.op("Reshape", c.ints(1, 192, 20, 35))
    c.op("Resize", "", c.weight(np.array([1, 1, 2, 2], np.float32)), mode="linear")
    c.op("MaxPool", kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2])
    c.op("Resize", "", c.weight(np.array([1, 1, 1.5, 1.5], np.float32)), mode="nearest")
    c.op("GlobalMaxPool")
    return c


def bytes_of_weights():
    """Quantised layers: pointwise, windows, depthwise, products of rows."""
    c = Chain("bytes", [1, 32, 56, 56])

    def quantise(scale):
        step, zero = c.weight(np.float32(scale)), c.weight(np.uint8(128))
        c.op("QuantizeLinear", step, zero)
        c.op("DequantizeLinear", step, zero)

    def conv(channels, out, size=1, stride=1, group=1):
        shape = (out, channels // group, size, size)
        w = c.weight(c.rng.integers(-127, 127, shape).astype(np.int8))
        before = c.now
        step = c.weight(np.full(out, 0.004, np.float32))
        real = c.op("DequantizeLinear", step, c.weight(np.zeros(out, np.int8)), source=w, axis=0)
        c.now = before
        c.op("Conv", real, kernel_shape=[size, size], strides=[stride, stride], pads=[size // 2] * 4, group=group)
        c.op("Relu")
        quantise(0.05)

    quantise(0.03)
    for layer in ((32, 64), (64, 64, 3), (64, 64, 3, 2, 64), (64, 192), (192, 192, 5, 1, 192), (192, 96),
                  (96, 128, 3, 2), (128, 512), (512, 128)):
        conv(*layer)
    c.op("GlobalAveragePool")
    return c


NETWORKS = {n.__name__: n for n in (convolutions, mobile, transformer, maps, moves, bytes_of_weights)}


def write(name, path):
    onnx.save(NETWORKS[name]().model(), str(path))
