#!/usr/bin/env python3
"""--weights=zstd: the same answers from fewer bytes, on every kind of machine, and no damage that is not found."""
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import model, node, tensor, value
from packing import DIGITS, check, pack, raw_answer, run, work_folder

FOLDER = work_folder("compressed_weights")
MAGIC = b"SVODZST\0"
EMULATORS = {"aarch64": "qemu-aarch64-static", "armv7": "qemu-arm-static", "riscv64": "qemu-riscv64-static",
             "i686": "qemu-i386-static"}


def wide_model():
    """Of 3 MiB of weights, which are three blocks."""
    rng, count = random.Random(5), 1024
    path = FOLDER / "wide.onnx"
    weights = [rng.choice([-0.5, -0.25, 0.25, 0.5, 1.5]) for _ in range(768 * count)]
    path.write_bytes(model([node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 768])], [value("y", [1, count])],
                           [tensor("w", [768, count], weights)]))
    return path


def answers(program, *words, runner=()):
    return raw_answer(program, "image=random:3", "scores", FOLDER / "scores.raw", *words, runner=runner)


def stored_at(raw):
    """Where the compressed weights lie: the decoder has their magic, too, but not a block's size behind it."""
    at = raw.index(MAGIC)
    while struct.unpack_from("<Q", raw, at + 16)[0] != 1 << 20:
        at = raw.index(MAGIC, at + 1)
    return at


def same_answers():
    summary = FOLDER / "summary.json"
    pack(DIGITS, FOLDER / "plain")
    pack(DIGITS, FOLDER / "small", "--weights=zstd", f"--json={summary}")
    sizes = json.loads(summary.read_text())["bytes"]
    check(0 < sizes["weights_stored"] < sizes["weights"], f"{sizes['weights']} bytes in {sizes['weights_stored']}")
    info = json.loads(run(FOLDER / "small", "--info=json").stdout)["bytes"]
    check(info == sizes, "the manifest says the same")
    check(answers(FOLDER / "plain") == answers(FOLDER / "small"), "the same answers")
    said = run(FOLDER / "small", "--licenses").stdout
    check(b"Meta Platforms" in said and b"Meta Platforms" not in run(FOLDER / "plain", "--licenses").stdout,
          "--licenses has zstd's notice where its decoder is")
    pack(DIGITS, FOLDER / "again", "--weights=zstd")
    check((FOLDER / "again").read_bytes() == (FOLDER / "small").read_bytes(), "packed twice, equal bytes")


def several_blocks():
    path = wide_model()
    pack(path, FOLDER / "wide_plain")
    pack(path, FOLDER / "wide", "--weights=zstd")
    raw = (FOLDER / "wide").read_bytes()
    at = stored_at(raw)
    _, block, blocks = struct.unpack_from("<QQQ", raw, at + 8)
    check(blocks == 3 and block == 1 << 20, f"{blocks} blocks of {block} bytes")
    want = run(FOLDER / "wide_plain", "x=random:1").stdout
    for threads in (1, 2, 5):
        check(run(FOLDER / "wide", "x=random:1", "--threads", threads).stdout == want, f"with {threads} threads, too")
    return FOLDER / "wide"


def several_entries():
    shapes = ["--entry", "one:image=1x1x8x8", "--entry", "pair:image=2x1x8x8"]
    pack(DIGITS, FOLDER / "entries_plain", *shapes)
    pack(DIGITS, FOLDER / "entries", "--weights=zstd", *shapes)
    for entry in ("one", "pair"):
        check(answers(FOLDER / "entries", "--entry", entry) == answers(FOLDER / "entries_plain", "--entry", entry),
              f"entry {entry} of two")


def other_machines():
    for target, emulator in EMULATORS.items():
        if not shutil.which(emulator):
            print(f"not tried: {target}, since {emulator} is not installed")
            continue
        for name, words in (("plain", []), ("small", ["--weights=zstd"])):
            pack(DIGITS, FOLDER / f"{target}_{name}", "--target", target, *words)
        runner = [shutil.which(emulator)]
        check(answers(FOLDER / f"{target}_plain", runner=runner) == answers(FOLDER / f"{target}_small", runner=runner),
              f"{target}: the same answers")


def damaged(program):
    """Wherever a byte of what is stored changes, --self-check finds it and a run never crashes."""
    raw = program.read_bytes()
    at = stored_at(raw)
    _, _, blocks = struct.unpack_from("<QQQ", raw, at + 8)
    head = 32 + 8 * (blocks + 1)
    end = struct.unpack_from("<Q", raw, at + head - 8)[0]
    rng = random.Random(1)
    places = list(range(head)) + list(range(head, head + 40)) + [rng.randrange(head, end) for _ in range(100)]
    codes, refused = {0: 0, 10: 0}, set()
    copy = FOLDER / "damaged"
    for place in places:
        other = bytearray(raw)
        other[at + place] ^= 1 << rng.randrange(8)
        copy.write_bytes(other)
        copy.chmod(0o755)
        said = run(copy, "--self-check", expect=10).stderr.decode()
        refused.add(said.split(" in block")[0].strip())
        # What is still a frame is a result of other weights, as it would be without compression.
        code = subprocess.run([str(copy), "x=zeros"], capture_output=True, timeout=60).returncode
        if code not in codes:
            check(False, f"byte {place} of what is stored changed: a run ends with {code}")
        codes[code] += 1
    check(codes[10] > head, f"{len(places)} damaged programs: {codes[10]} runs refused, {codes[0]} with other weights")
    check(len(refused) == 3, f"--self-check refuses all of them: {sorted(refused)}")


def refusals():
    for output, words, phrase in (("lib.a", [], "--weights=zstd is for executables"),
                                  ("gpu", ["--device", "cuda"], "--device goes with neither")):
        said = pack(DIGITS, FOLDER / output, "--weights=zstd", *words, expect=2).stderr.decode()
        check(phrase in said and not (FOLDER / output).exists(), f"{output}: {said.splitlines()[0]}")
    needed = pack(DIGITS, FOLDER / "ram", "--weights=zstd", "--max-ram", "4K", expect=8).stderr.decode()
    check("expanded weights" in needed, "--max-ram counts what is expanded")


def main():
    same_answers()
    several_entries()
    other_machines()
    damaged(several_blocks())
    refusals()


if __name__ == "__main__":
    sys.exit(main())
