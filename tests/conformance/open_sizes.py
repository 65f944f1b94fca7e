#!/usr/bin/env python3
"""Models that leave sizes open, each packed once for a range of them (--dim): five sizes each against ONNX Runtime.

    open_sizes.py [--filter REGEX]

The models of SVOD_CORPUS with open dimensions and with inputs. A range ends at the recorded inputs' size, or at 2 where that
is 1; the sizes are that, three quarters, a half, a quarter and an eighth of it, all dimensions at once, with as much of the
recorded inputs (twice the only one, for 2). Sizes that ONNX Runtime refuses, as a detector does whose halves are to meet,
are left out. A value may differ by 1e-3 of itself, 2e-4 of the root mean square of its tensor (twenty times that in 16 bits) and
1e-6, whole numbers not at all; what comes of networks that quantise, whose last steps fall as sums are rounded, by a cosine of 0.99.
lists/open_sizes.txt names models for which no range is packed or right, and why.
"""
import argparse
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import run_conformance as base

sys.path[:0] = [str(base.HERE.parent / "support")]
from packing import PACKER
from quantised import quantises
from time_limit import corpus_share, exit_code

if not base.oracle.enter(base.BUILD):
    print("skipped: this python has no onnxruntime, onnx and numpy")
    sys.exit(77)
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

WORK = base.WORK / "open_sizes"
SHARE = 1 / 12  # of SVOD_CORPUS_SECONDS
PARTS = (1, 3 / 4, 1 / 2, 1 / 4, 1 / 8)


def open_dimensions(model):
    """{name as --dim has it: [(input, axis)]}; None where an input is no tensor."""
    given, found = {t.name for t in model.graph.initializer}, {}
    for value in model.graph.input:
        if value.name in given:
            continue
        if not value.type.HasField("tensor_type"):
            return None
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value <= 0:
                found.setdefault(dim.dim_param or f"{value.name}[{axis}]", []).append((value.name, axis))
    return found


def sums(most):
    """{dimension: the two that it is the sum of}: as its name says (past + seq), or as total lengths are."""
    found = {}
    for name in most:
        terms = re.split(r"\s*\+\s*", name)
        if len(terms) == 1 and "total" in name:
            others = [other for other in most if other != name and "+" not in other]
            terms = next((pair for pair in itertools.combinations(others, 2) if sum(map(most.get, pair)) == most[name]), ())
        if len(terms) == 2 and set(terms) <= set(most):
            found[name] = terms
    return found


def recorded_inputs(model, folder):
    given = {t.name for t in model.graph.initializer}
    names = [v.name for v in model.graph.input if v.name not in given]
    files = [folder / f"input_{i}.pb" for i in range(len(names))]
    if not all(file.exists() for file in files):
        return None
    return {name: numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes())) for name, file in zip(names, files)}


def resized(inputs, dimensions, sizes):
    """As much of each input as the sizes say."""
    out = dict(inputs)
    for name, places in dimensions.items():
        for value, axis in places:
            array, length = out[value], out[value].shape[axis]
            if length == 0:
                array, length = np.zeros([n or 1 for n in array.shape], array.dtype), 1
            out[value] = np.take(array, [i % length for i in range(sizes[name])], axis)
    return out


def difference(ours, theirs, quantised):
    """What is wrong with an output; nothing where it agrees."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)} for {theirs.dtype}{list(theirs.shape)}"
    if theirs.dtype.kind not in "fV" or not theirs.size:
        return "" if np.array_equal(ours, theirs) else "other whole numbers"
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "other infinities"
    a, b = a[finite], b[finite]
    if not b.size:
        return ""
    near = 2e-4 if theirs.dtype.itemsize > 2 else 4e-3
    error = np.abs(a - b) - 5 * near * np.abs(b) - near * np.sqrt(np.mean(b * b)) - 1e-6
    if error.max() <= 0 or quantised and a.ravel() @ b.ravel() > 0.99 * np.linalg.norm(a) * np.linalg.norm(b):
        return ""
    return f"differs by {np.abs(a - b).max():.2g} of {np.abs(b).max():.3g}"


def answers(program, folder, names, feed):
    """{output: array} of the packed program; its error's text where it stops."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = [program]
    for i, (name, array) in enumerate(feed.items()):
        np.save(folder / f"in{i}.npy", array)
        command += ["--input", f"{name}=@{folder / f'in{i}.npy'}"]
    for i, name in enumerate(names):
        command += ["--output", f"{name}=@{folder / f'out{i}.npy'}"]
    code, text, _ = base.run([str(word) for word in command], base.RUN_SECONDS)
    if code != 0:
        return f"exit {code}: {text.splitlines()[0] if text else ''}"
    return {name: np.load(folder / f"out{i}.npy") for i, name in enumerate(names)}


def judged(case):
    """(sizes that agree, sizes that ONNX Runtime refuses, what is wrong); None: not of this test."""
    model = onnx.load(case.model, load_external_data=False)
    dimensions = open_dimensions(model)
    inputs = recorded_inputs(model, case.data[0]) if dimensions and case.data else None
    if not inputs:
        return None
    most = {name: inputs[value].shape[axis] for name, ((value, axis), *_) in dimensions.items()}
    summed = sums(most)
    most = {name: max(2, size) for name, size in most.items() if name not in summed}
    most |= {name: sum(most[term] for term in terms) for name, terms in summed.items()}
    folder = WORK / case.name.replace("/", "_")
    folder.mkdir(parents=True, exist_ok=True)
    # Those whose names are sums follow from the others.
    ranges = [word for name, size in most.items() if "+" not in name for word in ("--dim", f"{name}=1..{size}")]
    command = [PACKER, case.model, "-o", folder / "program", "--target", "native", "--verify", "off", "-q", *ranges]
    code, text, _ = base.run([str(word) for word in command], base.PACK_SECONDS)
    if code != 0:
        return 0, 0, f"not packed, exit {code}: {next((line for line in text.splitlines() if 'error' in line), '')}"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    # As it is written: a fused attention has no table of masks that a sequence can be too long for.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(case.model), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    quantised, agree, refused = quantises(case.model), 0, 0
    for part in PARTS:
        sizes = {name: max(1, round(size * part)) for name, size in most.items() if name not in summed}
        sizes |= {name: sum(sizes[term] for term in terms) for name, terms in summed.items()}
        feed = resized(inputs, dimensions, sizes)
        try:
            expected = dict(zip(names, session.run(None, feed)))
        except Exception:  # of onnxruntime's own, which have no base
            refused += 1
            continue
        ours = answers(folder / "program", folder / "run", names, feed)
        wrong = ours if isinstance(ours, str) else "; ".join(
            f"{name} {what}" for name in names if (what := difference(ours[name], expected[name], quantised)))
        if wrong:
            return agree, refused, f"{sizes}: {wrong}"
        agree += 1
    return agree, refused, ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    if not os.environ.get("SVOD_CORPUS"):
        print("skipped: SVOD_CORPUS does not name a corpus")
        return 77
    known, end = base.listed("open", "sizes"), time.monotonic() + corpus_share(SHARE)
    good, bad, left_out = 0, [], 0
    for case in base.cases_of("real", pathlib.Path(os.environ["SVOD_CORPUS"]).resolve()):
        if not re.search(options.filter, case.name):
            continue
        if time.monotonic() > end:
            left_out += 1
            continue
        found = judged(case)
        shutil.rmtree(WORK / case.name.replace("/", "_"), ignore_errors=True)
        if found is None:
            continue
        agree, refused, wrong = found
        wrong = wrong or ("" if agree else "no size that ONNX Runtime runs")
        listed = " (listed)" if wrong and case.name in known else ""
        print(f"{wrong + listed if wrong else 'right'}: {case.name}, {agree} sizes" +
              (f", {refused} that ONNX Runtime refuses" if refused else ""), flush=True)
        good += not wrong
        if wrong and not listed:
            bad.append(case.name)
    print(f"{good} models right, {len(bad)} not" + (f"; no time for {left_out} of the corpus" if left_out else ""))
    return exit_code(good, len(bad), left_out)


if __name__ == "__main__":
    sys.exit(main())
