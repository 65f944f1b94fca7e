#!/usr/bin/env python3
"""A wrong include does not compile: asks the compiler, with the flags of each folder, which headers it finds.

For every folder of layers.txt one of its files is taken from compile_commands.json, and in its place a text is
compiled that asks for every header of the tree by __has_include. Found must be those of the folder and of its row, and
no others. One text per folder includes a header that it may not see, and has to be refused.
"""
import os
import pathlib
import shlex
import subprocess
import sys

import layers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from compile_commands import compile_commands

BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", "build"))
SEES = layers.rows()
# Options that say where the result goes, or that name a header made before.
DROPPED = {"-c", "-MD", "-Winvalid-pch"}
DROPPED_WITH_VALUE = {"-o", "-MT", "-MF", "-include"}


def folder_of(path):
    holders = [f for f in SEES if path.startswith(f + "/")]
    return max(holders, key=len) if holders else None


def flags_of_folders():
    """The compiler and its flags, one file's for each folder."""
    flags = {}
    for entry in compile_commands(BUILD):
        folder = folder_of(os.path.relpath(entry["file"]))
        if folder is None or folder in flags:
            continue
        words, kept = iter(shlex.split(entry["command"])), []
        for word in words:
            if word in DROPPED_WITH_VALUE:
                next(words)
            elif word not in DROPPED and not word.endswith(".cpp"):
                kept.append(word)
        flags[folder] = kept, entry["directory"]
    return flags


def run(flags, text, *options):
    words, folder = flags
    return subprocess.run([*words, *options, "-x", "c++", "-"], input=text, cwd=folder, capture_output=True, text=True)


def may_see(folder, header):
    place = folder_of(header)
    return place == folder or place in SEES[folder] or header in SEES[folder]


def faults_of(folder, flags, headers):
    text = "".join(f'#if __has_include("{h}")\nfound {h}\n#endif\n' for h in headers)
    done = run(flags, text, "-E", "-P")
    found = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("found ")}
    allowed = {h for h in headers if may_see(folder, h)}
    faults = [f"{folder} finds {h}, which it may not see" for h in sorted(found - allowed)]
    faults += [f"{folder} does not find {h}, which it may see" for h in sorted(allowed - found)]
    if done.returncode:
        faults.append(f"{folder}: {done.stderr}")
    wrong = next((h for h in headers if h not in allowed and h.endswith(".h")), None)
    said = run(flags, f'#include "{wrong}"\n', "-fsyntax-only").stderr if wrong else ""
    if wrong and "No such file" not in said and "file not found" not in said:  # gcc's words, Clang's
        faults.append(f"{folder} compiles an include of {wrong}")
    return faults


def main():
    headers = subprocess.run(["git", "ls-files", "*.h", "*.def"], check=True, capture_output=True,
                             text=True).stdout.split()
    headers = [h for h in headers if folder_of(h)]
    flags, faults = flags_of_folders(), []
    for folder in SEES:
        if folder in flags:
            faults += faults_of(folder, flags[folder], headers)
    print("\n".join(faults))
    print(f"{len(flags)} folders, {len(headers)} headers, {len(faults)} faults")
    return 1 if faults or not flags else 0


if __name__ == "__main__":
    sys.exit(main())
