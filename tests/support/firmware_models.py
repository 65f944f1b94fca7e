"""Small networks as firmware runs them: a sine, fully connected and convolutional ones in int8.

Quantised as exporters do it: every tensor int8 between QuantizeLinear and DequantizeLinear, weights by channel;
inputs and outputs of the model are int8 themselves. The numbers are random but scaled so that activations use
their range.
"""
import random

from onnx_writer import BOOL, INT8, INT32, INT64, graph, model, node, random_tensor, tensor, value


def sine():
    """1-16-16-1 with Relu, fp32."""
    sizes, nodes, weights, last = [1, 16, 16, 1], [], [], "x"
    for i in range(3):
        weights += [random_tensor(f"w{i}", [sizes[i], sizes[i + 1]], 3 * i, 0.5),
                    random_tensor(f"b{i}", [sizes[i + 1]], 3 * i + 1, 0.5)]
        out = "y" if i == 2 else f"h{i}"
        nodes.append(node("Gemm", [last, f"w{i}", f"b{i}"], [out]))
        if i < 2:
            nodes.append(node("Relu", [out], [f"r{i}"]))
        last = f"r{i}"
    return model(nodes, [value("x", [1, 1])], [value("y", [1, 1])], weights)


class Quantised:
    """A network being written, layer by layer; `last` is its int8 tensor."""

    def __init__(self, shape, seed=1):
        self.shape, self.random = list(shape), random.Random(seed)
        self.nodes, self.weights, self.count = [], [], 0
        self.scalar("zero", 0, INT8)
        self.inputs, self.last, self.scale = [value("x", self.shape, INT8)], "x", 0.02
        self.scalar("s_x", self.scale)

    def scalar(self, name, number, dtype=1):
        self.weights.append(tensor(name, [], [number], dtype))

    def take(self, tensor_name=None, scale="s_x"):
        name = self.fresh("f")
        self.nodes.append(node("DequantizeLinear", [tensor_name or self.last, scale, "zero"], [name]))
        return name

    def fresh(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def give(self, name):
        out = self.fresh("q")
        self.nodes.append(node("QuantizeLinear", [name, "s_x", "zero"], [out]))
        self.last = out

    def weight(self, dims, fan):
        name, channels = self.fresh("w"), dims[0]
        count = 1
        for d in dims:
            count *= d
        self.weights += [tensor(name, dims, [self.random.randrange(-127, 128) for _ in range(count)], INT8),
                         tensor(name + "s", [channels],
                                [(0.6 + 0.4 * self.random.random()) * 1.7 / 73 / fan ** 0.5 for _ in range(channels)]),
                         tensor(name + "z", [channels], [0] * channels, INT8)]
        self.nodes.append(node("DequantizeLinear", [name, name + "s", name + "z"], [name + "f"], axis=0))
        return name

    def bias(self, weight, channels):
        """int32, in steps of input times weight."""
        self.weights.append(tensor(weight + "b", [channels],
                                   [self.random.randrange(-2000, 2000) for _ in range(channels)], INT32))
        self.nodes.append(node("Mul", [weight + "s", "s_x"], [weight + "bs"]))
        self.weights.append(tensor(weight + "bz", [channels], [0] * channels, INT32))
        self.nodes.append(node("DequantizeLinear", [weight + "b", weight + "bs", weight + "bz"], [weight + "bf"],
                               axis=0))
        return weight + "bf"

    def conv(self, channels, kernel=1, stride=1, group=1, relu=True):
        n, depth, height, width = self.shape
        taken = self.take()
        w = self.weight([channels, depth // group, kernel, kernel], depth // group * kernel * kernel)
        out, before = self.fresh("c"), (kernel - 1) // 2
        self.nodes.append(node("Conv", [taken, w + "f", self.bias(w, channels)], [out], kernel_shape=[kernel] * 2,
                               strides=[stride] * 2, group=group, pads=[before] * 2 + [kernel - 1 - before] * 2))
        if relu:
            self.nodes.append(node("Relu", [out], [out + "r"]))
            out += "r"
        self.shape = [n, channels, (height - 1) // stride + 1, (width - 1) // stride + 1]
        self.give(out)
        return self

    def separable(self, channels, stride=1):
        return self.conv(self.shape[1], 3, stride, self.shape[1]).conv(channels)

    def add(self, other):
        a, b, out = self.take(), self.take(other), self.fresh("a")
        self.nodes.append(node("Add", [a, b], [out]))
        self.give(out)
        return self

    def pool(self):
        out = self.fresh("p")
        self.nodes.append(node("GlobalAveragePool", [self.take()], [out]))
        self.give(out)
        self.shape = self.shape[:2] + [1, 1]
        return self.flat()

    def flat(self):
        taken, out = self.take(), self.fresh("l")
        self.nodes.append(node("Flatten", [taken], [out]))
        size = 1
        for d in self.shape:
            size *= d
        self.shape = [1, size]
        self.give(out)
        return self

    def dense(self, units, relu=False):
        taken, depth = self.take(), self.shape[1]
        w, out = self.weight([units, depth], depth), self.fresh("d")
        self.nodes.append(node("Gemm", [taken, w + "f", self.bias(w, units)], [out], transB=1))
        if relu:
            self.nodes.append(node("Relu", [out], [out + "r"]))
            out += "r"
        self.shape = [1, units]
        self.give(out)
        return self

    def bytes(self):
        return model(self.nodes, self.inputs, [value(self.last, self.shape, INT8)], self.weights)


def dense_int8():
    """32-16-4."""
    return Quantised([1, 32]).dense(16, True).dense(4).bytes()


def keywords(seed=1):
    """A depthwise separable network over 49x10 features, as in keyword spotting: 64 channels, 12 words."""
    net = Quantised([1, 1, 49, 10], seed).conv(64, 3, 2)
    for _ in range(4):
        net.separable(64)
    return net.pool().dense(12).bytes()


def residual():
    net = Quantised([1, 3, 32, 32]).conv(16, 3)
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        if stride == 2:
            net.conv(channels, 1, 2, relu=False)
        before = net.last
        net.conv(channels, 3).conv(channels, 3, relu=False).add(before)
    return net.pool().dense(10).bytes()


def deep():
    """40 small layers: many launches of a few kernels."""
    net = Quantised([1, 32])
    for i in range(40):
        net.dense(64 + i % 2 * 8, True)
    return net.bytes()


def gates(sizes=(48, 96, 64, 128, 32)):
    """Rows of products with a tanh behind each, in fp32: layers that differ in their sizes alone."""
    nodes, weights, last = [], [], "x"
    for i, (rows, columns) in enumerate(zip(sizes, sizes[1:])):
        weights.append(random_tensor(f"w{i}", [rows, columns], i, 0.2))
        nodes += [node("MatMul", [last, f"w{i}"], [f"p{i}"]), node("Tanh", [f"p{i}"], [f"t{i}"])]
        last = f"t{i}"
    return model(nodes, [value("x", [10, sizes[0]])], [value(last, [10, sizes[-1]])], weights)


def digits():
    """For 28x28 pictures: two convolutions with a stride, 10 classes."""
    return Quantised([1, 1, 28, 28]).conv(8, 3, 2).conv(16, 3, 2).flat().dense(10).bytes()


def mobilenet(size=224, quarter=4):
    """MobileNetV1 with a quarter of its channels."""
    net = Quantised([1, 3, size, size]).conv(32 // quarter, 3, 2)
    for channels, stride in [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2),
                                                                                                        (1024, 1)]:
        net.separable(channels // quarter, stride)
    return net.pool().dense(1000).bytes()


def control():
    """A loop that data ends, results of which are scanned, behind a condition that chooses between two graphs."""
    body = graph([node("Add", ["s", "x"], ["z"]), node("Mul", ["z", "half"], ["row"]),
                  node("ReduceSum", ["z"], ["sum"], keepdims=0), node("Less", ["sum", "end"], ["again"])],
                 [value("i", [], INT64), value("c", [], BOOL), value("s", [4])],
                 [value("again", [], BOOL), value("z", [4]), value("row", [4])])
    loop = graph([node("Loop", ["n", "go", "x"], ["a", "rows"], body=body),
                  node("ReduceSum", ["rows"], ["b"], keepdims=0)], [], [value("a", [4]), value("b", [])],
                 values=[value("rows", [10, 4])])
    plain = graph([node("Neg", ["x"], ["d"]), node("ReduceMax", ["x"], ["e"], keepdims=0)], [],
                  [value("d", [4]), value("e", [])])
    nodes = [node("Cast", ["n"], ["long"], to=BOOL), node("If", ["long"], ["y", "total"], then_branch=loop,
                                                         else_branch=plain)]
    return model(nodes, [value("n", [], INT64), value("x", [4])], [value("y", [4]), value("total", [])],
                 [tensor("go", [], [1], BOOL), tensor("half", [], [0.5]), tensor("end", [], [21.5])])
