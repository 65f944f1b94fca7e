"""What judges a model that ONNX Runtime refuses as it stands: ONNX Runtime for another form of it, else the reference
evaluator of the `onnx` package.

Graph tools and tests write models that break the letter of the specification, or of an opset that ONNX Runtime does not
implement, and the importer reads what they mean (docs/decisions/read-what-exporters-mean.md). The forms say the same by
other means: without the types that they declare, stamped with the opset whose operators their nodes have, with the
vendor's domain where only the vendor has the operator, without a clip of 0 that stands for none. What ONNX Runtime has on
accelerators alone, or in its extensions, is vendor_ops.py's.
"""
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import vendor_ops

OPSETS = range(7, 25)
RECURRENT = {"RNN", "GRU", "LSTM"}
# What the evaluator computes otherwise than the specification says: recurrent layers have one direction and the default
# activations there, these others mean what they do since opset 13.
SINCE_13 = {"Hardmax", "Softmax", "LogSoftmax"}


def without_types(model):
    """What it declares of its values, but for its inputs, may be wrong: a type or a shape."""
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.ClearField("type")
    return model


def with_vendor_domain(model):
    """Operators that the standard does not have, as ONNX Runtime's own."""
    known = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    for node in model.graph.node:
        if node.domain == "" and node.op_type not in known:
            node.domain = "com.microsoft"
    if not any(o.domain == "com.microsoft" for o in model.opset_import):
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    return model


def without_clips_of_zero(model):
    for node in model.graph.node:
        for attribute in list(node.attribute):
            if node.op_type in RECURRENT and attribute.name == "clip" and attribute.f == 0:
                node.attribute.remove(attribute)
    return model


def stamped(model, opset):
    for stamp in model.opset_import:
        if stamp.domain in ("", "ai.onnx"):
            stamp.version = opset
    model.ir_version = max(model.ir_version, 3)
    return model


def forms(path):
    """Serialised models, the one nearest to the original first."""
    def fresh():
        return without_clips_of_zero(with_vendor_domain(without_types(onnx.load(str(path)))))

    given = [o.version for o in fresh().opset_import if o.domain in ("", "ai.onnx")]
    yield fresh().SerializeToString()
    for opset in sorted(OPSETS, key=lambda n: (abs(n - (given or [0])[0]), n)):
        if opset not in given:
            yield stamped(fresh(), opset).SerializeToString()


class Evaluator:
    """The reference evaluator, which knows types that ONNX Runtime has no kernels for."""

    def __init__(self, model):
        self.evaluator = ReferenceEvaluator(model, new_ops=vendor_ops.ALL)

    def answer(self, tensors):
        feeds = {t.name: numpy_helper.to_array(t) for t in tensors}
        with np.errstate(all="ignore"):
            values = self.evaluator.run(None, feeds)
        return self.evaluator.output_names, [np.asarray(v) if isinstance(v, np.generic) else v for v in values]


def evaluator_of(path):
    """The reference evaluator for the model, or None."""
    try:
        model = with_vendor_domain(onnx.load(str(path)))
        opset = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
        misjudged = RECURRENT if opset >= 13 else RECURRENT | SINCE_13
        if any(node.op_type in misjudged for node in model.graph.node):
            return None
        for domain in {n.domain for n in model.graph.node} - {o.domain for o in model.opset_import}:
            model.opset_import.append(onnx.helper.make_opsetid(domain, 1))
        return Evaluator(model)
    except Exception:  # whatever it throws, it does not take the model
        return None
