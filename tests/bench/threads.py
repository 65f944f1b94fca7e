#!/usr/bin/env python3
"""One thread against two, on a quiet machine and with the second core busy: median times of runs in turns.

    threads.py [--rounds 5] [--seconds 0.5] MODEL...

The busy core is one that a process of this script keeps, pinned there; ours are free to go where they like. Prints
a row for each model: milliseconds on one thread and the ratio of two, quiet and busy.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import BUILD, pack


def spin(core):
    os.sched_setaffinity(0, {core})
    while True:
        pass


def median_ms(program, threads, seconds):
    done = subprocess.run([program, "--bench=json", "--threads", str(threads), "--min-time", str(seconds)],
                          capture_output=True, check=True)
    rows = json.loads(done.stdout)["benchmarks"]
    return next(row["real_time"] for row in rows if row["name"] == "run/median") / 1e3


def compared(program, options):
    """Medians over the rounds: one thread, two."""
    times = {1: [], 2: []}
    for _ in range(options.rounds):
        for threads in times:
            times[threads].append(median_ms(program, threads, options.seconds))
    return [statistics.median(times[threads]) for threads in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("skipped: there is one core")
        return 77
    folder = BUILD / "bench" / "threads"
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{'model':32} {'1 thread ms':>12} {'2 quiet':>8} {'1 busy ms':>10} {'2 busy':>8}")
    for number, model in enumerate(options.models):
        program = folder / str(number)
        pack(model, program)
        quiet = compared(program, options)
        busy_core = multiprocessing.Process(target=spin, args=(cores[1],), daemon=True)
        busy_core.start()
        busy = compared(program, options)
        busy_core.terminate()
        busy_core.join()
        name = model.parent.name if model.stem == "model" else model.stem
        print(f"{name[:32]:32} {quiet[0]:12.4f} {quiet[1] / quiet[0]:8.2f} {busy[0]:10.4f} {busy[1] / busy[0]:8.2f}",
              flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
