#!/usr/bin/env python3
"""Every kernel's PTX assembles, with ptxas of the CUDA toolkit: for the architecture that it is made for and for later ones.

    assemble.py [MODEL.onnx...] [--corpus] [--accuracy tf32] [--made sm_80,sm_90a] [--jobs N] [--seconds N]

Without models: those of models/, and attention with heads of several sizes. --corpus: the models of SVOD_CORPUS/real. A model
with a test_data_set_0 beside it is packed for the shapes of that. ptxas is that of SVOD_PTXAS, on PATH, or where the
toolkit's installer puts it; without one the test is skipped. Printed for each model: kernels, the most registers, shared
memory and bytes that were spilled; at the end, how many texts were assembled, and of them sums of products and attentions. One
of these whose registers go to memory has a tile that is too large: that fails.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "golden")]
from model_text import model_of
from packing import BUILD, PACKER, SOURCE
from time_limit import corpus_share, exit_code

# What PTX is made for, and what it is assembled for.
MADE = {"sm_75": ["sm_75"], "sm_80": ["sm_80", "sm_120"], "sm_90": ["sm_90a"], "sm_90a": ["sm_90a"],
        "sm_100": ["sm_100"], "sm_120": ["sm_120"]}
SHARE = 0.1  # of SVOD_CORPUS_SECONDS


def find_ptxas():
    return os.environ.get("SVOD_PTXAS") or shutil.which("ptxas") or \
        (path if os.access(path := "/usr/local/cuda/bin/ptxas", os.X_OK) else None)


def modules(text):
    """(name, PTX) of each kernel."""
    parts = re.split(r"^// (k\d+_sm_\d+a?)\n", text, flags=re.M)
    return [(name, body) for name, body in zip(parts[1::2], parts[2::2]) if ".version" in body]


def assemble(ptxas, arch, ptx):
    done = subprocess.run([ptxas, "-v", f"-arch={arch}", "-o", "/dev/null", "-"], input=ptx.encode(), capture_output=True)
    text = done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace")

    def most(pattern):
        return max(map(int, re.findall(pattern, text)), default=0)
    return {"ok": done.returncode == 0, "text": text, "registers": most(r"Used (\d+) registers"),
            "shared": most(r"(\d+) bytes smem"), "spilled": most(r"(\d+) bytes spill stores"),
            "waits": "GMMA" in text}  # ptxas says so where tensor cores wait for registers


def shapes_of(model):
    """Options for the shapes of the inputs that lie beside a model."""
    data = model.parent / "test_data_set_0"
    return ["--shape-from", str(data)] if data.is_dir() and any(data.glob("input_*.pb")) else []


def check(ptxas, model, architectures, accuracy):
    """(lines to print, what is wrong, how many texts were assembled: all, and sums of products)."""
    lines, wrong, counts = [], [], [0, 0]
    for made in architectures:
        archs = MADE[made]
        done = subprocess.run([str(PACKER), str(model), "--device", f"cuda:{made}", "--emit=ptx", "--accuracy", accuracy,
                               *shapes_of(model)], capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
        if done.returncode in (1, 3):
            return [f"{model}: refused, as for a processor"], [], counts
        if done.returncode != 0:
            return lines, [f"{model}, {made}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-600:]}"], counts
        kernels = modules(done.stdout.decode())
        for arch in archs:
            found = [(name, assemble(ptxas, arch, ptx), "kernel5tiles" in ptx) for name, ptx in kernels]
            for name, facts, product in found:
                if not facts["ok"]:
                    wrong.append(f"{model}: {name} for {arch}: {facts['text'][-600:]}")
                counts = [counts[0] + 1, counts[1] + product]
                if product and facts["spilled"] > MOST_SPILLED:
                    wrong.append(f"{model}: {name} for {arch} spills {facts['spilled']} bytes")
                if facts["waits"]:
                    wrong.append(f"{model}: {name} for {arch}: {facts['text'][:300]}")
            numbers = {key: max((facts[key] for _, facts, _ in found), default=0) for key in ("registers", "shared", "spilled")}
            lines.append(f"{model}: {len(found)} kernels for {arch}, at most {numbers['registers']} registers, "
                         f"{numbers['shared']} B shared, {numbers['spilled']} B spilled")
    return lines, wrong, counts


MOST_SPILLED = 0  # bytes
HEADS = 32, 64, 80, 128  # sizes


def attention_model(element):
    """Of heads of each size: 197 tokens, which no tile divides, and a mask for each key."""
    lines = [f"m = input {element}[8,1,1,197]"]
    for size in HEADS:
        lines += [f"{name}{size} = input {element}[8,12,197,{size}]" for name in "qkv"]
        lines += [f"t{size} = Transpose(k{size}) perm=[0,1,3,2]", f"s{size} = MatMul(q{size}, t{size})", f"a{size} = Add(s{size}, m)",
                  f"p{size} = Softmax(a{size}) axis=-1", f"y{size} = MatMul(p{size}, v{size})", f"output y{size} rank 4"]
    return model_of("\n".join(lines) + "\n")


def layers_model(element):
    """Products and a convolution that tensor cores multiply, with rests of tiles on all sides, one step and many."""
    lines = [f"x = input {element}[1000,512]", f"w = input {element}[512,776]", f"v = input {element}[776,16]",
             f"p = input {element}[32,64,28,28]", f"k = input {element}[128,64,3,3]",
             "a = MatMul(x, w)", "b = Relu(a)", "c = MatMul(b, v)", "d = Conv(p, k) pads=[1,1,1,1]", "e = Relu(d)",
             "output c rank 2", "output e rank 4"]
    return model_of("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("--accuracy", default="fast", help="of svod-pack; tf32: tensor cores multiply f32")
    parser.add_argument("--made", default=",".join(MADE), help="architectures that PTX is made for")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="time limit",
                        default=corpus_share(SHARE))
    options = parser.parse_args()
    ptxas = find_ptxas()
    if not ptxas:
        print("skipped: no ptxas (SVOD_PTXAS, PATH)")
        return 77
    models = [pathlib.Path(m) for m in options.models]
    if options.corpus:
        if "SVOD_CORPUS" not in os.environ:
            print("skipped: SVOD_CORPUS names no corpus")
            return 77
        models += sorted((pathlib.Path(os.environ["SVOD_CORPUS"]) / "real").rglob("model.onnx"))
    made = tempfile.TemporaryDirectory()
    if not models:
        models = [SOURCE / "models" / "digits.onnx", *sorted((SOURCE / "models").glob("*/*.onnx"))]
        for name, make, element in (("attention", attention_model, "f16"), ("attention", attention_model, "f32"),
                                    ("layers", layers_model, "f16"), ("layers", layers_model, "f32")):
            models.append(pathlib.Path(made.name) / f"{name}_{element}.onnx")
            models[-1].write_bytes(make(element))
    start = time.monotonic()

    def one(model):
        if time.monotonic() - start > options.seconds:
            return None
        return check(ptxas, model, options.made.split(","), options.accuracy)

    done, faults, texts, products = 0, 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for lines, wrong, counts in filter(None, pool.map(one, models)):
            print(*lines, *wrong, sep="\n", flush=True)
            done, faults = done + 1, faults + len(wrong)
            texts, products = texts + counts[0], products + counts[1]
    left_out = len(models) - done
    print(f"{done} models, {texts} texts ({products} products and attentions) in {time.monotonic() - start:.0f} s, "
          f"{faults} faults" + (f"; no time for {left_out} more" if left_out else ""))
    return exit_code(done, faults, left_out)


if __name__ == "__main__":
    sys.exit(main())
