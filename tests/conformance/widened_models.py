"""A model in the element types that ONNX Runtime has kernels for: numbers with a fraction as float32, whole ones as int64.

What it answers is rounded to the types that the model declares. It judges models in types without kernels; the seeded
values are small, so none is lost in the types they are computed in.
"""
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

FRACTIONS = {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE}
WHOLE = {TensorProto.INT32}


def wide(kind):
    return TensorProto.FLOAT if kind in FRACTIONS else TensorProto.INT64 if kind in WHOLE else kind


def widened_tensor(tensor):
    dtype = onnx.helper.tensor_dtype_to_np_dtype(wide(tensor.data_type))
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name)


def widen_graph(graph):
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.elem_type = wide(value.type.tensor_type.elem_type)
    for tensor in graph.initializer:
        tensor.CopyFrom(widened_tensor(tensor))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                attribute.t.CopyFrom(widened_tensor(attribute.t))
            elif attribute.type == onnx.AttributeProto.GRAPH:
                widen_graph(attribute.g)
            elif node.op_type == "Cast" and attribute.name == "to":
                attribute.i = wide(attribute.i)


class Widened:
    """A session of the wide form, asked and answering in the model's own types."""

    def __init__(self, model, open_session):
        self.kinds = [o.type.tensor_type.elem_type for o in model.graph.output]
        widen_graph(model.graph)
        self.session = open_session(model.SerializeToString())

    def answer(self, tensors):
        names = [o.name for o in self.session.get_outputs()]
        values = self.session.run(None, {t.name: numpy_helper.to_array(widened_tensor(t)) for t in tensors})
        dtypes = [onnx.helper.tensor_dtype_to_np_dtype(k) for k in self.kinds]
        return names, [np.asarray(v).astype(d) for v, d in zip(values, dtypes)]


def can_widen(model):
    """Whether all that goes in and out are tensors, and any is of a type that changes."""
    values = [*model.graph.input, *model.graph.output]
    kinds = [v.type.tensor_type.elem_type for v in values if v.type.HasField("tensor_type")]
    return len(kinds) == len(values) and any(wide(k) != k for k in kinds)
