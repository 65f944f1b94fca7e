#!/usr/bin/env python3
"""Archives, folders, JSON lines and traces of programs for other processors, which answer as this one's does; without
`--long` for aarch64."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import DIGITS, LONG, SAMPLES, SOURCE, check, pack, read_npy, run, sample, work_folder

FOLDER = work_folder("parts_elsewhere")
TARGETS = {"aarch64": "qemu-aarch64", "armv7": "qemu-arm", "riscv64": "qemu-riscv64", "i686": "qemu-i386"}


def answers(*program):
    """(scores of a folder, of JSON lines, of an archive), each a list per sample."""
    out = FOLDER / "scores"
    shutil.rmtree(out, ignore_errors=True)
    run(*program, "--batch-dir", SOURCE / "models" / "samples", "--output-dir", out)
    batch = [read_npy(out / file)[1] for file, _ in SAMPLES]
    lines = "".join(json.dumps({"image": [[[read_npy(sample(file))[1][8 * i:8 * i + 8] for i in range(8)]]]}) + "\n"
                    for file, _ in SAMPLES)
    done = subprocess.run([*map(str, program), "--stream=jsonl"], input=lines.encode(), capture_output=True, timeout=60)
    check(done.returncode == 0, done.stderr.decode())
    stream = [json.loads(line)["scores"][0] for line in done.stdout.splitlines()]
    with zipfile.ZipFile(FOLDER / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(sample("digit_7.npy"), "image.npy")
    run(*program, FOLDER / "x.npz", "--output", FOLDER / "y.npz")
    with zipfile.ZipFile(FOLDER / "y.npz") as archive:
        archive.extract("scores.npy", FOLDER)
    trace = json.loads(run(*program, "--profile=trace.json", "--threads", "2").stdout)
    check(sum(e.get("cat") == "kernel" for e in trace["traceEvents"]) >= 5, "a trace")
    return batch, stream, read_npy(FOLDER / "scores.npy")[1]


def as_floats(values):
    return struct.unpack(f"<{len(values)}f", struct.pack(f"<{len(values)}f", *values))


def main():
    for target, emulator in list(TARGETS.items())[:4 if LONG else 1]:
        program = FOLDER / target
        pack(DIGITS, program, "--target", target, "--with=all")
        if not shutil.which(emulator):
            print(f"skipped: {target}, since {emulator} is not installed")
            continue
        batch, stream, seventh = answers(emulator, program)
        labels = [max(range(10), key=scores.__getitem__) for scores in batch]
        check(labels == [int(label) for _, label in SAMPLES], f"{target}: the folder's digits")
        check([as_floats(scores) for scores in stream] == [tuple(scores) for scores in batch], "JSON lines have their bits")
        check(seventh == batch[[file for file, _ in SAMPLES].index("digit_7.npy")], "and the archive")


if __name__ == "__main__":
    sys.exit(main())
