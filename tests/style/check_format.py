#!/usr/bin/env python3
"""clang-format decides layout: every tracked C and C++ file must be as it would write it. Files that were found so are
remembered in the build folder by their content, and only others are looked at."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

TOOL = "clang-format-19"
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", "build"))
KNOWN = BUILD / "clang_format_known.txt"


def digests(files):
    """{file: what its layout depends on}, of tool, style and content."""
    version = subprocess.run([TOOL, "--version"], check=True, capture_output=True).stdout
    base = hashlib.sha256(version)
    styles = subprocess.run(["git", "ls-files", ".clang-format", "**/.clang-format"], check=True, capture_output=True,
                            text=True).stdout.split()
    for style in styles:
        base.update(style.encode() + b"\0" + pathlib.Path(style).read_bytes())
    out = {}
    for file in files:
        one = base.copy()
        one.update(file.encode() + b"\0" + pathlib.Path(file).read_bytes())
        out[file] = one.hexdigest()
    return out


def main():
    if not shutil.which(TOOL):
        print(f"skipped: {TOOL} is not installed (apt-get install {TOOL})")
        return 77
    files = subprocess.run(["git", "ls-files", "*.h", "*.cpp", "*.c"], check=True,
                           capture_output=True, text=True).stdout.split()
    digest = digests(files)
    known = set(KNOWN.read_text().split()) if KNOWN.exists() else set()
    anew = [file for file in files if digest[file] not in known]
    other, code = [], 0
    if anew:
        run = subprocess.run([TOOL, "--dry-run", "-Werror", "--ferror-limit=1", *anew], capture_output=True, text=True)
        other = sorted({line.split(":")[0] for line in run.stderr.splitlines() if ": error: " in line})
        code = run.returncode
    for path in other:
        print(f"to repair: {TOOL} -i {path}")
    print(f"{len(files)} files, {len(anew)} of them anew, {len(other)} to repair")
    if code or other:
        return 1
    if anew:
        # Written beside it and moved, since tests run side by side.
        made = KNOWN.with_suffix(f".{os.getpid()}")
        made.write_text("".join(f"{digest[file]}\n" for file in files))
        made.replace(KNOWN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
