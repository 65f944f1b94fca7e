#!/usr/bin/env python3
"""Golden texts: what each stage makes of a small model, and what each fault of a model is told.

    run_golden.py [--rebase] [NAME...]

A file stages/NAME.txt or errors/NAME.txt is one idea: what to look at, options of svod-pack, a model (model_text.py) and
what comes of it.

    # What to look at.
    options --target x86-64
    level vnni                    (of the C++ only this level, where the target has several)
    in:
      x = input f32[1,4]
      ...
    out fused:
    ...

`out WHAT:` is followed by what --emit=WHAT prints, `out error:` by the exit code and everything that svod-pack says. Two
texts are shortened: of `schedule` the kernels are left out, which `fused` shows (a schedule names its kernel by digest); of
`cpp` the scalar functions before each kernel, and its numbers are decimal. --rebase rewrites what differs (for a new file
write the headings of the texts you want); review the diff.
"""
import argparse
import os
import pathlib
import re
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]
import model_text
from packing import PACKER, work_folder

HEADING = re.compile(r"^(in|out \w+):\n", re.M)


class Golden:
    """A file taken apart: the head with the model, and the expected text of each stage."""

    def __init__(self, path):
        self.path = path
        first, *parts = HEADING.split(path.read_text())
        self.head, self.model, self.expected = first, parts[1], dict(zip(parts[2::2], parts[3::2]))
        self.options, self.level = self.words("options"), self.words("level")

    def words(self, key):
        """Of the lines of the head that begin with this word."""
        return [word for line in self.head.splitlines() if line.startswith(key + " ") for word in line.split()[1:]]

    def onnx(self):
        first, _, rest = self.model.strip().partition(" ")
        if first == "bytes":  # no model at all
            return model_text.ast.literal_eval(rest)
        lines = self.model.splitlines(keepends=True)
        cuts = [int(line.split()[1]) for line in lines if line.split()[:1] == ["cut"]]
        made = model_text.model_of("".join(line for line in lines if line.split()[:1] != ["cut"]))
        return made[:len(made) - sum(cuts)]

    def with_texts(self, texts):
        return f"{self.head}in:\n{self.model}" + "".join(f"{heading}:\n{texts[heading]}" for heading in self.expected)


def read(name):
    """The model of stages/NAME.txt, for other tests."""
    return Golden(HERE / "stages" / f"{name}.txt").onnx()


def decimal(found):
    """A hexadecimal float of emitted text with as few digits as name it."""
    number = float.fromhex(found[1])
    for digits in range(1, 18):
        text = f"{number:.{digits}g}"
        same = struct.pack("<f", float(text)) == struct.pack("<f", number) if found[2] else float(text) == number
        if same:
            break
    return f"{text if '.' in text or 'e' in text else text + '.0'}{found[2]}"


# What stands around the kernels so that the file is whole.
WRAPPING = re.compile(r"^(#undef svod_kernel|#define svod_kernel \w+|(} // )?namespace of_k\w+( \{)?)\n", re.M)


def bodies(text, levels):
    """The kernels without the scalar functions that stand before each: `// k0_v3`, then the loops."""
    out, keep, wanted = [], False, True
    for line in WRAPPING.sub("", text).splitlines(keepends=True):
        if name := re.fullmatch(r"// k\d+_(\w+)\n", line):
            keep, wanted = False, not levels or name[1] in levels
            out += [line] * wanted
        keep = keep or " body(" in line or "SVOD_ENTRY svod_kernel(" in line
        out += [line] * (keep and wanted)
    return re.sub(r"(-?0x[0-9a-f.]+p[+-]\d+)(f?)", decimal, "".join(out))


def schedules(text, _):
    """Names of kernels, and what belongs to each schedule."""
    out, keep = [], False
    for line in text.splitlines(keepends=True):
        if not line.startswith(" "):
            keep = line.startswith("schedule ")
            out.append(re.sub(r"(schedule \w{12})\w+", r"\1", line))
        elif keep:
            out.append(line)
    return "".join(out)


SHORTENED = {"cpp": bodies, "schedule": schedules}


def stage_text(folder, golden, stage):
    done = subprocess.run([str(PACKER), "model.onnx", f"--emit={stage}", "-o", stage, "-q", *golden.options],
                          cwd=folder, capture_output=True, timeout=120)
    if done.returncode != 0:
        return f"exit {done.returncode}\n{done.stderr.decode(errors='replace')}"
    return SHORTENED.get(stage, lambda text, _: text)((folder / stage).read_text(), golden.level)


def error_text(folder, golden):
    done = subprocess.run([str(PACKER), "model.onnx", "-o", "infer", *golden.options], cwd=folder, capture_output=True,
                          timeout=60, env=dict(os.environ, NO_COLOR="1"))
    text = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    return f"exit {done.returncode}\n{text}"


def first_difference(expected, actual):
    for k, (a, b) in enumerate(zip(expected.splitlines() + ["(end)"], actual.splitlines() + ["(end)"])):
        if a != b:
            return f"line {k + 1}:\n  expected  {a[:200]}\n  actual    {b[:200]}"
    return "the ends differ"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rebase", action="store_true", help="rewrite the expectations that differ")
    options = parser.parse_args()
    folder, count, differ = work_folder("golden"), 0, 0
    for path in sorted([*HERE.glob("stages/*.txt"), *HERE.glob("errors/*.txt")]):
        if options.names and path.stem not in options.names:
            continue
        golden, texts = Golden(path), {}
        (folder / "model.onnx").write_bytes(golden.onnx())
        for heading, expected in golden.expected.items():
            stage = heading.removeprefix("out ")
            texts[heading] = error_text(folder, golden) if stage == "error" else stage_text(folder, golden, stage)
            count += 1
            if texts[heading] != expected:
                differ += 1
                print(f"{path.relative_to(HERE)}, {stage}: " +
                      ("rewritten" if options.rebase else first_difference(expected, texts[heading])))
        if options.rebase:
            path.write_text(golden.with_texts(texts))
    print(f"{count} texts, {differ} {'rewritten' if options.rebase else 'differ; --rebase rewrites them'}")
    return 1 if not count or (differ and not options.rebase) else 0


if __name__ == "__main__":
    sys.exit(main())
