#!/usr/bin/env python3
"""clang-tidy decides names and finds bug patterns (.clang-tidy), over all our sources but the tests.

    check_tidy.py [FILES...]      default: every tracked .cpp that the build compiles

A file that includes Clang's headers takes ten seconds and more, so the whole run is a long test; results
are remembered per file content under the build folder, and an unchanged tree costs nothing. With SVOD_TIDY_PARTS=N
only every N-th file is read, and another part of them after every commit: N commits in a row read all.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from compile_commands import compile_commands
from time_limit import commit_number

TOOL, JOBS = "clang-tidy-19", 2
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", "build"))


def tracked(*patterns):
    return subprocess.run(["git", "ls-files", *patterns], check=True, capture_output=True,
                          text=True).stdout.split()


def state_of(path, shared):
    return hashlib.sha256(shared + pathlib.Path(path).read_bytes()).hexdigest()


def part_of(files):
    """The files of this commit's turn."""
    parts = int(os.environ.get("SVOD_TIDY_PARTS", "1"))
    commits = commit_number()
    if parts > 1:
        print(f"part {commits % parts + 1} of {parts}; SVOD_TIDY_PARTS=1 reads all {len(files)} files")
    return sorted(files)[commits % parts::parts]


def lint(path):
    # The precompiled header is gcc's; clang-tidy reads the headers themselves, which without it are in its eyes
    # ours where they use what they deprecate.
    run = subprocess.run([TOOL, "-p", str(BUILD / "tidy"), "--quiet", "--extra-arg=-Wno-ignored-gch",
                          "--extra-arg=-Wno-deprecated-declarations",
                          "--warnings-as-errors=*", path],
                         capture_output=True, text=True)
    return path, run.returncode, run.stdout


def main():
    if not shutil.which(TOOL):
        print(f"skipped: {TOOL} is not installed (apt-get install {TOOL})")
        return 77
    commands = list(compile_commands(BUILD))
    (BUILD / "tidy").mkdir(exist_ok=True)
    (BUILD / "tidy" / "compile_commands.json").write_text(json.dumps(commands))
    compiled = {os.path.relpath(c["file"]) for c in commands}
    files = sys.argv[1:] or part_of([f for f in tracked("*.cpp")
                                     if f in compiled and not f.startswith("tests/")])
    # Any header may change what a source means, so all of them are part of its state.
    shared = b"".join(pathlib.Path(f).read_bytes()
                      for f in [".clang-tidy", *tracked("*.h", "*.def")])
    memory_file = BUILD / "clang_tidy_clean.txt"
    clean = set(memory_file.read_text().split()) if memory_file.exists() else set()
    states = {f: state_of(f, shared) for f in files}
    todo = [f for f in files if states[f] not in clean]
    faults = 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for path, code, text in pool.map(lint, todo):
            if code:
                faults += 1
                print(text.strip() or f"{path}: {TOOL} failed")
            else:
                clean.add(states[path])
    memory_file.write_text("\n".join(sorted(clean & set(states.values()))))
    print(f"{len(files)} files, {len(todo)} read, {faults} with findings")
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
