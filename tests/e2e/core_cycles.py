#!/usr/bin/env python3
"""Clocks of kernels on cores that are not here, by LLVM's scheduling models: deterministic, so bounds of them are a test."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "support"))
from packing import DIGITS, check, need, run

# Least share of a core's peak that the largest convolution of the digits model reaches, and the largest three kernels.
LEAST = {"cortex-a76": (88, 76), "neoverse-n1": (86, 68)}


def shares(text):
    """{core: ({kernel: share}, share of the sum)}, in percent."""
    out, core = {}, ""
    for line in text.splitlines():
        if re.fullmatch(r"[a-z]+-\w+", line):
            core = line
            out[core] = ({}, 0.0)
        elif row := re.match(r"\s+(k\d+) \w+ .* ([\d.]+) %", line):
            out[core][0][row.group(1)] = float(row.group(2))
        elif row := re.match(r"\s+sum .* ([\d.]+) %", line):
            out[core] = (out[core][0], float(row.group(1)))
    return out


def main():
    need("llvm-mca-19", "qemu-aarch64", "gcc")
    done = run(sys.executable, ROOT / "bench/core_cycles.py", DIGITS, "--target", "aarch64", "--kernels", "3",
               "--cores", ",".join(LEAST), "--loops", "k1", seconds=300)
    text = done.stdout.decode()
    found = shares(text)
    for core, (largest, together) in LEAST.items():
        of_kernel, of_sum = found[core]
        check(of_kernel["k1"] >= largest, f"{core}: k1 at {of_kernel['k1']} % of the peak, at least {largest}")
        check(of_sum >= together, f"{core}: {of_sum} % in sum, at least {together}")
    check("fmla" in text and ".s[3]" in text, "the loops of k1 take elements of registers")


if __name__ == "__main__":
    main()
