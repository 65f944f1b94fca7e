#!/usr/bin/env python3
"""Packs cases of the corpus for a GPU and runs them through the stand-in driver, against the data of the case.

    SVOD_CORPUS=DIR corpus_cases.py [SET...] [--filter REGEX] [--every N] [--jobs 2] [--seconds N]

Of each set those cases that pass on the CPU (conformance/lists/passing_SET.txt). A case is "cpu" where the packer says that the
model is packed for the CPU alone, with the reason; else the program must pass its own --verify with --device=cuda. It is "half" where
results of half precision pass within what that rounds, and not within the tolerance of --verify.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "conformance"), str(HERE.parent / "support")]
import run_conformance as base
from time_limit import corpus_share, exit_code

DEVICE = "sm_80"
SHARE = 0.1  # of SVOD_CORPUS_SECONDS, for each set
HALF_TOLERANCE = "1.6e-2"  # the spacing of f16 from 16 on, where logits lie: what their exponential is off
SECONDS = 120  # of a run, each access of which is watched


def check(case):
    """(name, result, detail)."""
    folder = base.WORK / "gpu" / case.name.replace("/", "__")
    folder.mkdir(parents=True, exist_ok=True)
    program, side = folder / "program", folder / "kernels.so"
    try:
        code, text, _ = base.run(
            [str(base.BUILD / "svod-pack"), str(case.model), "-o", str(program), "--target", "x86-64-v3", "--verify", "off",
             "--ptxas", "off", "--device", f"cuda:{DEVICE}", "--cache-dir", str(base.WORK / "cache"),
             "--shape-from", str(case.data[0])],
            base.PACK_SECONDS)
        if code != 0:
            return case.name, "failed", f"pack exit {code}: {text}"
        if alone := re.search(r"packed for the CPU alone, since (?:it has )?(.*?)(?: \(|$)", text, re.M):
            return case.name, "cpu", alone[1]
        code, text, _ = base.run([str(base.BUILD / "tests/gpu_kernels"), str(case.model), str(side), DEVICE, str(case.data[0])],
                                 base.PACK_SECONDS)
        if code != 0:
            return case.name, "failed", f"kernels exit {code}: {text}"
        environment = dict(os.environ, LD_LIBRARY_PATH=str(base.BUILD / "tests/stand_in"), SVOD_STAND_IN_KERNELS=str(side))
        for data in case.data:
            code, text, _ = base.run([str(program), "--device=cuda", "--verify", str(data)], SECONDS, environment)
            if code is None:
                return case.name, "slow", text
            # Rounded to half precision behind each operator, as the model says; the reference rounds once or nowhere.
            if code == 7 and re.search(r" b?f16\[", text):
                code, text, _ = base.run([str(program), "--device=cuda", "--verify", str(data), "--rtol", HALF_TOLERANCE], SECONDS,
                                         environment)
                if code == 0:
                    return case.name, "half", f"within {HALF_TOLERANCE} of a tensor's largest value"
            if code != 0:
                return case.name, "wrong" if code == 7 else "failed", f"run exit {code}: {text}"
        return case.name, "pass", ""
    finally:
        for file in (program, side):
            file.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=["node"])
    parser.add_argument("--filter", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="time limit of a set",
                        default=corpus_share(SHARE))
    options = parser.parse_args()
    if "SVOD_CORPUS" not in os.environ:
        print("skipped: SVOD_CORPUS names no corpus")
        return 77
    corpus, good, bad, left_out = pathlib.Path(os.environ["SVOD_CORPUS"]), 0, 0, 0
    for name in options.sets:
        start = time.monotonic()
        passing = base.listed("passing", name)
        cases = [case for case in base.cases_of(name, corpus)
                 if case.name in passing and case.data and re.search(options.filter, case.name)][::options.every]

        def one(case):
            return check(case) if time.monotonic() - start <= options.seconds else None

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            done = [found for found in pool.map(one, cases) if found]
        count = collections.Counter(result for _, result, _ in done)
        for case, result, detail in done:
            if result not in ("pass", "cpu"):
                print(f"{result}: {case}: {(detail.splitlines() or [''])[-1][:300]}")
        for why, number in collections.Counter(detail for _, result, detail in done if result == "cpu").most_common():
            print(f"  on the CPU: {number} of them: {why}")
        print(f"{name}: {len(done)} of {len(cases)} cases: " + ", ".join(f"{n} {r}" for r, n in sorted(count.items())), flush=True)
        good += count["pass"] + count["cpu"]
        bad += count["wrong"] + count["failed"]
        left_out += len(cases) - len(done)
    return exit_code(good, bad, left_out)


if __name__ == "__main__":
    sys.exit(main())
