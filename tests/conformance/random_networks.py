#!/usr/bin/env python3
"""Random networks of real-sized layers against ONNX Runtime: what layers do to each other.

    random_networks.py [--filter REGEX] [--jobs 2] [--seeds 40]

Convolutional ones (residuals, strides, branches that are joined, depthwise, resized) and transformers (attention in
several spellings, dense layers, convolutions over time), the weights normal with the variance that keeps the size of what
flows. Fast forms, layouts and joins meet here that a single operator does not bring together. An output may differ by
1e-4 of its root mean square. Needs numpy, onnx and onnxruntime; says so and is skipped otherwise.
"""
import random
import re
import shutil
import sys

import run_units as units

if not units.oracle.available():
    print("skipped: this python has no onnxruntime, onnx and numpy")
    sys.exit(77)
import packed_case

base, np, onnx = units.base, units.np, units.onnx

WORK = base.WORK / "networks"
BOUND = 1e-4


class Network:
    """Nodes, and the values that are known, of a network that is drawn."""

    def __init__(self, seed):
        self.draw, self.normal = random.Random(seed), np.random.default_rng(seed).standard_normal
        self.nodes, self.known = [], []

    def op(self, kind, *inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def value(self, array):
        name = f"k{len(self.known)}"
        self.known.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def weights(self, *shape, fan_in):
        return self.value((self.normal(shape) / np.sqrt(fan_in)).astype(np.float32))

    def number(self, value):
        return self.value(np.float32(value))

    def shape(self, *sizes):
        return self.value(np.array(sizes, np.int64))

    def activation(self, x):
        kind = self.draw.choice(["Relu", "LeakyRelu", "HardSwish", "swish", "gelu", "none"])
        if kind == "none":
            return x
        if kind == "swish":
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "gelu":
            upper = self.op("Add", self.op("Erf", self.op("Div", x, self.number(2**0.5))), self.number(1))
            return self.op("Mul", self.op("Mul", x, upper), self.number(0.5))
        return self.op(kind, x)

    def model(self, shape, outputs):
        f32 = onnx.TensorProto.FLOAT
        graph = onnx.helper.make_graph(
            self.nodes, "network", [onnx.helper.make_tensor_value_info("x", f32, shape)],
            [onnx.helper.make_tensor_value_info(name, f32, None) for name in outputs], self.known)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


class Images(Network):
    """x [N, C, H, W]; `c`, `size`: of what flows."""

    def build(self):
        d = self.draw
        self.c, batch = d.choice([1, 3, 8, 16, 32, 64]), d.choice([1, 1, 1, 2])
        self.size = [d.choice([14, 15, 18, 20, 28, 30, 40]), d.choice([14, 17, 18, 24, 28, 50])]
        shape, x = [batch, self.c, *self.size], "x"
        for _ in range(d.randint(2, 5)):
            layer = d.choice([self.residual, self.residual, self.strided, self.bottleneck, self.branches,
                              self.depthwise, self.resized, self.pooled, self.plain])
            x = layer(x, d.choice([8, 12, 16, 24, 32, 48, 64, 96, 128, 256]))
        mean = self.op("Flatten", self.op("GlobalAveragePool", x))
        return shape, [mean, x]

    def conv(self, x, outputs, taps=3, stride=1, inputs=None, group=1):
        inputs = inputs or self.c
        rows, columns = taps if isinstance(taps, tuple) else (taps, taps)
        fan_in = inputs // group * rows * columns
        more = [self.value((self.normal(outputs) * 0.1).astype(np.float32))] if self.draw.random() < 0.7 else []
        return self.op("Conv", x, self.weights(outputs, inputs // group, rows, columns, fan_in=fan_in / 2), *more,
                       kernel_shape=[rows, columns], strides=[stride, stride], group=group,
                       pads=[rows // 2, columns // 2] * 2)

    def joined(self, x, y, outputs, stride=1):
        same = stride == 1 and outputs == self.c
        sum_ = self.op("Add", y, x if same else self.conv(x, outputs, 1, stride))
        self.c = outputs
        return self.activation(sum_)

    def residual(self, x, outputs):
        y = self.activation(self.conv(x, outputs))
        return self.joined(x, self.conv(y, outputs, inputs=outputs), outputs)

    def strided(self, x, outputs):
        stride, taps = self.draw.choice([(2, 3), (2, 3), (2, 5), (2, 7), (3, 3), (3, 7)])
        if min(self.size) <= 6:
            return self.plain(x, outputs)
        y = self.activation(self.conv(x, outputs, taps, stride))
        self.size = [(s - 1) // stride + 1 for s in self.size]
        return self.joined(x, self.conv(y, outputs, inputs=outputs), outputs, stride)

    def bottleneck(self, x, outputs):
        few = max(8, outputs // 4)
        y = self.activation(self.conv(x, few, 1))
        y = self.activation(self.conv(y, few, inputs=few))
        return self.joined(x, self.conv(y, outputs, 1, inputs=few), outputs)

    def branches(self, x, outputs):
        half = max(4, outputs // 2)
        parts = [self.activation(self.conv(x, outputs, 1)), self.activation(self.conv(x, outputs)),
                 self.activation(self.conv(x, half, 5))]
        self.c = 2 * outputs + half
        return self.op("Concat", *parts, axis=1)

    def depthwise(self, x, outputs):
        y = self.activation(self.conv(x, self.c, self.draw.choice([3, 5]), group=self.c))
        y, self.c = self.activation(self.conv(y, outputs, 1)), outputs
        return y

    def resized(self, x, outputs):
        if self.size[0] * self.size[1] > 1000:
            return self.plain(x, outputs)
        y = self.op("Resize", x, "", self.value(np.array([1, 1, 2, 2], np.float32)),
                    mode=self.draw.choice(["nearest", "linear"]))
        self.size = [2 * s for s in self.size]
        return self.plain(y, outputs)

    def pooled(self, x, outputs):
        if min(self.size) <= 4:
            return self.plain(x, outputs)
        kind = self.draw.choice(["AveragePool", "MaxPool"])
        self.size = [s // 2 for s in self.size]
        return self.plain(self.op(kind, x, kernel_shape=[2, 2], strides=[2, 2]), outputs)

    def plain(self, x, outputs):
        y = self.activation(self.conv(x, outputs, self.draw.choice([1, 3, 3, 5, 7, (1, 3), (3, 1), (1, 7)])))
        self.c = outputs
        return y


class Tokens(Network):
    """x [N, tokens, width]."""

    def build(self):
        d = self.draw
        self.heads, self.head = d.choice([1, 2, 3, 4, 6, 8]), d.choice([16, 24, 32, 48, 64])
        self.width, self.tokens = self.heads * self.head, d.choice([7, 16, 33, 49, 64, 77, 100, 128, 197])
        self.batch, x = d.choice([1, 1, 1, 2]), "x"
        for _ in range(d.randint(2, 5)):
            layer = d.choice([self.attention, self.attention, self.perceptron, self.over_time])
            first = d.random() < 0.7
            y = self.op("Add", x, layer(self.norm(x) if first else x))
            x = y if first else self.norm(y)
        mean = self.op("ReduceMean", x, axes=[1], keepdims=0)
        return [self.batch, self.tokens, self.width], [self.dense(mean, self.width, d.choice([2, 10, 100])), x]

    def norm(self, x):
        ones, zeros = np.ones(self.width, np.float32), np.zeros(self.width, np.float32)
        return self.op("LayerNormalization", x, self.value(ones), self.value(zeros), axis=-1)

    def dense(self, x, inputs, outputs):
        y = self.op("MatMul", x, self.weights(inputs, outputs, fan_in=inputs))
        return self.op("Add", y, self.value((self.normal(outputs) * 0.1).astype(np.float32)))

    def split_heads(self, x):
        """Query, key and value: of one product, or of three."""
        sizes = (self.batch, self.tokens, self.heads, self.head)
        if self.draw.random() < 0.4:
            all_ = self.op("Reshape", self.dense(x, self.width, 3 * self.width), self.shape(*sizes[:2], 3, *sizes[2:]))
            all_ = self.op("Transpose", all_, perm=[2, 0, 3, 1, 4])
            return [self.op("Gather", all_, self.value(np.array(i, np.int64)), axis=0) for i in range(3)]
        return [self.op("Transpose", self.op("Reshape", self.dense(x, self.width, self.width), self.shape(*sizes)),
                        perm=[0, 2, 1, 3]) for _ in range(3)]

    def attention(self, x):
        query, key, value = self.split_heads(x)
        query = self.op("Mul", query, self.number(self.head**-0.5))
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        kind, n = self.draw.choice(["all", "causal", "biased"]), self.tokens
        if kind == "causal":
            scores = self.op("Add", scores, self.value(np.triu(np.full((1, 1, n, n), -1e9, np.float32), 1)))
        elif kind == "biased":
            scores = self.op("Add", scores, self.value(self.normal((1, self.heads, n, n)).astype(np.float32)))
        y = self.op("Transpose", self.op("MatMul", self.op("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
        return self.dense(self.op("Reshape", y, self.shape(self.batch, n, self.width)), self.width, self.width)

    def perceptron(self, x):
        inner = self.draw.choice([2 * self.width, 4 * self.width, 3 * self.width + 8])
        y = self.activation(self.dense(x, self.width, inner))
        if self.draw.random() < 0.2:
            y = self.op("Mul", y, self.dense(x, self.width, inner))
        return self.dense(y, inner, self.width)

    def over_time(self, x):
        taps, group = self.draw.choice([3, 5, 7, 31]), self.draw.choice([1, self.width]) if self.width <= 128 else self.width
        y = self.op("Conv", self.op("Transpose", x, perm=[0, 2, 1]),
                    self.weights(self.width, self.width // group, taps, fan_in=taps * self.width // group),
                    kernel_shape=[taps], pads=[taps // 2] * 2, group=group)
        return self.op("Transpose", self.activation(y), perm=[0, 2, 1])


def check(case):
    """(name, what is wrong or nothing)"""
    kind, seed = case
    name = f"{kind.__name__.lower()}_{seed}"
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    network = kind(seed)
    shape, outputs = network.build()
    onnx.save(network.model(shape, outputs), folder / "model.onnx")
    x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    session, error = units.unit_reference.open_session(folder / "model.onnx")
    if not session:
        return name, f"ONNX Runtime: {error}"
    want = session.run(outputs, {"x": x})
    why, results = packed_case.pack_and_run(folder, {"x": x}, outputs, base.PACK_SECONDS)
    if why:
        return name, why
    for i, (got, right) in enumerate(zip(results, want, strict=True)):
        error = np.abs(got.astype(np.float64) - right).max() / np.sqrt(np.square(right, dtype=np.float64).mean())
        if not error <= BOUND:
            return name, f"output {i} {list(right.shape)} differs by {error:.2g} of its root mean square"
    shutil.rmtree(folder)
    return name, ""


def main():
    options = packed_case.read_options(__doc__, seeds=40)
    cases = [(kind, seed) for seed in range(options.seeds) for kind in (Images, Tokens)]
    cases = [c for c in cases if re.search(options.filter, f"{c[0].__name__.lower()}_{c[1]}")]
    return packed_case.run_cases(check, cases, options)


if __name__ == "__main__":
    sys.exit(main())
