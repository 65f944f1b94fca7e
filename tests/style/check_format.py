#!/usr/bin/env python3
"""clang-format decides layout: every tracked C and C++ file must be as it would write it."""
import shutil
import subprocess
import sys

TOOL = "clang-format-19"


def main():
    if not shutil.which(TOOL):
        print(f"skipped: {TOOL} is not installed (apt-get install {TOOL})")
        return 77
    files = subprocess.run(["git", "ls-files", "*.h", "*.cpp", "*.c"], check=True,
                           capture_output=True, text=True).stdout.split()
    run = subprocess.run([TOOL, "--dry-run", "-Werror", "--ferror-limit=1", *files],
                         capture_output=True, text=True)
    other = sorted({line.split(":")[0] for line in run.stderr.splitlines() if ": error: " in line})
    for path in other:
        print(f"to repair: {TOOL} -i {path}")
    print(f"{len(files)} files, {len(other)} to repair")
    return 1 if run.returncode or other else 0


if __name__ == "__main__":
    sys.exit(main())
