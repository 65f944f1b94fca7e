#!/usr/bin/env python3
"""Another input size compiles the kernels that see it, and no others."""
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import model, node, random_tensor, value
from packing import LEVEL, check, pack, work_folder


def classifier():
    """Convolutions over a picture of any size, then layers that see only its mean."""
    sizes = {"w1": [16, 3, 3, 3], "w2": [32, 16, 3, 3], "w3": [32, 256], "w4": [256, 64]}
    return model(
        [node("Conv", ["x", "w1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", ["c1"], ["r1"]),
         node("Conv", ["r1", "w2"], ["c2"], kernel_shape=[3, 3], strides=[2, 2]), node("Relu", ["c2"], ["r2"]),
         node("GlobalAveragePool", ["r2"], ["p"]), node("Flatten", ["p"], ["f"]), node("MatMul", ["f", "w3"], ["h"]),
         node("Tanh", ["h"], ["t"]), node("MatMul", ["t", "w4"], ["s"]), node("Softmax", ["s"], ["y"])],
        [value("x", [1, 3, "height", "width"])], [value("y", [1, 64])],
        [random_tensor(name, dims, seed, 0.2) for seed, (name, dims) in enumerate(sizes.items())])


def main():
    folder = work_folder("resize")
    shutil.rmtree(folder / "cache", ignore_errors=True)
    environment = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"))
    path, report = folder / "classifier.onnx", folder / "report.json"
    path.write_bytes(classifier())
    compiled = []
    for size in (40, 56, 40):
        pack(path, folder / "out", "--shape", f"height={size}", "--shape", f"width={size}", f"--json={report}", *LEVEL,
             env=environment)
        compiled.append(json.loads(report.read_text())["cache"]["kernels_compiled"])
    check(0 < compiled[1] < compiled[0], f"{compiled[0]} kernels, {compiled[1]} of them again for another size")
    check(compiled[2] == 0, "none for the first size again")


if __name__ == "__main__":
    sys.exit(main())
