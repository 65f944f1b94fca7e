#!/usr/bin/env python3
"""The digits model as a static library of every target that QEMU runs: all ten digits are read right, scores within
1e-5 of the host's. The instruction counter of tests/bench gives the same sum twice, and names kernels."""
import math
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import emulated
import onnx_writer as onnx
from packed_header import Header
from packing import (DIGITS, SAMPLES, check, digits_on, labels_right, largest_difference, need, pack, read_npy, sample,
                     work_folder)


def scores_on(target, folder):
    library = folder / "libdigits.a"
    pack(DIGITS, library, "--target", target.alias, "--threads", "1")
    scores = []
    for file, _ in SAMPLES:
        inputs = [struct.pack("<64f", *read_npy(sample(file))[1])]
        program, outputs = emulated.link(target, library, folder, inputs)
        code, data = emulated.execute(target, program, outputs)
        if code != 0:
            check(False, f"{target.alias}: {file}: exit {code}")
        scores.append(struct.unpack("<10f", data[0]))
    return scores


def counts_twice(target, folder):
    sums = []
    for name in ("first", "second"):
        program = folder / "program"
        outputs = [(port, 0) for port in Header(folder / "libdigits.h").ports("OUTPUT")]
        emulated.execute(target, program, outputs, folder / name)
        counts = emulated.read_counts(folder / name)
        rows = emulated.count_by_function(program, counts)
        sums.append(sum(counts.values()))
        check(sum(count for _, count in rows) == sums[-1], "every instruction belongs to a line")
        check(rows[0][0].startswith("k") and rows[0][1] > 10000, f"most instructions are a kernel's: {rows[0]}")
    check(sums[0] == sums[1], f"two runs execute {sums[0]} instructions")


def outputs_on(aliases, model, inputs, top):
    """(alias, the outputs' bytes) of each target whose emulator is here."""
    for alias in aliases:
        target = emulated.find_target(alias)
        if not shutil.which(target.emulator[0]):
            continue
        folder = top / f"{model.stem}_{alias}"
        folder.mkdir()
        library = folder / "libmodel.a"
        pack(model, library, "--target", alias, "--threads", "1")
        program, outputs = emulated.link(target, library, folder, inputs)
        yield alias, emulated.execute(target, program, outputs)[1]


def scaled_bytes(top):
    """What behind a softmax becomes a byte and a float again has the scale it is given."""
    values = [0.5, -1.0, 3.0, 0.25, 1.0, 2.0, -2.0, 0.0, 1.5, -0.5]
    model = top / "scaled.onnx"
    nodes = [onnx.node("Softmax", ["x"], ["p"], axis=1), onnx.node("QuantizeLinear", ["p", "scale", "zero"], ["q"]),
             onnx.node("DequantizeLinear", ["q", "scale", "zero"], ["y"])]
    weights = [onnx.tensor("scale", [], [2.0**-8]),
               onnx.number(2, 3) + onnx.data(8, "zero") + onnx.data(9, b"\x80")]
    model.write_bytes(onnx.model(nodes, [onnx.value("x", [1, 10])], [onnx.value("y", [1, 10])], weights))
    total = sum(math.exp(v) for v in values)
    for alias, data in outputs_on(["cortex-m55", "cortex-m4"], model, [struct.pack("<10f", *values)], top):
        got = struct.unpack("<10f", data[0])
        check(all(abs(g - math.exp(v) / total) < 2.0**-8 for g, v in zip(got, values)),
              f"{alias}: bytes behind a softmax: {got}")


def not_a_number(top):
    """NaN is less than nothing and equal to nothing, on vectors as well."""
    values = [float("nan"), -1.0, 0.0, 1.0, float("inf"), float("-inf"), float("nan"), 2.0]
    nodes = [onnx.node("IsNaN", ["x"], ["nan"]), onnx.node("Relu", ["x"], ["relu"]),
             onnx.node("Less", ["x", "zero"], ["less"]), onnx.node("Greater", ["zero", "x"], ["turned"]),
             onnx.node("GreaterOrEqual", ["x", "zero"], ["least"])]
    kinds = [("nan", 9), ("relu", onnx.FLOAT), ("less", 9), ("turned", 9), ("least", 9)]
    model = top / "nan.onnx"
    model.write_bytes(onnx.model(nodes, [onnx.value("x", [8])], [onnx.value(n, [8], k) for n, k in kinds],
                                 [onnx.tensor("zero", [1], [0.0])]))
    truths = [[v != v for v in values], None, [v < 0 for v in values], [v < 0 for v in values], [v >= 0 for v in values]]
    for alias, data in outputs_on(["cortex-m55", "cortex-m4", "aarch64"], model, [struct.pack("<8f", *values)], top):
        relu = struct.unpack("<8f", data[1])
        check(all(math.isnan(r) if math.isnan(v) else r == max(v, 0) for v, r in zip(values, relu)),
              f"{alias}: a relu keeps NaN: {relu}")
        for (name, _), got, right in zip(kinds, data, truths):
            if right:
                check(list(got) == list(map(int, right)), f"{alias}: {name} of NaN and numbers: {list(got)}")


def main():
    need(emulated.CLANG, emulated.LLD, emulated.OBJDUMP)
    top, tried = work_folder("emulated"), 0
    host = top / "digits"
    not_a_number(top)
    scaled_bytes(top)
    pack(DIGITS, host)
    here = digits_on([], host, top)
    for cells in emulated.rows("TARGET"):
        if cells[2] in ("Wasm", "Source") or cells[0].startswith("x86-64"):
            continue
        target = emulated.find_target(cells[0])
        tools = [target.emulator[0]] + ([target.compiler] if target.compiler else [])
        if missing := [tool for tool in tools if not shutil.which(tool)]:
            print(f"left out: {target.alias} needs {missing[0]}")
            continue
        folder = top / target.alias
        folder.mkdir()
        there = scores_on(target, folder)
        difference = largest_difference(here, there)
        check(labels_right(there) == 10 and difference <= 1e-5, f"{target.alias}: largest difference {difference:.3g}")
        if target.alias in ("cortex-m4", "aarch64") and shutil.which("gcc"):
            counts_twice(target, folder)
        tried += 1
    if not tried:
        need("qemu-system-arm")


if __name__ == "__main__":
    sys.exit(main())
