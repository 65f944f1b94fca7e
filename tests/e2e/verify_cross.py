#!/usr/bin/env python3
"""--verify of packs for other machines: programs under QEMU's user mode, firmware libraries on an emulated board,
modules in Node, any by --runner; a wrong answer is exit 7 on all. --emit=testbench is a self-test that compilers take without a
warning and that says PASS, and FAIL when the library is another's."""
import os
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import BUILD, DIGITS, PACKER, check, need, run, work_folder

DATA = DIGITS.parent


def packed(folder, *words, code=0, seconds=300, path=os.environ["PATH"]):
    environment = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"), PATH=path)
    done = run(PACKER, DIGITS, "--name", "digits", *words, expect=code, cwd=folder, env=environment, seconds=seconds)
    return (done.stdout + done.stderr).decode()


def wrong_data(folder):
    """The data set with its score of 1 changed to a half."""
    data = folder / "wrong"
    shutil.copytree(DATA / "test_data_set_0", data)
    expected = data / "output_0.pb"
    one, half = struct.pack("<f", 1), struct.pack("<f", 0.5)
    check(expected.read_bytes().count(one) == 1, "the digit is certain")
    expected.write_bytes(expected.read_bytes().replace(one, half))
    return data


def programs(folder, wrong):
    tried = 0
    for target, emulator in (("aarch64", "qemu-aarch64"), ("riscv64", "qemu-riscv64"), ("armv7", "qemu-arm"),
                             ("i686", "qemu-i386")):
        if not (shutil.which(emulator) or shutil.which(emulator + "-static")):
            print(f"left out: {target} needs {emulator}")
            continue
        for output in ("program", "program.a"):
            told = packed(folder, "-o", output, "--target", target, "--verify", DATA)
            check("scores f32[1,10]: max abs" in told, f"{target}, {output}: {told.splitlines()[1].strip()}")
        packed(folder, "-o", "program", "--target", target, "--verify", wrong, code=7)
        check(True, f"{target}: wrong data is exit 7")
        tried += 1
    if tried:
        named = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        if named:
            packed(folder, "-o", "p", "--target", "aarch64", "--verify", "random", "--runner", named)
    return tried


def boards(folder, wrong):
    if not shutil.which("qemu-system-arm"):
        print("left out: boards need qemu-system-arm")
        return
    targets = ["cortex-m4", "cortex-m33", "cortex-m55", "cortex-m85"]
    if shutil.which("arm-none-eabi-gcc"):
        targets += ["cortex-m0", "cortex-m4-soft"]
    for target in targets:
        told = packed(folder, "-o", "lib.a", "--target", target, "--verify", DATA)
        check(told.startswith("PASS\n"), f"{target} on its board says PASS")
    told = packed(folder, "-o", "lib.a", "--target", "cortex-m4", "--verify", wrong, code=7)
    check("FAIL: output 0, element 2" in told, f"wrong data: {told.splitlines()[0]}")


def other_boards(folder, wrong):
    """Emulator of a target, and who has its floats in software."""
    for target, *tools in (("rv32imac", "qemu-system-riscv32", "riscv64-unknown-elf-gcc"),
                           ("rv32imafc", "qemu-system-riscv32"), ("aarch64-bare", "qemu-system-aarch64"),
                           ("wasm32", "node")):
        if missing := [tool for tool in tools if not shutil.which(tool)]:
            print(f"left out: {target} needs {missing[0]}")
            continue
        output = "lib.wasm" if target == "wasm32" else "lib.a"
        told = packed(folder, "-o", output, "--target", target, "--verify", DATA)
        check(told.startswith("PASS\n"), f"{target} in {tools[0]} says PASS")
        told = packed(folder, "-o", output, "--target", target, "--verify", wrong, code=7)
        check("FAIL: output 0, element 2" in told, f"wrong data: {told.splitlines()[0]}")


def profiles(folder):
    """Instructions of each kernel; on a Cortex-M4 they are what QEMU's own counter has found before, nearly."""
    for target, emulator, least, most in (("cortex-m4", "qemu-system-arm", 100e3, 250e3),
                                          ("rv32imafc", "qemu-system-riscv32", 100e3, 400e3),
                                          ("aarch64-bare", "qemu-system-aarch64", 30e3, 60e3)):
        if not shutil.which(emulator):
            continue
        told = packed(folder, "-o", "lib.a", "--target", target, "--verify", DATA, "--profile").splitlines()
        at = next(i for i, line in enumerate(told) if line.startswith("instructions of one run under QEMU: "))
        rows = [line.split() for line in told[at + 1:] if line.startswith("  ") and "ONNX nodes" in line]
        total = int(told[at].split()[-1])
        check(least < total < most and total == sum(int(row[0]) for row in rows), f"{target}: {told[at]}")
        check("'conv2'" in " ".join(rows[0]), f"{target}: most are {' '.join(rows[0])}")
    for words in (["--profile"], ["--profile", "--verify", "off"], ["--profile", "--verify", "random", "--runner", "x"]):
        told = packed(folder, "-o", "lib.a", "--target", "cortex-m4", *words, code=2)
        check("--profile is for firmware" in told, told.splitlines()[0])


def runners(folder):
    """A runner gets a folder with the self-test, the library and its header."""
    runner = folder / "runner.sh"
    for says, code in (("PASS", 0), ("FAIL: output 0", 7), ("nothing", 7)):
        runner.write_text('#!/bin/sh\ntest -s "$1/selftest.c" -a -s "$1/libdigits.a" -a -s "$1/libdigits.h" && '
                          f'echo "{says}"\n')
        runner.chmod(0o755)
        packed(folder, "-o", "lib.a", "--target", "rv32imac", "--verify", "random", "--runner", runner, code=code)
        check(True, f"a runner that says {says} is exit {code}")
    told = packed(folder, "-o", "lib.a", "--target", "rv32imac", "--verify", "random", path="/nowhere")
    check("not verified" in told and "--runner CMD" in told, "without one, a note")


def testbench(folder):
    need("gcc")
    packed(folder, "--emit=testbench", "-o", "selftest.c", "--verify", DATA)
    packed(folder, "-o", "libdigits.a", "--verify", "off")
    words = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-O2", "selftest.c", "libdigits.a"]
    for compiler in ("gcc", "clang-14", "clang-19"):
        if not shutil.which(compiler):
            continue
        run(compiler, *words, "-o", "selftest", cwd=folder)
        check(run(folder / "selftest").stdout == b"PASS\n", f"built by {compiler}, the self-test says PASS")
    text = (folder / "selftest.c").read_text()
    (folder / "selftest.c").write_text(text.replace("expected0[] = {\n  0x3", "expected0[] = {\n  0x7", 1))
    run("gcc", *words, "-o", "selftest", cwd=folder)
    told = run(folder / "selftest", expect=1).stdout.decode()
    check(told.startswith("FAIL: output 0, element"), f"another expectation: {told.strip()}")


def main():
    folder = work_folder("verify_cross")
    wrong = wrong_data(folder)
    testbench(folder)
    runners(folder)
    boards(folder, wrong)
    other_boards(folder, wrong)
    profiles(folder)
    programs(folder, wrong)


if __name__ == "__main__":
    sys.exit(main())
