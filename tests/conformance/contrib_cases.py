#!/usr/bin/env python3
"""Operators of com.microsoft against ONNX Runtime: one small model per case, made here.

    contrib_cases.py [--filter REGEX] [--jobs 2] [--keep]

A case is an operator, its inputs, its attributes and the number of its outputs. The model is run by ONNX
Runtime's CPU provider and by the program packed from it, and the outputs are compared as run_units.py does. A
case that ONNX Runtime cannot run is compared with an `expect`ed array, worked out from the published contract.
Needs numpy, onnx and onnxruntime; says so and is skipped otherwise.
"""
import dataclasses
import re
import sys

import run_units as units

if not units.oracle.available():
    print("skipped: this python has no onnxruntime, onnx and numpy")
    sys.exit(77)
import generation_cases as generation  # needs numpy
import packed_case
import token_cases

base, np, onnx = units.base, units.np, units.onnx

WORK = base.WORK / "contrib"
CASES = []
RNG = np.random.default_rng(7)


@dataclasses.dataclass
class Contrib:
    name: str
    op: str
    inputs: list  # arrays; None: left out; Const(array): an initializer
    attributes: dict
    outputs: int = 1
    domain: str = "com.microsoft"
    version: int = 17  # of ai.onnx
    expect: list = None


@dataclasses.dataclass
class Const:
    array: object


def case(op, inputs, outputs=1, label="", expect=None, domain="com.microsoft", version=17, **attributes):
    name = f"{op}{'_' + label if label else ''}"
    CASES.append(Contrib(name, op, inputs, attributes, outputs, domain, version, expect))


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def f16(*shape):
    return RNG.standard_normal(shape).astype(np.float16)


def u8(*shape, low=0, high=256):
    return RNG.integers(low, high, shape).astype(np.uint8)


def i8(*shape):
    return RNG.integers(-128, 128, shape).astype(np.int8)


def i7(*shape):
    """Weights of seven bits. Without VNNI, ONNX Runtime adds pairs of byte products in 16 bits in these operators, whatever
    session.x64quantprecision says; larger weights would saturate there."""
    return RNG.integers(-64, 64, shape).astype(np.int8)


def i32(*values):
    return np.array(values, np.int32)


def i64(*values):
    return np.array(values, np.int64)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


def erf(x):
    import math
    return np.vectorize(math.erf)(x).astype(np.float32)


def gelu(x):
    return (x * 0.5 * (1 + erf(x / np.sqrt(2)))).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def group_norm(x, gamma, beta, groups, epsilon=1e-5):
    """Channels last."""
    n, c = x.shape[0], x.shape[-1]
    g = x.reshape(n, -1, groups, c // groups)
    g = (g - g.mean((1, 3), keepdims=True)) / np.sqrt(g.var((1, 3), keepdims=True) + epsilon)
    return (g.reshape(x.shape) * gamma + beta).astype(np.float32)


def elementwise():
    x, bias = f32(2, 3, 8), f32(8)
    case("Gelu", [x])
    case("BiasGelu", [x, bias])
    case("FastGelu", [x, bias])
    case("QuickGelu", [x], alpha=1.5)
    y = x + bias
    case("BiasSplitGelu", [x, bias], expect=[y[..., :4] * gelu(y[..., 4:])])
    skip = f32(2, 3, 8)
    case("BiasAdd", [x, bias, skip], expect=[y + skip])
    case("BiasDropout", [x, bias, skip], outputs=2, expect=[y + skip, np.ones(y.shape, bool)])
    case("BitmaskDropout", [x], outputs=2, expect=[x, np.full(2, 2**32 - 1, np.uint32)])
    case("ScaledSiLU", [x], alpha=0.7)
    case("ScaledSiLU", [x, scalar(1.3)], label="input")
    case("GatedAdd", [x, f32(2, 3, 8), f32(2, 3, 1)])
    case("GatedRMSNorm", [x, f32(4), f32(2, 3, 8)], epsilon=1e-5)
    case("GatedRMSNorm", [x, f32(8), f32(2, 3, 8)], label="sigmoid", activation="sigmoid")
    case("BranchwiseRMSNorm", [x, f32(8)], num_branches=2)
    case("BranchwiseRMSNorm", [f32(2, 4, 8), f32(4, 8)], label="grouped")
    case("LinearAttentionGate", [f32(1, 3, 4), f32(4), f32(4), f32(1, 3, 4)], outputs=2)
    case("SampleOp", [x])
    case("ExpandDims", [x, Const(scalar(-2, np.int32))])
    case("CDist", [f32(4, 5), f32(3, 5)], metric="euclidean")
    case("CDist", [f32(4, 5), f32(3, 5)], label="square")
    case("UnfoldTensor", [f32(2, 7)], dim=1, size=3, step=2)
    case("Trilu", [f32(2, 4, 4), Const(scalar(1, np.int64))], upper=0)
    case("Pad", [f32(2, 3), Const(i64(0, 1, 2, 0)), Const(scalar([0.5]))])
    case("GatherND", [f32(2, 3, 4), Const(np.array([[0, 1], [1, 2]], np.int64))])
    case("Range", [Const(scalar(1.)), Const(scalar(7.)), Const(scalar(2.))])
    case("GridSample", [f32(1, 2, 4, 5), f32(1, 3, 3, 2)])


def norms():
    x, gamma, beta = f32(2, 3, 4, 8), f32(8), f32(8)
    case("GroupNorm", [x, gamma, beta], groups=4, activation=0, expect=[group_norm(x, gamma, beta, 4)])
    y = group_norm(x, gamma, beta, 2)
    case("GroupNorm", [x, gamma, beta], label="silu", groups=2, activation=1, expect=[y * sigmoid(y)])
    skip, bias = f32(2, 3, 4, 8), f32(8)
    s = x + skip + bias
    case("SkipGroupNorm", [x, gamma, beta, skip, bias], outputs=2, groups=4, activation=0,
         expect=[group_norm(s, gamma, beta, 4), s])
    x = f32(2, 3, 8)
    case("SkipLayerNormalization", [x, f32(2, 3, 8), f32(8), f32(8), f32(8)], outputs=4)
    case("SkipLayerNormalization", [x, f32(3, 8), f32(8)], label="broadcast")
    case("SkipSimplifiedLayerNormalization", [x, f32(2, 3, 8), f32(8), f32(8)])
    case("SkipSimplifiedLayerNormalization", [x, f32(2, 3, 8), f32(8)], outputs=4, label="statistics")
    ids = RNG.integers(0, 5, (2, 4)).astype(np.int32)
    case("EmbedLayerNormalization",
         [ids, ids % 2, f32(5, 8), f32(6, 8), f32(2, 8), f32(8), f32(8), np.ones((2, 4), np.int32)], outputs=2)


def products():
    case("FusedMatMul", [f32(2, 3, 4), f32(2, 5, 4)], transB=1, alpha=0.5)
    case("FusedMatMul", [f32(2, 4, 3), f32(2, 4, 5)], label="transA", transA=1)
    case("TransposeMatMul", [f32(4, 3), f32(4, 5)], transA=1)
    case("FusedGemm", [f32(3, 4), f32(4, 5), f32(5)], activation="Relu")
    case("FusedConv", [f32(1, 2, 5, 5), f32(3, 2, 3, 3), f32(3)], activation="Relu")
    a, b = u8(3, 8), u8(8, 5)
    case("MatMulIntegerToFloat", [a, b, scalar(0.05), scalar(0.1), scalar(120, np.uint8), scalar(130, np.uint8), f32(5)])
    case("MatMulIntegerToFloat", [a, i8(8, 5), scalar(0.05), Const(np.abs(f32(5))), scalar(120, np.uint8),
                                  Const(i8(5)), f32(5)], label="columns")
    case("DynamicQuantizeMatMul", [f32(3, 8), Const(i7(8, 5)), Const(np.abs(f32(5))), Const(np.zeros(5, np.int8)), f32(5)])
    case("MatMulInteger16", [RNG.integers(-500, 500, (3, 4)).astype(np.int16),
                             RNG.integers(-500, 500, (4, 5)).astype(np.int16)])
    zero = scalar(128, np.uint8)
    case("QGemm", [a, scalar(0.05), zero, b, scalar(0.1), zero, RNG.integers(-900, 900, 5).astype(np.int32),
                   scalar(0.4), zero])
    case("QGemm", [a, scalar(0.05), zero, Const(b.T.copy()), scalar(0.1), zero], label="float", transB=1, alpha=0.5)


def quantised():
    x, s, z = u8(1, 2, 6, 6), scalar(0.04), scalar(120, np.uint8)
    t, w = scalar(0.05), scalar(110, np.uint8)
    for op in ("QLinearAdd", "QLinearMul"):
        case(op, [x, s, z, u8(1, 2, 6, 6), scalar(0.03), w, t, w])
    case("QLinearSigmoid", [x, s, z, scalar(1 / 256), scalar(0, np.uint8)])
    case("QLinearLeakyRelu", [x, s, z, t, w], alpha=0.2)
    case("QLinearAveragePool", [x, s, z, t, w], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    case("QLinearAveragePool", [u8(1, 6, 6, 2), s, z, t, w], label="last", kernel_shape=[2, 2], channels_last=1)
    case("QLinearGlobalAveragePool", [x, s, z, t, w])
    case("QLinearConcat", [t, w, x, s, z, u8(1, 2, 6, 6), scalar(0.02), w], axis=1)
    case("QLinearSoftmax", [u8(2, 8), s, z, scalar(1 / 256), scalar(0, np.uint8)], opset=13)
    case("QLinearWhere", [RNG.integers(0, 2, (2, 3)).astype(bool), u8(2, 3), s, z, u8(2, 3), t, w, scalar(0.06), z])
    real = (x.astype(np.float32) - 120) * np.float32(0.04)
    mean = np.clip(np.round(real.mean((2, 3)) / np.float32(0.05)) + 110, 0, 255).astype(np.uint8)
    case("QLinearReduceMean", [x, s, z, t, w], axes=[2, 3], keepdims=0, expect=[mean])
    case("QuantizeLinear", [f32(2, 3), s, z], axis=0)
    case("DequantizeLinear", [u8(2, 3), s, z], axis=0)
    case("NhwcMaxPool", [u8(1, 5, 5, 3)], kernel_shape=[2, 2], strides=[2, 2])
    case("MaxpoolWithMask", [f32(1, 2, 6), np.ones((1, 1, 6), np.int32)], kernel_shape=[2], strides=[2])
    case("QLinearConv", [u8(1, 6, 6, 2), s, z, Const(u8(3, 2, 3, 3)), Const(scalar(0.02)), Const(w), scalar(0.2), z],
         channels_last=1, label="last")
    hidden, width = 4, 3
    case("DynamicQuantizeLSTM",
         [f32(3, 2, width), Const(i8(1, width, 4 * hidden)), Const(i8(1, hidden, 4 * hidden)), f32(1, 8 * hidden), None,
          None, None, None, Const(np.full((1,), 0.01, np.float32)), Const(np.zeros((1,), np.int8)),
          Const(np.full((1,), 0.01, np.float32)), Const(np.zeros((1,), np.int8))], outputs=3, hidden_size=hidden)


def attentions():
    x, w, b = f32(2, 4, 8), f32(8, 24), f32(24)
    case("Attention", [x, w, b], num_heads=2)
    case("Attention", [x, w, b, i32(3, 4)], label="lengths", num_heads=2)
    case("Attention", [x, w, b, i32(3, 4, 1, 0)], label="ends_starts", num_heads=2)
    mask = np.array([[1, 1, 0, 1], [1, 1, 1, 0]], np.int32)
    case("Attention", [x, w, b, mask], label="mask", num_heads=2, mask_filter_value=-5000.)
    case("Attention", [x, w, b], label="causal", num_heads=2, unidirectional=1)
    case("Attention", [x, w, b, None, f32(2, 2, 2, 3, 4)], label="past", num_heads=2, outputs=2)
    case("Attention", [x, f32(8, 20), f32(20)], label="sizes", num_heads=2, qkv_hidden_sizes=[8, 8, 4])
    case("QAttention", [u8(2, 4, 8), Const(i7(8, 24)), b, scalar(0.02), Const(scalar(0.01)), None, scalar(128, np.uint8),
                        Const(scalar(0, np.int8))], num_heads=2)
    case("QAttention", [u8(2, 4, 8), Const(i7(8, 24)), b, scalar(0.02), Const(np.abs(f32(24)) * 0.01), i32(3, 4),
                        scalar(128, np.uint8), Const(np.zeros(24, np.int8))], label="columns", num_heads=2)
    case("MultiHeadAttention", [f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8), f32(24)], num_heads=2)
    case("MultiHeadAttention", [f32(2, 3, 8), f32(2, 5, 8), f32(2, 5, 8), None, i32(4, 5)], label="lengths",
         num_heads=2)
    case("MultiHeadAttention", [f32(2, 3, 8), f32(2, 3, 8), f32(2, 3, 8), None, None, f32(1, 2, 3, 3)], label="bias",
         num_heads=2)
    case("MultiHeadAttention", [f32(2, 3, 8), f32(2, 3, 8), f32(2, 3, 8), None, None, None, f32(2, 2, 4, 4),
                                f32(2, 2, 4, 4)], label="past", num_heads=2, outputs=3)
    case("RotaryEmbedding", [f32(2, 3, 8), np.array([[0, 1, 2], [1, 2, 3]], np.int64), f32(6, 2), f32(6, 2)],
         num_heads=2)


def caches():
    """Keys and values with a past, packed or in a buffer with room."""
    q = f32(2, 3, 8)
    case("MultiHeadAttention", [q, f32(2, 2, 5, 4), f32(2, 2, 5, 4)], label="cross", num_heads=2)
    past = f32(2, 2, 6, 4), f32(2, 2, 6, 4)
    case("MultiHeadAttention", [f32(2, 1, 8), f32(2, 1, 8), f32(2, 1, 8), None, None, None, *past, Const(i32(3))],
         label="room", num_heads=2, outputs=3)
    case("DecoderMaskedMultiHeadAttention", [f32(2, 1, 8), f32(2, 1, 8), f32(2, 1, 8), None, None, *past,
                                             Const(i32(3))], num_heads=2, outputs=3, past_present_share_buffer=1)
    packed = f32(2, 3, 2, 3, 4)
    parts = [packed[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    expect = [attention(*parts)]
    case("MultiHeadAttention", [packed], label="packed", num_heads=2, expect=expect)
    keys = np.stack([parts[1].transpose(0, 2, 1, 3), parts[2].transpose(0, 2, 1, 3)], 3)
    query = parts[0].transpose(0, 2, 1, 3).reshape(2, 3, 8)
    case("MultiHeadAttention", [query, keys], label="packed_keys", num_heads=2, expect=expect)
    total, lengths = Const(scalar(4, np.int32)), i32(3, 3)
    cache = f32(2, 1, 0, 8)
    for label, sink in (("plain", None), ("sink", f32(2))):
        case("GroupQueryAttention", [f32(2, 4, 16), f32(2, 4, 8), f32(2, 4, 8), cache, cache, Const(lengths), total,
                                     None, None, None, None, *([sink] if sink is not None else [])], label=label,
             num_heads=2, kv_num_heads=1, outputs=3)
    case("GroupQueryAttention", [f32(2, 4, 16), f32(2, 4, 8), f32(2, 4, 8), cache, cache, Const(lengths), total, None,
                                 None, None, f32(1, 2, 4, 4)], label="bias", num_heads=2, kv_num_heads=1, outputs=3)
    case("GroupQueryAttention", [f32(2, 4, 16), f32(2, 4, 8), f32(2, 4, 8), cache, cache, Const(lengths), total],
         label="smooth", num_heads=2, kv_num_heads=1, outputs=3, smooth_softmax=1)


def attention(q, k, v):
    """[batch, heads, length, head] each; the result with its heads joined."""
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1).astype(np.float32)


def gradient(f, x, dy):
    """Of sum(f(x) * dy) by differences."""
    x, dx, h = x.astype(np.float64), np.zeros(x.shape), 1e-5
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[i] = h
        dx[i] = ((f(x + step) - f(x - step)) * dy).sum() / (2 * h)
    return dx.astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gradients():
    """ONNX Runtime's inference package has no training kernels: differences of the forward function instead."""
    import math
    exact = np.vectorize(lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))))

    def fast(v):
        return 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))

    x, dy, bias = f32(3, 4), f32(3, 4), f32(4)
    f = np.float32
    case("SoftmaxGrad_13", [dy, softmax(x).astype(f)], axis=-1, expect=[gradient(softmax, x, dy)])
    log = lambda v: np.log(softmax(v))
    case("LogSoftmaxGrad_13", [dy, log(x).astype(f)], axis=-1, expect=[gradient(log, x, dy)])
    case("ReluGrad", [dy, x], expect=[np.where(x > 0, dy, 0).astype(f)])
    case("SigmoidGrad", [dy, sigmoid(x).astype(f)], expect=[gradient(sigmoid, x, dy)])
    case("TanhGrad", [dy, np.tanh(x)], expect=[gradient(np.tanh, x, dy)])
    case("GeluGrad", [dy, x], expect=[gradient(exact, x, dy)])
    case("FastGeluGrad", [dy, x], expect=[gradient(fast, x, dy)])
    case("BiasGeluGrad_dX", [dy, x, bias], expect=[gradient(lambda v: exact(v + bias), x, dy)])
    case("BiasFastGeluGrad_dX", [dy, x, bias], expect=[gradient(lambda v: fast(v + bias), x, dy)])

    def normal(v):
        return (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-5)
    mean, inverse = x.mean(-1, keepdims=True), 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    case("LayerNormalizationGrad", [dy, x, bias, mean, inverse.astype(f)], outputs=3,
         expect=[gradient(lambda v: normal(v) * bias, x, dy),
                 gradient(lambda s: normal(x) * s, bias, dy), dy.sum(0)])
    mask = RNG.integers(0, 2, (3, 4)).astype(bool)
    case("DropoutGrad", [dy, mask, Const(scalar(0.25)), Const(np.array(True))],
         expect=[np.where(mask, dy / 0.75, 0).astype(f)])
    case("ConcatTraining", [f32(2, 3), f32(2, 1)], outputs=2, axis=1, expect=None)
    joined = CASES[-1]
    joined.expect = [np.concatenate(joined.inputs, 1), i64(3, 1)]
    case("BroadcastGradientArgs", [Const(i64(2, 1, 4)), Const(i64(3, 1))], outputs=2, expect=[i64(1), i64(2, 0)])
    part = f32(2, 2)
    whole = np.zeros((3, 5), f)
    whole[1:3, 4:0:-2] = part
    case("SliceGrad", [part, *(Const(i64(*v)) for v in ((3, 5), (1, 4), (3, 0), (0, 1), (1, -2)))], expect=[whole])
    index, rows = np.array([1, 0, 1], np.int64), f32(3, 4)
    table = np.zeros((3, 4), f)
    np.add.at(table, index, rows)
    case("GatherGrad", [Const(i64(3, 4)), index, rows], expect=[table])
    case("ATen", [f32(3, 4), index, Const(scalar(-1, np.int64)), Const(np.array(False)), Const(np.array(False))],
         domain="org.pytorch.aten", operator="embedding", expect=[])
    CASES[-1].expect = [CASES[-1].inputs[0][index]]
    case("ATen", [rows, index, f32(3, 4), Const(scalar(0, np.int64)), Const(np.array(False)), Const(np.array(False))],
         label="backward", domain="org.pytorch.aten", operator="embedding_backward",
         expect=[np.where(np.arange(3)[:, None] == 0, 0, table).astype(f)])


def low_bits():
    n, k, block = 6, 32, 16
    packed, scales = u8(n, k // block, block // 2), np.abs(f32(n * (k // block)))
    case("MatMulNBits", [f32(3, k), Const(packed), Const(scales)], N=n, K=k, block_size=block, bits=4)
    zero = u8(n * ((k // block + 1) // 2))
    case("MatMulNBits", [f32(3, k), Const(packed), Const(scales), Const(zero)], label="zeros", N=n, K=k,
         block_size=block, bits=4)
    groups = RNG.integers(0, k // block, k).astype(np.int32)
    case("MatMulNBits", [f32(3, k), Const(packed), Const(scales), None, Const(groups)], label="groups", N=n, K=k,
         block_size=block, bits=4)
    # ONNX Runtime's CPU kernel leaves the zero points out here.
    a, values = f32(3, k), np.stack([packed & 15, packed >> 4], -1).reshape(n, k).astype(np.float32)
    zeros = np.stack([zero & 15, zero >> 4], -1).reshape(n, -1)[:, :k // block].astype(np.float32)
    weights = (values - zeros[:, groups]) * scales.reshape(n, -1)[:, groups]
    case("MatMulNBits", [a, Const(packed), Const(scales), Const(zero), Const(groups)], label="groups_zeros", N=n, K=k,
         block_size=block, bits=4, expect=[a @ weights.T])
    case("MatMulNBits", [f32(3, k), Const(u8(n, k // block, block)), Const(scales)], label="bytes", N=n, K=k,
         block_size=block, bits=8)
    for bits, label in ((4, "level4"), (8, "bytes_level4")):
        weights = u8(n, k // block, block * bits // 8)
        case("MatMulNBits", [f32(3, k), Const(weights), Const(scales)], label=label, N=n, K=k, block_size=block,
             bits=bits, accuracy_level=4)
    case("MatMulNBits", [f32(1, k), Const(packed), Const(scales), Const(zero)], label="zeros_level4", N=n, K=k,
         block_size=block, bits=4, accuracy_level=4)
    for kind, name in ((0, "fp4"), (1, "nf4")):
        case("MatMulBnb4", [f32(3, k), Const(u8(n * k // 2)), Const(np.abs(f32(n * k // block)))], label=name, N=n, K=k,
             block_size=block, quant_type=kind)
    table, index = u8(5, 16), np.array([[0, 4], [2, 2]], np.int64)
    case("GatherBlockQuantized", [Const(table), index, Const(np.abs(f32(5, 2))), Const(u8(5, 1))], label="zeros",
         block_size=16, bits=4)
    case("GatherBlockQuantized", [Const(table), index, Const(np.abs(f32(5, 2)))], block_size=16, bits=4)
    case("GatherBlockQuantized", [Const(u8(5, 32)), index, Const(np.abs(f32(5, 2)))], label="bytes", block_size=16,
         bits=8)


def lookups():
    case("Inverse", [f32(2, 4, 4) + 3 * np.eye(4, dtype=np.float32)])
    case("Inverse", [np.array([[0, 1], [1, 0]], np.float32)], label="exchange")
    case("MurmurHash3", [RNG.integers(-9, 9, (2, 3)).astype(np.int32)], seed=42)
    case("MurmurHash3", [f32(2, 3)], label="float", positive=0)
    case("MurmurHash3", [RNG.integers(-9, 9, 4).astype(np.int64)], label="long")
    case("NGramRepeatBlock", [np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]], np.int64), f32(2, 6)], ngram_size=3)
    case("NGramRepeatBlock", [np.array([[1, 2, 3]], np.int64), f32(1, 6)], label="words", ngram_size=1)
    words = np.array([[1, 2, 3, 0, 0], [4, 0, 0, 0, 0], [1, 1, 2, 3, 4]], np.int32)
    case("WordConvEmbedding", [words, f32(6, 1, 3, 2), f32(6), f32(5, 2)])
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [-0.2, 0, 0.5, 1.3]], np.float32)
    case("CropAndResize", [f32(2, 3, 7, 6), boxes, i32(1, 0), Const(i32(4, 3))], extrapolation_value=0.5)
    case("CropAndResize", [f32(2, 3, 7, 6), boxes, i32(1, 0), Const(i32(1, 5))], label="nearest", mode="nearest")
    case("MoE", [f32(5, 8), f32(5, 4), f32(4, 6, 8), f32(4, 6), f32(4, 8, 6), f32(4, 8)], k=2,
         normalize_routing_weights=1, activation_type="gelu")
    case("MoE", [f32(2, 3, 8), f32(6, 4), f32(4, 12, 8), f32(4, 12), f32(4, 8, 6)], label="swiglu", k=1,
         activation_type="swiglu", swiglu_fusion=1, activation_alpha=1.702, activation_beta=1.0)
    packed = u8(4, 6, 4), np.abs(f32(4, 6)) / 8, f32(4, 6), u8(4, 8, 3), np.abs(f32(4, 8)) / 8, f32(4, 8)
    case("QMoE", [f32(5, 8), f32(5, 4), *(Const(p) for p in packed)], k=2, normalize_routing_weights=1,
         activation_type="silu", expert_weight_bits=4)


def quant_aware():
    """The definitions of the QONNX project, in numpy."""
    domain = "qonnx.custom_op.general"
    x, scale, zero, bits = f32(3, 4) * 4, np.array(0.5, np.float32), np.array(0, np.float32), np.array(3, np.float32)
    low = {(1, 0): -4, (1, 1): -3, (0, 0): 0, (0, 1): 0}
    high = {(1, 0): 3, (1, 1): 3, (0, 0): 7, (0, 1): 6}
    for signed, narrow in low:
        units_ = np.clip(x / scale, low[signed, narrow], high[signed, narrow])
        case("Quant", [x, Const(scale), Const(zero), Const(bits)], label=f"{signed}{narrow}", domain=domain,
             signed=signed, narrow=narrow, rounding_mode="ROUND", expect=[np.round(units_) * scale])
    modes = {"CEIL": np.ceil, "FLOOR": np.floor, "UP": lambda v: np.sign(v) * np.ceil(np.abs(v)),
             "DOWN": np.trunc, "HALF_UP": lambda v: np.sign(v) * np.floor(np.abs(v) + 0.5),
             "HALF_DOWN": lambda v: np.sign(v) * np.ceil(np.abs(v) - 0.5)}
    for mode, how in modes.items():
        case("Quant", [x, Const(scale), Const(zero), Const(bits)], label=mode, domain=domain, signed=1, narrow=0,
             rounding_mode=mode, expect=[(how(np.clip(x / scale, -4, 3)) * scale).astype(np.float32)])
    case("Quant", [x, Const(scale), Const(zero), Const(np.array(1, np.float32))], label="bipolar", domain=domain,
         signed=1, narrow=0, expect=[np.where(x >= 0, scale, -scale).astype(np.float32)])
    case("BipolarQuant", [x, Const(scale)], domain=domain, expect=[np.where(x >= 0, scale, -scale).astype(np.float32)])
    whole = np.round(x * 8).astype(np.float32) * scale
    case("Trunc", [whole, Const(scale), Const(zero), Const(np.array(8, np.float32)), Const(np.array(6, np.float32))],
         domain=domain, rounding_mode="FLOOR", expect=[(np.floor(whole / scale / 4) * scale).astype(np.float32)])
    thresholds = np.sort(f32(4, 7), axis=1)
    counts = (x[:, :, None] >= thresholds).sum(-1)
    case("MultiThreshold", [x, Const(thresholds)], domain=domain, out_scale=2.0, out_bias=-1.0, out_dtype="INT4",
         expect=[(2.0 * counts - 1.0).astype(np.float32)])
    image = f32(2, 4, 3, 3)
    counts = (image[..., None] >= thresholds[None, :, None, None, :]).sum(-1)
    case("MultiThreshold", [image, Const(thresholds)], label="image", domain=domain, out_dtype="UINT4",
         expect=[counts.astype(np.float32)])
    y = x / scale
    step = np.exp2(np.maximum(np.floor(np.log2(np.abs(y))) - 2, 1 - 3 - 2))
    narrow = np.clip(step * np.round(y / step), -7.5, 7.5) * scale
    case("FloatQuant", [x, Const(scale), *(Const(np.array(v, np.float32)) for v in (3, 2, 3, 7.5))], domain=domain,
         has_inf=0, has_nan=0, has_subnormal=1, saturation=1, expect=[narrow.astype(np.float32)])


def texts(values):
    return np.array(values, dtype=object)


def tokens():
    """What ONNX Runtime's Tokenizer gives, and what its extensions were seen to give."""
    lines = texts(["the cat, sat", "a", "", "x1 y2  z3"])
    common = {"mark": 0, "mincharnum": 1, "pad_value": "#"}
    case("Tokenizer", [lines], **common, tokenexp="[a-zA-Z0-9_]+")
    case("Tokenizer", [lines.reshape(2, 2)], label="marks", **{**common, "mark": 1}, tokenexp="[a-z0-9]+")
    case("Tokenizer", [lines], label="long", **{**common, "mincharnum": 2}, tokenexp="[a-zA-Z0-9_]+")
    case("Tokenizer", [texts(["aab abc", "abcabcb"])], label="longest", **common, tokenexp="a|ab|abc|(abc)+b")
    case("Tokenizer", [lines], label="separators", **common, separators=[" ", ","])
    case("Tokenizer", [texts(["aXXbXYXc", "XX"])], label="order", **common, separators=["XY", "X+"])
    case("Tokenizer", [texts(["abc", "d é"])], label="characters", **{**common, "mark": 1}, separators=[""])
    case("Tokenizer", [texts(["", " "])], label="nothing", **{**common, "mark": 1}, tokenexp="[a-z]+")
    extension = {"domain": "ai.onnx.contrib"}
    words = texts(["aBc Éé", "", "b"])
    case("StringUpper", [words], **extension, expect=[texts(["ABC Éé", "", "B"])])
    case("StringLower", [words], **extension, expect=[texts(["abc éé", "", "b"])])
    case("StringLength", [words], **extension, expect=[i64(6, 0, 1)])
    case("StringConcat", [words, words], **extension, expect=[words + words])
    case("StringEqual", [words, texts(["aBc Éé", "b", "b"])], **extension, expect=[np.array([True, False, True])])
    matrix = texts([["a", "b", "c"], ["d", "", "f"]])
    case("StringJoin", [matrix, Const(texts(["; "])), Const(i64(1))], **extension, expect=[texts(["a; b; c", "d; ; f"])])
    case("StringJoin", [matrix, Const(texts(["-"])), Const(i64(0))], label="first", **extension,
         expect=[texts(["a-d", "b-", "c-f"])])
    case("StringMapping", [words], map="b\tnew\nx y\tz", **extension, expect=[texts(["aBc Éé", "", "new"])])
    case("StringToVector", [words], map="b\t1 2\nx\t3 4", unk="-1 -1", **extension,
         expect=[np.array([[-1, -1], [-1, -1], [1, 2]], np.int64)])
    case("VectorToString", [np.array([[0, 1], [3, 0], [1, 1]], np.int64)], map="a\t0 1\nb\t3 0", unk="?", **extension,
         expect=[texts(["a", "b", "?"])])
    case("VectorToString", [i64(2, 0, 5)], label="numbers", map="a\t0\nb\t2", unk="?", **extension,
         expect=[texts(["b", "a", "?"])])


def model_of(contrib):
    helper = onnx.helper
    inputs, constants, names, feeds = [], [], [], []
    for i, given in enumerate(contrib.inputs):
        names.append("" if given is None else f"x{i}")
        if given is None:
            continue
        array = given.array if isinstance(given, Const) else given
        tensor = units.numpy_helper.from_array(np.asarray(array), f"x{i}")
        if isinstance(given, Const):
            constants.append(tensor)
        else:
            feeds.append(tensor)
            inputs.append(helper.make_tensor_value_info(f"x{i}", tensor.data_type, tensor.dims))
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(contrib.outputs)]
    node = helper.make_node(contrib.op, names, [o.name for o in outputs], domain=contrib.domain,
                            **contrib.attributes)
    graph = helper.make_graph([node], "case", inputs, outputs, constants)
    imports = [helper.make_opsetid("", contrib.version)]
    if contrib.domain:
        imports.append(helper.make_opsetid(contrib.domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=10), feeds


def reference(model, feeds, contrib, data):
    """Writes the data set; returns why there is no reference, if so."""
    units.unit_reference.write(data, "input", feeds)
    names = [f"y{i}" for i in range(contrib.outputs)]
    answers = contrib.expect
    if answers is None:
        session, error = units.unit_reference.open_session(data.parent / "model.onnx")
        if session is None:
            return error
        try:
            names, answers = units.unit_reference.run_session(session, feeds)
        except Exception as caught:  # whatever it throws is its reason
            return str(caught)
    units.unit_reference.write(data, "output", [units.numpy_helper.from_array(np.asarray(a), n)
                                                for n, a in zip(names, answers)])
    return ""


def check(contrib):
    """(name, what is wrong or nothing)."""
    folder = WORK / re.sub(r"\W", "_", contrib.name)
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    model, feeds = model_of(contrib)
    onnx.save(model, str(folder / "model.onnx"))
    if why := reference(model, feeds, contrib, data):
        return contrib.name, f"no reference: {why}"
    return contrib.name, packed_case.pack_and_compare(contrib.name, folder, model)


def main():
    options = packed_case.read_options(__doc__)
    for group in (elementwise, norms, products, quantised, attentions, caches, low_bits, lookups, quant_aware,
                  gradients, tokens, lambda: generation.add_cases(case, Const),
                  lambda: token_cases.add_cases(case, Const)):
        group()
    cases = [c for c in CASES if re.search(options.filter, c.name)]
    assert len({c.name for c in CASES}) == len(CASES), "two cases have one name"
    return packed_case.run_cases(check, cases, options)


if __name__ == "__main__":
    sys.exit(main())
