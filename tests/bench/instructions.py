#!/usr/bin/env python3
"""How many instructions one run of a packed model executes on another core, by kernel: packs the model as a library,
runs it under QEMU with a plugin that counts.

    tests/bench/instructions.py kws.onnx --target cortex-m4
    tests/bench/instructions.py kws.onnx --target cortex-m4 --listing k3   # that kernel's hot instructions
    tests/bench/instructions.py kws.onnx --target aarch64:base             # its level of CPUs without SDOT
    tests/bench/instructions.py kws.onnx --target riscv64 --cpu sifive-x280 -- -Os --shape batch=1

What follows -- goes to svod-pack. Counts do not depend on this machine. A function that is executed by several
kernels, as those of software floats, has a line of its own.
"""
import argparse
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import emulated
from packed_header import Header
from packing import need, pack, run


def listing(program, counts, kernel):
    """A kernel's instructions with their counts; the lines between that were never executed are left out."""
    text = run(emulated.OBJDUMP, "-d", "--no-show-raw-insn", program, seconds=600).stdout.decode(errors="replace")
    own, inside = emulated.owners(program), False
    for line in text.splitlines():
        if label := re.match(r"([0-9a-f]+) <(.*)>:$", line):
            inside = re.match(rf"{kernel}(_|$)", own.get(int(label.group(1), 16), label.group(2))) is not None
        elif inside and (there := re.match(r"\s*([0-9a-f]+):\s+(.*)$", line)):
            count = counts.get(int(there.group(1), 16), 0)
            if count:
                yield f"{count:12d}  {there.group(2)}"


def measure(model, target, options, folder):
    """(the program, counts by address); ends the script when the model does not pack or run."""
    library = folder / "libinfer.a"
    words = ["--target", target.alias] + (["--cpu", target.given] if target.given else [])
    pack(model, library, "--threads", "1", *words, *options)
    inputs = [emulated.made_up(port) for port in Header(library.with_suffix(".h")).ports("INPUT")]
    program, outputs = emulated.link(target.row, library, folder, inputs)
    code, _ = emulated.execute(target.row, program, outputs, folder / "counts")
    if code != 0:
        print(f"the program ended with {code}: {'a signal' if code < 0 else 'a negated status of the library'}")
        sys.exit(1)
    return program, emulated.read_counts(folder / "counts")


class Asked:
    def __init__(self, alias, cpu):
        self.given, self.row = cpu, emulated.find_target(alias, cpu)
        self.alias = self.row.alias


def main():
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--target", default="cortex-m4")
    parser.add_argument("--cpu", default="")
    parser.add_argument("--listing", metavar="KERNEL", help="instructions of this kernel with their counts")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the library, the program and the counts")
    asked = parser.parse_args(own)
    target = Asked(asked.target, asked.cpu)
    need(emulated.CLANG, emulated.LLD, emulated.OBJDUMP, target.row.emulator[0], "gcc")
    folder = asked.keep or pathlib.Path(tempfile.mkdtemp(prefix="svod-instructions-"))
    folder.mkdir(parents=True, exist_ok=True)
    program, counts = measure(asked.model, target, options, folder.resolve())
    print(f"{sum(counts.values()):14,d}  {asked.model.name} on {asked.target} {asked.cpu}")
    for name, count in emulated.count_by_function(program, counts):
        print(f"{count:14,d}  {name}")
    if asked.listing:
        print("\n".join(listing(program, counts, asked.listing)))
    if not asked.keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
