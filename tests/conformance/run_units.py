#!/usr/bin/env python3
"""Packs the small models of many projects' own tests and compares with ONNX Runtime.

    SVOD_CORPUS=DIR run_units.py [PACK...] [--filter REGEX] [--rebase] [--jobs 2] [--seconds N]

The unit packs hold what exporters and optimisers really write: contrib operators, free dimensions, old opsets,
and broken models kept as tests of error handling. None has expected outputs, so unit_reference.py makes seeded
inputs and asks ONNX Runtime, once per model; what that refuses as it stands is judged by mended_models.py,
widened_models.py and vendor_ops.py. Then the model is packed for the shapes of these inputs and run:

    agree      ONNX Runtime ran it and every output agrees
    disagree   ONNX Runtime ran it and an output differs, or our program stopped   (counted against 95 %)
    unchecked  packed, and ONNX Runtime does not run it, or the model draws random numbers, or no data were found
               that give the shapes it declares and our program holds it to them
    refused    exit 3: valid, not supported, with the reasons
    invalid    exit 1, 4: the model is broken or lacks its data file, and ONNX Runtime agrees
    blamed     exit 1, 4: but ONNX Runtime runs it
    failed     a crash, more than 60 s, or an exit code for a bug of ours       (never acceptable)

Tolerances: f32 rtol 1e-3, atol 1e-5; a model with f16 or bf16 in it by their epsilon, relative to the largest
value (what a sum of such numbers is known to); where the model quantises, cosine >= 0.999
(one different rounding moves a value by a whole step). Integers exact elsewhere. passing_unit.txt holds the
models that agreed when it was last rebased, and may only grow. rounding_unit.txt: f32 sums that end further
apart than that, with the reason, cosine >= 0.999; faulty_unit.txt: broken models that ONNX Runtime runs all the
same. Needs python3 with numpy, onnx and onnxruntime;
a build/venv or SVOD_ORACLE_PYTHON is used when this python lacks them.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import time

import oracle
import run_conformance as base

if oracle.enter(base.BUILD):
    import numpy as np
    import onnx
    from onnx import numpy_helper
    import unit_reference

SECONDS = 60
WORK = base.WORK / "unit"
RESULTS = ["agree", "disagree", "unchecked", "refused", "invalid", "blamed", "failed"]
QUANTISED = re.compile(r"Quant|QLinear|Integer|NBits|QAttention|QGemm|Bnb4|QMoE")


def read_value(path):
    """A tensor or a sequence of tensors, as a list of arrays."""
    data = path.read_bytes()
    tensor = onnx.TensorProto()
    try:
        tensor.ParseFromString(data)
        if tensor.data_type:
            return [numpy_helper.to_array(tensor)]
    except Exception:  # not a tensor: a sequence
        pass
    sequence = onnx.SequenceProto()
    sequence.ParseFromString(data)
    return [part for value in numpy_helper.to_list(sequence) for part in parts_of(value)]


def parts_of(value):
    """A map as its keys, in order, and their values."""
    if not isinstance(value, dict):
        return [value]
    keys = sorted(value)
    return [np.array(keys, dtype=object), np.stack([value[k] for k in keys])]


def cosine(a, b):
    a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / norm) if norm > 0 and np.isfinite(norm) else 0.0


def differs(ours, theirs, reference):
    """Why two arrays do not agree, or nothing."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{list(ours.shape)} for {theirs.dtype}{list(theirs.shape)}"
    if ours.size == 0 or ours.dtype == object or ours.dtype.kind in "US":
        return "" if np.array_equal(ours, theirs) else "texts differ"
    quantised = any(QUANTISED.search(op) for op in reference["ops"])
    epsilon = {"FLOAT16": 2.0**-10, "BFLOAT16": 2.0**-7}.get(reference["narrow"], 0)
    narrow = str(ours.dtype).startswith("float8")
    if ours.dtype.kind in "biu" and not quantised:
        return "" if np.array_equal(ours, theirs) else \
            f"{np.count_nonzero(ours != theirs)} of {ours.size} integers differ"
    a, b = ours.astype(np.complex128), theirs.astype(np.complex128)
    largest = np.max(np.abs(b), initial=0, where=np.isfinite(b))
    if np.allclose(a, b, rtol=max(1e-3, 8 * epsilon), atol=max(1e-5, 2 * epsilon * largest),
                   equal_nan=True):
        return ""
    close = cosine(a.real, b.real)
    if (quantised or narrow) and close >= 0.999:
        return ""
    with np.errstate(invalid="ignore"):
        return f"max abs {np.nanmax(np.abs(a - b)):.3g}, cosine {close:.6f}"


def compare(folder, out, reference):
    for i in range(reference["outputs"]):
        ours, theirs = read_value(out / f"{i}.pb"), \
            read_value(folder / "test_data_set_0" / f"output_{i}.pb")
        if len(ours) != len(theirs):
            return f"output {i}: {len(ours)} tensors for {len(theirs)}"
        for a, b in zip(ours, theirs):
            if why := differs(a, b, reference):
                return f"output {i}: {why}"
    return ""


def run_program(program, folder, reference, outcome):
    out = program.parent / (program.name + ".out")
    out.mkdir(exist_ok=True)
    inputs = sorted((folder / "test_data_set_0").glob("input_*.pb"),
                    key=lambda p: int(p.stem.rsplit("_", 1)[1]))
    command = [str(program), *(f"@{p}" for p in inputs)]
    for i in range(reference.get("outputs", 0)):
        command += ["--output", f"@{out / f'{i}.pb'}"]
    code, text, outcome.run_s = base.run(command, SECONDS)
    ran = reference["ort"] == "ran" and not reference.get("random")
    if code not in (0, 1, 11):
        outcome.result, outcome.detail = "failed", f"run exit {code}: {text[-500:]}"
    elif code == 0 and ran:
        why = compare(folder, out, reference)
        outcome.result, outcome.detail = ("disagree", why) if why else ("agree", "")
    elif ran and reference.get("as_declared", True):
        outcome.result, outcome.detail = "disagree", f"run exit {code}: {text[-500:]}"
    else:
        outcome.result = "unchecked"
    for file in out.iterdir():
        file.unlink()
    out.rmdir()


def check(case):
    folder, reference = oracle.reference_of(case.model, WORK / "reference" / case.name)
    program = WORK / "packed" / re.sub(r"\W", "_", case.name)
    program.parent.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, SVOD_CACHE_DIR=str(base.WORK / "cache"))
    command = [str(base.BUILD / "svod-pack"), str(case.model), "-o", str(program),
               "--target", "native", "--verify", "off", "-q"]
    if any((folder / "test_data_set_0").glob("input_*.pb")):
        command += ["--shape-from", str(folder / "test_data_set_0")]
    outcome = base.Outcome(case.name, "failed")
    code, text, outcome.pack_s = base.run(command, SECONDS, environment)
    if code == 0:
        if reference.get("no_data"):  # nothing to run it with
            outcome.result = "unchecked"
        else:
            run_program(program, folder, reference, outcome)
        program.unlink()
    else:
        outcome.detail = f"pack exit {code}: {text[-2000:]}"
        ran = reference["ort"] == "ran" and not reference.get("mended") and reference.get("as_declared", True)
        blamed = "blamed" if ran else "invalid"
        outcome.result = {1: blamed, 2: blamed, 3: "refused", 4: blamed}.get(code, "failed")
    outcome.ort = reference["ort"]
    return outcome


def cases_of(corpus, packs, pattern):
    cases = []
    for archive in sorted((corpus / "unit").glob("*.tar.zst")):
        pack = archive.name.removesuffix(".tar.zst")
        if packs and pack not in packs:
            continue
        folder = base.unpacked(corpus, f"unit/{archive.name}")
        for model in sorted(folder.rglob("*.onnx")):
            name = pack + "/" + str(model.relative_to(folder)).replace(" ", "_")
            name = name.removesuffix(".onnx")
            if re.search(pattern, name):
                cases.append(base.Case(name, model, []))
    return cases


def run_all(cases, passing, options):
    """Runs the listed models first, so that a time limit never hides a regression."""
    deadline = time.monotonic() + options.seconds if options.seconds else None
    cases = sorted(cases, key=lambda c: (c.name not in passing, c.name))

    def one(case):
        return None if deadline and time.monotonic() > deadline else check(case)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return [o for o in pool.map(one, cases) if o]


def mark_listed(outcomes):
    """What is listed with a reason is its own result, where it ends as such a model may end."""
    rounding, faulty = base.listed("rounding", "unit"), base.listed("faulty", "unit")
    for outcome in outcomes:
        if outcome.name in rounding and outcome.result == "disagree" and \
                base.only_rounding(outcome.detail):
            outcome.result = "agree"
        elif outcome.name in faulty and outcome.result in ("blamed", "disagree"):
            outcome.result = "invalid"
        elif outcome.name in rounding | faulty and outcome.result == "agree":
            print(f"{outcome.name} agrees: take it off its list")


def report(total, outcomes, passing, options):
    by = {r: [o for o in outcomes if o.result == r] for r in RESULTS}
    agreed, seen = {o.name for o in by["agree"]}, {o.name for o in outcomes}
    for outcome in by["disagree"] + by["blamed"] + by["failed"]:
        last = (outcome.detail.splitlines() or [""])[0]
        print(f"{outcome.result}: {outcome.name}: {last[:200]}")
    for line, count in base.reasons(by["refused"]):
        print(f"  refused {count:4}  {line}")
    why = collections.Counter(re.sub(r"'[^']*'|\d+", "_", o.ort)[:90] for o in by["unchecked"])
    for line, count in why.most_common(8):
        print(f"  unchecked {count:4}  ONNX Runtime: {line.splitlines()[0] if line else ''}")
    lost, new = sorted((passing & seen) - agreed), sorted(agreed - passing)
    for case in lost:
        print(f"regression: {case} agreed before")
    refused_alone = sum(o.ort == "ran" for o in by["refused"])
    print("unit: " + "  ".join(f"{r} {len(by[r])}" for r in RESULTS) +
          f"  not run {total - len(outcomes)}  of {total}")
    compared = len(agreed) + len(by["disagree"])
    share = 100 * len(agreed) / compared if compared else 100
    print(f"ONNX Runtime runs {refused_alone} of the refused; agreement {share:.1f} % of {compared}")
    if options.rebase and new:
        (base.LISTS / "passing_unit.txt").write_text(
            "".join(f"{n}\n" for n in sorted(passing | agreed)))
        print(f"passing_unit.txt: {len(new)} added")
    elif new:
        print(f"{len(new)} models agree that are not listed; --rebase adds them")
    return not lost and not by["failed"] and share >= 95


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packs", nargs="*", metavar="PACK")
    parser.add_argument("--filter", default="", help="only models whose name matches")
    parser.add_argument("--rebase", action="store_true", help="add what agrees now to the list")
    base.add_run_options(parser)
    options = parser.parse_args()
    if os.environ.get("SVOD_UNIT_PACKS") == "off":
        print("skipped: SVOD_UNIT_PACKS is off")
        return 77
    if not os.environ.get("SVOD_CORPUS"):
        print("skipped: SVOD_CORPUS does not name a corpus")
        return 77
    if not oracle.available():
        print("skipped: this python has no onnxruntime, onnx and numpy")
        return 77
    corpus = pathlib.Path(os.environ["SVOD_CORPUS"]).resolve()
    passing = base.listed("passing", "unit")
    cases = cases_of(corpus, options.packs, options.filter)
    outcomes = run_all(cases, passing, options)
    mark_listed(outcomes)
    details = [vars(o) for o in sorted(outcomes, key=lambda o: o.name)]
    (base.WORK / "unit.json").write_text(json.dumps(details, indent=1))
    return 0 if report(len(cases), outcomes, passing, options) else 1


if __name__ == "__main__":
    sys.exit(main())
