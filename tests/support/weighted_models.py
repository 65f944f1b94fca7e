"""Small models of all kinds whose weights can be drawn anew: what a pack takes for granted of values is asked of each."""
import random

from onnx_writer import FLOAT, FLOAT16, INT32, INT8, UINT8, model, node, tensor, value


class Weights:
    """Draws tensors. `noise`: relative, of every element; `equal`: all elements of a tensor are one number."""

    def __init__(self, noise=0.0, equal=False):
        self.noise, self.equal, self.seed = noise, equal, 0

    def _numbers(self, dims, scale, zeros):
        count = 1
        for d in dims:
            count *= d
        self.seed += 1
        rng, noise = random.Random(self.seed), random.Random(-self.seed)
        drawn = [0.0 if rng.random() < zeros else rng.gauss(0, scale) for _ in range(count)]
        if self.equal:
            drawn = drawn[:1] * count
        return [v * (1 + self.noise * noise.gauss(0, 1)) for v in drawn]

    def floats(self, name, dims, scale=1.0, zeros=0.0, dtype=FLOAT):
        return tensor(name, dims, self._numbers(dims, scale, zeros), dtype)

    def positive(self, name, dims):
        return tensor(name, dims, [0.5 + abs(v) for v in self._numbers(dims, 1.0, 0.0)])

    def signed_bytes(self, name, dims):
        return tensor(name, dims, self._bytes(dims), INT8)

    def unsigned_bytes(self, name, dims):
        return tensor(name, dims, [v + 128 for v in self._bytes(dims)], UINT8)

    def _bytes(self, dims):
        """Some are one more or less with noise."""
        steps = [max(-60, min(60, round(v))) for v in self._numbers(dims, 20.0, 0.0)]
        rng = random.Random(self.seed)
        return [v + (rng.choice((-1, 0, 1)) if self.noise else 0) for v in steps]


def cnn(w):
    """Fast forms of convolutions, and normalisations that become part of their weights."""
    nodes, tensors, channels, last = [], [], 32, "x"
    for i, outputs in enumerate((48, 48, 64)):
        tensors.append(w.floats(f"w{i}", [outputs, channels, 3, 3], (9 * channels) ** -0.5))
        nodes.append(node("Conv", [last, f"w{i}"], [f"c{i}"], f"conv{i}", kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
        tensors += [w.positive(f"{kind}{i}", [outputs]) for kind in ("scale", "variance")]
        tensors += [w.floats(f"{kind}{i}", [outputs]) for kind in ("bias", "mean")]
        nodes.append(node("BatchNormalization", [f"c{i}", f"scale{i}", f"bias{i}", f"mean{i}", f"variance{i}"],
                          [f"n{i}"], f"normal{i}"))
        nodes.append(node("Relu", [f"n{i}"], [f"r{i}"], f"relu{i}"))
        channels, last = outputs, f"r{i}"
    return model(nodes, [value("x", [1, 32, 28, 28])], [value(last, [1, 64, 28, 28])], tensors)


def transformer(w):
    """Attention of one head, residuals and a normalisation; one weight is read by two nodes."""
    nodes = [node("MatMul", ["x", "q"], ["xq"]), node("MatMul", ["x", "k"], ["xk"]), node("MatMul", ["x", "q"], ["xv"]),
             node("Transpose", ["xk"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["xq", "kt"], ["scores"]),
             node("Softmax", ["scores"], ["p"], axis=2), node("MatMul", ["p", "xv"], ["a"]),
             node("Add", ["a", "x"], ["sum"]),
             node("LayerNormalization", ["sum", "gain", "shift"], ["n"], axis=-1),
             node("MatMul", ["n", "up"], ["u"]), node("Add", ["u", "ub"], ["v"]), node("Relu", ["v"], ["r"]),
             node("MatMul", ["r", "down"], ["y"])]
    return model(nodes, [value("x", [1, 32, 64])], [value("y", [1, 32, 64])],
                 [w.floats("q", [64, 64], 0.1), w.floats("k", [64, 64], 0.1), w.positive("gain", [64]),
                  w.floats("shift", [64]), w.floats("up", [64, 128], 0.1), w.floats("ub", [128]),
                  w.floats("down", [128, 64], 0.1)])


def quantised(w):
    """Bytes with a scale on the way in and out, and weights of bytes."""
    nodes = [node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]), node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
             node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]), node("DequantizeLinear", ["b", "bs", "bz"], ["bd"]),
             node("Conv", ["xd", "wd", "bd"], ["c"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
             node("Relu", ["c"], ["r"]), node("QuantizeLinear", ["r", "ys", "yz"], ["yq"]),
             node("DequantizeLinear", ["yq", "ys", "yz"], ["y"])]
    bias = tensor("b", [32], [7 * i - 90 + (3 if w.noise else 0) for i in range(32)], INT32)
    fixed = [tensor("xs", [], [0.02]), tensor("xz", [], [120], UINT8), tensor("ws", [], [0.01]),
             tensor("wz", [], [0], INT8), tensor("bs", [], [0.0002]), tensor("bz", [], [0], INT32),
             tensor("ys", [], [0.03]), tensor("yz", [], [0], UINT8)]
    return model(nodes, [value("x", [1, 16, 12, 12])], [value("y", [1, 32, 12, 12])],
                 [w.signed_bytes("w", [32, 16, 3, 3]), bias, *fixed])


def dynamic(w):
    """Bytes whose scale is found when the model runs, times unsigned weights with a zero point."""
    nodes = [node("DynamicQuantizeLinear", ["x"], ["xq", "xs", "xz"]),
             node("MatMulInteger", ["xq", "w", "xz", "wz"], ["i"]), node("Cast", ["i"], ["f"], to=FLOAT),
             node("Mul", ["xs", "ws"], ["s"]), node("Mul", ["f", "s"], ["g"]), node("Add", ["g", "b"], ["y"])]
    return model(nodes, [value("x", [8, 64])], [value("y", [8, 48])],
                 [w.unsigned_bytes("w", [64, 48]), tensor("wz", [], [128], UINT8), tensor("ws", [], [0.01]),
                  w.floats("b", [48])])


def computed(w):
    """Weights of two types, one half of zeros, and constants that are computed from weights."""
    nodes = [node("Cast", ["h"], ["hf"], to=FLOAT), node("Mul", ["hf", "m"], ["hm"]),
             node("MatMul", ["x", "hm"], ["p"]), node("MatMul", ["p", "z"], ["q"]),
             node("Exp", ["e"], ["ee"]), node("Sub", ["ee", "m"], ["d"]), node("Mul", ["q", "d"], ["r"]),
             node("Div", ["r", "g"], ["y"])]
    return model(nodes, [value("x", [4, 40])], [value("y", [4, 24])],
                 [w.floats("h", [40, 24], 0.3, dtype=FLOAT16), w.floats("m", [24]), w.floats("z", [24, 24], zeros=0.5),
                  w.floats("e", [24]), w.positive("g", [24])])


MODELS = {"cnn": cnn, "transformer": transformer, "quantised": quantised, "dynamic": dynamic, "computed": computed}
