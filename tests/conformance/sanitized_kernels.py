#!/usr/bin/env python3
"""Runs kernels that are compiled with AddressSanitizer and UndefinedBehaviorSanitizer, each buffer memory of its own.

    SVOD_CORPUS=DIR sanitized_kernels.py [--filter REGEX] [--seconds N]

Of models: the bundled one, generated ones, and those of the corpus that need no shapes, smallest first as far as time
allows. The unit tests run them (tests/unit/model_kernels_test.cpp), with the sanitizer's runtime preloaded, so that an
ordinary build does. First a kernel that is wrong on purpose has to be reported. The same watches any other test:

    LD_PRELOAD=$(clang-19 -print-file-name=libclang_rt.asan-x86_64.so) ASAN_OPTIONS=detect_leaks=0 build/tests/svod_tests NAME
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from packing import BUILD, need, work_folder
from sanitized import OPTIONS, REPORT, corpus_cases, made_cases

SECONDS, MODEL_SECONDS = 150, 120


def runtime():
    found = subprocess.run(["clang-19", "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True)
    path = pathlib.Path(found.stdout.strip())
    if not path.is_absolute() or not path.exists():
        print("skipped: libclang-rt-19-dev is not installed")
        sys.exit(77)
    return path


def run(tag, preload, **more):
    """(what the tests say, the sanitizer's report or an empty text); None when time ran out."""
    try:
        done = subprocess.run([str(BUILD / "tests" / "svod_tests"), tag], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=MODEL_SECONDS,
                              env=dict(os.environ, **OPTIONS, LD_PRELOAD=str(preload), **more))
    except subprocess.TimeoutExpired:
        return None
    text = done.stdout.decode(errors="replace")
    found = REPORT.search(text)
    report = text[found.start():][:4000] if found else ""
    return text, report or (text[-2000:] if done.returncode else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="only models whose name matches")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time limit")
    options = parser.parse_args()
    need("clang-19", "ld.lld-19")
    preload, counts, start = runtime(), {}, time.monotonic()
    watched = run("[.overrun]", preload)
    if not watched or "heap-buffer-overflow" not in watched[1]:
        print(f"a kernel that writes past its buffer is not reported:\n{watched}")
        return 1
    for case in made_cases(work_folder("sanitized_kernels")) + corpus_cases():
        if not re.search(options.filter, case.name):
            continue
        result = "left out"
        if time.monotonic() - start < options.seconds:
            done = run("[.model]", preload, SVOD_MODEL=str(case.model))
            result = "too slow" if not done else "reported" if done[1] else \
                "refused" if "refused" in done[0] else "clean"
            if result == "reported":
                print(f"{case.name}: {case.model}\n{done[1]}", flush=True)
        counts[result] = counts.get(result, 0) + 1
    print(f"{time.monotonic() - start:.0f} s: " + ", ".join(f"{n} {result}" for result, n in sorted(counts.items())))
    return 1 if "reported" in counts or not counts.get("clean") else 0


if __name__ == "__main__":
    sys.exit(main())
