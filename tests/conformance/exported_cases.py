#!/usr/bin/env python3
"""Graphs as exporters write them, against ONNX Runtime: one small model per case, made here.

    exported_cases.py [--filter REGEX] [--jobs 2]

The cases stand in exported_control.py, exported_graphs.py, exported_layers.py, exported_legacy.py and
exported_vision.py. Each is run by ONNX Runtime's CPU provider without its graph optimisations and by the program packed
from it; outputs are compared as run_units.py does. Needs numpy, onnx and onnxruntime; says so and is skipped otherwise.
"""

import re
import sys
import zlib

import run_units as units

if not units.oracle.enter(units.base.BUILD):
    print("skipped: this python has no onnxruntime, onnx and numpy")
    sys.exit(77)
import exported_control  # noqa: F401  each module adds its cases
import exported_graphs  # noqa: F401
import exported_layers  # noqa: F401
import exported_legacy  # noqa: F401
import exported_shared as shared
import exported_vision  # noqa: F401
import packed_case

base, np, onnx = units.base, units.np, units.onnx
WORK = base.WORK / "exported"


def make(name):
    """(model, data set folder, words for svod-pack): both files are written."""
    shared.RNG = np.random.default_rng(zlib.crc32(name.encode()))
    model, inputs, words = shared.CASES[name]()
    data = WORK / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (data.parent / "weights.bin").unlink(missing_ok=True)
    apart = name.startswith("external")
    onnx.save(
        model, str(data.parent / "model.onnx"), save_as_external_data=apart, location="weights.bin", size_threshold=0
    )
    feeds = [
        (
            onnx.helper.make_tensor(k, onnx.TensorProto.STRING, v.shape, [s.encode() for s in v.ravel()])
            if v.dtype == object
            else units.numpy_helper.from_array(np.asarray(v), k)
        )
        for k, v in inputs.items()
    ]
    units.unit_reference.write(data, "input", feeds)
    return model, feeds, words


def answer(model, feeds, folder):
    """Writes what ONNX Runtime answers; returns why there is nothing, if so."""
    session, error = units.unit_reference.open_session(folder / "model.onnx")
    if session is None:
        return error
    try:
        names, answers = units.unit_reference.run_session(session, feeds)
    except Exception as caught:  # whatever it throws is its reason
        return str(caught)
    units.unit_reference.write(
        folder / "test_data_set_0", "output", [units.unit_reference.as_proto(n, a) for n, a in zip(names, answers)]
    )
    return "" if len(names) == len(model.graph.output) else "outputs are missing"


def check(made):
    """(name, what is wrong or nothing)."""
    name, model, words, why = made
    return name, f"no reference: {why}" if why else packed_case.pack_and_compare(name, WORK / name, model, words)


def main():
    options = packed_case.read_options(__doc__)
    made = []
    for name in shared.CASES:
        if re.search(options.filter, name):
            model, feeds, words = make(name)
            made.append((name, model, words, answer(model, feeds, WORK / name)))
    return packed_case.run_cases(check, made, options)


if __name__ == "__main__":
    sys.exit(main())
