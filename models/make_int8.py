#!/usr/bin/env python3
"""Makes the two quantised networks that firmware is measured with: one reads digits, one hears keywords.

    python3 models/make_int8.py        (needs numpy, and onnx to write the files; half a minute)

No data set is needed. Digits are drawn from a font of 5x7 dots, moved, sheared, made thicker or thinner, and noisy.
Keywords are two tones that glide, each word in its own way, as 49 frames of 10 bands with noise. Convolutions have
random weights, which are features good enough for such data; the last layer is fitted by ridge regression. The network
is then quantised as exporters do it: int8 tensors between QuantizeLinear and DequantizeLinear, scales by the largest
value that 500 examples reach, weights by channel. Accuracy on 1000 examples that nothing was fitted to is printed, of
the network in floats and of its quantised form, by integer arithmetic here.

Writes beside itself digits_int8/ and keywords_int8/, each with a model, int8 in and out, and test_data_set_0.
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = pathlib.Path(__file__).resolve().parent
SEED, FITTED, CALIBRATED, TESTED = 7, 3000, 500, 1000
FONT = ["01110100011001110101110011000101110", "00100011000010000100001000010001110",
        "01110100010000100010001000100011111", "11111000100010000010000011000101110",
        "00010001100101010010111110001000010", "11111100001111000001000011000101110",
        "00110010001000011110100011000101110", "11111000010001000100010000100001000",
        "01110100011000101110100011000101110", "01110100011000101111000010001001100"]


def digits(rng, count):
    """([count,1,28,28] in 0..1, labels)."""
    labels = rng.integers(0, 10, count)
    glyphs = np.array([[int(dot) for dot in row] for row in FONT], float).reshape(10, 7, 5)
    y, x = np.mgrid[0:28, 0:28]
    out = np.zeros((count, 1, 28, 28))
    for i, label in enumerate(labels):
        height, width = rng.uniform(2.4, 3.4), rng.uniform(2.4, 3.6)
        shear, down, right = rng.uniform(-0.25, 0.25), rng.uniform(-2, 2), rng.uniform(-2, 2)
        v = (y - 13.5 - down) / height
        u = (x - 13.5 - right) / width + shear * v
        dots = glyphs[label]
        sharp = rng.uniform(1.2, 2.2)
        for row, column in np.argwhere(dots > 0):
            near = (v - (row - 3)) ** 2 + (u - (column - 2)) ** 2
            out[i, 0] = np.maximum(out[i, 0], np.exp(-sharp * near))
    return np.clip(out + rng.normal(0, 0.08, out.shape), 0, 1), labels


def keywords(rng, count):
    """([count,1,49,10] in 0..1, labels): where two tones begin and end says the word."""
    tones = np.random.default_rng(SEED).uniform(0, 9, (12, 4))
    labels = rng.integers(0, 12, count)
    time, band = np.mgrid[0:49, 0:10].astype(float)
    out = rng.uniform(0, 0.35, (count, 1, 49, 10))
    for i, label in enumerate(labels):
        begin, length, voice = rng.uniform(3, 14), rng.uniform(24, 32), rng.uniform(-0.6, 0.6)
        share = np.clip((time - begin) / length, 0, 1)
        loud = (time > begin) & (time < begin + length)
        for first, last in tones[label].reshape(2, 2):
            at = first + (last - first) * share + voice
            out[i, 0] += loud * rng.uniform(0.5, 0.9) * np.exp(-((band - at) ** 2))
    return np.clip(out, 0, 1), labels


# Layers: (channels, kernel, stride, depthwise); then "pool" or "flat", and a dense layer.
NETWORKS = {"digits_int8": (digits, [(8, 3, 2, False), (16, 3, 2, False)], "flat", 10),
            "keywords_int8": (keywords, [(64, 3, 2, False)] + [(64, 3, 1, True), (64, 1, 1, False)] * 3, "pool", 12)}


def convolve(x, w, stride, depthwise):
    kernel = w.shape[2]
    before = (kernel - 1) // 2
    padded = np.pad(x, ((0, 0), (0, 0), (before, kernel - 1 - before), (before, kernel - 1 - before)))
    rows, columns = ((extent - 1) // stride + 1 for extent in x.shape[2:])
    taps = [padded[:, :, i:i + stride * rows:stride, j:j + stride * columns:stride][:, :, :rows, :columns]
            for i in range(kernel) for j in range(kernel)]
    taps = np.stack(taps, axis=2)
    flat = w.reshape(len(w), w.shape[1], -1)
    return np.einsum("nckhw,ck->nchw" if depthwise else "nckhw,ock->nohw", taps, flat[:, 0] if depthwise else flat)


class Network:
    """Weights and biases as floats; `scales` of what each layer reads, the last of the result."""

    def __init__(self, layers, end, classes):
        self.layers, self.end, self.classes = layers, end, classes
        self.weights, self.biases, self.scales = [], [], []

    def draw(self, rng, x):
        """Random layers, the outputs of each scaled to use relu's both sides."""
        for channels, kernel, stride, depthwise in self.layers:
            depth = 1 if depthwise else x.shape[1]
            w = rng.normal(0, 1, (channels, depth, kernel, kernel)) / np.sqrt(depth * kernel * kernel)
            w -= w.mean(axis=(1, 2, 3), keepdims=True) * (kernel > 1 and not depthwise)
            y = convolve(x[:200], w, stride, depthwise)
            spread = y.std(axis=(0, 2, 3)) + 1e-6
            self.weights.append(w / spread[:, None, None, None])
            self.biases.append(0.2 - y.mean(axis=(0, 2, 3)) / spread)
            x = np.maximum(convolve(x, self.weights[-1], stride, depthwise) + self.biases[-1][:, None, None], 0)
        return self.ended(x)

    def ended(self, x):
        return x.mean(axis=(2, 3)) if self.end == "pool" else x.reshape(len(x), -1)

    def fit(self, features, labels):
        wanted = 2.0 * np.eye(self.classes)[labels] - 1
        a = np.hstack([features, np.ones((len(features), 1))])
        solved = np.linalg.solve(a.T @ a + 3.0 * np.eye(a.shape[1]), a.T @ wanted)
        self.weights.append(solved[:-1].T)
        self.biases.append(solved[-1])

    def steps(self, x):
        """What each layer reads, and the scores."""
        out = [x]
        for i, (_, _, stride, depthwise) in enumerate(self.layers):
            y = convolve(out[-1], self.weights[i], stride, depthwise) + self.biases[i][:, None, None]
            out.append(np.maximum(y, 0))
        if self.end == "pool":
            out.append(self.ended(out[-1]))
        out.append(self.ended(out[-1]) @ self.weights[-1].T + self.biases[-1] if self.end == "flat"
                   else out[-1] @ self.weights[-1].T + self.biases[-1])
        return out

    def quantise(self, x):
        """Zero points are 0 where negative numbers are, and -128 where none is."""
        self.scales = [np.float32(np.abs(step).max() / (127 if step.min() < 0 else 255)) for step in self.steps(x)]
        self.zeros = [0 if step.min() < 0 else -128 for step in self.steps(x)]
        self.channel_scales = [np.maximum(np.abs(w).reshape(len(w), -1).max(axis=1), 1e-9).astype(np.float32) / 127
                               for w in self.weights]
        self.bytes = [np.clip(np.rint(w / s.reshape(-1, *[1] * (w.ndim - 1))), -127, 127).astype(np.int8)
                      for w, s in zip(self.weights, self.channel_scales)]
        reads = self.scales[:len(self.layers)] + [self.scales[-2]]
        self.bias_scales = [s * reads[i] for i, s in enumerate(self.channel_scales)]
        self.integers = [np.rint(b / s).astype(np.int32) for b, s in zip(self.biases, self.bias_scales)]

    def to_bytes(self, x, i):
        return np.clip(np.rint(x / self.scales[i]) + self.zeros[i], -128, 127).astype(np.int8)

    def integer_scores(self, given):
        """The quantised network on int8 inputs: sums are exact, each result is rounded once."""
        x = given.astype(np.float64) - self.zeros[0]
        for i, (_, _, stride, depthwise) in enumerate(self.layers):
            sums = convolve(x, self.bytes[i].astype(np.float64), stride, depthwise) + self.integers[i][:, None, None]
            real = np.maximum(sums * self.bias_scales[i].astype(np.float64)[:, None, None], 0)
            x = self.to_bytes(real, i + 1).astype(np.float64) - self.zeros[i + 1]
        at = len(self.layers)
        if self.end == "pool":
            x = self.to_bytes(x.mean(axis=(2, 3)) * self.scales[at], at + 1).astype(np.float64) - self.zeros[at + 1]
        else:
            x = x.reshape(len(x), -1)
        sums = x @ self.bytes[-1].astype(np.float64).T + self.integers[-1]
        return self.to_bytes(sums * self.bias_scales[-1], len(self.scales) - 1)


class Graph:
    def __init__(self, network):
        self.network, self.nodes, self.weights = network, [], []

    def constant(self, name, value, dtype):
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def step(self, i):
        """Names of scale and zero point of what layer i reads."""
        return [f"s{i}", f"z{i}"]

    def parameters(self, i):
        """Dequantised weight and bias."""
        n = self.network
        for part, data, scale in (("w", n.bytes[i], n.channel_scales[i]), ("b", n.integers[i], n.bias_scales[i])):
            self.constant(f"{part}{i}", data, data.dtype)
            self.constant(f"{part}{i}s", scale, np.float32)
            self.constant(f"{part}{i}z", np.zeros(len(scale)), data.dtype)
            self.node("DequantizeLinear", [f"{part}{i}", f"{part}{i}s", f"{part}{i}z"], f"{part}{i}f", axis=0)
        return [f"w{i}f", f"b{i}f"]

    def build(self, name, shape):
        n = self.network
        for i, (scale, zero) in enumerate(zip(n.scales, n.zeros)):
            self.constant(f"s{i}", scale, np.float32)
            self.constant(f"z{i}", zero, np.int8)
        last, at = "x", 0

        def quantised(real, i, output):
            return self.node("QuantizeLinear", [real, *self.step(i)], output)

        for i, (_, kernel, stride, depthwise) in enumerate(n.layers):
            taken = self.node("DequantizeLinear", [last, *self.step(i)], f"x{i}")
            before = (kernel - 1) // 2
            made = self.node("Conv", [taken, *self.parameters(i)], f"conv{i}", kernel_shape=[kernel] * 2,
                             strides=[stride] * 2, pads=[before] * 2 + [kernel - 1 - before] * 2,
                             group=len(n.bytes[i]) if depthwise else 1)
            last, at = quantised(self.node("Relu", [made], f"relu{i}"), i + 1, f"q{i}"), i + 1
        taken = self.node("DequantizeLinear", [last, *self.step(at)], "features")
        if n.end == "pool":
            pooled = quantised(self.node("GlobalAveragePool", [taken], "pooled"), at + 1, "bytes")
            at += 1
            taken = self.node("DequantizeLinear", [pooled, *self.step(at)], "mean")
        flat = self.node("Flatten", [taken], "flat")
        scores = self.node("Gemm", [flat, *self.parameters(len(n.layers))], "scores", transB=1)
        quantised(scores, at + 1, "y")
        graph = helper.make_graph(self.nodes, name, [helper.make_tensor_value_info("x", TensorProto.INT8, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.INT8, [1, n.classes])], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="make_int8")
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model


def write(name, model, given, scores):
    folder = HERE / name
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, folder / f"{name}.onnx")
    for kind, array, tensor in (("input", given, "x"), ("output", scores, "y")):
        (data / f"{kind}_0.pb").write_bytes(numpy_helper.from_array(array, tensor).SerializeToString())


def main():
    for name, (make, layers, end, classes) in NETWORKS.items():
        rng = np.random.default_rng(SEED)
        x, labels = make(rng, FITTED)
        network = Network(layers, end, classes)
        network.fit(network.draw(rng, x), labels)
        network.quantise(x[:CALIBRATED])
        tests, truth = make(rng, TESTED)
        given = network.to_bytes(tests, 0)
        scores = network.integer_scores(given)
        floats = np.mean(network.steps(tests)[-1].argmax(axis=1) == truth)
        integers = np.mean(scores.argmax(axis=1) == truth)
        model = Graph(network).build(name, list(given[:1].shape))
        write(name, model, given[:1], scores[:1])
        print(f"{name}: right are {100 * floats:.1f} % in floats, {100 * integers:.1f} % in int8; "
              f"{sum(w.size for w in network.bytes)} weights")


if __name__ == "__main__":
    main()
