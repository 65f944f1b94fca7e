#!/usr/bin/env python3
"""Quantised models give the same bits on every CPU level: v2, v3, v4, vnni and amx of x86-64, base, dotprod and i8mm of aarch64.

    [SVOD_CORPUS=DIR] [SVOD_BENCH_MODELS=DIR] quantised_levels.py [--filter REGEX] [--seconds N] [--fast]

The bundled ones, those of the corpus that quantise, and those of the speed comparison, packed with --accuracy exact: otherwise
(--fast, where differences are only told) levels of aarch64 quantise in integers, and a float that lies in the middle of two steps
may fall on the other one (docs/decisions/integer-kernels.md). Levels of aarch64 run under QEMU; one that this machine lacks is left
out and said. Inputs are the data set's, else made ones. Any difference fails; what is told of it is the largest one over the largest
magnitude of its output.
"""
import argparse
import ast
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import zipfile

import run_conformance as base

sys.path[:0] = [str(base.HERE.parent / "support"), str(base.HERE.parent / "golden")]
from packing import PACKER, SOURCE, need, work_folder
from quantised import quantises
from time_limit import corpus_share, exit_code
import run_contractions

QEMU = shutil.which("qemu-aarch64-static") or "qemu-aarch64"
LEVELS = {"x86-64": ("v2", "v3", "v4", "vnni", "amx"), "aarch64": ("base", "dotprod", "i8mm")}
RUNNERS = {"x86-64": [], "aarch64": [QEMU, "-cpu", "max"]}
MODEL_SECONDS = 900
SHARE = 1 / 16  # of SVOD_CORPUS_SECONDS
FLOATS = {"<f4": "f", "<f8": "d", "<f2": "e"}


def models(work):
    """(name, model, folder of inputs or None)"""
    for name in ("digits_int8", "keywords_int8"):
        folder = SOURCE / "models" / name
        yield name, folder / f"{name}.onnx", next(iter(sorted(folder.glob("test_data_set_*"))), None)
    if not os.environ.get("SVOD_CORPUS"):
        print("SVOD_CORPUS does not name a corpus: its models are left out")
    else:
        for case in base.cases_of("real", pathlib.Path(os.environ["SVOD_CORPUS"]).resolve()):
            if quantises(case.model):
                yield case.name, case.model, case.data[0] if case.data else None
    if not os.environ.get("SVOD_BENCH_MODELS"):
        print("SVOD_BENCH_MODELS names no models: those of the speed comparison are left out")
        return
    try:
        for name, path, _ in run_contractions.bench_models(pathlib.Path(os.environ["SVOD_BENCH_MODELS"]), work):
            data = path.parent / "test_data_set_0"
            if name.endswith("int8"):
                yield f"suite/{name}", path, data if data.is_dir() else None
    except run_contractions.Missing as why:
        print(f"models of the speed comparison are left out: {why}")


def outputs_of(path):
    """{name: (numpy's type, bytes)} of an archive that a program wrote."""
    found = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            content = archive.read(member)
            size, = struct.unpack_from("<H", content, 8)
            found[member] = ast.literal_eval(content[10:10 + size].decode())["descr"], content[10 + size:]
    return found


def difference(ours, theirs):
    """(elements that differ, the largest difference over the largest magnitude; infinite where integers differ)"""
    count, largest = 0, 0.0
    for member, (kind, content) in ours.items():
        other = theirs[member][1]
        if content == other:
            continue
        if kind not in FLOATS or len(content) != len(other):
            return max(len(content), 1), math.inf
        pairs = list(zip(*(struct.unpack(f"<{len(c) // struct.calcsize(FLOATS[kind])}{FLOATS[kind]}", c)
                           for c in (content, other))))
        size = max((abs(b) for _, b in pairs if math.isfinite(b)), default=0) or 1
        count += sum(a != b and not (a != a and b != b) for a, b in pairs)
        largest = max([largest, *(abs(a - b) / size for a, b in pairs if math.isfinite(a) and math.isfinite(b))])
    return count, largest


def run(command, seconds=MODEL_SECONDS):
    done = subprocess.run(list(map(str, command)), capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds)
    if done.returncode:
        raise RuntimeError(f"exit {done.returncode}: {(done.stderr + done.stdout).decode(errors='replace')[-300:]}")
    return done.stdout.decode(errors="replace")


def answers(model, data, folder, accuracy):
    """{(target, level): (outputs, seconds)}"""
    found = {}
    for target, levels in LEVELS.items():
        program = folder / target
        shapes = ["--shape-from", data] if data else []
        run([PACKER, model, "-o", program, "--target", target, "--verify", "off", "-q", "--no-cache", "--accuracy", accuracy,
             *shapes])
        told = json.loads(run([*RUNNERS[target], program, "--info=json"]))
        given = sorted(data.glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1])) if data else []
        words = [f"@{file}" for file in given] or [f"{port['name']}=random" for port in told["entries"][0]["inputs"]]
        runnable = run([*RUNNERS[target], program, "--cpu-check"])
        for level in levels:
            if not re.search(rf"^{level}: ", runnable, re.M):
                continue  # it needs no code of its own
            if not re.search(rf"^{level}: (runs here|not checked)", runnable, re.M):
                print(f"  {target} {level} does not run here")
                continue
            start = time.monotonic()
            run([*RUNNERS[target], program, *words, "--isa", level, "--threads", "1", "--output", folder / "all.npz"])
            found[target, level] = outputs_of(folder / "all.npz"), time.monotonic() - start
        program.unlink()
    return found


def check(name, model, data, folder, accuracy):
    """Prints a row; whether it is as it should be."""
    try:
        found = answers(model, data, folder, accuracy)
    except RuntimeError as why:
        # Without data nobody says which sizes fit.
        print(f"{name}: left out: {why}", flush=True)
        return "exit 3" in str(why) or ("exit 1" in str(why) and not data)
    except subprocess.TimeoutExpired as why:
        print(f"{name}: no end after {MODEL_SECONDS} s: {why.cmd[0]}", flush=True)
        return True
    groups = []  # of levels that give the same bits
    for key in found:
        same = next((g for g in groups if found[g[0]][0] == found[key][0]), None)
        same.append(key) if same else groups.append([key])
    row = [" ".join(level for _, level in groups[0])]
    for group in groups[1:]:
        count, largest = difference(found[group[0]][0], found[groups[0][0]][0])
        row.append(f"{' '.join(level for _, level in group)} by {largest:.1e} in {count} elements")
    slowest = max(found, key=lambda key: found[key][1])
    elements = sum(len(content) for _, content in found[groups[0][0]][0].values())
    print(f"{name}: {elements} bytes, {'the same bits on ' + row[0] if len(row) == 1 else '; '.join(row)} "
          f"({slowest[1]} ran {found[slowest][1]:.1f} s)", flush=True)
    return len(groups) == 1 or accuracy == "fast"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="only models whose name matches")
    parser.add_argument("--seconds", type=float, default=corpus_share(SHARE), help="time limit")
    parser.add_argument("--fast", action="store_const", const="fast", default="exact", dest="accuracy")
    options = parser.parse_args()
    need(QEMU)
    folder, start, counts = work_folder("quantised_levels"), time.monotonic(), {True: 0, False: 0, None: 0}
    for name, model, data in models(folder):
        if not re.search(options.filter, name):
            continue
        late = time.monotonic() - start > options.seconds
        counts[None if late else check(name, model, data, folder, options.accuracy)] += 1
    print(f"{counts[True]} as they should be, {counts[False]} not, no time for {counts[None]} more")
    return exit_code(counts[True], counts[False], counts[None])


if __name__ == "__main__":
    sys.exit(main())
