#!/usr/bin/env python3
"""The quantised networks of models/: answers of their own data on this machine and on a Cortex-M4, and the flash and RAM
that small models may take there."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import firmware_models as models
from packing import LONG, PACKER, SOURCE, check, pack, run, work_folder

FOLDER = work_folder("int8_models")
MODELS = SOURCE / "models"


def sizes(name, file):
    pack(file, FOLDER / f"{name}.a", "--target", "cortex-m4", "-Os", f"--json={FOLDER / f'{name}.json'}")
    told = json.loads((FOLDER / f"{name}.json").read_text())["bytes"]
    return told["code"] + told["stub"], told["weights"], told["arena"]


def answers(name):
    """Byte for byte what make_int8.py computes in integers."""
    file = MODELS / name / f"{name}.onnx"
    told = run(PACKER, file, "-o", FOLDER / name, "--no-cache", seconds=300).stderr.decode()
    check("max abs 0," in told, f"{name} here: {told.splitlines()[0].strip()}")
    words = [PACKER, file, "-o", FOLDER / f"lib{name}.a", "--target", "cortex-m4", "--verify", file.parent, "--no-cache"]
    done = run(*words, seconds=300)
    told = (done.stdout + done.stderr).decode()
    check("PASS" in told or "not verified" in told, f"{name} on a Cortex-M4: {told.splitlines()[0]}")


def main():
    for name in ("digits_int8", "keywords_int8") if LONG else ("digits_int8",):
        answers(name)
    text, _, _ = sizes("digits", MODELS / "digits_int8/digits_int8.onnx")
    check(text <= 12 << 10, f"digits in int8: {text} bytes of kernels and run")
    for name, content, limit, what in (("sine", models.sine(), 4 << 10, "text"),
                                       ("dense", models.dense_int8(), 6 << 10, "text and weights")):
        (FOLDER / f"{name}.onnx").write_bytes(content)
        text, weights, arena = sizes(name, FOLDER / f"{name}.onnx")
        flash = text + (weights if name == "dense" else 0)
        check(flash <= limit, f"{name}: {flash} bytes of {what}, at most {limit}")
        check(arena <= (128 if name == "sine" else 64), f"{name}: an arena of {arena} bytes")


if __name__ == "__main__":
    sys.exit(main())
