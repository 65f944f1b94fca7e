"""Reads what a project recorded beside its model, and asks the executor of qonnx for what ONNX Runtime lacks.

Upstream repositories keep test values as numpy files: `io.npz` with inputs and outputs by tensor name, or
`input.npy` with `output.npy` or `expected_output.npy`. Their inputs say which sizes the model means. Their outputs are
taken where no runtime executes the model: operators of onnx.brevitas, qonnx and finn.
"""
import contextlib
import io
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

QONNX_DOMAINS = ("onnx.brevitas", "qonnx", "finn")


def declared_shape(value):
    """The dimensions of a graph's input or output, None where free."""
    return [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None
            for d in value.type.tensor_type.shape.dim]


def fitted(array, value):
    """`array` cut along its first axis into pieces of the declared shape and type; empty where it does not fit."""
    shape = declared_shape(value)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    fits = array.ndim == len(shape) and all(d in (None, n) for d, n in zip(shape, array.shape))
    if fits:
        return [numpy_helper.from_array(array.astype(dtype), value.name)]
    if None in shape or not shape or array.size % max(1, int(np.prod(shape))):
        return []
    return [numpy_helper.from_array(piece.astype(dtype), value.name) for piece in array.reshape(-1, *shape)]


def arrays_beside(model, values, files):
    """Value name -> array, of io.npz or, where there is one value only, of the first of `files` that exists."""
    archive = model.parent / "io.npz"
    if archive.exists():
        with np.load(archive) as found:
            return {v.name: found[v.name] for v in values if v.name in found.files}
    existing = [model.parent / f for f in files if (model.parent / f).exists()]
    return {values[0].name: np.load(existing[0])} if existing and len(values) == 1 else {}


def data_sets(model, values, files):
    """Lists of tensors, one list per data set; empty where not all values are recorded."""
    arrays = arrays_beside(model, values, files)
    if not values or len(arrays) < len(values):
        return []
    return [list(one) for one in zip(*(fitted(arrays[v.name], v) for v in values))]


def inputs_of(model, inputs):
    """The recorded inputs of a model, as data sets."""
    return data_sets(model, inputs, ["input.npy"])


def outputs_of(model, outputs):
    return data_sets(model, outputs, ["output.npy", "expected_output.npy"])


def run_qonnx(path, tensors, outputs):
    """The outputs by the executor of the package qonnx; None where it is not installed or does not run the model."""
    try:
        from qonnx.core.modelwrapper import ModelWrapper
        from qonnx.core.onnx_exec import execute_onnx
        from qonnx.transformation.infer_shapes import InferShapes
    except ImportError:
        return None
    # It makes models of single nodes, which must not be newer than ONNX Runtime reads.
    newest = onnx.IR_VERSION
    try:
        onnx.IR_VERSION = min(newest, 10)
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            model = ModelWrapper(str(path)).transform(InferShapes())
            answers = execute_onnx(model, {t.name: numpy_helper.to_array(t) for t in tensors})
    except Exception:  # whatever it throws, it does not run the model
        return None
    finally:
        onnx.IR_VERSION = newest
    return [numpy_helper.from_array(answers[v.name], v.name) for v in outputs]
