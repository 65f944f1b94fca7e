#!/usr/bin/env python3
"""The digits model packed for aarch64 Linux, run by QEMU: same classes as here, values within 1e-5."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import DIGITS, check, digits_on, labels_right, largest_difference, need, pack, work_folder

QEMU = "qemu-aarch64-static"


def main():
    need(QEMU)
    folder = work_folder("qemu_aarch64")
    host, arm = folder / "digits", folder / "digits_aarch64"
    pack(DIGITS, host)
    pack(DIGITS, arm, "--target", "aarch64")
    here, there = digits_on([], host, folder), digits_on([QEMU], arm, folder)
    check(labels_right(there) == 10, "all ten samples are read right")
    difference = largest_difference(here, there)
    check(difference <= 1e-5, f"largest difference to the host: {difference:.3g}")


if __name__ == "__main__":
    sys.exit(main())
