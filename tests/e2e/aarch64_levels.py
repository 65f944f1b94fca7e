#!/usr/bin/env python3
"""CPU levels of aarch64, chosen when a program starts: on emulated CPUs with and without their instructions the best one that
is there is used, one that is not is refused by name, and every level gives the bytes of the quantised networks of models/, with `--long` of all of them."""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import LONG, SOURCE, check, need, pack, run, work_folder

QEMU = shutil.which("qemu-aarch64-static") or "qemu-aarch64"
# Target, emulated CPU, the level that is taken there, and one that is refused with what it lacks.
CASES = [("aarch64", "cortex-a53", "base", "dotprod", "dotprod (SDOT)"),
         ("aarch64", "cortex-a76", "dotprod", "i8mm", "i8mm (SMMLA)"),
         ("aarch64", "max,sve=off", "i8mm", "", ""),
         ("aarch64-sve256", "max,sve256=on", "sve256", "", ""),
         ("aarch64-sve256", "max,sve512=on", "base", "sve256", "SVE vectors of exactly 256 bits"),
         ("aarch64-sve256", "max,sve256=off,sve128=on", "base", "sve256", "SVE vectors of exactly 256 bits"),
         ("aarch64-sve256", "cortex-a76", "base", "sve256", "SVE")]


def main():
    need(QEMU)
    folder = work_folder("aarch64_levels")
    for name in ("digits_int8", "keywords_int8") if LONG else ("digits_int8",):
        model = SOURCE / "models" / name / f"{name}.onnx"
        for target in ("aarch64", "aarch64-sve256"):
            pack(model, folder / f"{name}_{target}", "--target", target)
        for target, cpu, taken, lacking, reason in CASES:
            program = [QEMU, "-cpu", cpu, folder / f"{name}_{target}"]
            told = run(*program, "--cpu-check").stdout.decode()
            check(f"{taken}: runs here, and is used" in told, f"{target} on {cpu}: {taken} is used: {told.strip()}")
            for data in sorted(model.parent.glob("test_data_set_*")):
                said = run(*program, "--verify", data).stdout.decode()
                check("max abs 0," in said, f"{name} by {taken}: {said.strip()}")
            if lacking:
                refused = run(*program, "--cpu-check", "--isa", lacking, expect=9)
                check(reason in (refused.stdout + refused.stderr).decode(), f"{lacking} is refused on {cpu}: {reason}")
    for level in ("base", "dotprod", "i8mm"):
        said = run(QEMU, "-cpu", "max", folder / "digits_int8_aarch64", "--isa", level, "--verify",
                   SOURCE / "models/digits_int8/test_data_set_0").stdout.decode()
        check("max abs 0," in said, f"--isa {level}: {said.strip()}")


if __name__ == "__main__":
    sys.exit(main())
