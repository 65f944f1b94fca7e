#!/usr/bin/env python3
"""--explain: the page in docs shows what is printed, --json says the same, and where it has no use it is refused."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import DIGITS, PACKER, SOURCE, check, run, work_folder

WORDS = ["--target", "x86-64-v3", "--emit=fused", "--explain"]


def shown():
    """What docs/search.md shows of digits."""
    page = (SOURCE / "docs" / "search.md").read_text()
    return re.search(r"\$ svod-pack models/digits\.onnx ([^\n]*)\n(.*?)```", page, re.S)


def pages(folder):
    found = shown()
    check(found[1].split() == WORDS, f"the page's command is {' '.join(WORDS)}")
    printed = run(PACKER, DIGITS, *WORDS, cwd=folder).stdout.decode()
    check(printed == found[2], "docs/search.md shows what is printed")
    again = run(PACKER, DIGITS, *WORDS, cwd=folder).stdout.decode()
    check(printed == again, "and it is the same twice")


def report(folder):
    done = run(PACKER, DIGITS, "--target", "x86-64-v3", "--explain", "--json", "--verify", "off", "-o", "x", cwd=folder)
    told = json.loads(done.stdout)
    found = told["explain"]
    check(found["run"]["launches"] == told["kernels"] < found["unfused"]["launches"], "launches, fewer than operators")
    # SEEDS row 16: a processor is its own host.
    check(found["run"]["syncs"] == 0 and found["run"]["host_bytes"] == 0 and found["copies"] == 0, "no syncs, no copies")
    names = {name for kernel in found["kernels"] for name in kernel["nodes"]}
    # SEEDS row 12: all nodes but those that only name a shape.
    check({"conv1", "relu1", "pool", "conv2", "relu2", "dense", "softmax"} <= names, f"ONNX nodes: {sorted(names)}")
    check(all(kernel["nodes"] and kernel["ends"]["reason"] for kernel in found["kernels"]), "each kernel has some")
    taken = [value for kernel in found["kernels"] for value in kernel["takes_in"]]
    check(taken and all(value["fused"] and {"gain_us", "gate", "kind"} <= set(value) for value in taken), "verdicts")
    lost = [kernel["ends"]["otherwise"] for kernel in found["kernels"] if "otherwise" in kernel["ends"]]
    check(lost and all(not one["fused"] and "gain_us" in one for one in lost), "and what lost, by how much")
    plain = run(PACKER, DIGITS, "--target", "x86-64-v3", "--json", "--verify", "off", "-o", "y", cwd=folder)
    check("explain" not in json.loads(plain.stdout), "only where it is asked for")
    check((folder / "x").read_bytes() == (folder / "y").read_bytes(), "the program is the same")


def refused(folder):
    done = run(PACKER, DIGITS, "--explain", "-o", "z", expect=2, cwd=folder)
    check(b"--explain is for --emit=fused" in done.stderr, "alone it is a usage error")


folder = work_folder("explain")
pages(folder)
report(folder)
refused(folder)
