#!/usr/bin/env python3
"""Runs the unit tests that were built with AddressSanitizer and UndefinedBehaviorSanitizer.

    sanitized_units.py [--tests FILE] [--seconds N] [SPEC]

By default all but the long ones and those that mostly wait for Clang: readers of models, text and images, the importer's
rules, rewrites, lowering, plans, the stub. A report ends the program, so that the test fails. They run in parts; with a
time limit (a share of SVOD_CORPUS_SECONDS) the parts that are left out when it ends are counted, and each commit
begins with another.
`./bootstrap test --sanitized-packer` builds them beside the packer that sanitized.py runs over the corpus.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from packing import SOURCE
from sanitized import OPTIONS
from time_limit import commit_number, corpus_share, exit_code

SHARE = 0.25  # of SVOD_CORPUS_SECONDS
PARTS = 16

# In one process, the test that leaves LLVM by a signal would leave it locked for those that follow.
QUICK = "~[.]~[long]~[kernels]~[property]~[lanes]~[toolchain],[parse]"


def run(tests, *words, shown=False):
    return subprocess.run([str(tests), *words], cwd=tests.parent, stdin=subprocess.DEVNULL,
                          stdout=None if shown else subprocess.PIPE, env=dict(os.environ, **OPTIONS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=pathlib.Path, default=SOURCE / "build-asan" / "tests" / "svod_tests")
    parser.add_argument("--seconds", type=float, help="time limit")
    parser.add_argument("spec", nargs="?", default=QUICK, help="as Catch reads it")
    options = parser.parse_args()
    if not options.tests.exists():
        print(f"skipped: there is no {options.tests}; ./bootstrap test --sanitized-packer builds it")
        return 77
    limit = options.seconds or corpus_share(SHARE)
    commits = commit_number(SOURCE)
    # The exit code is the number of names.
    names = sorted(run(options.tests, "--list-test-names-only", options.spec).stdout.decode().splitlines())
    start, done = time.monotonic(), 0
    for part in range(PARTS):
        if time.monotonic() - start > limit:
            break
        mine = names[(commits + part) % PARTS::PARTS]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
            listed.write("".join(f"{name}\n" for name in mine))
            listed.flush()
            ended = run(options.tests, "-f", listed.name, shown=True)
        if ended.returncode:
            return 1
        done += len(mine)
    print(f"{done} of {len(names)} tests in {time.monotonic() - start:.0f} s")
    return exit_code(done, 0, len(names) - done)


if __name__ == "__main__":
    sys.exit(main())
