#!/usr/bin/env python3
"""The command line of svod-pack as scripts see it: exit codes, what is on stdout, what stays on disk, JSON keys."""
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import small_cnn
from packing import BUILD, DIGITS, PACKER, SOURCE, check, run, work_folder

KEYS = {"model", "target", "entries", "kernels", "programs", "steps", "macs", "bytes", "fusion", "cache",
        "time_ms", "passes", "digest"}
NESTED = {
    "model": {"name", "sha256", "opset", "nodes"},
    "bytes": {"image", "weights", "code", "stub", "arena", "arena_lower_bound", "temporaries", "scratch",
              "tables", "stack", "weights_of_fast_forms"},
    "fusion": {"nodes_before", "kernels_unfused"},
    "cache": {"plan", "kernels_compiled", "kernels_reused"},
    "time_ms": {"import", "simplify", "fuse", "plan", "schedule", "emit", "compile", "link", "total"},
}


def packer(folder, *words, code=0):
    env = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"))
    return run(PACKER, *words, expect=code, cwd=folder, env=env, seconds=300)


def listing(folder):
    return sorted(p.name for p in folder.iterdir())


def failures(folder):
    """Each leaves an older output as it was and no other file."""
    old = folder / "out"
    old.write_text("older")
    before = listing(folder)
    cases = [
        (2, []), (2, [DIGITS]), (2, [DIGITS, "-o", "out", "--no-such"]), (2, [DIGITS, "-o", "out", "--target", "vax"]),
        (2, [DIGITS, "-o", "out", "--name", "0x"]), (2, [DIGITS, "-o", "out", "--shape", "image"]),
        (2, [DIGITS, "-o", "out", "--shape", "picture=2x1x8x8"]), (2, [DIGITS, "-o", "out", "--max-ram", "4X"]),
        (2, [DIGITS, "-o", "out", "-O7"]), (2, [DIGITS, "-o", "out", "--print-after", "grop"]), (2, [DIGITS, "-o", "out", "--cpu", "zx81"]), (2, ["cache", "burn"]), (2, [DIGITS, DIGITS, "-o", "out"]),
        (4, ["no such model.onnx", "-o", "out"]), (4, [DIGITS, "-o", "no/such/folder/out"]), (4, [DIGITS, "-o", "."]),
        (4, [DIGITS, "-o", "/dev/null"]), (4, [DIGITS, "-o", "out", "--shape-from", "."]),
        (8, [DIGITS, "-o", "out", "--max-ram", "1K"]), (8, [DIGITS, "-o", "out", "--max-flash", "1K"]),
    ]
    for code, words in cases:
        done = packer(folder, *words, code=code)
        check(done.stdout == b"" and done.stderr, f"exit {code}, a reason on stderr: {' '.join(map(str, words))}")
        check(listing(folder) == before and old.read_text() == "older", "nothing on disk has changed")


def mismatch(folder):
    """A data set with a wrong answer: exit 7 and no program."""
    data = folder / "set"
    data.mkdir()
    real = SOURCE / "models" / "test_data_set_0"
    (data / "input_0.pb").write_bytes((real / "input_0.pb").read_bytes())
    wrong = bytearray((real / "output_0.pb").read_bytes())
    wrong[-1] ^= 0x40  # the exponent of the last element
    (data / "output_0.pb").write_bytes(wrong)
    packer(folder, DIGITS, "-o", "bad", "--verify", data, code=7)
    check(not (folder / "bad").exists(), "exit 7 leaves no program")
    packer(folder, DIGITS, "-o", "good", "--verify", real)
    packer(folder, DIGITS, "-o", "good", "--verify", "random")
    check((folder / "good").exists(), "right answers do")


def unusable_data(folder):
    """Data beside the model that has no answers fails a pack only where it is asked for."""
    data = folder / "beside" / "test_data_set_0"
    data.mkdir(parents=True)
    model = folder / "beside" / "model.onnx"
    model.write_bytes(DIGITS.read_bytes())
    (data / "input_0.pb").write_bytes((SOURCE / "models" / "test_data_set_0" / "input_0.pb").read_bytes())
    told = packer(folder, model, "-o", "unasked").stderr.decode()
    check("no outputs to compare" in told and "not verified" in told, "a note says why nothing was compared")
    packer(folder, model, "-o", "asked", "--verify", data, code=7)


def summary(folder):
    done = packer(folder, DIGITS, "-o", "two", "--shape", "image=2x1x8x8", "--json")
    shapes = [t["shape"] for e in json.loads(done.stdout)["entries"] for t in e["inputs"] + e["outputs"]]
    check(shapes == [[2, 1, 8, 8], [2, 10]], f"--shape replaces a size that the model states: {shapes}")
    told = done.stderr.decode()
    check("becomes 2x1x8x8" in told and "not verified" in told, "a warning and a note say so")
    done = packer(folder, DIGITS, "-o", "infer", "--verify", "off", "--json")
    report = json.loads(done.stdout)
    check(KEYS <= report.keys(), "--json has the keys of INTERFACE")
    for key, names in NESTED.items():
        check(set(report[key]) == names, f"and within {key}")
    tensor = report["entries"][0]["inputs"][0]
    check(tensor == {"name": "image", "dtype": "f32", "shape": [1, 1, 8, 8]}, f"the input is told: {tensor}")
    info = json.loads(run(folder / "infer", "--info=json").stdout)
    check(all(info[k] == report[k] for k in ("model", "entries", "bytes", "digest")), "--info=json says the same")
    packer(folder, DIGITS, "-o", "infer", "-q", "--json=report.json", "--deps", "infer.d")
    check(json.loads((folder / "report.json").read_text())["digest"] == report["digest"], "--json=FILE, equal digest")
    check((folder / "infer.d").read_text() == f"infer: {DIGITS}\n", "--deps is a rule")
    key = packer(folder, "key", DIGITS).stdout.decode().strip()
    check(key == report["digest"], "key prints the digest")


def quiet_and_texts(folder):
    done = packer(folder, DIGITS, "-o", "infer", "-q")
    check(done.stdout == b"" and done.stderr == b"", "-q says nothing when all is well")
    for form in ("graph", "fused", "plan", "cpp", "asm"):
        done = packer(folder, DIGITS, f"--emit={form}")
        check(len(done.stdout) > 100 and done.stderr == b"", f"--emit={form} is on stdout")
    before = listing(folder)
    packer(folder, DIGITS, "-o", "never", "--dry-run")
    check(listing(folder) == before, "--dry-run writes nothing")
    for words in (["check", DIGITS], ["ops"], ["ops", "--json"], ["doctor"], ["cache", "stats"], ["--help"],
                  ["--version"]):
        check(packer(folder, *words).stdout, f"{' '.join(map(str, words))} prints on stdout")


def weights_beside(folder):
    packer(folder, DIGITS, "-o", "apart", "--weights=file", "--verify", SOURCE / "models" / "test_data_set_0")
    run(folder / "apart", "--self-check")
    weights = folder / "apart.weights"
    raw = bytearray(weights.read_bytes())
    raw[len(raw) // 2] ^= 1
    weights.write_bytes(raw)
    run(folder / "apart", "--self-check", expect=10)
    weights.unlink()
    run(folder / "apart", "--info", expect=4)
    check(True, "weights in a file: found, checked, missed")


def other_cpus(folder):
    """A CPU that lacks what was packed is told so (exit 9); one in between runs the level it has."""
    if platform.machine() != "x86_64" or not shutil.which("qemu-x86_64-static"):
        return
    packer(folder, DIGITS, "-o", "all")
    packer(folder, DIGITS, "-o", "one", "--cpu", "znver4", "--verify", "off")
    data = SOURCE / "models"
    for program, cpu, code in (("all", "qemu64", 9), ("all", "Nehalem", 0), ("all", "Haswell", 0),
                               ("one", "Haswell", 9)):
        run("qemu-x86_64-static", "-cpu", cpu, folder / program, "--verify", data, expect=code)
        check(True, f"{program} on {cpu}: exit {code}")


def interrupted(folder):
    model = folder / "slow.onnx"
    model.write_bytes(small_cnn())
    before = listing(folder)
    started = subprocess.Popen([PACKER, model, "-o", folder / "slow", "--no-cache"], stderr=subprocess.DEVNULL)
    while listing(folder) == before and started.poll() is None:
        time.sleep(0.001)
    started.send_signal(signal.SIGINT)
    code = started.wait()
    check(code == 130, f"SIGINT ends with 130 ({code})")
    left = [name for name in listing(folder) if name not in before]
    check(not left, f"and leaves nothing {left or ''}")


def main():
    for part in (failures, mismatch, unusable_data, summary, quiet_and_texts, weights_beside, other_cpus, interrupted):
        part(work_folder(f"cli_{part.__name__}"))


if __name__ == "__main__":
    sys.exit(main())
