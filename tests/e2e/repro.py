#!/usr/bin/env python3
"""Packing twice gives equal bytes: other folder, other environment, one CPU instead of all, no cache."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import small_cnn
from packing import DIGITS, check, pack, work_folder


def one_cpu():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def main():
    folder = work_folder("repro")
    cnn = folder / "cnn.onnx"
    cnn.write_bytes(small_cnn())
    for model in (DIGITS, cnn):
        for suffix in ("", ".a"):
            here, there = folder / "here", folder / "there"
            here.mkdir(exist_ok=True), there.mkdir(exist_ok=True)
            copy = there / "other name.onnx"
            shutil.copy(model, copy)
            first, second, third = (d / f"infer{suffix}" for d in (here, there, folder))
            pack(model, first, "--no-cache", "--name", "infer")
            pack(copy, second, "--no-cache", "--name", "infer", cwd=there, preexec_fn=one_cpu,
                 env={"PATH": os.environ["PATH"], "HOME": str(there), "LC_ALL": "C", "TZ": "Asia/Tokyo"})
            pack(model, third, "--name", "infer")
            pack(model, third, "--name", "infer")  # now all kernels come from the cache
            equal = first.read_bytes() == second.read_bytes() == third.read_bytes()
            check(equal, f"{model.name} as {'library' if suffix else 'executable'}: equal bytes")


if __name__ == "__main__":
    sys.exit(main())
