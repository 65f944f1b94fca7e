#!/usr/bin/env python3
"""What small models take on microcontrollers: flash by parts, RAM, and the instructions of one run under QEMU.

    firmware_sizes.py [TARGET...]      cortex-m4 unless told; packed with -Os
    firmware_sizes.py --parts          also the largest parts of each image: kernels, the run, functions that they share

Text is everything but weights: kernels with their constants, and the run. Beside it a program has what its floats need
where they are software (the compiler's library, not counted here).
"""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import emulated
import firmware_models as models
from packed_header import Header
from packing import SOURCE, need, pack

MODELS = {"sine 1-16-16-1, fp32": models.sine(), "32-16-4, int8": models.dense_int8(),
          "digits 28x28, int8": (SOURCE / "models/digits_int8/digits_int8.onnx").read_bytes(),
          "keywords 49x10, int8": (SOURCE / "models/keywords_int8/keywords_int8.onnx").read_bytes(),
          "digits 8x8, fp32": (SOURCE / "models/digits.onnx").read_bytes()}


def measured(name, content, target, folder):
    (folder / "model.onnx").write_bytes(content)
    library = folder / "libinfer.a"
    pack(folder / "model.onnx", library, "--target", target.alias, "-Os", f"--json={folder / 'told.json'}")
    told = json.loads((folder / "told.json").read_text())["bytes"]
    header = Header(library.with_suffix(".h"))
    inputs = [emulated.made_up(port) for port in header.ports("INPUT")]
    program, outputs = emulated.link(target, library, folder, inputs)
    code, _ = emulated.execute(target, program, outputs, folder / "counts")
    if code != 0:
        sys.exit(f"{name} on {target.alias}: exit {code}")
    counts = emulated.read_counts(folder / "counts")
    run = sum(count for symbol, count in emulated.count_by_function(program, counts) if symbol != "_start")
    print(f"{target.alias:14} {name:22} {told['code'] + told['stub']:7} {told['weights']:8} {header['ARENA_BYTES']:7} "
          f"{header['STACK_BYTES']:6} {run / 1e3:11.1f}")
    return [(size, symbol) for _, size, symbol in emulated.symbols(program, "a-zA-Z") if symbol != "infer_weights"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=["cortex-m4"])
    parser.add_argument("--parts", action="store_true")
    options = parser.parse_args()
    need(emulated.CLANG, emulated.LLD, emulated.OBJDUMP, "gcc")
    print(f"{'':14} {'':22} {'text':>7} {'weights':>8} {'arena':>7} {'stack':>6} {'thousand instructions':>11}")
    for alias in options.targets:
        target = emulated.find_target(alias)
        need(target.emulator[0])
        for name, content in MODELS.items():
            folder = pathlib.Path(tempfile.mkdtemp(prefix="sizes-"))
            parts = measured(name, content, target, folder)
            shutil.rmtree(folder)
            if options.parts:
                print("\n".join(f"    {size:6} {symbol}" for size, symbol in sorted(parts, reverse=True)[:10]))


if __name__ == "__main__":
    sys.exit(main())
