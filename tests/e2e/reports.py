#!/usr/bin/env python3
"""--json of every verb however it ends, codes of messages, progress on a terminal, -v, and Ctrl-C while data is verified."""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import onnx_writer as onnx
from packing import BUILD, DIGITS, LEVEL, PACKER, SOURCE, check, run, work_folder

ENV = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"))
DATA = SOURCE / "models" / "test_data_set_0"


def packer(folder, *words, code=0):
    return run(PACKER, *words, expect=code, cwd=folder, env=ENV, seconds=300)


def report(folder, *words, code=0):
    done = packer(folder, *words, "--json", code=code)
    found = json.loads(done.stdout)
    check(found["exit"] == code and "diagnostics" in found, f"{' '.join(map(str, words))}: exit {code} in --json")
    for one in found["diagnostics"]:
        assert set(one) - {"graph"} == {"severity", "code", "node", "name", "op", "text"}, one
    return found


def verbs(folder):
    found = report(folder, "check", DIGITS)
    check(found["entries"][0]["inputs"][0]["shape"] == [1, 1, 8, 8] and found["model"]["nodes"] == 8, "check: the model")
    check(re.fullmatch("[0-9a-f]{64}", report(folder, "key", DIGITS)["digest"]), "key: the digest")
    check(len(report(folder, "ops")["operators"]) > 200, "ops: the operators")
    check(report(folder, "cache", "stats")["entries"] >= 0, "cache: what it holds")
    check(report(folder, "doctor")["compiles"] is True, "doctor: what works")
    packer(folder, "check", DIGITS, "--json=check.json")
    check(json.loads((folder / "check.json").read_text())["verb"] == "check", "--json=FILE of a verb")


def estimates(folder):
    """check says beforehand what the pack will say, where that is known, and about the rest."""
    for target in ("x86-64-v3", "cortex-m4"):
        guess = report(folder, "check", DIGITS, "--target", target)["estimate"]
        check(not list(folder.iterdir()), "check writes nothing")
        output = "x.a" if target == "cortex-m4" else "x"
        sizes = report(folder, DIGITS, "-o", output, "--target", target, "--verify", "off")["bytes"]
        if target == "x86-64-v3":
            check(guess["arena"] == sizes["arena"], f"{target}: the arena {guess['arena']} is that of the pack")
        flash = sizes["weights"] + sizes["code"] + sizes["stub"] + sizes["image"]
        check(guess["weights"] == sizes["weights"] and flash / 2 < guess["flash"] < flash * 2,
              f"flash is about that of the pack: {guess['flash']} for {flash}")
        check(guess["ms"] > 0 and guess["kernels"] > 0 and guess["macs"] > 50000, f"and a time: {guess['ms']} ms")
        for path in folder.iterdir():
            path.unlink()
    told = packer(folder, "check", DIGITS, "--max-flash", "1K")
    check(b"estimate: RAM" in told.stdout and b"warning: --max-flash: about" in told.stderr, "as text, with a budget")


def verified(folder):
    found = report(folder, DIGITS, "-o", "x", "--verify", DATA)["verify"]
    output = found["sets"][0]["outputs"][0]
    check(found["passed"] and output["name"] == "scores" and 0 <= output["max_abs"] < 1e-3, f"what was compared: {output}")
    wrong = folder / "set"
    wrong.mkdir()
    (wrong / "input_0.pb").write_bytes((DATA / "input_0.pb").read_bytes())
    raw = bytearray((DATA / "output_0.pb").read_bytes())
    raw[-1] ^= 0x40
    (wrong / "output_0.pb").write_bytes(raw)
    found = report(folder, DIGITS, "-o", "y", "--verify", "set", code=7)
    check(not found["verify"]["passed"] and found["verify"]["sets"][0]["outputs"][0]["wrong"] == 1, "and what was wrong")
    check(found["diagnostics"][0]["code"] == "E0700" and found["kernels"] > 0, "with all else that is known")


def failed(folder):
    nodes = [onnx.node("Relu", ["x"], ["a"]), onnx.node("NoSuchOperator", ["a"], ["y"], name="head/odd")]
    (folder / "odd.onnx").write_bytes(onnx.model(nodes, [onnx.value("x", [4])], [onnx.value("y", [4])]))
    (folder / "text.onnx").write_text("this is no model, whatever its name says, and long enough to be one")
    for verb in ([], ["check"], ["key"]):
        last = ["-o", "x"] if not verb else []
        found = report(folder, *verb, "odd.onnx", *last, code=3)["diagnostics"][0]
        check((found["severity"], found["code"], found["node"], found["name"], found["op"]) ==
              ("error", "E0304", 1, "head/odd", "NoSuchOperator"), f"the node is named: {found}")
        codes = [one["code"] for one in report(folder, *verb, "text.onnx", *last, code=1)["diagnostics"]]
        check(codes == ["E0101"] or codes == ["E0102"], f"no model: {codes}")
    for code, words, expected in ((2, [DIGITS, "-o", "x", "--emti", "exe"], "E0201"), (2, [DIGITS], "E0202"),
                                  (2, ["cache", "burn"], "E0201"), (2, [DIGITS, "-o", "x.dll"], "E0203"),
                                  (4, ["none.onnx", "-o", "x"], "E0402"), (4, ["check", "none.onnx"], "E0402"),
                                  (8, [DIGITS, "-o", "x", "--max-ram", "1K"], "E0800"),
                                  (4, [DIGITS, "-o", "no/folder/x"], "E0400")):
        codes = [one["code"] for one in report(folder, *words, code=code)["diagnostics"]]
        check(codes == [expected], f"{codes}")
    packer(folder, DIGITS, "--emit=graph", "--json", code=2)
    packer(folder, DIGITS, "--emit=graph", "--json=graph.json")
    check("verify" not in json.loads((folder / "graph.json").read_text()), "a text form has a report, too")
    told = packer(folder, DIGITS, "--emit=fused", "--explain", "--json=fused.json").stdout.decode()
    levels = json.loads((folder / "fused.json").read_text())["predicted"]
    check([level["level"] for level in levels] == ["v2", "v3", "v4"], "each level has its prediction")
    for level in levels:
        total = sum(kernel["us"] * kernel["calls"] for kernel in level["kernels"])
        check(abs(total - level["total_us"]) < 0.01, f"the sum of its launches: {total}")
        check(all(kernel["us"] > 0 and kernel["nodes"] for kernel in level["kernels"]), "of ONNX nodes")
        check(f"total {level['total_us']:.3f} us" in told, "--explain says the same")
        check(all(one["us"] >= 10 * one["roof_us"] and one["nodes"] for one in level["cliffs"]), "cliffs are far above")
    packer(folder, DIGITS, "--explain", code=2)
    told = packer(folder, "ops", "--json=no/folder/file", code=4).stderr.decode()
    check("no/folder/file" in told, "a report that cannot be written is exit 4")


def phrases():
    """Each row of codes.def is about a message that is there, and no code is given twice to one exit code."""
    rows = re.findall(r'^CODE\("(\w+)", (\w+), *"([^"]*)", *"([^"]+)"\)$',
                      (SOURCE / "packager" / "report" / "codes.def").read_text(), re.M)
    text = "".join(path.read_text() for part in ("importer", "packager", "compiler")
                   for path in sorted((SOURCE / part).rglob("*.cpp")))
    text = re.sub(r'"\s*"', "", text)
    missing = [phrase for _, _, phrase, _ in rows if phrase not in text]
    check(len(rows) > 30 and not missing, f"phrases of codes.def are in the sources {missing or ''}")
    check(len({code for code, *_ in rows}) == len(rows), "each code has one row")


def on_terminal(folder):
    """What a pseudo terminal shows."""
    main_end, other = pty.openpty()
    done = subprocess.Popen([PACKER, DIGITS, "-o", "x", "--no-cache", "--verify", "off"], cwd=folder, env=ENV, stderr=other)
    os.close(other)
    seen = b""
    while True:
        ready, _, _ = select.select([main_end], [], [], 60)
        try:
            piece = os.read(main_end, 4096) if ready else b""
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    check(done.wait() == 0, "packed on a terminal")
    lines = [line.decode() for line in seen.split(b"\r\x1b[K")]
    check(any(re.match(r"compiling digits.onnx, \d+ of \d+, slowest \S+ \d", line) for line in lines),
          f"one line with what is done and what is slow: {lines[-2][:80]!r}")
    check(all("\n" not in line for line in lines[:-1]), "that is written over")
    told = packer(folder, DIGITS, "-o", "x", "--verify", "off").stderr.decode()
    check("\r" not in told and "compiling" not in told, "and a log shorter than ten seconds has none")


def verbose(folder):
    told = packer(folder, DIGITS, "-o", "x", "-v", "--verify", "off", "--target", "x86-64-v2",
                  "--cache-dir", folder / "fresh").stderr.decode()
    for part in (r"^target x86-64-v2: x86_64-linux-gnu, 1 CPU level$", r"^level x86-64-v2: clang .*-march=x86-64-v2",
                 r"^linker: ld.lld", r"^cache: ", r"^compiled \d+ of \d+, k0_v2: (\d+ ms|from the cache)$",
                 r"^time compile: \d+ ms$", r"^pass plan: 1 run"):
        check(re.search(part, told, re.M), f"-v says {part}")


def quantisations(folder):
    """Which quantisations may fall one step aside is told, on a core that makes them of integers."""
    def layer(name):
        return onnx.node("DequantizeLinear", [name, f"{name}_scale", "zero"], [f"{name}_wide"])
    weights = [onnx.tensor("a_scale", [], [0.0195]), onnx.tensor("b_scale", [], [0.0318]), onnx.tensor("scale", [], [0.0248]),
               onnx.number(2, 3) + onnx.data(8, "zero") + onnx.data(9, b"\0")]
    nodes = [layer("a"), layer("b"), onnx.node("Add", ["a_wide", "b_wide"], ["sum"]),
             onnx.node("QuantizeLinear", ["sum", "scale", "zero"], ["y"], "last")]
    model = folder / "added.onnx"
    model.write_bytes(onnx.model(nodes, [onnx.value(n, [1, 64], 3) for n in ("a", "b")], [onnx.value("y", [1, 64], 3)],
                                 weights))
    words = [model, "-o", "x.a", "--target", "cortex-m4", "--verify", "off"]
    found = report(folder, *words)["fixed_point"]
    check(found == {"quantisations": 1, "in_floats": 0, "one_step": ["last"]}, f"--json tells of the addition: {found}")
    told = packer(folder, *words, "-v").stderr.decode()
    check("quantisation of last: a value in the middle of two steps" in told, "-v does, too")
    found = report(folder, *words, "--accuracy", "exact")["fixed_point"]
    check(found == {"quantisations": 0, "in_floats": 1, "one_step": []}, f"an exact one keeps its floats: {found}")
    check("fixed_point" not in report(folder, model, "-o", "x", "--verify", "off"), "x86 keeps its floats anyway")


def interrupted(folder):
    """Ctrl-C while the program is compared with random data: exit 130, no temporary folder."""
    temporary = folder / "tmp"
    temporary.mkdir()
    (folder / "cnn.onnx").write_bytes(onnx.small_cnn())
    packer(folder, "cnn.onnx", "-o", "cnn", *LEVEL)  # fills the cache
    started = subprocess.Popen([PACKER, "cnn.onnx", "-o", "cnn", *LEVEL, "--verify", "random"], cwd=folder,
                               env=dict(ENV, TMPDIR=str(temporary)), stderr=subprocess.DEVNULL)
    while not list(temporary.iterdir()) and started.poll() is None:
        time.sleep(0.0002)
    ended_before = started.poll() is not None
    started.send_signal(signal.SIGINT)
    code = started.wait()
    check(ended_before or code in (0, 130), f"Ctrl-C ends it with 130 ({code})")
    check(not list(temporary.iterdir()), "and leaves no folder")


def main():
    phrases()
    for part in (verbs, estimates, verified, failed, on_terminal, verbose, quantisations, interrupted):
        part(work_folder(f"reports_{part.__name__}"))


if __name__ == "__main__":
    sys.exit(main())
