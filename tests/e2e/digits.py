#!/usr/bin/env python3
"""The bundled model, packed and run as a user would: right digits, right file, right exit codes."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import DIGITS, SOURCE, check, digits_on, labels_right, need, pack, run, sample, work_folder


def hardened(program):
    """What readelf says about the executable: static PIE, RELRO, NX, no interpreter."""
    need("readelf")
    text = run("readelf", "-hlW", program).stdout.decode()
    check("DYN" in text, "position independent")
    check("INTERP" not in text, "no interpreter")
    check("GNU_RELRO" in text, "RELRO")
    stack = next(line for line in text.splitlines() if "GNU_STACK" in line)
    check("E" not in stack.split()[-2], "stack not executable")
    loads = [line for line in text.splitlines() if " LOAD " in line]
    check(all(not ("W" in line and " E" in line.split("0x")[-2]) for line in loads),
          "nothing writable and executable")
    check("NEEDED" not in run("readelf", "-dW", program).stdout.decode(), "needs no library")


def small(program):
    info = json.loads(run(program, "--info=json").stdout)
    weights, levels = info["bytes"]["weights"], 3
    rest = (program.stat().st_size - weights) / levels
    check(rest <= 120 * 1024, f"{rest / 1024:.1f} KiB per CPU level beside {weights} bytes of weights")


def time_start(folder, program):
    """Exec to exit against a static program that does nothing, in turns; the fastest of each, since a busy
    machine only adds. Printed, not judged: what a start may do is held to its system calls (syscalls.py)."""
    empty = folder / "empty"
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    run("gcc", "-O2", "-static", "-o", empty, folder / "empty.c")
    commands = [[str(empty)], [str(program), str(sample("digit_1.npy")), "--output",
                               f"scores=@{folder / 'scores.raw'}"]]
    times = [[], []]
    for _ in range(60):
        for k, command in enumerate(commands):
            start = time.perf_counter()
            subprocess.run(command, check=True)
            times[k].append(1000 * (time.perf_counter() - start))
    more = min(times[1]) - min(times[0])
    print(f"a whole run takes {more:.2f} ms more than an empty static program")


def main():
    folder = work_folder("digits")
    program = folder / "digits"
    pack(DIGITS, program, every_level=True)
    scores = digits_on([], program, folder)
    check(labels_right(scores) == 10, "all ten samples are read right")
    check(all(abs(sum(s) - 1) < 1e-5 for s in scores), "scores are probabilities")
    hardened(program)
    small(program)
    time_start(folder, program)

    data = SOURCE / "models" / "test_data_set_0"
    run(program, "--verify", data)
    damaged = folder / "test_data_set_0"
    shutil.copytree(data, damaged)
    raw = bytearray((damaged / "output_0.pb").read_bytes())
    raw[-1] ^= 0x40  # the exponent of the last score
    (damaged / "output_0.pb").write_bytes(raw)
    run(program, "--verify", damaged, expect=7)
    check(True, "--verify accepts the true outputs and notices a changed one")

    run(program, "--input", f"image=@{folder / 'absent.npy'}", expect=4)
    run(program, "--input", f"image=@{SOURCE / 'LICENSE'}", expect=1)
    run(program, "--input", f"nosuch=@{sample('digit_1.npy')}", expect=2)
    run(program, "--nosuch", expect=2)
    check(True, "exit codes of the packed program")
    image = bytearray(program.read_bytes())
    at = re.search(rb"SVODIMG\0[^\0]\0\0\0", image).start()  # magic and version: not the check's own copy
    image[at + 200] ^= 1
    broken = folder / "broken"
    broken.write_bytes(image)
    broken.chmod(0o755)
    run(broken, "--self-check", expect=10)
    check(True, "a damaged image is noticed")


if __name__ == "__main__":
    sys.exit(main())
