#!/usr/bin/env python3
"""The digits model as a static library in Cortex-M4 firmware, run by QEMU: same classes, within 1e-5.

Everything the firmware consists of is here: our archive, tests/firmware/main.c with its start-up code and
linker script, libgcc. No C library, no heap.
"""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import (DIGITS, SAMPLES, SOURCE, check, digits_on, labels_right, largest_difference, need, pack,
                     read_npy, run, sample, work_folder)

GCC, QEMU = "arm-none-eabi-gcc", "qemu-system-arm"
CPU = ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]


def samples_header():
    rows = [", ".join(f"{v!r}f" for v in read_npy(sample(file))[1]) for file, _ in SAMPLES]
    body = ",\n".join(f"  {{{row}}}" for row in rows)
    return (f"#define SAMPLE_COUNT {len(rows)}\n"
            f"static const float samples[SAMPLE_COUNT][64] = {{\n{body}}};\n")


def main():
    need(GCC, QEMU)
    folder = work_folder("firmware")
    host, library, image = folder / "digits", folder / "libdigits.a", folder / "firmware.elf"
    pack(DIGITS, host)
    pack(DIGITS, library, "--target", "cortex-m4", "--name", "digits")
    header = folder / "libdigits.h"
    check(header.exists(), "the header lies beside the library")
    (folder / "digits.h").write_bytes(header.read_bytes())
    (folder / "samples.h").write_text(samples_header())
    source = SOURCE / "tests" / "firmware"
    run(GCC, *CPU, "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-nostdlib",
        "-Wl,--gc-sections", "-T", source / "link.ld", "-I", folder, source / "main.c", library, "-lgcc",
        "-o", image)
    print(run("arm-none-eabi-size", image).stdout.decode())
    done = run(QEMU, "-M", "mps2-an386", "-display", "none", "-serial", "none", "-monitor", "none",
               "-semihosting-config", "enable=on,target=native", "-kernel", image)
    lines = (done.stdout + done.stderr).decode().split("\n")
    there = [[struct.unpack(">f", bytes.fromhex(word))[0] for word in line.split()]
             for line in lines if len(line.split()) == 10]
    check(len(there) == 10 and labels_right(there) == 10, "all ten samples are read right")
    difference = largest_difference(digits_on([], host, folder), there)
    check(difference <= 1e-5, f"largest difference to the host: {difference:.3g}")


if __name__ == "__main__":
    sys.exit(main())
