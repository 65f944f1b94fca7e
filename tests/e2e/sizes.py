#!/usr/bin/env python3
"""Sizes that depend on data and inputs of one value, as a packed program and a header show them."""
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import INT64, model, node, tensor, value
from packing import LEVEL, PACKER, check, pack, run, work_folder


def main():
    folder = work_folder("sizes")
    path, program = folder / "nonzero.onnx", folder / "nonzero"
    path.write_bytes(model([node("NonZero", ["x"], ["y"])], [value("x", [2, 3])], [value("y", [2, "n"], INT64)]))
    run(PACKER, path, "-o", program, "-q", "--verify", "random", *LEVEL)
    shown = run(program, "--input", "x=2x3xf32=[0 5 0 0 0 7]").stdout
    check(shown == b"y: 2x2xi64=[0 1 1 2]\n", f"the real shape is shown: {shown}")
    shown = run(program, "--input", "x=2x3xf32=[0]").stdout
    check(shown == b"y: 2x0xi64=[]\n", f"no element at all: {shown}")
    run(program, "--input", "x=2x3xf32=[0 5 0 0 0 7]", "--output", f"@{folder / 'y.raw'}")
    check((folder / "y.raw").stat().st_size == 32, "as many elements are written")
    pack(path, folder / "libnz.a", "--name", "nz")
    header = (folder / "libnz.h").read_text()
    check("#define NZ_NUM_OUTPUTS 2" in header and "#define NZ_OUTPUT_0_DIMS {2, 6}" in header and
          "#define NZ_OUTPUT_0_SHAPE_OUTPUT 1" in header, "the header tells bound and extents")

    path, program = folder / "boxes.onnx", folder / "boxes"
    path.write_bytes(model([node("NonMaxSuppression", ["b", "s", "most", "iou"], ["y"])],
                           [value("b", [1, 20, 4]), value("s", [1, 2, 20])], [value("y", ["n", 3], INT64)],
                           [tensor("most", [1], [7], INT64), tensor("iou", [1], [0.4])]))
    run(PACKER, path, "-o", program, "-q", "--verify", "random", *LEVEL)

    path, program = folder / "sum.onnx", folder / "sum"
    path.write_bytes(model([node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
                           [value("x", [2, 2]), value("axes", [1], INT64)], [value("y", ["n"])]))
    refused = pack(path, program, expect=3)
    check(b"--value axes=N" in refused.stderr, "the error shows the option")
    pack(path, program, "--value", "axes=1")
    given = ["--input", "x=2x2xf32=[1 2 3 4]"]
    check(run(program, *given).stdout == b"y: 2xf32=[3 7]\n", "a fixed input need not be given")
    run(program, *given, "--input", "axes=1xi64=[1]")
    wrong = run(program, *given, "--input", "axes=1xi64=[0]", expect=1).stderr
    check(b"'axes'" in wrong and b"packed for axes = [1]" in wrong, f"another value is refused: {wrong}")
    check(b"packed for axes = [1]" in run(program, "--info").stdout, "--info shows the value")


if __name__ == "__main__":
    sys.exit(main())
