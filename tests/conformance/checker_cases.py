#!/usr/bin/env python3
"""Broken models: our checks beside ONNX's checker, which is an oracle here and nowhere a part of the packer.

    SVOD_CORPUS=DIR checker_cases.py [--first 0] [--count 600] [--seconds N] [--filter REGEX]

A case is a model of the ONNX backend's node tests with one thing changed: an attribute dropped, doubled, of another type or
unknown, an input, output or node gone or renamed, another operator, version, element type or size, weights cut. ONNX's checker
looks at it (onnx.checker, with its inference of types and shapes), and svod-pack --emit=graph. The columns:

    both take     both refuse
    stricter      ours calls invalid what the checker takes, and ONNX Runtime refuses it, too, or for a reason in STRICT
    unsupported   exit 3 for what the checker takes
    lenient       ours takes what the checker refuses, for a reason in LENIENT
    WRONG         ours takes what the checker refuses for any other reason, or calls invalid what ONNX Runtime loads and runs
    FAILED        any other exit code, or no end within SECONDS

The exit code is 1 where one of the last two is not 0.
"""
import argparse
import collections
import functools
import os
import pathlib
import random
import re
import subprocess
import sys
import time

import run_conformance as base
from oracle import enter

if not os.environ.get("SVOD_CORPUS"):
    print("skipped: SVOD_CORPUS does not name a corpus")
    sys.exit(77)
if not enter(base.BUILD):
    print("skipped: this python has no onnxruntime, onnx and numpy")
    sys.exit(77)
sys.path[:0] = [str(base.HERE.parent / "support")]
import onnx
from packing import PACKER, work_folder
from time_limit import corpus_share, exit_code

SHARE, SECONDS = 1 / 40, 20
WORDS = ["both take", "both refuse", "stricter", "unsupported", "lenient", "WRONG", "FAILED"]
# What the checker says, and why we take such a model.
LENIENT = {
    r"Field 'name' of 'graph'": "the graph has no name, which nothing needs",
    r"No opset import for domain 'ai.onnx'": "ai.onnx is the default domain, written out",
    r"Inferred (shape and existing shape|elem type) differ":
        "an output or a value is declared otherwise than it is; a warning says so of outputs",
    r"type field and data field mismatch": "an attribute has no type, as before IR version 2: its only value says it",
    r"IR version < 3 cannot have opset_import": "an old IR version with an opset, which says more",
    r"No Op registered for \w+ with domain_version": "the operator is of a later opset: that is taken, with a warning",
    r"shape input must be 1D tensor": "one number stands for a list of one",
    r"single static assignment": "a constant is defined again with the same value, with a warning",
}
# What we say of a model that the checker takes and ONNX Runtime runs, and why.
STRICT = {
    r"two outputs are named": "answers are asked for by name",
    r"declared shape|k is larger than the axis": "sizes that a run decides are taken from what is declared, which is wrong",
    r"its data is in more than one place": "as ONNX has it, one field of a tensor holds its data",
    r"does not fit the pool": "the pool is of the other type, texts for numbers",
}


def of_attribute(change):
    """A change of one of the node's attributes; none where it has none."""
    @functools.wraps(change)
    def changes(model, node, draw):
        return change(node, draw.choice(node.attribute), draw) if node.attribute else False
    return changes


@of_attribute
def drop_attribute(node, given, draw):
    node.attribute.remove(given)


@of_attribute
def double_attribute(node, given, draw):
    node.attribute.append(given)


@of_attribute
def retype_attribute(node, given, draw):
    value = draw.choice([7, 0.5, "seven", [1, 2], [0.5, 1.5], ["a", "b"]])
    given.CopyFrom(onnx.helper.make_attribute(given.name, value))


@of_attribute
def rename_attribute(node, given, draw):
    given.name = draw.choice(["", given.name + "s", "unheard_of"])


@of_attribute
def untype_attribute(node, given, draw):
    given.type = draw.choice([onnx.AttributeProto.UNDEFINED, onnx.AttributeProto.INT, onnx.AttributeProto.FLOATS])


@of_attribute
def change_attribute(node, given, draw):
    if given.type == onnx.AttributeProto.INT:
        given.i = draw.choice([-(1 << 62), -7, -1, 0, 1, 2, 9, 1 << 40])
    elif given.type == onnx.AttributeProto.INTS and given.ints:
        at = draw.randrange(len(given.ints))
        given.ints[at] = draw.choice([-(1 << 62), -7, -1, 0, 1, 2, 9, 1 << 40])
    elif given.type == onnx.AttributeProto.STRING:
        given.s = draw.choice([b"", b"unheard_of", b"\xff\xfe"])
    else:
        return False


def drop_input(model, node, draw):
    if not node.input:
        return False
    del node.input[draw.randrange(len(node.input))]


def leave_input_out(model, node, draw):
    if not node.input:
        return False
    node.input[draw.randrange(len(node.input))] = ""


def add_input(model, node, draw):
    node.input.append(draw.choice([*filter(None, node.input), model.graph.node[0].output[0]]))


def rename_input(model, node, draw):
    if not node.input:
        return False
    node.input[draw.randrange(len(node.input))] = "nobody_makes_this"


def exchange_inputs(model, node, draw):
    if len(node.input) < 2:
        return False
    node.input[0], node.input[1] = node.input[1], node.input[0]


def drop_output(model, node, draw):
    del node.output[draw.randrange(len(node.output))]


def double_output(model, node, draw):
    node.output.append(node.output[0])


def add_output(model, node, draw):
    node.output.append("one_more")


def other_operator(model, node, draw):
    node.op_type = draw.choice(["Relu", "Add", "Conv", "MatMul", "Concat", "Reshape", "Loop", "If", "Cast", "Split",
                                "UnheardOf", ""])


def other_domain(model, node, draw):
    node.domain = draw.choice(["ai.onnx.ml", "unheard.of", "ai.onnx"])


def drop_node(model, node, draw):
    model.graph.node.remove(node)


def double_node(model, node, draw):
    model.graph.node.append(node)


def other_version(model, node, draw):
    model.opset_import[0].version = draw.choice([-1, 0, 1, 5, 9, 13, 1000])


def no_opset(model, node, draw):
    del model.opset_import[:]


def other_ir(model, node, draw):
    model.ir_version = draw.choice([0, 1, 3, 99, -1])


def no_name(model, node, draw):
    model.graph.name = ""


def drop_graph_output(model, node, draw):
    del model.graph.output[draw.randrange(len(model.graph.output))]


def rename_graph_output(model, node, draw):
    draw.choice(model.graph.output).name = draw.choice(["", "nobody_makes_this"])


def double_graph_output(model, node, draw):
    model.graph.output.append(model.graph.output[0])


def double_graph_input(model, node, draw):
    if not model.graph.input:
        return False
    model.graph.input.append(model.graph.input[0])


def other_type(model, node, draw):
    values = [v for v in [*model.graph.input, *model.graph.output] if v.type.HasField("tensor_type")]
    if not values:
        return False
    draw.choice(values).type.tensor_type.elem_type = draw.choice([0, 1, 3, 7, 8, 9, 10, 77])


def other_size(model, node, draw):
    values = [v.type.tensor_type.shape.dim for v in model.graph.input if v.type.tensor_type.shape.dim]
    if not values:
        return False
    draw.choice(draw.choice(values)).dim_value = draw.choice([-1, 0, 1, 2, 5, 7, 1 << 40])


def other_rank(model, node, draw):
    shapes = [v.type.tensor_type.shape for v in model.graph.input if v.type.tensor_type.shape.dim]
    if not shapes:
        return False
    shape = draw.choice(shapes)
    if draw.random() < 0.5:
        del shape.dim[-1]
    else:
        shape.dim.add().dim_value = 3


def constants_of(model):
    return [*model.graph.initializer,
            *(a.t for n in model.graph.node for a in n.attribute if a.type == onnx.AttributeProto.TENSOR)]


def break_tensor(model, node, draw):
    """Of an initializer, made of an input where there is none."""
    if not constants_of(model):
        fixed = [v for v in model.graph.input if v.type.HasField("tensor_type")]
        if not fixed:
            return False
        value = draw.choice(fixed)
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        kind = value.type.tensor_type.elem_type
        if kind not in (1, 6, 7) or not 0 < len(shape) < 6 or not all(0 < d < 100 for d in shape):
            return False
        array = onnx.numpy_helper.np.ones(shape, onnx.helper.tensor_dtype_to_np_dtype(kind))
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, value.name))
    tensor = draw.choice(constants_of(model))
    how = draw.randrange(6)
    if how == 0:
        tensor.raw_data = tensor.raw_data[:-1]
    elif how == 1:
        tensor.dims.append(draw.choice([0, 2, -1, 1 << 50]))
    elif how == 2:
        tensor.data_type = draw.choice([0, 1, 7, 8, 9, 77])
    elif how == 3:
        tensor.float_data.append(1.5)
    elif how == 4:
        tensor.data_location = onnx.TensorProto.EXTERNAL
    else:
        tensor.name = draw.choice(["", "nobody_reads_this"])


def double_initializer(model, node, draw):
    if not model.graph.initializer:
        return False
    model.graph.initializer.append(model.graph.initializer[0])


CHANGES = [drop_attribute, double_attribute, retype_attribute, rename_attribute, untype_attribute, change_attribute, drop_input,
           leave_input_out, add_input, rename_input, exchange_inputs, drop_output, double_output, add_output, other_operator,
           other_domain, drop_node, double_node, other_version, no_opset, other_ir, no_name, drop_graph_output,
           rename_graph_output, double_graph_output, double_graph_input, other_type, other_size, other_rank, break_tensor,
           double_initializer]


def is_needed(model, node):
    """Whether an output of the graph comes of the node; graphs within nodes are not looked into."""
    names = {output.name for output in model.graph.output}
    for other in reversed(model.graph.node):
        if names.intersection(other.output) or any(a.type == onnx.AttributeProto.GRAPH for a in other.attribute):
            if other == node:
                return True
            names.update(other.input)
    return False


def changed(path, seed):
    """(the change's name, the model, the node that was drawn), or None where it does not apply."""
    draw, model = random.Random(seed), onnx.load(path)
    change, node = draw.choice(CHANGES), draw.choice(model.graph.node)
    if change(model, node, draw) is False:
        return None
    return change.__name__, model, node


def checker_says(model):
    """Empty where ONNX's checker takes the model."""
    try:
        onnx.checker.check_model(model, full_check=True)
        return ""
    except Exception as refusal:  # its own kinds, and those of protobuf
        return " ".join(str(refusal).split()) or type(refusal).__name__


RUN = """
import sys, numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.log_severity_level = 4
session = ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
kinds = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(bool)": "?",
         "tensor(uint8)": "u1", "tensor(int8)": "i1", "tensor(float16)": "f2", "tensor(int16)": "i2", "tensor(string)": object}
feeds = {i.name: np.ones([d if isinstance(d, int) else 1 for d in i.shape], kinds[i.type]) for i in session.get_inputs()}
session.run(None, feeds)
"""


def runs_elsewhere(path):
    """Whether ONNX Runtime loads the model and runs it with ones; in a process, since it may crash."""
    try:
        return subprocess.run([sys.executable, "-c", RUN, path], capture_output=True, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def verdict(path, refusal, needed):
    """(one of WORDS, what to tell)"""
    code, text, _ = base.run([PACKER, path, "--emit=graph", "-q"], SECONDS)
    said = text.splitlines()[0][:160] if text else ""
    if code not in (0, 1, 3, 4):
        return "FAILED", f"exit {code}: {said}"
    if refusal:
        if code != 0:
            return "both refuse", ""
        reason = next((why for pattern, why in LENIENT.items() if re.search(pattern, refusal)), None)
        if not reason and not needed and "Bad node spec" in refusal:
            reason = "the node is one that nothing needs"
        return ("lenient", reason) if reason else ("WRONG", f"the checker: {refusal[:300]}")
    if code == 0:
        return "both take", ""
    if code == 3:
        return "unsupported", said
    listed = any(re.search(pattern, text) for pattern in STRICT)
    return ("WRONG", f"runs elsewhere: {said}") if not listed and runs_elsewhere(path) else ("stricter", said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=corpus_share(SHARE), help="time limit")
    parser.add_argument("--filter", default="", help="only changes whose name matches")
    options = parser.parse_args()
    models = [case.model for case in base.cases_of("node", pathlib.Path(os.environ["SVOD_CORPUS"]).resolve())]
    path, start = work_folder("checker_cases") / "model.onnx", time.monotonic()
    counts, reasons, left = collections.Counter(), collections.Counter(), 0
    for seed in range(options.first, options.first + options.count):
        if time.monotonic() - start > options.seconds:
            left += 1
            continue
        case = models[random.Random(seed).randrange(len(models))]
        made = changed(case, seed)
        if made is None or not re.search(options.filter, made[0]):
            continue
        change, model, node = made
        refusal = checker_says(model)
        path.write_bytes(model.SerializeToString())
        word, told = verdict(path, refusal, is_needed(model, node))
        counts[word] += 1
        if word in ("WRONG", "FAILED"):
            print(f"{word} seed {seed} {case.parent.name} {change}: {told}", flush=True)
        elif word == "lenient":
            reasons[told] += 1
    for reason, count in reasons.most_common():
        print(f"lenient {count:4d}  {reason}")
    print(", ".join(f"{word} {counts[word]}" for word in WORDS))
    wrong = counts["WRONG"] + counts["FAILED"]
    return exit_code(sum(counts.values()) - wrong, wrong, left)


if __name__ == "__main__":
    sys.exit(main())
