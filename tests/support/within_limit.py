#!/usr/bin/env python3
"""Starts a long test only while the run of tests has time left.

    within_limit.py SCRIPT [ARGS...]

SVOD_DEADLINE, in seconds since 1970, ends a run of tests on a machine whose time is bounded; .ci/run sets it. A long test
that would begin after it, or so shortly before that its share of what is left does not reach its first case, says so and
counts as skipped: a slow machine tests less instead of nothing. A test of the corpus shares at most what is left
(SVOD_CORPUS_SECONDS). Without the variable nothing is bounded.
"""
import os
import sys
import time

LEAST_SECONDS = 120


def main():
    deadline = os.environ.get("SVOD_DEADLINE")
    if deadline:
        left = float(deadline) - time.time()
        if left < LEAST_SECONDS:
            ends = f"ended {-left:.0f} s ago" if left <= 0 else f"ends in {left:.0f} s"
            print(f"skipped: the time of this run of tests {ends} (SVOD_DEADLINE)")
            return 77
        corpus = float(os.environ.get("SVOD_CORPUS_SECONDS") or "inf")
        os.environ["SVOD_CORPUS_SECONDS"] = f"{min(corpus, left):.0f}"
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
