#!/usr/bin/env python3
"""Schedules as text: printed, edited by hand, fed back; the edit is used and the answer stays right.

With SVOD_CORPUS every real model's kernels and schedules are also read back and printed again (--corpus).
"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
from onnx_writer import model, node, random_tensor, value
from packing import BUILD, DIGITS, PACKER, check, digits_on, labels_right, pack, run, work_folder

REPRINT = BUILD / "tests" / "reprint_schedules"
LEVEL = ["--target", "x86-64-v3"]


def text_of(path, form, *options):
    return run(PACKER, path, f"--emit={form}", "--verify", "off", "-q", *options).stdout.decode()


def reprinted(text):
    done = subprocess.run([REPRINT], input=text.encode(), capture_output=True)
    if done.returncode != 0:
        print(done.stderr.decode()[-2000:])
    return done.stdout.decode()


def product():
    """Rows times a matrix: large enough for a tile, chunks and panels that are fetched ahead."""
    return model([node("MatMul", ["x", "w"], ["y"])], [value("x", [96, 128])], [value("y", [96, 1024])],
                 [random_tensor("w", [128, 1024], 1, 0.1)])


def edit(text, pattern, replacement):
    changed, count = re.subn(pattern, replacement, text, count=1, flags=re.M)
    check(count == 1, f"the schedule has a line {pattern}")
    return changed


def refused(path, folder, text, reason):
    file = folder / "bad.schedule"
    file.write_text(text)
    done = run(PACKER, path, "--emit=cpp", "--verify", "off", "--schedule", file, *LEVEL, expect=2)
    check(reason in done.stderr.decode(), f"exit 2 says: {reason}")


def check_edits(folder):
    path = folder / "product.onnx"
    path.write_bytes(product())
    before = text_of(path, "schedule", *LEVEL)
    check(reprinted(before) == before, "kernels and schedules read back what they print")
    file = folder / "edited.schedule"
    file.write_text(before)
    same = text_of(path, "cpp", "--schedule", file, *LEVEL)
    check(same == text_of(path, "cpp", *LEVEL), "an unchanged schedule changes no kernel")

    tile = re.search(r"^ +tile (i\d+):(\d+)", before, re.M)
    edited = edit(before, r"^( +tile )i\d+:\d+.*$", rf"\g<1>{tile[1]}:{max(1, int(tile[2]) - 1)}")
    edited = edit(edited, r"^( +chunk i\d+ by )\d+$", r"\g<1>7")
    file.write_text(edited)
    text = text_of(path, "cpp", "--schedule", file, *LEVEL)
    check(text != same and " + 7 < " in text, "another tile and other chunks are in the kernel's text")
    check(text_of(path, "schedule", "--schedule", file, *LEVEL) == edited, "and in the schedule that is printed")
    run(PACKER, path, "-o", folder / "product", "--schedule", file, "--verify", "random", *LEVEL)
    check(True, "and the answer is the evaluator's")

    refused(path, folder, edit(before, r"^( +tile i\d+:)\d+", r"\g<1>4096"), "a tile of 4096 positions")
    refused(path, folder, edit(before, r"^( +chunk i)\d+", r"\g<1>99"), "no outer loop")
    refused(path, folder, edit(before, r"^(    outer ).*$", r"\g<1>i0"), "outer loops are not those of the kernel")
    refused(path, folder, edit(before, r"^( +)tile .*$", r"\g<1>tilt i0:2"), "was expected before 'tilt")
    digest = re.search(r"^schedule (\w+)", before, re.M)[1]
    file.write_text(before.replace(digest, "0" * 64))
    done = run(PACKER, path, "--emit=cpp", "--verify", "off", "--schedule", file, *LEVEL)
    check("no kernel of this model is 000" in done.stderr.decode(), "an unknown digest is a note")


def check_digits(folder):
    text = text_of(DIGITS, "schedule")
    check(reprinted(text) == text, "so do those of the bundled model, a sequence")
    file = folder / "digits.schedule"
    file.write_text(re.sub(r"^( +s\d+ unroll )\d+ \d+", r"\g<1>16 8", text, flags=re.M))
    pack(DIGITS, folder / "digits", "--schedule", file)
    check(labels_right(digits_on([], folder / "digits", folder)) == 10, "ten digits right with less written out")


def check_search(folder):
    """Schedules by predicted cost: what --json says of them, the budget, and the same bytes again."""
    def packed(name, *options):
        told = pack(DIGITS, folder / name, "--json", "--target", "x86-64", *options).stdout
        return json.loads(told)["search"], (folder / name).read_bytes()

    search, program = packed("searched")
    check(search["candidates"] > 50 and search["stop_reason"] == "all priced", f"{search['candidates']} schedules priced")
    few, small = packed("few", "--search-budget", "20")
    check(few["candidates"] == 20 and few["stop_reason"] == "budget", "a budget of 20 prices 20")
    check(packed("again", "--search-budget", "20") == (few, small), "the same budget gives the same bytes")
    none, _ = packed("rules", "--search-budget", "0")
    check(none["candidates"] == 0 and none["changed"] == [], "a budget of 0 leaves all to the rules")
    check(all(c["us"] <= 0.75 * c["rules_us"] for c in search["changed"]), "what is taken saves a quarter")
    done = run(PACKER, DIGITS, "-o", folder / "bad", "--search-budget", "many", expect=2)
    check("--search-budget: 'many' is no number" in done.stderr.decode(), "exit 2 says what is no number")
    keys = {run(PACKER, "key", DIGITS, "--search-budget", n).stdout for n in ("0", "20")}
    check(len(keys) == 2, "the budget is a part of the key")


def check_corpus(folder):
    import run_conformance
    corpus = os.environ.get("SVOD_CORPUS")
    if not corpus:
        print("skipped: SVOD_CORPUS is not set")
        return 77
    kernels = 0
    for case in run_conformance.cases_of("real", pathlib.Path(corpus)):
        shapes = ["--shape-from", str(case.data[0])] if case.data else []
        command = [PACKER, case.model, "--emit=schedule", "--verify", "off", "-q", *shapes]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            continue  # conformance says which these are
        text = done.stdout.decode()
        if reprinted(text) != text:
            check(False, f"{case.name}: kernels and schedules read back what they print")
        file = folder / "fed_back.schedule"
        file.write_text(text)
        if text_of(case.model, "schedule", "--schedule", file, *shapes) != text:
            check(False, f"{case.name}: its own schedules fit its kernels")
        kernels += text.count("\nschedule ")
    check(kernels > 3000, f"{kernels} kernels of the corpus read back what they print, and fit")
    return 0


def main():
    folder = work_folder("schedule_corpus" if "--corpus" in sys.argv else "schedule")
    if "--corpus" in sys.argv:
        return check_corpus(folder)
    check_edits(folder)
    check_digits(folder)
    check_search(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
