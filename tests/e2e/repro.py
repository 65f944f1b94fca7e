#!/usr/bin/env python3
"""Packing twice gives equal bytes: other folder, environment, memory, one CPU instead of all, no cache."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from memory_layouts import kernel_texts
from onnx_writer import random_forest, small_cnn, small_mlp
from packing import DIGITS, PACKER, check, pack, work_folder


def one_cpu():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def same_kernels_on_any_memory(folder):
    """A tree's walk is chosen by what the kernels around it read, which once lay in freed memory."""
    models = {"digits": DIGITS}
    for name, content in {"cnn": small_cnn(), "mlp": small_mlp(), "forest": random_forest(),
                          "small forest": random_forest(trees=6, depth=3, targets=1)}.items():
        models[name] = folder / f"{name}.onnx"
        models[name].write_bytes(content)
    for name, path in models.items():
        for target in ("x86-64", "aarch64", "cortex-m4"):
            found = kernel_texts(PACKER, path, ["--target", target])
            check(found[0][0] == 0 and len(set(found)) == 1, f"{name} for {target}: equal kernels on all layouts of memory")


def main():
    folder = work_folder("repro")
    same_kernels_on_any_memory(folder)
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
