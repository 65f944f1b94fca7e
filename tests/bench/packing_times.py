#!/usr/bin/env python3
"""How long packing takes: wall clock, CPU seconds and peak memory of each pack without any cache.

    packing_times.py MODEL... [--data FOLDER] [--against PACKER] [--runs N]

MODEL is a file, or a folder that is searched for model.onnx. A test_data_set_0 beside the model gives shapes, or one
in the folder of the same name below FOLDER. With --against the other packer runs in turns with this one. The last lines are for all models: the geometric mean of the least times
and, of files under 20 MB, the longest.
"""
import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build"))


def models(words, data):
    """Pairs of a model and the folders that may give its shapes."""
    for word in map(pathlib.Path, words):
        for model in sorted(word.rglob("model.onnx")) if word.is_dir() else [word]:
            near = [model.parent]
            if data and word.is_dir():
                near.insert(0, data / model.parent.relative_to(word))
            yield model, [folder / "test_data_set_0" for folder in near]


def pack(packer, model, shapes, output):
    """Seconds, CPU seconds, peak MB; None when the model is refused."""
    command = [packer, model, "-o", output, "--no-cache", "--verify", "off", "-q"]
    for folder in [folder for folder in shapes if folder.is_dir()][:1]:
        command += ["--shape-from", folder]
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - start
    if process.returncode != 0:
        return None
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def name_of(model):
    return model.parent.name if model.name == "model.onnx" else model.stem


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(rows):
    seconds = [row[0] for row in rows.values()]
    print(f"{len(rows)} models: geometric mean {geometric_mean(seconds):.2f} s")
    small = {m: row for m, row in rows.items() if m.stat().st_size < 20e6}
    if small:
        longest = max(small, key=lambda m: small[m][0])
        print(f"longest under 20 MB: {name_of(longest)}, {small[longest][0]:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--against", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=1)
    arguments = parser.parse_args()
    packers = [BUILD / "svod-pack"] + ([arguments.against] if arguments.against else [])
    best = [{} for _ in packers]
    print(f"{'model':46} {'MB':>7} " + "   ".join(f"{'s':>7} {'CPU s':>7} {'peak MB':>8}" for _ in packers))
    with tempfile.TemporaryDirectory() as folder:
        for model, shapes in models(arguments.models, arguments.data):
            for _ in range(arguments.runs):
                for rows, packer in zip(best, packers):
                    row = pack(packer, model, shapes, pathlib.Path(folder) / "out")
                    if row:
                        rows[model] = min(rows.get(model, row), row)
            found = [rows.get(model) for rows in best]
            cells = "   ".join(f"{r[0]:7.2f} {r[1]:7.2f} {r[2]:8.0f}" if r else f"{'refused':>24}" for r in found)
            print(f"{name_of(model):46} {model.stat().st_size / 1e6:7.1f} {cells}", flush=True)
    for rows in filter(None, best):
        summary(rows)
    if len(best) == 2:
        both = best[0].keys() & best[1].keys()
        print(f"against the other: {geometric_mean([best[1][m][0] / best[0][m][0] for m in both]):.2f} times as fast")


if __name__ == "__main__":
    sys.exit(main())
