#!/usr/bin/env python3
"""Runs the packer that was built with AddressSanitizer and UndefinedBehaviorSanitizer over the corpus.

    SVOD_CORPUS=DIR sanitized.py [--packer FILE] [--filter REGEX] [--seconds N] [--jobs N]

Emits the kernels of the bundled model, of generated ones and of every model of the corpus, and packs the first ones
whole. A report of a sanitizer fails the test; how a model ends otherwise is for other tests. Models are taken
smallest first, and what the time limit leaves out is said. `./bootstrap test --sanitized-packer` builds the packer.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from onnx_writer import random_forest, small_cnn, small_mlp
from packing import DIGITS, SOURCE, work_folder
from run_conformance import Case, cases_of
from time_limit import corpus_share, exit_code

SHARE = 0.15  # of SVOD_CORPUS_SECONDS
WHOLE_MODELS = 8  # so many of the smallest are packed whole, the others up to the kernels' text
MODEL_SECONDS = 600
# LLVM keeps what it has, and marks memory as poisoned in headers that we compile but not in its library.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:allow_user_poisoning=0:detect_stack_use_after_return=1",
           "UBSAN_OPTIONS": "print_stacktrace=1"}
REPORT = re.compile(r"ERROR: AddressSanitizer|runtime error: |AddressSanitizer:DEADLYSIGNAL")


def made_cases(folder):
    cases = [Case("bundled digits", DIGITS, [])]
    for name, content in {"cnn": small_cnn(), "mlp": small_mlp(), "forest": random_forest()}.items():
        path = folder / f"{name}.onnx"
        path.write_bytes(content)
        cases.append(Case(f"made {name}", path, []))
    return cases


def corpus_cases():
    if not os.environ.get("SVOD_CORPUS"):
        print("SVOD_CORPUS does not name a corpus: bundled and generated models only")
        return []
    cases = cases_of("real", pathlib.Path(os.environ["SVOD_CORPUS"]).resolve())
    return sorted(cases, key=lambda case: case.model.stat().st_size)


def commands(packer, case, folder, whole):
    shapes = ["--shape-from", str(case.data[0])] if case.data else []
    start = [str(packer), str(case.model), "-q", "--verify", "off", "--no-cache", *shapes]
    yield [*start, "--emit=cpp"]
    if whole:
        yield [*start, "-o", str(folder / re.sub(r"\W", "_", case.name))]


def report_of(command):
    """The sanitizer's report, or an empty text; None when time ran out."""
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=MODEL_SECONDS,
                              stdin=subprocess.DEVNULL, env=dict(os.environ, **OPTIONS))
    except subprocess.TimeoutExpired:
        return None
    text = done.stderr.decode(errors="replace")
    found = REPORT.search(text)
    return text[found.start():][:4000] if found else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packer", type=pathlib.Path, default=SOURCE / "build-asan" / "svod-pack")
    parser.add_argument("--filter", default="", help="only models whose name matches")
    parser.add_argument("--seconds", type=float, help="time limit")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count(), 2))
    options = parser.parse_args()
    if not options.packer.exists():
        print(f"skipped: there is no {options.packer}; ./bootstrap test --sanitized-packer builds it")
        return 77
    folder = work_folder("sanitized")
    limit = options.seconds or corpus_share(SHARE)
    cases = [c for c in made_cases(folder) + corpus_cases() if re.search(options.filter, c.name)]
    start = time.monotonic()

    def check(case):
        if time.monotonic() - start > limit:
            return case, "left out", ""
        for command in commands(options.packer, case, folder, case in cases[:WHOLE_MODELS]):
            report = report_of(command)
            if report is None:
                return case, "too slow", ""
            if report:
                return case, "reported", f"{' '.join(command)}\n{report}"
        return case, "clean", ""

    counts = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, result, text in pool.map(check, cases):
            counts[result] = counts.get(result, 0) + 1
            if result not in ("clean", "left out"):
                print(f"{case.name}: {result}\n{text}", flush=True)
    print(f"{len(cases)} models in {time.monotonic() - start:.0f} s: " +
          ", ".join(f"{n} {result}" for result, n in sorted(counts.items())))
    return exit_code(counts.get("clean", 0), counts.get("reported", 0), counts.get("left out", 0))


if __name__ == "__main__":
    sys.exit(main())
