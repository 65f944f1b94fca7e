#!/usr/bin/env python3
"""Static libraries: two models in one strict C99 program, eight threads, a thousand bit-equal runs.

Also what the archives consist of: no undefined symbol, no writable global, one prefix. And the executables:
the same bits from every run, with one thread and with two.
"""
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import small_cnn, small_mlp
from packing import SOURCE, check, need, pack, run, work_folder, write_npy

STRICT = ["-std=c99", "-D_POSIX_C_SOURCE=200809L", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def archive_is_clean(library, prefix):
    undefined, defined = set(), set()
    for line in run("nm", library).stdout.decode().splitlines():
        match = re.match(r"(?:[0-9a-f]+)?\s+([A-Za-z]) (\S+)$", line)
        if match:
            (undefined if match[1] == "U" else defined).add((match[1], match[2]))
    missing = {n for _, n in undefined} - {n for _, n in defined}
    check(not missing, f"{library.name}: no undefined symbol {sorted(missing)}")
    writable = sorted(n for kind, n in defined if kind in "DdBbCGgSs")
    check(not writable, f"{library.name}: no writable global {writable}")
    foreign = sorted(n for kind, n in defined if kind.isupper() and not n.startswith(prefix))
    check(not foreign, f"{library.name}: every global symbol starts with {prefix} {foreign}")


def thousand_equal_runs(folder, model):
    program, image = folder / "cnn", folder / "x.npy"
    rng = random.Random(5)
    write_npy(image, [1, 3, 40, 40], [rng.gauss(0, 1) for _ in range(3 * 40 * 40)])
    pack(model, program)
    results = set()
    for k in range(500):
        for threads in ("1", "2"):
            out = folder / "y.raw"
            run(program, image, "--threads", threads, "--output", f"y=@{out}")
            results.add(out.read_bytes())
    check(len(results) == 1, "500 runs with one thread and 500 with two: the same bits")


def main():
    need("gcc", "nm")
    folder = work_folder("library")
    models = {"cnn": small_cnn(), "mlp": small_mlp()}
    for name, content in models.items():
        model, library = folder / f"{name}.onnx", folder / f"lib{name}.a"
        model.write_bytes(content)
        pack(model, library, "--name", name)
        archive_is_clean(library, f"{name}_")
        for standard in ("c99", "c11"):
            run("gcc", f"-std={standard}", *STRICT[2:], "-fsyntax-only", folder / f"lib{name}.h")
        run("g++", "-std=c++17", *STRICT[2:], "-fsyntax-only", "-x", "c++", folder / f"lib{name}.h")
    program = folder / "two_models"
    run("gcc", *STRICT, "-I", folder, SOURCE / "tests/library/two_models.c", folder / "libcnn.a",
        folder / "libmlp.a", "-pthread", "-o", program)
    run(program, "125")
    check(True, "two models, eight threads, 1000 runs of each: bit-equal")
    thousand_equal_runs(folder, folder / "cnn.onnx")


if __name__ == "__main__":
    sys.exit(main())
