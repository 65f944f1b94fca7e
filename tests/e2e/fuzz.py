#!/usr/bin/env python3
"""Mutated models: whatever the bytes, svod-pack ends soon, with an exit code of its table, and never with 5.

    fuzz.py [COUNT] [SEED]

Starts from small valid models and flips bits, overwrites runs with telling values, cuts, doubles and splices
pieces. Seeded, so a failure can be repeated; the offending file stays in build/e2e/fuzz.
"""
import concurrent.futures
import os
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "golden"))
import run_golden
from packing import DIGITS, PACKER, check, work_folder

ALLOWED = {0, 1, 3, 4}
TELLING = [b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff" * 9 + b"\x01", b"\x80\x80\x80\x80\x10", b"\x01",
           (1 << 63).to_bytes(8, "little"), (1 << 62).to_bytes(8, "little"), b"\xff\xff\xff\x7f"]


def mutated(rng, seeds):
    out = bytearray(rng.choice(seeds))
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        # Structure lies at the ends; the middle is weights, where a change means nothing.
        at = rng.choice([rng.randrange(len(out)), rng.randrange(min(300, len(out))),
                         len(out) - 1 - rng.randrange(min(300, len(out)))])
        kind = rng.randrange(5)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            piece = rng.choice(TELLING)
            out[at:at + len(piece)] = piece
        elif kind == 2:
            del out[at:at + rng.choice([1, 2, 8, 100])]
        elif kind == 3:
            size = rng.choice([1, 4, 30])
            out[at:at] = out[at:at + size]
        else:
            other = rng.choice(seeds)
            start = rng.randrange(len(other))
            out[at:at] = other[start:start + rng.choice([2, 10, 60])]
        if not out:
            break
    return bytes(out)


def run_case(folder, number, content):
    path = folder / f"{number}.onnx"
    path.write_bytes(content)
    try:
        done = subprocess.run([str(PACKER), "check", str(path)], capture_output=True, timeout=30,
                              env=dict(os.environ, TMPDIR=str(folder)))
        code, text = done.returncode, (done.stdout + done.stderr).decode(errors="replace")
    except subprocess.TimeoutExpired:
        code, text = None, "no end after 30 s"
    if code in ALLOWED:
        path.unlink()
        return code
    print(f"{path}: exit {code}: {text[-400:]}")
    return None


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    folder = work_folder("fuzz")
    names = sorted(path.stem for path in (run_golden.HERE / "stages").glob("*.txt"))
    check(len(names) > 20, f"{len(names)} golden models are the seeds, and the bundled one")
    seeds = [run_golden.read(name) for name in names] + [DIGITS.read_bytes()]
    contents = [mutated(rng, seeds) for _ in range(count)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(run_case, [folder] * count, range(count), contents))
    tally = {c: codes.count(c) for c in sorted(ALLOWED)}
    check(None not in codes, f"{count} mutated models, exit codes {tally}")


if __name__ == "__main__":
    sys.exit(main())
