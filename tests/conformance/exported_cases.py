#!/usr/bin/env python3
"""Graphs as exporters write them, against ONNX Runtime: one small model per case, made here.

    exported_cases.py [--filter REGEX] [--jobs 2]

The cases stand in exported_control.py, exported_graphs.py, exported_layers.py and exported_vision.py. Each is run by
ONNX Runtime's CPU provider without its graph optimisations and by the program packed from it; outputs are compared
as run_units.py does. Needs numpy, onnx and onnxruntime; says so and is skipped otherwise.
"""

import argparse
import concurrent.futures
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
import exported_shared as shared
import exported_vision  # noqa: F401

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
    folder = WORK / name
    if why:
        return name, f"no reference: {why}"
    code, text, _ = base.run(
        [
            str(base.BUILD / "svod-pack"),
            str(folder / "model.onnx"),
            "-o",
            str(folder / "program"),
            "--target",
            "native",
            "--verify",
            "off",
            "-q",
            "--cache-dir",
            str(base.WORK / "cache"),
            *words,
        ],
        base.PACK_SECONDS,
    )
    if code != 0:
        return name, f"pack exit {code}: {text}"
    outcome = base.Outcome(name, "failed")
    known = {
        "ort": "ran",
        "outputs": len(model.graph.output),
        "ops": [n.op_type for n in model.graph.node],
        "narrow": units.unit_reference.narrowest(model),
    }
    units.run_program(folder / "program", folder, known, outcome)
    return name, "" if outcome.result == "agree" else outcome.detail


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="only cases whose name matches")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    options = parser.parse_args()
    made = []
    for name in shared.CASES:
        if re.search(options.filter, name):
            model, feeds, words = make(name)
            made.append((name, model, words, answer(model, feeds, WORK / name)))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        wrong = [(name, why) for name, why in pool.map(check, made) if why]
    for name, why in wrong:
        print(f"{name}: {why[:400]}")
    print(f"{len(made) - len(wrong)} of {len(made)} cases agree")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
