#!/usr/bin/env python3
"""Packs and runs the cases of a corpus and compares with data that was not made by us.

    SVOD_CORPUS=DIR run_conformance.py [SET...] [--filter REGEX] [--rebase] [--jobs 2] [--seconds N]

A case is a model with test_data_set_N folders of inputs and expected outputs (ONNX's own node tests, PyTorch
exports, real models with vectors from ONNX Runtime). Each is packed for this machine with the shapes of its
first data set, then the packed program checks itself against the data (--verify: rtol 1e-3, atol 1e-5,
integers exact). One of ten results:

    pass      all outputs agree
    rounding  listed in rounding_SET.txt with a reason: values of 8 or 16 bits, where one different rounding
              step moves an output by more than the tolerance; the cosine must stay above 0.999
    differs   listed in differs_SET.txt with a reason: an output is not that of the reference, and why the
              reference is no judge here is measured; never counted as right
    second    listed there too, and where ONNX Runtime is at hand it answers the same inputs, without its graph
              optimisations or with all of them, as we do (or within a cosine of 0.999, with 8-bit steps)
    faulty    listed in faulty_SET.txt with a reason: the case contradicts itself or the specification, so no
              program can pass it; it must end with an error or a mismatch, not a crash
    random    listed in random_SET.txt: the expected outputs are another generator's numbers; ours are right by
              distribution, and in all else that the specification fixes (random_cases.py)
    wrong     it ran and an output differs                    (never acceptable)
    failed    crash, time-out, or an exit code that blames a valid model   (never acceptable)
    refused   exit 3: valid, not supported, with the reasons
    no data   packed, but nothing says what it should compute: the corpus has no expected outputs, and ONNX
              Runtime, asked with seeded inputs where this python or build/venv has it, does not run it

passing_SET.txt holds the cases that passed when it was last rebased. It may only grow: a listed case that does
not pass fails the run; --rebase adds the new ones. Needs nothing but python3, tar and zstd;
cases without data are compared only where numpy, onnx and onnxruntime are there too (oracle.py).
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
import oracle
import random_cases
from one_at_a_time import alone

LISTS = HERE / "lists"
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", HERE.parent.parent / "build")).resolve()
WORK = BUILD / "conformance"
PACK_SECONDS, RUN_SECONDS = 240, 120
RESULTS = ["pass", "rounding", "second", "differs", "random", "faulty", "wrong", "failed", "refused", "no data"]

# Set -> archive under SVOD_CORPUS, folder pattern of a case inside it, share of the time limit.
SETS = {
    "node": ("onnx-backend/node.tar.zst", "node/*", 0.45),
    "node-old": ("onnx-backend/node-old.tar.zst", "v*/*", 0.25),
    "simple": ("onnx-backend/simple.tar.zst", "simple/*", 0.03),
    "pytorch-converted": ("onnx-backend/pytorch-converted.tar.zst", "pytorch-converted/*", 0.05),
    "pytorch-operator": ("onnx-backend/pytorch-operator.tar.zst", "pytorch-operator/*", 0.02),
    "real": ("ortref.tar.zst", None, 0.20),
}


@dataclasses.dataclass
class Case:
    name: str
    model: pathlib.Path
    data: list  # test_data_set folders, the first gives the shapes


@dataclasses.dataclass
class Outcome:
    name: str
    result: str
    detail: str = ""
    pack_s: float = 0
    run_s: float = 0


def unpacked(corpus, archive):
    """The folder that holds the archive's content; extracted once per archive state."""
    source = corpus / archive
    folder = WORK / "data" / archive.replace("/", "_").removesuffix(".tar.zst")
    mark = folder / ".extracted"
    state = f"{source.stat().st_size} {source.stat().st_mtime_ns}"
    with alone(folder):
        if not mark.exists() or mark.read_text() != state:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            subprocess.run(["tar", "--zstd", "-xf", str(source), "-C", str(folder)], check=True)
            mark.write_text(state)
    return folder


def data_sets(folder):
    """The data sets of a case that hold expected outputs, in order."""
    found = sorted(folder.glob("test_data_set_*"), key=lambda p: int(p.name.rsplit("_", 1)[1]))
    return [d for d in found if any(d.glob("output_*.pb"))]


def listed(kind, name):
    """Names in KIND_SET.txt; the rest of each line is the reason."""
    path = LISTS / f"{kind}_{name}.txt"
    return {line.split()[0] for line in path.read_text().splitlines()} if path.exists() else set()


def listed_checks(name):
    """Case -> name of its check, of random_SET.txt."""
    path = LISTS / f"random_{name}.txt"
    return dict(line.split() for line in path.read_text().splitlines()) if path.exists() else {}


def only_rounding(text):
    cosines = [float(c) for c in re.findall(r"cosine ([-\d.e]+)", text)]
    return bool(cosines) and min(cosines) > 0.999


def cases_of(name, corpus):
    archive, pattern, _ = SETS[name]
    folder = unpacked(corpus, archive)
    if pattern:
        return [Case(str(d.relative_to(folder)), d / "model.onnx", data_sets(d))
                for d in sorted(folder.glob(pattern)) if (d / "model.onnx").exists()]
    cases = []
    for model in sorted((corpus / "real").rglob("model.onnx")):
        where = model.parent.relative_to(corpus / "real")
        # Vectors of ONNX Runtime come first: some upstream ones are another engine's rounding.
        sets = data_sets(folder / "ortref" / where) or data_sets(model.parent)
        cases.append(Case(str(where), model, sets))
    return cases


def run(command, seconds, environment=None):
    """(exit code, or None after a time-out; text; seconds)."""
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, env=environment,
                              stdin=subprocess.DEVNULL)
        text = (done.stderr + done.stdout).decode(errors="replace").strip()
        return done.returncode, text, time.monotonic() - start
    except subprocess.TimeoutExpired:
        return None, f"no end after {seconds} s", time.monotonic() - start


def verify(program, folder, random_check):
    """Runs the packed program on one data set: (exit code, text, seconds)."""
    if not random_check:
        return run([str(program), "--verify", str(folder)], RUN_SECONDS)
    what, seconds = random_cases.check(random_check, run, program, folder, RUN_SECONDS)
    return 7 if what else 0, what, seconds


def judged_data(case):
    """Data sets of a case that comes without: seeded inputs and the outputs of ONNX Runtime, where it is there."""
    if case.data or not oracle.available():
        return case.data
    folder, reference = oracle.reference_of(case.model, WORK / "reference" / case.name)
    judged = reference.get("as_declared", True) and not reference.get("random")
    return data_sets(folder) if judged else []


def second_opinion(case, program):
    """Whether ONNX Runtime, asked here, answers the inputs of the first data set as the program does."""
    if not oracle.available():
        return ""
    folder, _ = oracle.reference_of(case.model, WORK / "second" / case.name, case.data[0])
    for data in data_sets(folder):
        code, text, _ = verify(program, data, None)
        if code == 0 or (code == 7 and only_rounding(text)):
            return text or "every output"
    return ""


def check(case, keep, random_check=None, differs=False):
    """Packs and runs one case."""
    differs = differs and case.data  # else ONNX Runtime was asked already
    case = dataclasses.replace(case, data=judged_data(case))
    program = WORK / "packed" / case.name.replace("/", "__")
    program.parent.mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, SVOD_CACHE_DIR=str(WORK / "cache"))
    command = [str(BUILD / "svod-pack"), str(case.model), "-o", str(program),
               "--target", "native", "--verify", "off", "-q"]
    if case.data:
        command += ["--shape-from", str(case.data[0])]
    out = Outcome(case.name, "failed")
    try:
        code, text, out.pack_s = run(command, PACK_SECONDS, environment)
        if code != 0:
            out.result = "refused" if code == 3 else "failed"
            if code in (1, 3) and not case.data and not oracle.available():
                out.result = "no data"  # which would say how large its inputs are
            out.detail = f"pack exit {code}: {text[-2000:]}"
            return out
        out.result = "random" if random_check else "pass" if case.data else "no data"
        for folder in case.data:
            code, text, seconds = verify(program, folder, random_check)
            out.run_s += seconds
            if code != 0:
                out.result = "wrong" if code == 7 else "failed"
                out.detail = f"run exit {code}: {text[-2000:]}"
                if differs and (agreed := second_opinion(case, program)):
                    out.result, out.detail = "second", f"ONNX Runtime here: {agreed[-2000:]}"
                break
        return out
    finally:
        if not keep:
            program.unlink(missing_ok=True)


def run_set(name, cases, passing, options):
    """Runs the listed cases first, so that a time limit never hides a regression."""
    share = SETS[name][2]
    deadline = time.monotonic() + options.seconds * share if options.seconds else None
    cases = sorted(cases, key=lambda c: (c.name not in passing, c.name))
    random_checks, differs = listed_checks(name), listed("differs", name)

    def one(case):
        if deadline and time.monotonic() > deadline:
            return None
        return check(case, options.keep, random_checks.get(case.name), case.name in differs)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        return [o for o in pool.map(one, cases) if o]


def reasons(outcomes):
    """The commonest refusals: the part of an error line after the place in the model."""
    count = collections.Counter()
    for outcome in outcomes:
        lines = re.findall(r"(?:\(([\w.:]+)\): )?error: (.*)", outcome.detail)
        for line in {f"{op}: {text}" if op else text for op, text in lines}:
            count[line[:100]] += 1
    return count.most_common(12)


def mark_listed(name, outcomes):
    """Turns what is listed with a reason into its own result, where it ends as such a case may end."""
    rounding, faulty = listed("rounding", name), listed("faulty", name)
    differs = listed("differs", name)
    for outcome in outcomes:
        if outcome.name in rounding and outcome.result == "wrong" and only_rounding(outcome.detail):
            outcome.result = "rounding"
        elif outcome.name in differs and outcome.result == "wrong":
            outcome.result = "differs"
        elif outcome.name in faulty and re.match(r"(pack exit [123]|run exit [17]):", outcome.detail):
            outcome.result = "faulty"
        elif outcome.name in rounding | faulty | differs and outcome.result == "pass":
            print(f"{outcome.name} passes: take it off its list")


def report(name, total, outcomes, passing, options):
    """Prints one set; returns whether it is good."""
    by = {r: [o for o in outcomes if o.result == r] for r in RESULTS}
    passed = {o.name for o in by["pass"]}
    # Without ONNX Runtime here, some listed cases have nothing to be compared with.
    seen = {o.name for o in outcomes if o.result != "no data"}
    lost, new = sorted((passing & seen) - passed), sorted(passed - passing)
    for outcome in by["wrong"] + by["failed"]:
        print(f"{outcome.result}: {outcome.name}: {outcome.detail.splitlines()[-1][:200]}")
    for line, count in reasons(by["refused"]):
        print(f"  refused {count:4}  {line}")
    for case in lost:
        print(f"regression: {case} passed before")
    counts = "  ".join(f"{r} {len(by[r])}" for r in RESULTS)
    print(f"{name}: {counts}  not run {total - len(outcomes)}  of {total}"
          f"  ({len(new)} new, {sum(o.pack_s for o in outcomes):.0f} s packing)")
    if options.rebase and new:
        text = "".join(f"{n}\n" for n in sorted(passing | passed))
        (LISTS / f"passing_{name}.txt").write_text(text)
        print(f"passing_{name}.txt: {len(new)} added")
    elif new:
        print(f"{len(new)} cases pass that are not listed; --rebase adds them")
    return not (lost or by["wrong"] or by["failed"])


def add_run_options(parser):
    parser.add_argument("--jobs", "-j", type=int, default=min(2, os.cpu_count()))
    parser.add_argument("--seconds", type=float,
                        default=float(os.environ.get("SVOD_CORPUS_SECONDS") or 0),
                        help="time limit over all; 0: none")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--filter", default="", help="only cases whose name matches")
    parser.add_argument("--rebase", action="store_true", help="add new passes to the lists")
    parser.add_argument("--keep", action="store_true", help="keep the packed programs")
    add_run_options(parser)
    options = parser.parse_args()
    if not os.environ.get("SVOD_CORPUS"):
        print("skipped: SVOD_CORPUS does not name a corpus")
        return 77
    oracle.enter(BUILD)
    corpus, good = pathlib.Path(os.environ["SVOD_CORPUS"]).resolve(), True
    for name in options.sets or SETS:
        passing = listed("passing", name)
        cases = [c for c in cases_of(name, corpus) if re.search(options.filter, c.name)]
        outcomes = run_set(name, cases, passing, options)
        mark_listed(name, outcomes)
        details = [dataclasses.asdict(o) for o in sorted(outcomes, key=lambda o: o.name)]
        (WORK / f"{name}.json").write_text(json.dumps(details, indent=1))
        good = report(name, len(cases), outcomes, passing, options) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
