"""Operators as random_graphs.py draws them: one function per family, attributes and sizes away from the usual.

Each function takes the drawing and adds nodes to it, or none where nothing that was made so far fits.
"""
import numpy as np
from onnx import TensorProto

FAMILIES = []


def family(weight):
    def add(function):
        FAMILIES.append((function, weight))
        return function

    return add


def stretched(d, shape):
    """A shape that broadcasts to `shape`."""
    sizes = [size if d.draw.random() < 0.6 else 1 for size in shape]
    return sizes[d.draw.randrange(len(sizes) + 1):] if d.draw.random() < 0.4 else sizes


@family(4)
def elementwise(d):
    kind = d.draw.choice(["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign",
                          "HardSigmoid", "ThresholdedRelu", "Sin", "Cos", "Atan", "Erf", "Floor", "Sinh", "Identity"])
    more = {"alpha": d.draw.choice([0.01, 0.2, 1.5])} if kind in ("LeakyRelu", "Elu", "ThresholdedRelu") else {}
    d.op(kind, d.some(), **more)


@family(4)
def broadcast(d):
    x = d.some()
    kind = d.draw.choice(["Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"])
    other = d.normal(*stretched(d, d.shape(x)))
    if kind == "Div":
        other = np.abs(other) + np.float32(0.5)
    pair = [x, d.value(other)]
    d.op(kind, *(pair if kind in ("Div", "PRelu") or d.draw.random() < 0.7 else pair[::-1]))


@family(2)
def compared(d):
    x = d.some()
    test = d.op(d.draw.choice(["Greater", "Less"]), x, d.value(d.normal(*stretched(d, d.shape(x)))))
    d.op("Where", d.op("Not", test) if d.draw.random() < 0.3 else test, x, d.value(np.float32(0.5)))


@family(3)
def moved(d):
    x = d.some(1)
    shape, rank = d.shape(x), len(d.shape(x))
    kind = d.draw.choice(["Transpose", "Reshape", "Flatten", "Tile", "Expand", "Unsqueeze", "CumSum"])
    if kind == "Transpose":
        d.op(kind, x, perm=d.draw.sample(range(rank), rank))
    elif kind == "Flatten":
        d.op(kind, x, axis=d.draw.randrange(rank + 1))
    elif kind == "Reshape":
        count = int(np.prod(shape))
        first = d.draw.choice([n for n in range(1, count + 1) if count % n == 0])
        d.op(kind, x, d.ints(first, -1) if d.draw.random() < 0.5 else d.ints(1, -1, first))
    elif kind == "Tile":
        d.op(kind, x, d.ints(*[d.draw.choice([1, 1, 2, 3]) for _ in shape]))
    elif kind == "Expand":
        d.op(kind, x, d.ints(d.draw.choice([1, 2]), *[n if n > 1 else d.draw.choice([1, 4]) for n in shape]))
    elif kind == "CumSum":
        d.op(kind, x, d.value(np.int64(d.axis(x))), exclusive=d.draw.randint(0, 1), reverse=d.draw.randint(0, 1))
    else:
        d.by_input("Unsqueeze", x, [d.draw.randrange(rank + 1)])


@family(2)
def sliced(d):
    x = d.some(1)
    shape, rank = d.shape(x), len(d.shape(x))
    axis = d.draw.randrange(rank)
    size = shape[axis]
    step = d.draw.choice([1, 1, 2, 3, -1, -2])
    start, end = (d.draw.randrange(size), 2**31 - 1) if step > 0 else (-1, -2**63)
    d.op("Slice", x, d.ints(start), d.ints(end), d.ints(axis - d.draw.choice([0, rank])), d.ints(step))


@family(2)
def joined(d):
    x = d.some(1)
    axis, shape = d.axis(x), list(d.shape(x))
    shape[axis] = d.draw.choice([1, 2, 3])
    parts = [x, d.value(d.normal(*shape))] + ([x] if d.draw.random() < 0.3 else [])
    d.draw.shuffle(parts)
    d.op("Concat", *parts, axis=axis)


@family(1)
def parted(d):
    x = d.some(1)
    axes = [i for i, n in enumerate(d.shape(x)) if n > 1]
    if not axes:
        return
    axis = d.draw.choice(axes)
    first = d.draw.randint(1, d.shape(x)[axis] - 1)
    sizes = [first, d.shape(x)[axis] - first]
    if d.opset < 13:
        d.op("Split", x, outputs=2, axis=axis, split=sizes)
    else:
        d.op("Split", x, d.ints(*sizes), outputs=2, axis=axis)


@family(2)
def padded(d):
    x = d.some(1)
    mode = d.draw.choice(["constant", "reflect", "edge"])
    most = [3 if mode != "reflect" else min(3, n - 1) for n in d.shape(x)]
    pads = [d.draw.randint(0, n) for n in most * 2]
    if mode == "constant" and d.draw.random() < 0.3:
        pads = [-1 if p == 0 and n > 3 else p for p, n in zip(pads, d.shape(x) * 2)]
    d.op("Pad", x, d.ints(*pads), mode=mode)


@family(3)
def reduced(d):
    x = d.some(1)
    rank = len(d.shape(x))
    kind = d.draw.choice(["ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                          "ReduceLogSumExp"])
    axes = sorted(d.draw.sample(range(rank), d.draw.randint(1, rank)))
    if d.draw.random() < 0.4:
        axes = [axis - rank for axis in axes]
    d.by_input(kind, x, axes, since=13 if kind == "ReduceSum" else 18, keepdims=d.draw.randint(0, 1))


@family(3)
def multiplied(d):
    x = d.some(2)
    rows, depth = d.shape(x)[-2:]
    columns = d.draw.choice([1, 2, 3, 8, 13, 16, 17, 31])
    kind = d.draw.choice(["right", "left", "self", "gemm", "vector"])
    if kind == "left":
        d.op("MatMul", d.weights(columns, rows, fan_in=rows), x)
    elif kind == "vector":
        d.op("MatMul", x, d.weights(depth, fan_in=depth))
    elif kind == "self":
        order = [*range(len(d.shape(x)) - 2), len(d.shape(x)) - 1, len(d.shape(x)) - 2]
        d.op("Softmax", d.op("MatMul", x, d.op("Transpose", x, perm=order)), axis=-1)
    elif kind == "gemm" and len(d.shape(x)) == 2:
        turned = d.draw.randint(0, 1)
        inner, outer = (rows, depth) if turned else (depth, rows)
        added = d.draw.choice([(columns,), (1, columns), (outer, 1), ()])
        d.op("Gemm", x, d.weights(columns, inner, fan_in=inner), d.value(d.normal(*added)), transA=turned, transB=1,
             alpha=d.draw.choice([1.0, 0.5, -1.0]), beta=d.draw.choice([1.0, 0.3]))
    else:
        y = d.op("MatMul", x, d.weights(depth, columns, fan_in=depth))
        d.op("Add", y, d.value(d.normal(columns)))


def divisor(d, number):
    return d.draw.choice([n for n in range(1, number + 1) if number % n == 0])


@family(4)
def convolved(d):
    x = d.some(3, 5)
    channels, extents = d.shape(x)[1], d.shape(x)[2:]
    group = divisor(d, channels) if d.draw.random() < 0.4 else 1
    taps = [d.draw.choice([k for k in (1, 2, 3, 5, 7) if k <= n + 2]) for n in extents]
    apart = [d.draw.choice([1, 1, 1, 2]) for _ in taps]
    outputs, inputs = group * d.draw.choice([1, 2, 3, 8]), channels // group
    where = {"pads": [d.draw.randint(0, (k - 1) * a) for k, a in zip(taps * 2, apart * 2)]}
    if max(apart) == 1 and d.draw.random() < 0.25:
        where = {"auto_pad": d.draw.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])}
    y = d.op("Conv", x, d.weights(outputs, inputs, *taps, fan_in=inputs * np.prod(taps)), d.value(d.normal(outputs)),
             group=group, dilations=apart, strides=[d.draw.choice([1, 1, 2, 3]) for _ in taps], **where)
    if d.draw.random() < 0.4:
        around = [d.value(d.normal(outputs)) for _ in range(3)]
        d.op("BatchNormalization", y, *around, d.value(np.abs(d.normal(outputs)) + np.float32(0.5)))


@family(2)
def convolved_back(d):
    x = d.some(3, 5)
    channels, spatial = d.shape(x)[1], len(d.shape(x)) - 2
    group, outputs = divisor(d, channels), d.draw.choice([1, 2, 3, 5])
    taps = [d.draw.choice([1, 2, 3, 4]) for _ in range(spatial)]
    strides = [d.draw.choice([1, 2, 3]) for _ in taps]
    pads = [d.draw.randint(0, min(2, k - 1)) for k in taps]
    more = [d.draw.randrange(s) for s in strides]
    d.op("ConvTranspose", x, d.weights(channels, outputs, *taps, fan_in=channels // group * np.prod(taps)),
         d.value(d.normal(outputs * group)), group=group, strides=strides, pads=pads * 2, output_padding=more)


@family(2)
def pooled(d):
    x = d.some(3, 5)
    kind = d.draw.choice(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"])
    if kind.startswith("Global"):
        d.op(kind, x)
        return
    taps = [d.draw.choice([k for k in (1, 2, 3, 5) if k <= n]) for n in d.shape(x)[2:]]
    more = {"ceil_mode": d.draw.randint(0, 1)} if kind != "LpPool" else {}
    d.op(kind, x, kernel_shape=taps, strides=[d.draw.choice([1, 2, 3]) for _ in taps],
         pads=[d.draw.randint(0, k - 1) for k in taps * 2], **more)


@family(2)
def resized(d):
    x = d.some(3, 5)
    mode = d.draw.choice(["nearest", "linear", "cubic"] if len(d.shape(x)) == 4 else ["nearest", "linear"])
    place = d.draw.choice(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    # Whole sizes alone: of other scales with align_corners ONNX Runtime and the specification's tests differ.
    choices = [1, 2, 3] if place == "align_corners" else [1, 2, 0.5, 1.5, 3, 0.7]
    scales = [1, 1] + [d.draw.choice(choices) for _ in d.shape(x)[2:]]
    more = {"nearest_mode": d.draw.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])} \
        if mode == "nearest" else {}
    roi = "" if d.opset >= 13 else d.value(np.zeros(0, np.float32))
    d.op("Resize", x, roi, d.value(np.array(scales, np.float32)), mode=mode, coordinate_transformation_mode=place,
         **more)


@family(2)
def normalised(d):
    x = d.some(2)
    shape = d.shape(x)
    kind = d.draw.choice(["InstanceNormalization", "LpNormalization", "LRN", "Softmax", "LogSoftmax", "by hand"])
    if kind == "InstanceNormalization" and len(shape) > 2:
        d.op(kind, x, d.value(d.normal(shape[1])), d.value(d.normal(shape[1])), epsilon=0.01)
    elif kind == "LRN" and len(shape) == 4:
        d.op(kind, x, size=d.draw.choice([1, 3, 5]), alpha=0.1)
    elif kind in ("LpNormalization", "Softmax", "LogSoftmax"):
        d.op(kind, x, axis=d.axis(x))
    else:
        apart = d.op("Sub", x, d.by_input("ReduceMean", x, [-1], since=18))
        spread = d.by_input("ReduceMean", d.op("Pow", apart, d.value(np.float32(2))), [-1], since=18)
        d.op("Div", apart, d.op("Sqrt", d.op("Add", spread, d.value(np.float32(1e-3)))))


@family(2)
def looked_up(d):
    x = d.some(1)
    axis = d.axis(x)
    size = d.shape(x)[axis]
    kind = d.draw.choice(["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "TopK", "Compress"])
    if kind == "Gather":
        d.op(kind, x, d.value(d.whole(-size, size, d.draw.choice([(), (1,), (3,), (2, 2)]))), axis=axis)
    elif kind == "GatherElements":
        d.op(kind, x, d.value(d.whole(-size, size, d.shape(x))), axis=axis)
    elif kind == "ScatterElements":
        at = np.argsort(d.normal(*d.shape(x)), axis=axis).astype(np.int64)
        d.op(kind, x, d.value(at), d.value(d.normal(*at.shape)), axis=axis)
    elif kind == "TopK":
        d.op(kind, x, d.ints(d.draw.randint(1, size)), outputs=2, axis=axis, largest=d.draw.randint(0, 1))
    elif kind == "Compress":
        d.op(kind, x, d.value(np.arange(size) % 3 != 1), axis=axis)
    else:
        places = d.draw.sample(range(d.shape(x)[0]), min(2, d.shape(x)[0]))
        at = d.value(np.array(places, np.int64)[:, None])
        more = [d.value(d.normal(len(places), *d.shape(x)[1:]))] if kind == "ScatterND" else []
        d.op(kind, x, at, *more)


@family(1)
def recurrent(d):
    x = d.some(3, 3)
    steps, batch, inputs = d.shape(x)
    kind = d.draw.choice(["LSTM", "GRU", "RNN"])
    gates, hidden = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], d.draw.choice([1, 3, 8])
    direction = d.draw.choice(["forward", "reverse", "bidirectional"])
    both = 2 if direction == "bidirectional" else 1
    lengths = d.value(d.whole(1, steps + 1, (batch,)).astype(np.int32)) if d.draw.random() < 0.3 else ""
    more = {"linear_before_reset": d.draw.randint(0, 1)} if kind == "GRU" else {}
    rows = gates * hidden
    d.op(kind, x, d.weights(both, rows, inputs, fan_in=inputs), d.weights(both, rows, hidden, fan_in=hidden),
         d.value(d.normal(both, 2 * rows)), lengths, outputs=2, hidden_size=hidden, direction=direction, **more)


@family(1)
def quantised(d):
    x = d.some(1)
    scale = d.value(np.float32(np.abs(d.values[x]).max() / 100 + 1e-3))
    zero = d.value(np.array(3, d.draw.choice([np.uint8, np.int8])))
    d.op("DequantizeLinear", d.op("QuantizeLinear", x, scale, zero), scale, zero)


@family(1)
def by_sizes(d):
    """A view whose sizes come from Shape, as exporters write it."""
    x = d.some(2)
    size = d.op("Gather", d.op("Shape", x), d.value(np.array([d.axis(x)])), axis=0)
    d.op("Reshape", x, d.op("Concat", size, d.ints(-1), axis=0))


@family(2)
def found(d):
    """What data decide the length of, and convolutions along it as speech has them."""
    x = d.op("Flatten", d.some(1), axis=0)
    if not 8 <= d.values[x].size <= 300:
        return
    at = d.op("NonZero", d.op("Greater", x, d.value(np.float32(0))))
    kept = d.op("GatherND", x, d.op("Transpose", at, perm=[1, 0]))
    if d.values[kept].size < 8:
        return
    y = d.by_input("Unsqueeze", kept, [0, 1])
    taps, stride = d.draw.choice([1, 3, 4]), d.draw.choice([1, 2])
    y = d.op("Conv", y, d.weights(3, 1, taps, fan_in=taps), pads=[taps // 2] * 2, strides=[stride])
    y = d.op("Slice", y, d.ints(-1), d.ints(-2**63), d.ints(1), d.ints(-1))
    y = d.op("ConvTranspose", y, d.weights(3, 2, 4, fan_in=6), strides=[2], pads=[1, 1])
    d.op("Cast", d.op("Mul", y, d.value(np.float32(3))), to=TensorProto.FLOAT)


@family(3)
def kept(d):
    """As many elements along an axis as data decide, in layers that look along it; then their size is known again."""
    x = d.some(3, 4)
    axis = d.draw.randrange(1, len(d.shape(x)))
    others = [i for i in range(len(d.shape(x))) if i != axis]
    score = d.by_input("ReduceMax", x, others, since=18, keepdims=0)
    levels = np.sort(d.values[score])
    at = d.draw.randrange(max(1, levels.size // 2))
    if levels.size < 3 or levels[at + 1] - levels[at] < 0.01:
        return  # which of them are kept would depend on rounding
    middle = (levels[at] + levels[at + 1]) / np.float32(2)
    y = d.op("Compress", x, d.op("Greater", score, d.value(middle)), axis=axis)
    channels, where = d.shape(y)[1], axis if d.draw.random() < 0.5 else axis - len(d.shape(y))
    spatial = len(d.shape(y)) - 2
    kind = d.draw.choice(["Softmax", "LogSoftmax", "LpNormalization", "CumSum", "InstanceNormalization", "AveragePool",
                          "LpPool", "MaxPool", "GlobalAveragePool", "GlobalMaxPool", "LSTM", "GRU", "RNN"])
    if kind == "CumSum":
        y = d.op(kind, y, d.value(np.int64(axis)), reverse=d.draw.choice([0, 1]))
    elif kind in ("Softmax", "LogSoftmax", "LpNormalization"):
        y = d.op(kind, y, axis=where)
    elif kind.startswith("Global"):
        d.op(kind, y)
        return
    elif kind == "InstanceNormalization" and axis > 1:
        y = d.op(kind, y, d.value(d.normal(channels)), d.value(d.normal(channels)))
    elif kind.endswith("Pool"):
        more = {"kernel_shape": [2] * spatial, "strides": [d.draw.choice([1, 2])] * spatial}
        if kind != "LpPool":
            more["ceil_mode"] = d.draw.choice([0, 1])
        y = d.op(kind, y, **more)
    elif kind in ("LSTM", "GRU", "RNN") and spatial == 1 and axis == 1:
        wide, hidden = d.shape(y)[2], d.draw.choice([2, 3, 8])
        both, gates = d.draw.choice([1, 2]), {"LSTM": 4, "GRU": 3, "RNN": 1}[kind] * hidden
        y = d.op(kind, d.op("Transpose", y, perm=[1, 0, 2]), d.weights(both, gates, wide, fan_in=wide),
                 d.weights(both, gates, hidden, fan_in=hidden), d.weights(both, 2 * gates, fan_in=1), hidden_size=hidden,
                 direction="bidirectional" if both == 2 else d.draw.choice(["forward", "reverse"]))
        axis = 0
    d.by_input("ReduceSum", y, [axis], keepdims=d.draw.choice([0, 1]))
