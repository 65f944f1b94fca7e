#!/usr/bin/env python3
"""Pages that tell what tables hold: every target and level, every code, and links that lead somewhere."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
DOCS = SOURCE / "docs"


def targets():
    table = (SOURCE / "compiler/support/targets.def").read_text()
    page = (DOCS / "targets.md").read_text()
    found = re.findall(r'^TARGET\("([^"]+)",\s*"([^"]+)",.*?"([^"]*)"\)', table, re.M | re.S)
    for alias, triple, levels in found:
        row = re.search(rf"^\| `{re.escape(alias)}` \| (.*)$", page, re.M)
        if not row or f"`{triple}`" not in row[1] or ", ".join(levels.split()) not in row[1]:
            yield f"docs/targets.md: no row of {alias}, {triple}, {levels}"
    for level, flags in re.findall(r'^LEVEL\("([^"]+)",\s*"\w+",\s*"([^"]*)"', table, re.M):
        if f"| {level} | `{flags}` |" not in page:
            yield f"docs/targets.md: no row of level {level} with {flags}"
    if len(found) < 15 or "`native`" not in page:
        yield "docs/targets.md: targets.def was not understood"


def codes():
    page = (DOCS / "troubleshooting.md").read_text()
    found = re.findall(r'^CODE\("(\w+)",', (SOURCE / "packager/report/codes.def").read_text(), re.M)
    for code in found:
        if not re.search(rf"^\| {code} \| .+ \| .+ \|$", page, re.M):
            yield f"docs/troubleshooting.md: no row of {code}"
    for code in re.findall(r"^\| ([EWN]\d{4}) \|", page, re.M):
        if code not in found:
            yield f"docs/troubleshooting.md: {code} is no code"


def links():
    for page in (SOURCE / "README.md", *sorted(DOCS.glob("*.md"))):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
            if not (page.parent / link).exists():
                yield f"{page.relative_to(SOURCE)}: {link} leads nowhere"
    for page in sorted(DOCS.glob("*.md")):
        if page.name in ("troubleshooting.md", "targets.md", "comparison.md") and f"docs/{page.name}" not in (
                SOURCE / "README.md").read_text():
            yield f"README.md: no link to {page.name}"


def main():
    faults = [fault for part in (targets, codes, links) for fault in part()]
    print("\n".join(faults) or "pages and tables agree")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
