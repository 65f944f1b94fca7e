#!/usr/bin/env python3
"""What the packed program asks of the kernel: no heap, no file but its arguments, nothing while it runs."""
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import DIGITS, check, need, pack, run, sample, work_folder

CLOCK = {"clock_gettime", "gettimeofday"}


def trace(folder, *command):
    """The system calls of a command, one line each, the exec itself left out."""
    log = folder / "trace.txt"
    run("strace", "-f", "-o", log, *command)
    lines = [re.sub(r"^\d+\s+", "", line) for line in log.read_text().splitlines()]
    return [line for line in lines if re.match(r"[a-z]", line)][1:]


def name_of(line):
    return line.split("(")[0]


def main():
    need("strace")
    folder = work_folder("syscalls")
    program, image, scores = folder / "digits", sample("digit_4.npy"), folder / "scores.npy"
    pack(DIGITS, program)
    calls = trace(folder, program, "--threads", "1", "--input", f"image=@{image}",
                  "--output", f"scores=@{scores}")
    print("\n".join(calls))
    names = collections.Counter(map(name_of, calls))
    check(names["brk"] == 0, "no heap")
    opened = {p for line in calls if name_of(line) in ("open", "openat", "openat2")
              for p in re.findall(r'"([^"]*)"', line)}
    check(opened <= {str(image), str(scores)}, f"opens only its arguments: {sorted(opened)}")
    anonymous = [line for line in calls if name_of(line) == "mmap" and "MAP_ANONYMOUS" in line]
    check(len(anonymous) <= 2, f"{len(anonymous)} anonymous mappings (arena, input buffers)")
    check(not any("PROT_EXEC" in line for line in calls), "nothing is made executable")
    looks = {"stat", "lstat", "newfstatat", "statx", "access", "faccessat", "readlink", "getcwd", "chdir"}
    other = [line for line in calls if name_of(line) in looks and "AT_EMPTY_PATH" not in line]
    check(not other, f"looks at no file that it has not opened {other}")

    short = trace(folder, program, "--threads", "1", "--bench", "--min-time", "0.05")
    long = trace(folder, program, "--threads", "1", "--bench", "--min-time", "0.3")
    counts = [collections.Counter(n for n in map(name_of, t) if n not in CLOCK) for t in (short, long)]
    check(counts[0] == counts[1],
          f"thousands of runs more, not one system call but the clock: {dict(counts[1])}")


if __name__ == "__main__":
    sys.exit(main())
