#!/usr/bin/env python3
"""No string of the model reaches the code: a model whose every name is hostile gives the same kernels.

The emitted text must be printable ASCII and byte-identical, and the second pack must find every object of the
first in the cache, which is keyed by the kernel's text.
"""
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import small_cnn
from packing import LEVEL, check, pack, run, work_folder

PAYLOADS = [
    b'"; system("id"); //', b"*/ #include <stdio.h> /*", b"\\\n#define float int", b"%s%n%p", b"??/",
    b"int", b"x\x00y", b"a\nb\rc", b"\x1b[31mred", b"../../../etc/passwd", b"$(reboot)", b"`id`", b"' OR 1=1",
    "\u202egnp.exe".encode(), b"__attribute__((constructor))", b"k0", b"t0", b".incbin \"/etc/passwd\"",
    b"x" * 900, b"<script>alert(1)</script>",
]


def hostile(prefix):
    """Maps plain names to payloads, each made different by a number at the end."""
    seen = {}

    def name(plain):
        if plain not in seen:
            seen[plain] = prefix + PAYLOADS[len(seen) % len(PAYLOADS)] + b" %d" % len(seen)
        return seen[plain]
    return name


def main():
    folder = work_folder("names")
    environment = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"))
    texts, compiled = [], []
    for k, (names, label) in enumerate([(str, "g"), (hostile(b""), b"*/}\n"), (hostile(b"\xc3\xa9"), b'"')]):
        model, program, summary = (folder / f"m{k}{end}" for end in (".onnx", "", ".json"))
        model.write_bytes(small_cnn(names, label, label))
        pack(model, program, f"--json={summary}", *LEVEL, env=environment)
        compiled.append(json.loads(summary.read_text())["cache"]["kernels_compiled"])
        texts.append(pack(model, folder / f"m{k}.cpp", "--emit", "cpp", *LEVEL) and (folder / f"m{k}.cpp").read_bytes())
        run(program, "--info")
        json.loads(run(program, "--info=json").stdout)
    check(len(texts[0]) > 1000, f"the kernels are {len(texts[0])} bytes of text")
    check(all(re.fullmatch(rb"[\t\n -~]*", t) for t in texts), "the text is plain ASCII")
    check(texts[0] == texts[1] == texts[2], "the text is the same whatever the names")
    check(compiled[0] > 0 and compiled[1:] == [0, 0], f"kernels compiled: {compiled}")


if __name__ == "__main__":
    sys.exit(main())
