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
import sys
import time

import run_conformance as base

sys.path[:0] = [str(base.HERE.parent / "support")]
from quantised import quantises
from time_limit import corpus_share, exit_code

if not base.oracle.enter(base.BUILD):
    print("skipped: this python has no onnxruntime, onnx and numpy")
    sys.exit(77)
import numpy as np
import onnx
import onnxruntime
import packed_case

WORK = base.WORK / "open_sizes"
SHARE = 1 / 12  # of SVOD_CORPUS_SECONDS
PARTS = (1, 3 / 4, 1 / 2, 1 / 4, 1 / 8)


def open_dimensions(inputs):
    """{name as --dim has it: [(input, axis)]}; None where an input is no tensor."""
    found = {}
    for value in inputs:
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


def recorded_inputs(names, folder):
    files = [folder / f"input_{i}.pb" for i in range(len(names))]
    if not all(file.exists() for file in files):
        return None
    return {name: packed_case.units.read_value(file)[0] for name, file in zip(names, files)}


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
    wrong = packed_case.differs(ours, theirs, 2e-4 if theirs.dtype.itemsize > 2 else 4e-3, 1e-6)
    if not wrong or not quantised or ours.shape != theirs.shape or theirs.dtype.kind != "f":
        return wrong
    a, b = ours.ravel().astype(np.float64), theirs.ravel().astype(np.float64)
    return "" if a @ b > 0.99 * np.linalg.norm(a) * np.linalg.norm(b) else wrong


def judged(case):
    """(sizes that agree, sizes that ONNX Runtime refuses, what is wrong); None: not of this test."""
    model = onnx.load(case.model, load_external_data=False)
    known = {t.name for t in model.graph.initializer}
    given = [value for value in model.graph.input if value.name not in known]
    dimensions = open_dimensions(given)
    inputs = recorded_inputs([value.name for value in given], case.data[0]) if dimensions and case.data else None
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
    if why := packed_case.pack(folder, base.PACK_SECONDS, ranges, case.model):
        return 0, 0, next((line for line in why.splitlines() if "error" in line), why)
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
            expected = session.run(None, feed)
        except Exception:  # of onnxruntime's own, which have no base
            refused += 1
            continue
        wrong, ours = packed_case.run_packed(folder, feed, names, base.RUN_SECONDS)
        wrong = wrong or "; ".join(f"{name} {what}" for name, *both in zip(names, ours, expected, strict=True)
                                   if (what := difference(*both, quantised)))
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
