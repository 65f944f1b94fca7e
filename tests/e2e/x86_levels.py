#!/usr/bin/env python3
"""CPU levels of x86-64 that multiply bytes, chosen when a program starts: every level that runs here gives the bytes of the
quantised networks of models/, and where Linux refuses the registers of tiles the program takes the level before. `--long` has all networks."""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import LONG, SOURCE, check, pack, run, work_folder


def main():
    folder = work_folder("x86_levels")
    for name in ("digits_int8", "keywords_int8") if LONG else ("digits_int8",):
        model = SOURCE / "models" / name / f"{name}.onnx"
        program = folder / name
        pack(model, program, "--target", "x86-64")
        told = run(program, "--cpu-check").stdout.decode()
        print(told)
        levels = re.findall(r"^(\w+): runs here", told, re.M)
        check(re.findall(r"^(\w+):", told, re.M) == ["v2", "v3", "v4", "vnni", "amx"], "all levels are named")
        check(f"{levels[-1]}: runs here, and is used" in told, f"{levels[-1]} is used")
        for level in levels:
            for data in sorted(model.parent.glob("test_data_set_*")):
                said = run(program, "--isa", level, "--verify", data).stdout.decode()
                check("max abs 0," in said, f"{name} by {level}: {said.strip()}")
        if "amx" not in levels:
            print("tiles are not run: this CPU has none, or Linux does not allow them")
        elif shutil.which("strace") is None:
            print("a refusal is not tried: there is no strace to inject one")
        else:
            refused = run("strace", "-o", folder / "trace.txt", "-e", "inject=arch_prctl:error=EINVAL", program, "--cpu-check")
            told = refused.stdout.decode()
            check("vnni: runs here, and is used" in told, "vnni is used where Linux refuses tiles")
            check("amx: this CPU lacks AMX-INT8" in told, "amx is named as what is lacking")


if __name__ == "__main__":
    sys.exit(main())
