#!/usr/bin/env python3
"""Makes one small model per operator family at a typical size; runs in the bench venv (onnx, numpy).

    families.py OUT             prepares OUT/NAME (model.onnx, test_data_set_0) and prints the names

A row of FAMILIES is a name and a function that returns a Model: nodes, inputs and constants. The sizes are those of
a layer of a common network, large enough that a call's own cost (some microseconds in ONNX Runtime) does not decide.
Beside a model whose results are random numbers lies a file `random`: bench.py compares their moments.
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(1)
BF16, F8 = TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN
F16, F32, I64 = TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.INT64
I32, I8, U8, BOOL, STRING = TensorProto.INT32, TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL, TensorProto.STRING


class Model:
    """A chain under construction: `add` appends a node whose inputs are arrays (fed at run time), constants made by
    `const`, earlier results by name, or None."""

    def __init__(self, opset=21, random=False):
        self.opset, self.random = opset, random
        self.nodes, self.feeds, self.constants, self.outputs, self.shape = [], {}, [], [], None

    def const(self, value):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def operand(self, value):
        if value is None or isinstance(value, str):
            return value or ""
        name = f"x{len(self.feeds)}"
        self.feeds[name] = value
        return name

    def add(self, kind, *operands, results=1, **attributes):
        names = [f"{kind}{len(self.nodes)}_{k}" for k in range(results)]
        self.nodes.append(helper.make_node(kind, [self.operand(o) for o in operands], names, **attributes))
        return names[0] if results == 1 else names

    def result(self, names, *types):
        names = [names] if isinstance(names, str) else names
        self.outputs += list(zip(names, types or [F32] * len(names), strict=True))
        return self

    def write(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        values = []
        for k, (name, value) in enumerate(self.feeds.items()):
            tensor = numpy_helper.from_array(value, name)
            (data / f"input_{k}.pb").write_bytes(tensor.SerializeToString())
            values.append(helper.make_tensor_value_info(name, tensor.data_type, value.shape))
        results = [helper.make_tensor_value_info(n, t, None) for n, t in self.outputs]
        if self.shape:
            results[0] = helper.make_tensor_value_info(*self.outputs[0], self.shape)
        domains = sorted({n.domain for n in self.nodes} - {""})
        versions = {"ai.onnx.ml": 3, "com.microsoft": 1}
        graph = helper.make_graph(self.nodes, "family", values, results, self.constants)
        model = helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", self.opset), *(helper.make_opsetid(d, versions[d]) for d in domains)])
        onnx.save(model, str(folder / "model.onnx"))
        if self.random:
            (folder / "random").touch()


def normal(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def positive(*shape):
    return RNG.uniform(0.1, 2, size=shape).astype(np.float32)


def integers(low, high, *shape, dtype=np.int64):
    return RNG.integers(low, high, size=shape).astype(dtype)


def node(kind, *operands, types=(), results=1, opset=21, random=False, declared=None, **attributes):
    """A model of one node; a tuple (array,) among the operands is a constant. `declared`: the shape of result 0, where the model
    has to declare it."""
    def make():
        m = Model(opset, random)
        m.shape = declared
        given = [m.const(o[0]) if isinstance(o, tuple) else o for o in operands]
        return m.result(m.add(kind, *given, results=results, **attributes), *types)
    return make


IMAGE = (1, 64, 56, 56)      # a convolution's result
TOKENS = (1, 128, 768)       # a transformer's


def elementwise():
    for kind in ("Abs", "Exp", "Log", "Sqrt", "Sin", "Tanh", "Erf", "Floor", "Round", "Reciprocal"):
        yield kind.lower(), node(kind, positive(*IMAGE))
    yield "add", node("Add", normal(*IMAGE), normal(*IMAGE))
    yield "add_channel", node("Add", normal(*IMAGE), normal(1, 64, 1, 1))
    yield "mul_row", node("Mul", normal(*TOKENS), normal(768))
    yield "div", node("Div", normal(*IMAGE), positive(*IMAGE))
    yield "sub_outer", node("Sub", normal(512, 1), normal(1, 512))
    yield "pow", node("Pow", positive(*IMAGE), positive(*IMAGE))
    yield "mod_int64", node("Mod", integers(-1000, 1000, 200000), integers(1, 99, 200000), types=(I64,))
    yield "max", node("Max", normal(*IMAGE), normal(*IMAGE), normal(*IMAGE))
    yield "less", node("Less", normal(*IMAGE), normal(*IMAGE), types=(BOOL,))
    yield "where", node("Where", normal(*IMAGE) > 0, normal(*IMAGE), normal(1, 64, 1, 1))
    yield "clip", node("Clip", normal(*IMAGE), (np.float32(-1),), (np.float32(1),))
    yield "bitshift", node("BitShift", integers(0, 99, 200000, dtype=np.uint8), integers(0, 7, 200000, dtype=np.uint8),
                           types=(U8,), direction="LEFT")


def activations():
    for kind in ("Relu", "Sigmoid", "Gelu", "Softplus", "Mish", "HardSwish", "Elu", "Selu", "LeakyRelu", "Softsign",
                 "ThresholdedRelu"):
        yield kind.lower(), node(kind, normal(*TOKENS))
    yield "prelu", node("PRelu", normal(*IMAGE), (positive(64, 1, 1),))


def reductions():
    def reduce(kind, axes, data=None, **more):
        x = normal(*IMAGE) if data is None else data
        return node(kind, x, (np.array(axes, np.int64),), **more)
    yield "reduce_sum_leading", reduce("ReduceSum", [0], normal(256, 1024))
    yield "reduce_sum_channel", reduce("ReduceSum", [1])
    yield "reduce_mean_last", reduce("ReduceMean", [2], normal(*TOKENS))
    yield "reduce_mean_spatial", reduce("ReduceMean", [2, 3])
    yield "reduce_max_middle", reduce("ReduceMax", [2])
    yield "reduce_all", reduce("ReduceSum", [0, 1, 2, 3])
    yield "reduce_logsumexp", reduce("ReduceLogSumExp", [2], normal(*TOKENS))
    yield "reduce_l2", reduce("ReduceL2", [1])
    yield "reduce_prod_int", reduce("ReduceProd", [1], integers(0, 2, 512, 256) * 2 - 1, types=(I64,))
    yield "argmax_last", node("ArgMax", normal(128, 4096), axis=1, types=(I64,))
    yield "argmax_channel", node("ArgMax", normal(1, 21, 128, 128), axis=1, types=(I64,))
    yield "argmin_leading", node("ArgMin", normal(256, 1024), axis=0, types=(I64,))


def normalisations():
    channels = ((positive(64),), (normal(64),))
    yield "softmax", node("Softmax", normal(12, 128, 128), axis=-1)
    yield "softmax_channel", node("Softmax", normal(1, 21, 128, 128), axis=1)
    yield "logsoftmax", node("LogSoftmax", normal(128, 1000), axis=-1)
    yield "layer_norm", node("LayerNormalization", normal(*TOKENS), (positive(768),), (normal(768),))
    yield "rms_norm", node("RMSNormalization", normal(*TOKENS), (positive(768),), opset=23)
    yield "group_norm", node("GroupNormalization", normal(*IMAGE), *channels, num_groups=8)
    yield "instance_norm", node("InstanceNormalization", normal(*IMAGE), *channels)
    yield "batch_norm", node("BatchNormalization", normal(*IMAGE), *channels, (normal(64),), (positive(64),))
    yield "lrn", node("LRN", normal(*IMAGE), size=5)
    yield "lp_norm", node("LpNormalization", normal(128, 768), axis=-1)
    yield "mean_variance_norm", node("MeanVarianceNormalization", normal(*IMAGE), axes=[0, 2, 3])


def convolutions():
    def conv(x, w, kind="Conv", **attributes):
        return node(kind, normal(*x), (normal(*w) * 0.1,), (normal(w[0] if kind == "Conv" else w[1]),), **attributes)
    same = {"pads": [1, 1, 1, 1]}
    yield "conv_1x1", conv(IMAGE, (128, 64, 1, 1))
    yield "conv_3x3", conv(IMAGE, (64, 64, 3, 3), **same)
    yield "conv_5x5", conv((1, 32, 28, 28), (64, 32, 5, 5), pads=[2, 2, 2, 2])
    yield "conv_7x7_s2", conv((1, 3, 224, 224), (64, 3, 7, 7), pads=[3, 3, 3, 3], strides=[2, 2])
    yield "conv_depthwise", conv((1, 96, 56, 56), (96, 1, 3, 3), group=96, **same)
    yield "conv_depthwise_s2", conv((1, 96, 112, 112), (96, 1, 3, 3), group=96, strides=[2, 2], **same)
    yield "conv_grouped", conv((1, 128, 28, 28), (128, 4, 3, 3), group=32, **same)
    yield "conv_dilated", conv((1, 64, 28, 28), (64, 64, 3, 3), pads=[2, 2, 2, 2], dilations=[2, 2])
    yield "conv_1d", conv((1, 80, 1000), (256, 80, 3), pads=[1, 1])
    yield "conv_3d", conv((1, 16, 16, 28, 28), (32, 16, 3, 3, 3), pads=[1] * 6)
    yield "conv_transpose_2x2", conv((1, 128, 28, 28), (128, 64, 2, 2), "ConvTranspose", strides=[2, 2])
    yield "conv_transpose_4x4", conv((1, 64, 28, 28), (64, 32, 4, 4), "ConvTranspose", strides=[2, 2], **same)


def pools():
    yield "max_pool_3x3_s2", node("MaxPool", normal(1, 64, 112, 112), kernel_shape=[3, 3], strides=[2, 2],
                                  pads=[1, 1, 1, 1])
    yield "max_pool_2x2", node("MaxPool", normal(1, 64, 112, 112), kernel_shape=[2, 2], strides=[2, 2])
    yield "average_pool", node("AveragePool", normal(*IMAGE), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    yield "global_average_pool", node("GlobalAveragePool", normal(1, 512, 14, 14))
    yield "lp_pool", node("LpPool", normal(*IMAGE), kernel_shape=[2, 2], strides=[2, 2])
    yield "max_pool_indices", node("MaxPool", normal(*IMAGE), kernel_shape=[2, 2], strides=[2, 2], results=2,
                                   types=(F32, I64))


def products():
    yield "matmul_weight", node("MatMul", normal(128, 768), (normal(768, 768),))
    yield "matmul", node("MatMul", normal(256, 256), normal(256, 256))
    yield "matmul_batched", node("MatMul", normal(12, 128, 64), normal(12, 64, 128))
    yield "matvec", node("MatMul", normal(1, 1024), (normal(1024, 4096),))
    yield "gemm_transposed", node("Gemm", normal(128, 512), (normal(256, 512),), (normal(256),), transB=1)
    yield "einsum_heads", node("Einsum", normal(1, 128, 12, 64), normal(1, 128, 12, 64), equation="bqhd,bkhd->bhqk")
    yield "einsum_bilinear", node("Einsum", normal(32, 64), normal(16, 64, 64), normal(32, 64),
                                  equation="bi,oij,bj->bo")
    yield "attention", node("Attention", normal(1, 12, 128, 64), normal(1, 12, 128, 64), normal(1, 12, 128, 64),
                            opset=23)
    yield "det", node("Det", normal(256, 4, 4))


def quantised():
    scale, zero = (np.float32(0.02),), (np.uint8(128),)

    def dequantized_conv():
        m = Model()
        s, z, wz = m.const(np.float32(0.02)), m.const(np.uint8(128)), m.const(np.int8(0))
        x = m.add("DequantizeLinear", m.add("QuantizeLinear", normal(*IMAGE), s, z), s, z)
        w = m.add("DequantizeLinear", m.const(integers(-90, 90, 64, 64, 3, 3, dtype=np.int8)), s, wz)
        y = m.add("Conv", x, w, pads=[1, 1, 1, 1])
        out = m.const(np.float32(0.5))
        return m.result(m.add("DequantizeLinear", m.add("QuantizeLinear", y, out, z), out, z))

    def dynamic_matmul():
        m = Model()
        x, s, z = m.add("DynamicQuantizeLinear", normal(128, 768), results=3)
        y = m.add("MatMulInteger", x, m.const(integers(-90, 90, 768, 768, dtype=np.int8)), z)
        return m.result(m.add("Mul", m.add("Cast", y, to=F32), s))
    yield "quantize_linear", node("QuantizeLinear", normal(*IMAGE), scale, zero, types=(U8,))
    yield "quantize_per_channel", node("QuantizeLinear", normal(*IMAGE), (positive(64),), (np.zeros(64, np.int8),),
                                       axis=1, types=(I8,))
    yield "dequantize_linear", node("DequantizeLinear", integers(0, 255, *IMAGE, dtype=np.uint8), scale, zero)
    yield "dynamic_quantize", node("DynamicQuantizeLinear", normal(*IMAGE), results=3, types=(U8, F32, U8))
    yield "matmul_integer", node("MatMulInteger", integers(0, 255, 128, 768, dtype=np.uint8),
                                 (integers(-90, 90, 768, 768, dtype=np.int8),), types=(I32,))
    yield "qlinear_conv", node(
        "QLinearConv", integers(0, 255, *IMAGE, dtype=np.uint8), scale, zero,
        (integers(-90, 90, 64, 64, 3, 3, dtype=np.int8),), (np.float32(0.01),), (np.int8(0),), (np.float32(0.5),), zero,
        types=(U8,), pads=[1, 1, 1, 1])
    yield "qdq_conv", dequantized_conv
    yield "dynamic_matmul", dynamic_matmul


def recurrent():
    def cell(kind, gates, results):
        w = (normal(1, gates * 256, 128) * 0.1,)
        r = (normal(1, gates * 256, 256) * 0.1,)
        b = (normal(1, 2 * gates * 256) * 0.1,)
        return node(kind, normal(32, 1, 128), w, r, b, hidden_size=256, results=results)
    yield "rnn", cell("RNN", 1, 2)
    yield "gru", cell("GRU", 3, 2)
    yield "lstm", cell("LSTM", 4, 3)


def movement():
    yield "transpose_2d", node("Transpose", normal(768, 768), perm=[1, 0])
    yield "transpose_heads", node("Transpose", normal(1, 128, 12, 64), perm=[0, 2, 1, 3])
    yield "transpose_nchw", node("Transpose", normal(1, 56, 56, 64), perm=[0, 3, 1, 2])
    yield "transpose_bytes", node("Transpose", integers(0, 255, 1, 64, 56, 56, dtype=np.uint8), perm=[0, 2, 3, 1],
                                  types=(U8,))
    yield "concat_channel", node("Concat", normal(*IMAGE), normal(*IMAGE), axis=1)
    yield "concat_last", node("Concat", normal(4096, 24), normal(4096, 40), axis=1)
    yield "split", node("Split", normal(1, 128, 56, 56), results=2, axis=1, num_outputs=2)
    yield "slice_strided", node("Slice", normal(*IMAGE), (np.array([0, 0]),), (np.array([56, 56]),),
                                (np.array([2, 3]),), (np.array([2, 2]),))
    yield "slice_reversed", node("Slice", normal(*IMAGE), (np.array([-1]),), (np.array([-99]),), (np.array([3]),),
                                 (np.array([-1]),))
    yield "pad_zero", node("Pad", normal(*IMAGE), (np.array([0, 0, 1, 1, 0, 0, 1, 1]),))
    yield "pad_reflect", node("Pad", normal(*IMAGE), (np.array([0, 0, 3, 3, 0, 0, 3, 3]),), mode="reflect")
    yield "tile", node("Tile", normal(1, 64, 28, 28), (np.array([1, 1, 2, 2]),))
    yield "expand", node("Expand", normal(64, 1, 56), (np.array([64, 56, 56]),))
    yield "depth_to_space", node("DepthToSpace", normal(1, 64, 56, 56), blocksize=2)
    yield "space_to_depth", node("SpaceToDepth", normal(1, 64, 56, 56), blocksize=2)
    yield "trilu", node("Trilu", normal(12, 128, 128))
    yield "reverse_sequence", node("ReverseSequence", normal(64, 8, 128), integers(1, 64, 8), batch_axis=1, time_axis=0)
    yield "col2im", node("Col2Im", normal(1, 144, 729), (np.array([56, 56]),), (np.array([3, 3]),), strides=[2, 2])


def indexing():
    grid = RNG.uniform(-1, 1, size=(1, 56, 56, 2)).astype(np.float32)
    update = (normal(1, 64, 56, 56), integers(0, 56, 1, 64, 56, 28))
    boxes = np.sort(RNG.uniform(0, 55, size=(64, 2, 2)).astype(np.float32), axis=1).reshape(64, 4)
    corners = np.sort(RNG.uniform(0, 1, size=(1, 1000, 2, 2)).astype(np.float32), axis=2).reshape(1, 1000, 4)
    yield "gather_rows", node("Gather", (normal(30000, 384),), integers(0, 30000, 1, 128))
    yield "gather_last", node("Gather", normal(512, 512), integers(0, 512, 256), axis=1)
    yield "gather_elements", node("GatherElements", *update, axis=3)
    yield "gather_nd", node("GatherND", normal(64, 56, 56), np.stack(
        [integers(0, 64, 4000), integers(0, 56, 4000)], axis=1))
    yield "scatter_elements", node("ScatterElements", *update, normal(1, 64, 56, 28), axis=3)
    yield "scatter_add", node("ScatterElements", *update, normal(1, 64, 56, 28), axis=3, reduction="add")
    yield "scatter_nd", node("ScatterND", normal(1000, 256), integers(0, 1000, 200, 1), normal(200, 256))
    yield "one_hot", node("OneHot", integers(0, 256, 1024), (np.array(256),), (np.array([0, 1], np.float32),))
    yield "nonzero", node("NonZero", (normal(512, 256) > 0.5).astype(np.float32), types=(I64,))
    yield "compress", node("Compress", normal(512, 256), normal(512) > 0, axis=0)
    yield "unique", node("Unique", integers(0, 500, 10000), results=4, types=(I64,) * 4)
    yield "top_k", node("TopK", normal(1, 100000), (np.array([100]),), results=2, types=(F32, I64))
    yield "top_k_rows", node("TopK", normal(1000, 80), (np.array([5]),), results=2, types=(F32, I64))
    yield "sort_rows", node("TopK", normal(64, 1000), (np.array([1000]),), results=2, types=(F32, I64))
    yield "cumsum_last", node("CumSum", normal(512, 512), (np.array(1),))
    yield "cumsum_leading", node("CumSum", normal(512, 512), (np.array(0),))
    yield "grid_sample", node("GridSample", normal(1, 64, 56, 56), grid)
    yield "roi_align", node("RoiAlign", normal(1, 64, 56, 56), boxes, integers(0, 1, 64), output_height=7,
                            output_width=7, sampling_ratio=2)
    yield "max_roi_pool", node("MaxRoiPool", normal(1, 64, 56, 56), np.insert(boxes, 0, 0, axis=1),
                               pooled_shape=[7, 7])
    yield "nms", node("NonMaxSuppression", corners, positive(1, 4, 1000) / 2, (np.array([50]),), (np.float32([0.5]),),
                      (np.float32([0.3]),), types=(I64,))
    scales = (np.array([1, 1, 2, 2], np.float32),)
    yield "resize_nearest", node("Resize", normal(1, 64, 40, 40), None, scales, mode="nearest",
                                 coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    yield "resize_linear", node("Resize", normal(1, 64, 40, 40), None, scales, mode="linear")
    yield "resize_cubic", node("Resize", normal(1, 16, 40, 40), None, scales, mode="cubic")
    yield "resize_down", node("Resize", normal(1, 3, 480, 640), None, None, (np.array([1, 3, 224, 224]),),
                              mode="linear")


def casts():
    image = normal(*IMAGE)

    def through(kind):
        def make():
            m = Model()
            return m.result(m.add("Cast", m.add("Cast", image, to=kind), to=F32))
        return make
    yield "cast_f32_f16", node("Cast", image, to=F16, types=(F16,))
    yield "cast_f16_f32", node("Cast", image.astype(np.float16), to=F32)
    yield "cast_f32_i64", node("Cast", image, to=I64, types=(I64,))
    yield "cast_i64_f32", node("Cast", integers(-99, 99, *IMAGE), to=F32)
    yield "cast_f32_u8", node("Cast", positive(*IMAGE), to=U8, types=(U8,))
    yield "cast_u8_f32", node("Cast", integers(0, 255, *IMAGE, dtype=np.uint8), to=F32)
    yield "cast_bool_f32", node("Cast", image > 0, to=F32)
    yield "cast_through_bf16", through(BF16)
    yield "cast_through_f8", through(F8)
    yield "add_f16", node("Add", image.astype(np.float16), image.astype(np.float16), types=(F16,))


def signals():
    window = np.hanning(400).astype(np.float32)

    yield "dft_512", node("DFT", normal(64, 512, 1), None, (np.array(1),), onesided=1)
    yield "dft_400", node("DFT", normal(64, 400, 1), None, (np.array(1),), onesided=1)
    yield "stft", node("STFT", normal(1, 16000, 1), (np.array(160),), (window,), (np.array(400),))


def others():
    words = np.array([f"Word {k} OF text" for k in RNG.integers(0, 500, 1000)], object)
    labels = [f"Word {k} OF text" for k in range(500)]
    yield "string_normalizer", node("StringNormalizer", words, types=(STRING,), case_change_action="LOWER", locale="C")
    yield "label_encoder", node("LabelEncoder", words, types=(I64,), domain="ai.onnx.ml", keys_strings=labels,
                                values_int64s=list(range(500)))
    yield "label_encoder_int", node("LabelEncoder", integers(0, 500, 10000), domain="ai.onnx.ml",
                                    keys_int64s=list(range(500)), values_floats=[float(k) for k in range(500)])
    yield "linear_classifier", node(
        "LinearClassifier", normal(1000, 50), results=2, types=(I64, F32), domain="ai.onnx.ml",
        coefficients=[float(c) for c in normal(500)], intercepts=[float(c) for c in normal(10)],
        classlabels_ints=list(range(10)), post_transform="SOFTMAX")
    yield "svm_regressor", node(
        "SVMRegressor", normal(200, 20), domain="ai.onnx.ml", kernel_type="RBF", kernel_params=[0.05, 0.0, 3.0],
        n_supports=300, support_vectors=[float(c) for c in normal(6000)], coefficients=[float(c) for c in normal(300)],
        rho=[0.5])
    yield "scaler", node("Scaler", normal(1000, 50), domain="ai.onnx.ml", offset=[0.5] * 50, scale=[2.0] * 50)
    yield "random_normal", node("RandomNormal", shape=[512, 512], random=True)
    yield "random_uniform_like", node("RandomUniformLike", normal(512, 512), random=True)


def more_elementwise():
    yield "and", node("And", normal(*IMAGE) > 0, normal(*IMAGE) > 0, types=(BOOL,))
    yield "not", node("Not", normal(*IMAGE) > 0, types=(BOOL,))
    yield "equal_int64", node("Equal", integers(0, 9, 200000), integers(0, 9, 200000), types=(BOOL,))
    yield "bitwise_and", node("BitwiseAnd", integers(0, 99, 200000), integers(0, 99, 200000), types=(I64,))
    yield "sum_of_4", node("Sum", *(normal(*IMAGE) for _ in range(4)))
    yield "mean_of_4", node("Mean", *(normal(*IMAGE) for _ in range(4)))
    yield "is_nan", node("IsNaN", normal(*IMAGE), types=(BOOL,))
    yield "is_inf", node("IsInf", normal(*IMAGE), types=(BOOL,))
    for kind in ("Neg", "Sign", "Ceil", "Cos", "Tan", "Atan", "Sinh", "Asinh", "Celu", "Shrink"):
        yield kind.lower(), node(kind, normal(*IMAGE))
    for kind in ("Acos", "Atanh"):
        yield kind.lower(), node(kind, RNG.uniform(-0.9, 0.9, size=IMAGE).astype(np.float32))
    yield "hardmax", node("Hardmax", normal(128, 1000), axis=-1)
    yield "div_int64", node("Div", integers(-1000, 1000, 200000), integers(1, 99, 200000), types=(I64,))
    yield "pow_2", node("Pow", normal(*IMAGE), (np.float32(2),))


def more_shapes():
    yield "global_max_pool", node("GlobalMaxPool", normal(1, 512, 14, 14))
    yield "max_unpool", node("MaxUnpool", normal(1, 64, 28, 28), np.arange(0, 64 * 56 * 56, 4).reshape(1, 64, 28, 28),
                             kernel_shape=[2, 2], strides=[2, 2])
    yield "eye_like", node("EyeLike", normal(512, 512))
    yield "range", node("Range", np.int64(0), np.int64(100000), np.int64(1), types=(I64,))
    yield "center_crop_pad", node("CenterCropPad", normal(3, 256, 256), (np.array([224, 224]),), axes=[1, 2])
    yield "affine_grid", node("AffineGrid", normal(4, 2, 3), (np.array([4, 3, 56, 56]),))
    yield "scatter_nd_add", node("ScatterND", normal(1000, 256), integers(0, 1000, 200, 1), normal(200, 256),
                                 reduction="add")
    yield "scatter_nd_points", node("ScatterND", normal(512, 512), integers(0, 512, 4000, 2), normal(4000))
    yield "cross_entropy", node("SoftmaxCrossEntropyLoss", normal(128, 1000), integers(0, 1000, 128))
    yield "negative_log", node("NegativeLogLikelihoodLoss", normal(128, 1000), integers(0, 1000, 128))
    yield "hann_window", node("HannWindow", np.int64(16000))
    yield "rotary", node("RotaryEmbedding", normal(1, 12, 128, 64), normal(1, 128, 32), normal(1, 128, 32), opset=23)
    yield "conv_integer", node("ConvInteger", integers(0, 255, *IMAGE, dtype=np.uint8),
                               (integers(-90, 90, 64, 64, 3, 3, dtype=np.int8),), types=(I32,), pads=[1, 1, 1, 1])
    yield "qlinear_matmul", node("QLinearMatMul", integers(0, 255, 128, 768, dtype=np.uint8), (np.float32(0.02),),
                                 (np.uint8(128),), (integers(-90, 90, 768, 768, dtype=np.int8),), (np.float32(0.01),),
                                 (np.int8(0),), (np.float32(0.5),), (np.uint8(128),), types=(U8,))


def more_texts():
    words = np.array([f"Word {k} OF text" for k in RNG.integers(0, 500, 1000)], object)
    yield "string_concat", node("StringConcat", words, words, types=(STRING,))
    yield "string_split", node("StringSplit", words, results=2, types=(STRING, I64), declared=[1000, 4])
    yield "regex_match", node("RegexFullMatch", words, types=(BOOL,), pattern="Word [0-9]+ .*text")
    yield "tfidf", node("TfIdfVectorizer", integers(0, 100, 20, 200), mode="TF", min_gram_length=1, max_gram_length=2,
                        max_skip_count=0, ngram_counts=[0, 50], ngram_indexes=list(range(100)),
                        pool_int64s=[*range(50), *(int(k) for k in integers(0, 100, 100))])


def learning():
    ml = {"domain": "ai.onnx.ml"}
    yield "binarizer", node("Binarizer", normal(1000, 50), threshold=0.5, **ml)
    yield "normalizer", node("Normalizer", normal(1000, 50), norm="L2", **ml)
    yield "imputer", node("Imputer", normal(1000, 50), imputed_value_floats=[0.5], replaced_value_float=float("nan"),
                          **ml)
    yield "one_hot_encoder", node("OneHotEncoder", integers(0, 50, 1000), cats_int64s=list(range(50)), **ml)
    yield "array_feature", node("ArrayFeatureExtractor", normal(1000, 50), integers(0, 50, 10), **ml)
    yield "feature_vectorizer", node("FeatureVectorizer", normal(1000, 20), normal(1000, 30), inputdimensions=[20, 30],
                                     **ml)
    yield "linear_regressor", node("LinearRegressor", normal(1000, 50), coefficients=[float(c) for c in normal(50)],
                                   intercepts=[0.5], **ml)
    yield "svm_classifier", node(
        "SVMClassifier", normal(200, 20), results=2, types=(I64, F32), kernel_type="RBF",
        kernel_params=[0.05, 0.0, 3.0], vectors_per_class=[100, 100, 100],
        support_vectors=[float(c) for c in normal(6000)], coefficients=[float(c) for c in normal(600)],
        rho=[0.1, 0.2, 0.3], classlabels_ints=[0, 1, 2], **ml)


def vendor():
    ms = {"domain": "com.microsoft"}
    row, wide = (normal(768),), (normal(3072),)
    heads = [normal(1, 128, 768) for _ in range(3)]

    def bits(kind, x):
        packed = (integers(0, 255, 768, 24, 16, dtype=np.uint8),)
        return node(kind, x, packed, (positive(768 * 24) / 50,), K=768, N=768, bits=4, block_size=32, **ms)
    yield "fused_matmul", node("FusedMatMul", normal(128, 512), (normal(256, 512),), transB=1, alpha=0.5, **ms)
    yield "fused_conv", node("FusedConv", normal(*IMAGE), (normal(128, 64, 1, 1),), (normal(128),), activation="Relu",
                             **ms)
    yield "skip_layer_norm", node("SkipLayerNormalization", normal(*TOKENS), normal(*TOKENS), row, row, row,
                                  epsilon=1e-5, **ms)
    yield "skip_rms_norm", node("SkipSimplifiedLayerNormalization", normal(*TOKENS), normal(*TOKENS), row,
                                epsilon=1e-5, **ms)
    yield "bias_gelu", node("BiasGelu", normal(128, 3072), wide, **ms)
    yield "fast_gelu", node("FastGelu", normal(128, 3072), wide, **ms)
    yield "quick_gelu", node("QuickGelu", normal(128, 3072), **ms)
    yield "attention_ms", node("Attention", normal(*TOKENS), (normal(768, 2304) * 0.05,), (normal(2304),), num_heads=12,
                               **ms)
    yield "multi_head", node("MultiHeadAttention", *heads, num_heads=12, **ms)
    yield "group_query", node("GroupQueryAttention", normal(1, 128, 768), normal(1, 128, 256), normal(1, 128, 256),
                              None, None, np.array([127], np.int32), (np.array(128, np.int32),), num_heads=12,
                              kv_num_heads=4, results=3, types=(F32, F32, F32), **ms)
    yield "rotary_ms", node("RotaryEmbedding", normal(1, 128, 768), (np.arange(128)[None],), (normal(128, 32),),
                            (normal(128, 32),), num_heads=12, **ms)
    yield "matmul_nbits_row", bits("MatMulNBits", normal(1, 768))
    yield "matmul_nbits", bits("MatMulNBits", normal(128, 768))
    quantised = [integers(0, 255, *IMAGE, dtype=np.uint8), (np.float32(0.02),), (np.uint8(128),)]
    again = [integers(0, 255, *IMAGE, dtype=np.uint8), (np.float32(0.03),), (np.uint8(120),)]
    out = [(np.float32(0.05),), (np.uint8(127),)]
    yield "qlinear_add", node("QLinearAdd", *quantised, *again, *out, types=(U8,), **ms)
    yield "qlinear_mul_int8", node("QLinearMul", *quantised, *again, *out, types=(U8,), **ms)
    yield "qlinear_sigmoid", node("QLinearSigmoid", *quantised, *out, types=(U8,), **ms)
    yield "qlinear_leaky_relu", node("QLinearLeakyRelu", *quantised, *out, types=(U8,), **ms)
    yield "qlinear_pool", node("QLinearGlobalAveragePool", *quantised, *out, types=(U8,), **ms)
    yield "qlinear_concat", node("QLinearConcat", *out, *quantised, *again, axis=1, types=(U8,), **ms)
    yield "qgemm", node("QGemm", integers(0, 255, 128, 768, dtype=np.uint8), (np.float32(0.02),), (np.uint8(128),),
                        (integers(-90, 90, 768, 768, dtype=np.int8),), (np.float32(0.01),), (np.int8(0),), None,
                        (np.float32(0.5),), (np.uint8(128),), types=(U8,), **ms)
    yield "matmul_integer_float", node("MatMulIntegerToFloat", integers(0, 255, 128, 768, dtype=np.uint8),
                                       (integers(-90, 90, 768, 768, dtype=np.int8),), (np.float32(0.02),),
                                       (np.float32(0.01),), (np.uint8(128),), (np.int8(0),), **ms)
    yield "dynamic_matmul_ms", node("DynamicQuantizeMatMul", normal(128, 768),
                                    (integers(-90, 90, 768, 768, dtype=np.int8),), (np.float32(0.01),),
                                    (np.int8(0),), **ms)
    yield "gather_bits", node("GatherBlockQuantized", (integers(0, 255, 3000, 384, dtype=np.uint8),),
                              integers(0, 3000, 128), (positive(3000, 24),), bits=4, block_size=32, gather_axis=0,
                              quantize_axis=1, **ms)
    yield "cdist", node("CDist", normal(256, 64), normal(256, 64), metric="euclidean", **ms)
    yield "inverse", node("Inverse", normal(256, 4, 4) + 4 * np.eye(4, dtype=np.float32), **ms)
    yield "ngram_block", node("NGramRepeatBlock", integers(0, 50, 4, 64), normal(4, 5000), ngram_size=3, **ms)


FAMILIES = (elementwise, activations, reductions, normalisations, convolutions, pools, products, quantised, recurrent,
            movement, indexing, casts, signals, others, more_elementwise, more_shapes, more_texts, learning, vendor)


def main():
    out = pathlib.Path(sys.argv[1])
    for family in FAMILIES:
        for name, make in family():
            folder = f"family_{name}"
            make().write(out / folder)
            print(folder)


if __name__ == "__main__":
    main()
