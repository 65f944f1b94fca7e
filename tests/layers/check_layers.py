#!/usr/bin/env python3
"""Reads every #include of the tree and holds it against the layers.

Data flows one way (STYLE: onnx -> Graph -> ... -> Image), so a folder may only see the folders before it: layers.txt
lists them, and CMake builds each folder with the include folders of its row. DOORS lists the one place where each
third-party header may be named. Anything not listed is refused, so a new folder or library has to be written down first.
"""
import pathlib
import re
import subprocess
import sys

import layers

SEES = layers.rows()

# Header pattern -> files or folders that may include it.
DOORS = {
    r"grpc(pp)?/|(remote_execution|byte_stream)(\.grpc)?\.pb\.h$": ["packager/remote/grpc_client.cpp",
                                                                    "tests/tools/cache_server.cpp"],
    r"google/protobuf/|.*\.pb\.h$|onnx/": ["importer/model", "importer/check", "tests/fuzz/wire_target.cpp"],
    r"re2/": ["tests/fuzz/regex_target.cpp"],
    r"clang/": ["compiler/toolchain", "compiler/codegen/check_cpp.cpp",
                "compiler/codegen/read_custom_ops.cpp"],
    r"llvm(-c)?/": ["compiler/toolchain", "compiler/codegen/check_cpp.cpp",
                    "compiler/codegen/read_custom_ops.cpp"],
    r"lld/": ["compiler/toolchain"],
    r"zstd\.h$": ["packager/artefact/compress_weights.cpp"],
    r"CLI/": ["packager/command/option_table.cpp"],
    r"catch2/": ["tests"],
    r"sanitizer/": ["tests/images", "tests/fuzz"],
}
# Programs as users write them: they see what svod-pack wrote for their model, and nothing of ours.
USERS = ["docs/examples", "tests/library"]
STUB_SYSTEM = {"stdint.h", "stddef.h"}  # the stub has no library beneath it
SYSTEM = re.compile(r"[a-z_0-9]+$|(sys|linux|arpa|netinet|asm)/[a-z_0-9]+\.h$|[a-z_0-9]+\.h$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def inside(path, places):
    return any(path == p or path.startswith(p + "/") for p in places)


def folder_of(path):
    """The longest listed folder that holds the file."""
    holders = [f for f in SEES if path.startswith(f + "/")]
    return max(holders, key=len) if holders else None


def fault(path, quote, header, tracked):
    """Why this include is refused, or None."""
    if inside(path, USERS):
        made = quote == '"' and "/" not in header and header not in tracked
        return None if made or (quote == "<" and SYSTEM.match(header)) else "a user's program sees no header of ours"
    folder = folder_of(path)
    if folder is None:
        return "its folder is in no layer: add a row to layers.txt"
    for pattern, places in DOORS.items():
        if re.match(pattern, header):
            return None if inside(path, places) else f"its door is {' or '.join(places)}"
    if quote == '"':
        if header not in tracked and not header.startswith("generated/"):
            here = str(pathlib.PurePosixPath(path).parent / header)
            return "write it from the root" if here in tracked else "no such file from the root"
        target = folder_of(header)
        if target == folder or header in SEES[folder] or target in SEES[folder]:
            return None
        return f"{folder} may see only: {', '.join(SEES[folder]) or 'nothing'}"
    if folder == "runtime_stub" and header not in STUB_SYSTEM:
        return "the stub includes nothing but stdint.h and stddef.h"
    return None if SYSTEM.match(header) else "third-party header without a door: add it to DOORS"


def main():
    files = subprocess.run(["git", "ls-files", "*.h", "*.cpp", "*.def"], check=True,
                           capture_output=True, text=True).stdout.split()
    tracked, faults, seen = set(files), [], 0
    for path in files:
        text = pathlib.Path(path).read_text()
        for match in INCLUDE.finditer(text):
            seen += 1
            reason = fault(path, match[1], match[2], tracked)
            if reason:
                line = text.count("\n", 0, match.start()) + 1
                faults.append(f"{path}:{line}: {match[2]}: {reason}")
    print("\n".join(faults))
    print(f"{seen} includes in {len(files)} files, {len(faults)} against the layers")
    return 1 if faults or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
