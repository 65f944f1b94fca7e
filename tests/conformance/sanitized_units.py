#!/usr/bin/env python3
"""Runs the unit tests that were built with AddressSanitizer and UndefinedBehaviorSanitizer.

    sanitized_units.py [--tests FILE] [SPEC]

By default all but the long ones and those that mostly wait for Clang: readers of models, text and images, the importer's
rules, rewrites, lowering, plans, the stub. A report ends the program, so that the test fails.
`./bootstrap test --sanitized-packer` builds them beside the packer that sanitized.py runs over the corpus.
"""
import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from packing import SOURCE
from sanitized import OPTIONS

# In one process, the test that leaves LLVM by a signal would leave it locked for those that follow.
QUICK = "~[.]~[long]~[kernels]~[property]~[lanes]~[toolchain],[parse]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=pathlib.Path, default=SOURCE / "build-asan" / "tests" / "svod_tests")
    parser.add_argument("spec", nargs="?", default=QUICK, help="as Catch reads it")
    options = parser.parse_args()
    if not options.tests.exists():
        print(f"skipped: there is no {options.tests}; ./bootstrap test --sanitized-packer builds it")
        return 77
    done = subprocess.run([str(options.tests), options.spec], cwd=options.tests.parent, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, **OPTIONS))
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
