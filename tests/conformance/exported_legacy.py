"""Graphs as converters of several generations write them: opsets 6 to 9 and what they had (shapes and axes as
attributes, the first Scan), pipelines of scikit-learn, quantised exports. exported_cases.py runs them."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import exported_shared as shared
from exported_shared import case, f32

FLOAT, INT64, UINT8, INT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8, TensorProto.INT8
node = helper.make_node


def built(opset, nodes, inputs, outputs, arrays=None, ir=4, domains=(), as_inputs=False):
    """A model. `inputs`, `outputs`: name to shape, or to (type, shape). `as_inputs`: initializers are inputs too, as
    every model had them before IR version 4."""
    def info(name, what):
        kind, shape = what if isinstance(what, tuple) else (FLOAT, what)
        return helper.make_tensor_value_info(name, kind, shape)

    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (arrays or {}).items()]
    values = [info(k, v) for k, v in inputs.items()]
    if as_inputs:
        values += [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in tensors]
    graph = helper.make_graph(nodes, "g", values, [info(k, v) for k, v in outputs.items()], tensors)
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir)


@case
def opset6_shapes_as_attributes():
    model = built(6, [
        node("Flatten", ["x"], ["f"]),
        node("Gemm", ["f", "w", "b"], ["h"], broadcast=1, transB=1),
        node("Reshape", ["h", "shape"], ["r"]),
        node("Pad", ["r"], ["p"], pads=[0, 0, 1, 0, 0, 1], value=0.5),
        node("Slice", ["p"], ["s"], starts=[0, 1], ends=[2, 1000], axes=[1, 2]),
        node("Squeeze", ["s"], ["q"], axes=[0]),
        node("Unsqueeze", ["q"], ["u"], axes=[0, 3]),
        node("ReduceSum", ["u"], ["y"], axes=[3], keepdims=0),
    ], {"x": [1, 2, 3, 2]}, {"y": None},
        {"w": f32(12, 12), "b": f32(12), "shape": np.array([1, -1, 4], np.int64)}, ir=3, as_inputs=True)
    return model, {"x": f32(1, 2, 3, 2)}, []


@case
def opset7_dropout_softmax_axis():
    model = built(7, [
        node("Dropout", ["x"], ["d"], ratio=0.3),
        node("Softmax", ["d"], ["s"], axis=1),
        node("LogSoftmax", ["d"], ["l"], axis=2),
        node("Add", ["s", "l"], ["t"]),
        node("Hardmax", ["t"], ["y"], axis=1),
    ], {"x": [2, 3, 4]}, {"y": [2, 3, 4], "t": [2, 3, 4]})
    return model, {"x": f32(2, 3, 4)}, []


@case
def opset7_upsample_height():
    model = built(7, [
        node("Upsample", ["x"], ["u"], mode="nearest", scales=[1.0, 1.0, 2.0, 3.0]),
        node("Upsample", ["u"], ["y"], mode="linear", scales=[1.0, 1.0, 2.0, 2.0]),
    ], {"x": [1, 2, 3, 4]}, {"y": [1, 2, 12, 24]})
    return model, {"x": f32(1, 2, 3, 4)}, []


@case
def opset8_expand_minmax_sum():
    model = built(8, [
        node("Shape", ["x"], ["s"]),
        node("Expand", ["row", "s"], ["e"]),
        node("Max", ["x", "row", "e"], ["m"]),
        node("Min", ["m", "x", "cap"], ["n"]),
        node("Sum", ["n", "e", "x"], ["t"]),
        node("Mean", ["t", "row"], ["y"]),
    ], {"x": ["n", 4]}, {"y": ["n", 4]}, {"row": f32(4), "cap": np.array([0.7], np.float32)})
    return model, {"x": f32(3, 4)}, ["--shape", "n=3"]


@case
def opset8_scan_accumulates():
    body = helper.make_graph(
        [node("Add", ["a", "e"], ["o"]), node("Identity", ["o"], ["k"])], "body",
        [helper.make_tensor_value_info("a", FLOAT, [2]), helper.make_tensor_value_info("e", FLOAT, [2])],
        [helper.make_tensor_value_info("o", FLOAT, [2]), helper.make_tensor_value_info("k", FLOAT, [2])])
    model = built(8, [node("Scan", ["", "s", "x"], ["f", "y"], body=body, num_scan_inputs=1)],
                  {"s": [2, 2], "x": [2, 3, 2]}, {"f": [2, 2], "y": [2, 3, 2]})
    return model, {"s": f32(2, 2), "x": f32(2, 3, 2)}, []


@case
def opset8_lstm_sequence_lens():
    model = built(8, [
        node("LSTM", ["x", "w", "r", "b", "lens", "", "", "p"], ["y", "h", ""], hidden_size=3, direction="reverse"),
        node("Squeeze", ["h"], ["q"], axes=[0]),
    ], {"x": [5, 2, 4], "lens": (TensorProto.INT32, [2])}, {"y": [5, 1, 2, 3], "q": [2, 3]},
        {"w": f32(1, 12, 4), "r": f32(1, 12, 3), "b": f32(1, 24), "p": f32(1, 9)})
    return model, {"x": f32(5, 2, 4), "lens": np.array([5, 2], np.int32)}, []


@case
def opset9_batchnorm_scatter_where():
    model = built(9, [
        node("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"], momentum=0.8),
        node("Scatter", ["n", "i", "u"], ["c"], axis=1),
        node("ConstantOfShape", ["dims"], ["z"]),
        node("Greater", ["c", "z"], ["g"]),
        node("Where", ["g", "c", "z"], ["w"]),
        node("TopK", ["w"], ["t", "ti"], axis=-1, k=2),
        node("OneHot", ["ti", "depth", "range"], ["y"], axis=-1),
    ], {"x": [3, 5]}, {"t": [3, 2], "y": [3, 2, 5]},
        {"s": f32(5), "b": f32(5), "m": f32(5), "v": abs(f32(5)) + 0.1, "i": np.array([[1], [0], [4]], np.int64),
         "u": f32(3, 1), "dims": np.array([3, 5], np.int64),
         "depth": np.array([5], np.int64), "range": np.array([0, 1], np.float32)})
    return model, {"x": f32(3, 5)}, []


@case
def initializer_input_overridden():
    """An initializer that is an input: a constant here, whose value a caller could give."""
    model = built(10, [node("Mul", ["x", "k"], ["m"]), node("Clip", ["m"], ["y"], max=1.0)],
                  {"x": [4]}, {"y": [4]}, {"k": np.array([2, 3, 4, 5], np.float32)}, as_inputs=True)
    return model, {"x": f32(4)}, []


@case
def same_output_by_many_names():
    model = built(13, [node("Relu", ["x"], ["r"]), node("Identity", ["r"], ["a"]), node("Identity", ["a"], ["b"]),
                       node("Split", ["b"], ["c", "e"], axis=0)],
                  {"x": [4]}, {"r": [4], "a": [4], "b": [4], "c": [2], "e": [2]})
    return model, {"x": f32(4)}, []


@case
def unnamed_optional_results():
    model = built(14, [node("MaxPool", ["x"], ["p", ""], kernel_shape=[2, 2], strides=[2, 2]),
                       node("Dropout", ["p", "", ""], ["d", "mask"]),
                       node("LSTM", ["s", "w", "r"], ["", "h", "c"], hidden_size=2),
                       node("Not", ["mask"], ["y"])],
                  {"x": [1, 1, 4, 4], "s": [3, 1, 2]},
                  {"d": [1, 1, 2, 2], "y": (TensorProto.BOOL, [1, 1, 2, 2]), "h": [1, 1, 2], "c": [1, 1, 2]},
                  {"w": f32(1, 8, 2), "r": f32(1, 8, 2)}, ir=7)
    return model, {"x": f32(1, 1, 4, 4), "s": f32(3, 1, 2)}, []


@case
def qoperator_export():
    """What ONNX Runtime's static quantisation writes as QOperator. Weights have seven bits: where the CPU lacks VNNI, it
    adds pairs of their products in 16 bits."""
    scale = lambda value: np.array(value, np.float32)
    model = built(13, [
        node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        node("QLinearConv", ["q", "sx", "zx", "w", "sw", "zw", "sc", "zc", "b"], ["c"], kernel_shape=[3, 3],
             pads=[1, 1, 1, 1], strides=[2, 2]),
        node("QLinearLeakyRelu", ["c", "sc", "zc", "sc", "zc"], ["l"], alpha=0.1, domain="com.microsoft"),
        node("QLinearAdd", ["l", "sc", "zc", "l", "sc", "zc", "sa", "za"], ["a"], domain="com.microsoft"),
        node("QLinearGlobalAveragePool", ["a", "sa", "za", "sa", "za"], ["g"], domain="com.microsoft",
             channels_last=0),
        node("Flatten", ["g"], ["f"]),
        node("QLinearMatMul", ["f", "sa", "za", "m", "sm", "zm", "sa", "za"], ["p"]),
        node("DequantizeLinear", ["p", "sa", "za"], ["y"]),
    ], {"x": [1, 3, 8, 8]}, {"y": [1, 5]},
        {"sx": scale(0.02), "zx": np.uint8(128), "sw": abs(f32(4)) * 0.01 + 0.005, "zw": np.zeros(4, np.int8),
         "w": shared.RNG.integers(-64, 64, (4, 3, 3, 3)).astype(np.int8),
         "b": shared.RNG.integers(-900, 900, 4).astype(np.int32),
         "sc": scale(0.04), "zc": np.uint8(110), "sa": scale(0.06), "za": np.uint8(120),
         "m": shared.RNG.integers(-64, 64, (4, 5)).astype(np.int8), "sm": scale(0.01), "zm": np.int8(0)},
        ir=8, domains=[("com.microsoft", 1)])
    return model, {"x": f32(1, 3, 8, 8)}, []


@case
def qdq_gemm_concat_pool():
    """Weights per channel, a bias behind its own DequantizeLinear, pairs around operators that only move values."""
    model = built(17, [
        node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]), node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=0),
        node("DequantizeLinear", ["b", "sb"], ["bd"], axis=0),
        node("Conv", ["xd", "wd", "bd"], ["c"], kernel_shape=[1, 1]), node("Relu", ["c"], ["r"]),
        node("QuantizeLinear", ["r", "sr", "zr"], ["rq"]), node("DequantizeLinear", ["rq", "sr", "zr"], ["rd"]),
        node("MaxPool", ["rd"], ["p"], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]),
        node("Concat", ["rd", "p"], ["k"], axis=1),
        node("QuantizeLinear", ["k", "sr", "zr"], ["kq"]), node("DequantizeLinear", ["kq", "sr", "zr"], ["kd"]),
        node("Transpose", ["kd"], ["y"], perm=[0, 2, 3, 1]),
    ], {"x": [1, 4, 5, 5]}, {"y": [1, 5, 5, 12]},
        {"sx": np.float32(0.02), "zx": np.uint8(120), "w": shared.RNG.integers(-127, 127, (6, 4, 1, 1)).astype(np.int8),
         "sw": abs(f32(6)) * 0.01 + 0.002, "zw": np.zeros(6, np.int8),
         "b": shared.RNG.integers(-2000, 2000, 6).astype(np.int32), "sb": np.full(6, 0.0002, np.float32),
         "sr": np.float32(0.03), "zr": np.uint8(0)}, ir=8)
    return model, {"x": f32(1, 4, 5, 5)}, []


@case
def dynamic_quantised_lstm_export():
    model = built(13, [
        node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        node("MatMulInteger", ["q", "w", "z", "zw"], ["i"]),
        node("Cast", ["i"], ["f"], to=FLOAT), node("Mul", ["s", "sw"], ["k"]), node("Mul", ["f", "k"], ["m"]),
        node("Add", ["m", "b"], ["a"]), node("Tanh", ["a"], ["y"]),
    ], {"x": [2, 3, 8]}, {"y": [2, 3, 6]},
        {"w": shared.RNG.integers(0, 255, (8, 6)).astype(np.uint8), "zw": np.uint8(127), "sw": np.float32(0.01),
         "b": f32(6)},
        ir=7)
    return model, {"x": f32(2, 3, 8)}, []


@case
def sklearn_pipeline():
    """Impute, scale, one linear classifier, its labels and probabilities."""
    ml = "ai.onnx.ml"
    model = built(15, [
        node("Imputer", ["x"], ["i"], domain=ml, imputed_value_floats=[0.5, 1.5, -1.0],
             replaced_value_float=float("nan")),
        node("Scaler", ["i"], ["s"], domain=ml, offset=[0.1, 0.2, 0.3], scale=[2.0, 0.5, 1.0]),
        node("Normalizer", ["s"], ["n"], domain=ml, norm="L2"),
        node("LinearClassifier", ["n"], ["label", "raw"], domain=ml, classlabels_ints=[3, 5, 9],
             coefficients=[float(v) for v in f32(9)], intercepts=[0.1, -0.2, 0.3], post_transform="SOFTMAX",
             multi_class=1),
        node("Binarizer", ["raw"], ["hot"], domain=ml, threshold=0.4),
    ], {"x": [4, 3]}, {"label": (INT64, [4]), "raw": [4, 3], "hot": [4, 3]}, ir=8, domains=[(ml, 1)])
    x = f32(4, 3)
    x[1, 2] = x[3, 0] = np.nan
    return model, {"x": x}, []


@case
def sklearn_text_columns():
    ml = "ai.onnx.ml"
    model = built(15, [
        node("ArrayFeatureExtractor", ["words", "column"], ["c"], domain=ml),
        node("LabelEncoder", ["c"], ["e"], domain=ml, keys_strings=["red", "green", "blue"], values_int64s=[0, 1, 2],
             default_int64=-1),
        node("OneHotEncoder", ["c"], ["h"], domain=ml, cats_strings=["red", "green", "blue"], zeros=1),
        node("Reshape", ["h", "flat"], ["r"]),
        node("FeatureVectorizer", ["r", "x"], ["v"], domain=ml, inputdimensions=[3, 2]),
        node("LinearRegressor", ["v"], ["y"], domain=ml, coefficients=[float(v) for v in f32(5)], intercepts=[0.25]),
    ], {"words": (TensorProto.STRING, [3, 2]), "x": [3, 2]}, {"e": (INT64, None), "y": [3, 1]},
        {"column": np.array([1], np.int64), "flat": np.array([3, 3], np.int64)}, ir=8, domains=[(ml, 2)])
    words = np.array([["a", "red"], ["b", "mauve"], ["c", "blue"]], dtype=object)
    return model, {"words": words, "x": f32(3, 2)}, []


@case
def keras_nhwc_transposes():
    """tf2onnx: a Transpose around each convolution, shapes computed by Shape, Slice, Concat, StridedSlice forms."""
    model = built(11, [
        node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        node("Conv", ["t", "w"], ["c"], auto_pad="SAME_UPPER", strides=[2, 2], kernel_shape=[3, 3]),
        node("Transpose", ["c"], ["u"], perm=[0, 2, 3, 1]),
        node("Add", ["u", "b"], ["a"]), node("Clip", ["a", "zero", "six"], ["r"]),
        node("Shape", ["r"], ["s"]), node("Cast", ["s"], ["s32"], to=TensorProto.INT32),
        node("Slice", ["s32", "i0", "i1", "i0"], ["n"]), node("Cast", ["n"], ["n64"], to=INT64),
        node("Concat", ["n64", "minus"], ["to"], axis=0), node("Reshape", ["r", "to"], ["f"]),
        node("MatMul", ["f", "m"], ["p"]), node("Softmax", ["p"], ["y"], axis=1),
    ], {"x": ["unk__1", 5, 5, 3]}, {"y": ["unk__2", 4]},
        {"w": f32(2, 3, 3, 3), "b": f32(2), "zero": np.float32(0), "six": np.float32(6), "i0": np.array([0], np.int64),
         "i1": np.array([1], np.int64), "minus": np.array([-1], np.int64), "m": f32(18, 4)}, ir=6)
    return model, {"x": f32(2, 5, 5, 3)}, ["--shape", "unk__1=2"]


@case
def keras_gru_time_major():
    model = built(11, [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("GRU", ["t", "w", "r", "b"], ["", "h"], hidden_size=3, linear_before_reset=1,
             activations=["Sigmoid", "Tanh"]),
        node("Squeeze", ["h"], ["q"], axes=[0]),
        node("Gemm", ["q", "d", "e"], ["y"], alpha=1.0, beta=1.0),
    ], {"x": [2, 4, 5]}, {"y": [2, 2]},
        {"w": f32(1, 9, 5), "r": f32(1, 9, 3), "b": f32(1, 18), "d": f32(3, 2), "e": f32(2)}, ir=6)
    return model, {"x": f32(2, 4, 5)}, []


@case
def functions_three_deep_with_attributes():
    def function(name, inputs, outputs, nodes, attributes=(), more=()):
        return helper.make_function("local", name, inputs, outputs, nodes,
                                    [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)], attributes, more)

    def reference(made, name, kind):
        attribute = made.attribute.add()
        attribute.name, attribute.ref_attr_name, attribute.type = name, name, kind
        return made

    leaky = function("leaky", ["a"], ["b"], [reference(node("LeakyRelu", ["a"], ["b"]), "alpha", 1)], ["alpha"])
    middle = function("middle", ["a"], ["b", "c"], [
        reference(node("leaky", ["a"], ["t"], domain="local"), "alpha", 1),
        reference(node("Concat", ["t", "a"], ["b"]), "axis", 2), node("Shape", ["b"], ["c"])],
        ["axis", "alpha"])
    outer = function("outer", ["a"], ["b"], [
        node("middle", ["a"], ["m", "s"], domain="local", alpha=0.3, axis=1),
        node("Cast", ["s"], ["f"], to=FLOAT), node("ReduceMax", ["f"], ["x"], keepdims=0),
        node("Mul", ["m", "x"], ["b"])])
    model = built(17, [node("outer", ["x"], ["t"], domain="local"), node("outer", ["t"], ["y"], domain="local")],
                  {"x": [2, 3]}, {"y": [2, 12]}, ir=8, domains=[("local", 1)])
    model.functions.extend([leaky, middle, outer])
    return model, {"x": f32(2, 3)}, []


@case
def external_weights_offsets():
    model = built(13, [node("MatMul", ["x", "a"], ["t"]), node("Add", ["t", "b"], ["u"]),
                       node("MatMul", ["u", "c"], ["y"])],
                  {"x": [3, 16]}, {"y": [3, 8]}, {"a": f32(16, 32), "b": f32(32), "c": f32(32, 8)}, ir=7)
    return model, {"x": f32(3, 16)}, []
