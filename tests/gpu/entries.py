#!/usr/bin/env python3
"""Several sets of shapes for a GPU, in a program and in a library, against the driver of stand_in_driver.cpp."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from library import STAND_IN, build
from onnx_writer import model, node, random_tensor, tensor, value
from packing import SOURCE, check, need, pack, read_npy, run, work_folder, write_npy
from program import StandIn, kernels, text_of

BATCHES = (2, 5)
WORDS = ["--device", "cuda:sm_80", "--ptxas", "off"]
SETS = [word for n in BATCHES for word in ("--shape", f"n={n}")]


def network():
    """Two layers with a free batch."""
    return model([node("MatMul", ["x", "w"], ["h"], "first"), node("Relu", ["h"], ["r"]),
                  node("MatMul", ["r", "v"], ["y"], "second")], [value("x", ["n", 48])], [value("y", ["n", 20])],
                 [random_tensor("w", [48, 64], 1, 0.1), random_tensor("v", [64, 20], 2, 0.1)])


def values(path):
    return read_npy(path)[1]


class Case:
    """The model, an input of each entry, and what a pack of its own answers on the GPU and on the processor."""

    def __init__(self, folder):
        self.folder, self.path, side = folder, folder / "layers.onnx", folder / "both.so"
        self.path.write_bytes(network())
        kernels(self.path, side, "sm_80", *(f"n={n}" for n in BATCHES))
        self.driver = StandIn(folder, side)
        self.inputs, self.there, self.here = [], [], []
        for n in BATCHES:
            x, alone, own = (folder / f"{name}{n}" for name in ("x", "alone", "kernels"))
            write_npy(x, [n, 48], [(i * 37 % 101) / 50 - 1 for i in range(n * 48)])
            pack(self.path, alone, *WORDS, "--shape", f"n={n}")
            kernels(self.path, own, "sm_80", f"n={n}")
            self.inputs.append(x)
            for place, outputs in (("cuda", self.there), ("cpu", self.here)):
                outputs.append(folder / f"{place}{n}.npy")
                run(alone, x, f"--device={place}", "--output", outputs[-1], env=StandIn(folder, own).env())


def program(case):
    made, got = case.folder / "program", case.folder / "got.npy"
    pack(case.path, made, *WORDS, *SETS)
    pack(case.path, case.folder / "again", *WORDS, *SETS)
    check(made.read_bytes() == (case.folder / "again").read_bytes(), "packed twice, equal bytes")
    sets = case.folder / "sets"
    for i, x in enumerate(case.inputs):
        run(made, x, "--device=cuda", "--output", got, env=case.driver.env())
        check(got.read_bytes() == case.there[i].read_bytes(), f"entry {i} on the GPU: the bits of a pack of its own")
        check(case.driver.log.read_text().split("\n").count("run") == 1, "as one graph")
        run(made, x, "--device=cpu", "--output", got, env=case.driver.env())
        check(got.read_bytes() == case.here[i].read_bytes(), "and on the processor")
        place = sets / f"test_data_set_{i}"
        place.mkdir(parents=True)
        (place / "input_0.pb").write_bytes(tensor("x", [BATCHES[i], 48], values(x)))
        (place / "output_0.pb").write_bytes(tensor("y", [BATCHES[i], 20], values(got)))
    said = text_of(run(made, "--device=cuda", "--verify", sets, env=case.driver.env()))
    check(said.count("cosine 1") == 2, "--verify takes the entry of each data set")

    def told(*words):
        return json.loads(run(made, "--device=cuda", "--min-time=0.02", "--entry=1", *words, env=case.driver.env()).stdout)

    check(told("--bench=json")["context"]["isa"] == "sm_80", "--bench of an entry")
    names = [row["name"] for row in told("--profile=json")["kernels"]]
    check("k0" not in names, f"its kernels have numbers of their own: {names}")
    env = case.driver.env(REFUSES=names[-1] + "_")
    check("second" in text_of(run(made, case.inputs[1], "--device=cuda", expect=9, env=env)), "a refused one is named")
    run(made, case.inputs[0], "--device=cuda", env=env)
    named = case.folder / "named"
    pack(case.path, named, *WORDS, *(word for n in BATCHES for word in ("--entry", f"of{n}:n={n}")))
    run(named, "--entry=of5", case.inputs[1], "--device=cuda", "--output", got, env=case.driver.env())
    check(got.read_bytes() == case.there[1].read_bytes(), "--entry of the pack, too")


def library(case):
    need("gcc")
    folder = case.folder
    (folder / "cuda.h").write_text((SOURCE / "tests/gpu/cuda_h.txt").read_text())
    out = folder / "outputs.raw"
    raw = []
    for i, x in enumerate(case.inputs):
        raw.append(folder / f"x{i}.raw")
        raw[-1].write_bytes(x.read_bytes()[-BATCHES[i] * 48 * 4:])

    def right(files):
        return b"".join(file.read_bytes()[-n * 20 * 4:] for file, n in zip(files, BATCHES))

    for suffix in ("a", "so"):
        pack(case.path, folder / f"libnet.{suffix}", "--name", "net", *WORDS, *SETS)
        made = build(folder, SOURCE / "tests/library/gpu_entries.c", "libnet.h", folder / f"libnet.{suffix}",
                     folder / f"use_{suffix}", STAND_IN / "libcuda.so.1")
        run(made, *raw, out, env=case.driver.env())
        check(out.read_bytes() == right(case.there), f".{suffix}: both entries in one arena, the bits of packs of their own")
        said = text_of(run(made, *raw, out, env=case.driver.env(REFUSES="k2_")))
        check("in kernel k2_sm_80 of node" in said and out.read_bytes() == right(case.here),
              f"one that is refused leaves all to the processor: {said.strip()}")


def main():
    case = Case(work_folder("gpu_entries"))
    program(case)
    library(case)


if __name__ == "__main__":
    main()
