#!/usr/bin/env python3
"""docs/operators.md is what `svod-pack ops` prints, and the forms of that list agree."""
import json
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", SOURCE / "build")).resolve()


def ops(form):
    return subprocess.run([BUILD / "svod-pack", "ops", f"--format={form}"], check=True,
                          capture_output=True, text=True).stdout


def main():
    page, good = ops("markdown"), True
    if (SOURCE / "docs" / "operators.md").read_text() != page:
        print("docs/operators.md is stale; in the checkout's folder, run\n"
              "    build/svod-pack ops --format=markdown > docs/operators.md")
        good = False
    rows = json.loads(ops("json"))
    for key in ("domain", "op", "first", "last", "by", "types", "limits"):
        assert all(key in row for row in rows), key
    names = {(row["domain"] + "." if row["domain"] else "") + row["op"] for row in rows}
    assert names == {line.split()[0] for line in ops("text").splitlines()}
    # Rows of what is refused have two cells, the name and why; the others say more.
    cells = [line.strip("| ").split(" | ") if line.count("|") == 3 else line.split()[1:2]
             for line in page.splitlines() if line.startswith("| ")]
    listed = {row[0] for row in cells if len(row) == 1} - {"operator", "---"}
    refused = {row[0] for row in cells if len(row) == 2} - {"not supported", "---"}
    assert listed == {row["op"] for row in rows}
    assert "YieldOp" in refused and "YieldOp" not in listed
    assert {"Conv", "If", "HannWindow"} <= listed and "Frobnicate" not in listed
    # A limit of an operator that is not there would never be seen.
    table = (SOURCE / "importer" / "operators" / "onnx_ops.def").read_text()
    limited = set(re.findall(r'^ONNX_OP\("[^"]*", *(\w+),[^"\n]*,\s*"(?=.*\b[VO]\(|.*,\n)', table, re.M))
    assert limited == {row["op"] for row in rows if row["limits"]}, limited
    print(f"{len(names)} operators")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
