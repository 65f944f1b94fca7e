#!/usr/bin/env python3
"""The digits model as a WebAssembly module with its loader, run in Node: the host's scores within 1e-5, vectors in the
code, the same bytes twice, and errors that name the input."""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import emulated
from packing import (DIGITS, PACKER, SAMPLES, check, digits_on, labels_right, largest_difference, need, pack, read_npy, run,
                     sample, work_folder)

WRONG_INPUT = """
import { load } from "./digits.mjs";
const model = await load();
for (const inputs of [{}, {image: new Float32Array(3)}, {image: new Int32Array(64)}])
  try { model.run(inputs); } catch (error) { console.log(String(error)); }
console.log(model.info().target, JSON.stringify(model.inputs));
"""


def refused(folder):
    for words, why in ((["-o", "x.wasm", "--target", "x86-64"], "--target wasm32"),
                       (["-o", "x.a", "--target", "wasm32"], "modules only"),
                       (["-o", "x.wasm", "--target", "wasm32", "--pkg-config"], "--pkg-config")):
        told = run(PACKER, DIGITS, *words, expect=2, cwd=folder).stderr.decode()
        check(why in told, f"exit 2: {told.strip()}")


def main():
    need("node")
    folder = work_folder("wasm")
    refused(folder)
    host, module = folder / "digits", folder / "digits.wasm"
    pack(DIGITS, host)
    pack(DIGITS, module, "--target", "wasm32", "--name", "digits")
    again = folder / "again.wasm"
    pack(DIGITS, again, "--target", "wasm32", "--name", "digits", "--no-cache")
    check(module.read_bytes() == again.read_bytes(), f"packing twice gives the same {module.stat().st_size} bytes")
    code = run(emulated.OBJDUMP, "-d", module).stdout.decode()
    check(code.count("f32x4.mul") > 10, f"{code.count('f32x4.mul')} products of vectors")
    target, there = emulated.find_target("wasm32"), []
    for file, _ in SAMPLES:
        inputs = [struct.pack("<64f", *read_npy(sample(file))[1])]
        status, outputs = emulated.execute_module(target, module, inputs, folder)
        check(status == 0, f"{file}: node ends with {status}")
        there.append(struct.unpack("<10f", outputs[0]))
    difference = largest_difference(digits_on([], host, folder), there)
    check(labels_right(there) == 10 and difference <= 1e-5, f"largest difference to the host: {difference:.3g}")
    (folder / "wrong.mjs").write_text(WRONG_INPUT)
    told = run("node", "wrong.mjs", cwd=folder).stdout.decode()
    check(told.count("input 'image' is no Float32Array of 256 bytes") == 3, told.splitlines()[0])
    check('wasm32 [{"name":"image","dtype":"f32","dims":[1,1,8,8],"bytes":256}]' in told, told.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main())
