#!/usr/bin/env python3
"""The scalar functions as vectors: on every CPU level that can run here they keep their error
bounds, and with fused multiply-add give the bits the host's compiler gives for scalars. For all
other targets they compile without a warning, and call nothing but the integer and floating
arithmetic the hardware lacks. With --quick, only the bounds, on the strongest level."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

CLANG = "clang++-19"
# Targets whose programs are run, by whom, and what the compiler is told.
EMULATED = [("aarch64", ["qemu-aarch64-static"], ["--target=aarch64-linux-gnu"]),
            ("riscv64-v", ["qemu-riscv64-static", "-cpu", "rv64,v=true,vext_spec=v1.0"],
             ["--target=riscv64-linux-gnu", "-march=rv64gcv", "-mno-relax"])]
SOURCES = pathlib.Path("tests/vector")
FLAGS = ["-std=c++20", "-O2", "-fwrapv", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-I."]
# CPU level, what /proc/cpuinfo must list to run it, whether it fuses.
LEVELS = [("x86-64", "sse2", False), ("x86-64-v2", "sse4_2", False),
          ("x86-64-v3", "avx2", True), ("x86-64-v4", "avx512vl", True)]
# Targets that are compiled only, and the start of the names they may call.
TARGETS = [(["--target=aarch64-linux-gnu"], ()),
           (["--target=riscv64-linux-gnu", "-march=rv64gcv"], ()),
           (["--target=thumbv7em-none-eabihf", "-mcpu=cortex-m4"], ("__aeabi_",)),
           (["--target=thumbv7em-none-eabihf", "-mcpu=cortex-m7"], ("__aeabi_",)),
           (["--target=thumbv6m-none-eabi", "-mcpu=cortex-m0plus"], ("__aeabi_",)),
           (["--target=riscv32-unknown-elf", "-march=rv32imac"], ("__",)),
           (["--target=wasm32"], ("__stack_pointer",))]

failures = 0


def check(holds, text):
    global failures
    failures += not holds
    print("ok  " if holds else "FAIL", text)


def build(compiler, source, output, *flags):
    subprocess.run([compiler, *FLAGS, *flags, str(SOURCES / source), "-o", str(output)], check=True)


def lines_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def differing(lines, expected):
    pairs = [(a, b) for a, b in zip(lines, expected) if a != b]
    missing = abs(len(lines) - len(expected))
    return [a.rsplit(" ", 1)[0] for a, _ in pairs] + ["(rows)"] * missing


def run_levels(folder, expected, quick):
    cpu = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
    here = [row for row in LEVELS if f" {row[1]}" in cpu]
    for level, _, _ in LEVELS:
        if level not in [row[0] for row in here]:
            print("skip", level, "cannot run here")
    for level, _, fused in here[-1:] if quick else here:
        bounds = folder / "bounds"
        build(CLANG, "vector_bounds.cpp", bounds, f"-march={level}")
        result = subprocess.run([bounds], capture_output=True, text=True)
        check(result.returncode == 0, f"{level}: error bounds {result.stdout.strip()}")
        for lanes in (1, 4, 16) if fused and not quick else ():
            program = folder / "functions"
            build(CLANG, "vector_functions.cpp", program, f"-march={level}", f"-DSVOD_LANES={lanes}")
            wrong = differing(lines_of([program]), expected)
            check(not wrong, f"{level}: {lanes} lanes give the host's bits {wrong}")


def run_emulated(name, emulator, flags, folder, expected):
    if not shutil.which(emulator[0]) or not shutil.which("ld.lld-19"):
        print(f"skip {name}: no", emulator[0])
        return
    program = folder / f"functions_{name}"
    for lanes in (1, 4, 16):
        build(CLANG, "vector_functions.cpp", program, *flags, "-DSVOD_BARE",
              f"-DSVOD_LANES={lanes}", "-ffreestanding", "-nostdlib", "-static", "-fuse-ld=lld-19",
              "-fno-stack-protector", "-fno-builtin")
        wrong = differing(lines_of([*emulator, program]), expected)
        check(not wrong, f"{name}: {lanes} lanes give the host's bits {wrong}")


def compile_targets(folder):
    for flags, allowed in TARGETS:
        for lanes in (1, 4, 16):
            output = folder / "object.o"
            build(CLANG, "all_functions.cpp", output, *flags, f"-DSVOD_LANES={lanes}", "-c",
                  "-ffreestanding", "-nostdinc")
            names = [line.split()[-1] for line in lines_of(["llvm-nm-19", "-u", output])]
            strange = [name for name in names if not name.startswith(allowed or ("(none)",))]
            check(not strange, f"{' '.join(flags)}: {lanes} lanes call nothing strange {strange}")


def main():
    if not shutil.which(CLANG) or not shutil.which("llvm-nm-19"):
        print("no", CLANG)
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if "--quick" in sys.argv:
            run_levels(folder, [], True)
            return 1 if failures else 0
        reference = folder / "reference"
        build(os.environ.get("CXX", "c++"), "vector_functions.cpp", reference, "-DSVOD_LANES=1",
              "-fno-math-errno")
        expected = lines_of([reference])
        check(len(expected) > 300, f"{len(expected)} functions")
        run_levels(folder, expected, False)
        for target, emulator, flags in EMULATED:
            run_emulated(target, emulator, flags, folder, expected)
        compile_targets(folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
