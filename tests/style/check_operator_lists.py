#!/usr/bin/env python3
"""What is known of an ONNX operator stands in its row of importer/operators/onnx_ops.def, so no other file lists operators.

A file that quotes more than a few operators' names has a list of them, however it is written. Those that may are here,
each with its reason.
"""
import pathlib
import re
import subprocess
import sys

FEW = 3
MAY = {
    "importer/formula/formula.cpp": "the functions that an attribute of the recurrent operators names",
    "importer/rules/contraction/recurrent.cpp": "the functions that they have without that attribute",
}
TABLE = "importer/operators/onnx_ops.def"


def main():
    names = set(re.findall(r'^ONNX_OP\("[^"]*", *(\w+),', pathlib.Path(TABLE).read_text(), re.M))
    files = subprocess.run(["git", "ls-files", "importer/*", "compiler/*", "packager/*"], check=True,
                           capture_output=True, text=True).stdout.split()
    found, unused = [], set(MAY)
    for file in files:
        if not file.endswith((".cpp", ".h", ".def")) or file == TABLE or not pathlib.Path(file).exists():
            continue
        code = re.sub(r"//.*", "", pathlib.Path(file).read_text())
        # A row of another table would have the name as a word behind the domain.
        quoted = names & set(re.findall(r'"(\w+)"', code) + re.findall(r'\w\("[\w.]*", *(\w+)', code))
        unused -= {file} if quoted else set()
        if len(quoted) > FEW and file not in MAY:
            found.append(f"{file}: lists {', '.join(sorted(quoted))}: that is a column of {TABLE}")
    found += [f"{file} lists no operators any more" for file in sorted(unused)]
    print("\n".join(found))
    print(f"{len(names)} operators, {len(found)} faults")
    return 1 if found or not names else 0


if __name__ == "__main__":
    sys.exit(main())
