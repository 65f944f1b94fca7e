#!/usr/bin/env python3
"""swap-weights: a program with the weights of another model of the same plan has the bytes of a pack of that model; with
`--long` for all CPU levels and another processor, too."""
import json
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import model, node, random_tensor, tensor, value
from packing import DIGITS, LEAST_LEVEL, LEVEL, LONG, PACKER, check, pack, run, work_folder

FOLDER = work_folder("swap_weights")
CACHE = ["--cache-dir", FOLDER / "cache"]


def network(seed, hidden=32, name="g", first=None):
    """Two layers; all but the seed decides what their plan is."""
    path = FOLDER / f"{name}{seed}_{hidden}{'_first' if first else ''}.onnx"
    weights = [first or random_tensor("w", [24, hidden], seed), random_tensor("b", [hidden], seed + 100),
               random_tensor("v", [hidden, 10], seed + 200)]
    nodes = [node("MatMul", ["x", "w"], ["m"], "first"), node("Add", ["m", "b"], ["n"]), node("Relu", ["n"], ["r"]),
             node("MatMul", ["r", "v"], ["y"], "second")]
    path.write_bytes(model(nodes, [value("x", ["batch", 24])], [value("y", ["batch", 10])], weights, graph_name=name))
    return path


def swap(program, other, output, *words, expect=0):
    return run(PACKER, "swap-weights", program, other, "-o", output, "--verify", "off", *CACHE, *words, expect=expect,
               seconds=300)


def equal_bytes():
    one, two = network(1), network(2)
    shapes = ["--shape", "x=1x24", "--shape", "x=4x24"]
    for name, words in (("embed", []), ("file", ["--weights", "file"]), ("zstd", ["--weights=zstd"]),
                        ("options", ["-O3", "--threads=1", "--accuracy", "exact", "--cpu", "x86-64-v2", "--target",
                                     "x86-64"]),
                        ("aarch64", ["--target", "aarch64"]), ("entries", shapes)):
        if name == "aarch64" and not LONG:
            continue
        if name != "entries":
            words = [*words, "--shape", "batch=3"]
        old, want, got = FOLDER / f"{name}_old", FOLDER / f"{name}_want", FOLDER / f"{name}_got"
        words = words if "--target" in words else [*words, *LEVEL]
        pack(one, old, *words, *CACHE, every_level=True)
        pack(two, want, *words, *CACHE, every_level=True)
        shutil.rmtree(FOLDER / "cache")
        said = swap(old, two, got).stderr.decode()
        check(got.read_bytes() == want.read_bytes() != old.read_bytes(), f"{name}: the bytes of a pack of the other")
        anew = "linked anew, since stored weights" in said
        check(anew == (name == "zstd"), f"{name}: {'linked anew' if anew else 'nothing compiled or linked'}")
        if name == "file":
            beside = [FOLDER / f"{name}_{part}.weights" for part in ("want", "got")]
            check(beside[0].read_bytes() == beside[1].read_bytes(), "its weights beside it, too")
        if name != "aarch64":
            run(got, "--self-check")


def names_and_verify():
    """A name in the model that takes other room moves all that follows."""
    one, other = network(1), network(3, name="a_longer_name")
    pack(one, FOLDER / "old", *LEAST_LEVEL, *CACHE)
    pack(other, FOLDER / "want", *LEAST_LEVEL, *CACHE)
    said = run(PACKER, "swap-weights", FOLDER / "old", other, "-o", FOLDER / "got", "--verify", "random", *CACHE,
               "--json=" + str(FOLDER / "swap.json")).stderr.decode()
    check("linked anew, since names in the model take other room; 0 of its objects" in said, said.splitlines()[0])
    check((FOLDER / "want").read_bytes() == (FOLDER / "got").read_bytes(), "and the bytes are those of a pack")
    told = json.loads((FOLDER / "swap.json").read_text())
    check(told["verb"] == "swap-weights" and told["exit"] == 0 and told["verify"], "--json and --verify work")


def refused():
    one = network(1)
    pack(one, FOLDER / "old", *LEAST_LEVEL, *CACHE)
    pack(one, FOLDER / "lib.so", *LEAST_LEVEL, *CACHE)
    schedules = FOLDER / "given.txt"
    schedules.write_bytes(run(PACKER, one, "--emit=schedule", *LEAST_LEVEL, *CACHE).stdout)
    pack(one, FOLDER / "scheduled", "--schedule", schedules, *LEAST_LEVEL, *CACHE)
    zeros = tensor("w", [24, 32], [0.0] * (24 * 32))
    cut = FOLDER / "cut"
    cut.write_bytes((FOLDER / "old").read_bytes()[:30000])
    for program, other, code, phrase in (
            ("old", network(2, hidden=48), 3, "pack it anew"),
            ("old", network(2, first=zeros), 3, "has another plan than"),
            ("old", DIGITS, 3, "its inputs or outputs are of other shapes or types"),
            ("lib.so", one, 2, "swap-weights is for programs"),
            ("scheduled", one, 2, "was packed with --schedule, and what that brought is not in it; pack it anew"),
            ("cut", one, 2, "is no program that svod-pack wrote, or damaged"),
            (one, one, 2, "is no program that svod-pack wrote"),
            ("absent", one, 4, "cannot open"),
            ("old", FOLDER / "absent.onnx", 4, "cannot open")):
        said = swap(FOLDER / program, other, FOLDER / "never", expect=code).stderr.decode()
        check(phrase in said, said.splitlines()[-1])
        check(not (FOLDER / "never").exists(), f"exit {code}, and nothing was written")


def damaged_programs():
    """Whatever the bytes, an answer and no crash."""
    one, rng = network(1), random.Random(4)
    raw = (FOLDER / "old").read_bytes()
    image = next(at for at in range(0, len(raw), 64) if raw.startswith(b"SVODIMG\0", at))
    codes = []
    for _ in range(25):
        other = bytearray(raw)
        for _ in range(rng.choice([1, 3])):
            other[rng.choice([rng.randrange(len(raw)), image + rng.randrange(8000)]) % len(raw)] = rng.randrange(256)
        (FOLDER / "damaged").write_bytes(other)
        command = [PACKER, "swap-weights", FOLDER / "damaged", one, "-o", FOLDER / "out", "--cache-dir",
                   FOLDER / "cache", "--verify", "off"]
        codes.append(subprocess.run(command, capture_output=True, timeout=120).returncode)
    check({0, 2} <= set(codes) <= {0, 2, 3}, f"25 damaged programs: exit codes {sorted(set(codes))}")


def main():
    equal_bytes()
    names_and_verify()
    refused()
    damaged_programs()


if __name__ == "__main__":
    sys.exit(main())
