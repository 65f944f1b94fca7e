#!/usr/bin/env python3
"""Packs every model of the corpus on different layouts of memory and compares the kernels' texts.

    SVOD_CORPUS=DIR reproducible.py [--filter REGEX] [--seconds N]

The time limit is that of the other corpus tests; models are taken smallest first, and what it leaves out is said.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from memory_layouts import kernel_texts
from run_conformance import BUILD, cases_of
from time_limit import corpus_share, exit_code

SHARE = 0.15  # of SVOD_CORPUS_SECONDS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="only models whose name matches")
    parser.add_argument("--seconds", type=float, help="time limit")
    options = parser.parse_args()
    if not os.environ.get("SVOD_CORPUS"):
        print("skipped: SVOD_CORPUS does not name a corpus")
        return 77
    limit = options.seconds or corpus_share(SHARE)
    cases = [c for c in cases_of("real", pathlib.Path(os.environ["SVOD_CORPUS"]).resolve())
             if re.search(options.filter, c.name)]
    cases.sort(key=lambda case: case.model.stat().st_size)
    start = time.monotonic()

    def emit(case):
        if time.monotonic() - start > limit:
            return case, "left out"
        found = kernel_texts(BUILD / "svod-pack", case.model,
                             ["--shape-from", case.data[0]] if case.data else [])
        if found is None:
            return case, "out of time"
        codes = [code for code, _ in found]
        if len(set(found)) != 1:
            return case, f"differs: exit {', '.join(map(str, codes))}"
        return case, "equal" if codes[0] == 0 else f"exit {codes[0]}, always"

    counts = {}
    with concurrent.futures.ThreadPoolExecutor(min(os.cpu_count(), 2)) as pool:
        for case, result in pool.map(emit, cases):
            kind = result.split()[0].rstrip(":,")
            counts[kind] = counts.get(kind, 0) + 1
            if kind != "equal":
                print(f"{case.name}: {result}", flush=True)
    print(f"{len(cases)} models in {time.monotonic() - start:.0f} s: " +
          ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    return exit_code(counts.get("equal", 0), counts.get("differs", 0) + counts.get("out", 0), counts.get("left", 0))


if __name__ == "__main__":
    sys.exit(main())
