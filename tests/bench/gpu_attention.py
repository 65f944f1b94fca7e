#!/usr/bin/env python3
"""Tiles of attention on a GPU: whether each computes what it should, and how long it takes.

    gpu_attention.py [NAME...] [--packer build/svod-pack] [--arch sm_90a] [--assemble] [--json FILE]       on a machine with a GPU and ptxas

For each shape an attention in f16 is packed, its schedule changed to every tile that fits, and the kernel run by the driver on random
numbers, whose scores go up and down by several units: its results are compared with numpy's in f32, and the least time of four series of
launches is told. That the executor of the unit tests finds nothing does not say that ptxas compiles a tile right. --assemble
stops before the GPU, with registers and spills.
"""
import argparse
import concurrent.futures
import ctypes
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import onnx_writer as onnx
from gpu_tiles import Gpu

HALF, MOST_ERROR = onnx.FLOAT16, 3e-3
# Inputs, heads, tokens, numbers of a head; and whether keys are scaled by themselves, and a mask for each key is added.
SHAPES = {"whisper_1": (1, 6, 1500, 64, False, False), "whisper_32": (32, 6, 1500, 64, False, False),
          "vit_1": (1, 12, 197, 64, True, False), "vit_32": (32, 12, 197, 64, True, False),
          "bert_32": (32, 12, 128, 64, False, True), "wide_4": (4, 16, 2048, 128, False, False), "odd_2": (2, 5, 333, 40, False, True)}
TILES = ([f"{queries} queries {keys} keys group 64 {keys}" for queries in (64, 128, 192) for keys in (32, 64, 96, 128, 208)] +
         ["128 queries 64 keys warp 16 64", "64 queries 64 keys warp 16 64", "128 queries 64 keys warp 32 64"])
AHEAD = (0, 1, 2)
THREADS = {"group": 128, "warp": 32}


def attention(inputs, heads, tokens, size, scales, masked):
    """The model's bytes. Heads of a token lie side by side."""
    half = lambda name, number: onnx.tensor(name, [], [number], HALF)
    nodes = []
    for name, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [onnx.node("Reshape", [name, "heads"], [name + "_apart"]),
                  onnx.node("Transpose", [name + "_apart"], [name + "_turned"], perm=perm)]
    if scales:
        nodes += [onnx.node("Mul", [f"{name}_turned", "root"], [f"{name}_scaled"]) for name in "qk"]
        nodes.append(onnx.node("MatMul", ["q_scaled", "k_scaled"], ["scores"]))
    else:
        nodes += [onnx.node("MatMul", ["q_turned", "k_turned"], ["products"]), onnx.node("Mul", ["products", "scale"], ["scores"])]
    if masked:
        nodes.append(onnx.node("Add", ["scores", "mask"], ["masked"]))
    nodes += [onnx.node("Softmax", ["masked" if masked else "scores"], ["shares"], axis=-1),
              onnx.node("MatMul", ["shares", "v_turned"], ["results"]), onnx.node("Transpose", ["results"], ["together"], perm=[0, 2, 1, 3]),
              onnx.node("Reshape", ["together", "tokens"], ["y"])]
    all_heads = [inputs, tokens, heads * size]
    values = [onnx.value(name, all_heads, HALF) for name in "qkv"]
    if masked:
        values.append(onnx.value("mask", [inputs, 1, 1, tokens], HALF))
    shapes = [onnx.tensor("heads", [4], [inputs, tokens, heads, size], onnx.INT64), onnx.tensor("tokens", [3], all_heads, onnx.INT64)]
    return onnx.model(nodes, values, [onnx.value("y", all_heads, HALF)], shapes + [half("scale", size ** -0.5), half("root", size ** -0.25)])


class Work:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)

    def emit(self, name, what, *words):
        target = self.folder / f"{name}.{what}"
        done = subprocess.run([self.options.packer, self.folder / f"{name.split('.')[0]}.onnx", "--device", f"cuda:{self.options.arch}",
                               f"--emit={what}", "-o", target, *words], capture_output=True, text=True)
        return target.read_text() if done.returncode == 0 and "note" not in done.stderr else None

    def base(self, name):
        (self.folder / f"{name}.onnx").write_bytes(attention(*SHAPES[name]))
        return self.emit(name, "schedule")

    def variant(self, case):
        """The kernel by a tile, as machine code; None where it does not fit."""
        (name, text), number, tile, ahead = case
        queries, keys, kind, part, _ = re.match(r"(\d+) queries (\d+) keys (\w+) (\d+) (\d+)", tile).groups()
        threads = int(queries) // int(part) * THREADS[kind]
        line = f"gpu block {tile}" + (f" ahead {ahead}" if ahead else "")
        text = re.sub(r"gpu attention threads \d+", f"gpu attention threads {threads}", re.sub(r"gpu block .*", line, text))
        own = f"{name}.{number}"
        (self.folder / own).write_text(text)
        ptx, cpp = (self.emit(own, what, "--schedule", self.folder / own) for what in ("ptx", "cpp"))
        if ptx is None or f".maxntid {threads}," not in ptx:
            return None
        (self.folder / f"{own}.ptx").write_text(re.sub(r"(?m)^#.*\n", "", ptx))
        code = self.folder / f"{own}.cubin"
        done = subprocess.run([self.options.ptxas, f"-arch={self.options.arch}", "-v", "-o", code, self.folder / f"{own}.ptx"],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        inputs, heads, tokens = SHAPES[name][:3]
        return {"shape": name, "tile": tile, "ahead": ahead, "threads": threads, "blocks": inputs * heads * -(-tokens // int(queries)),
                "shared": int(re.search(r"SVOD_TILES\((\d+)", cpp)[1]), "registers": int(re.search(r"Used (\d+) reg", done.stderr)[1]),
                "spilled": int(re.search(r"(\d+) bytes spill stores", done.stderr)[1]), "code": str(code)}


def expected(shape, data):
    """What the model computes, in f32: of each head of each input by itself."""
    import numpy
    inputs, heads, tokens, size, _, masked = shape
    out = numpy.empty((inputs, tokens, heads, size), numpy.float32)
    q, k, v = (data[name].reshape(inputs, tokens, heads, size).astype(numpy.float32) for name in "qkv")
    for i, h in itertools.product(range(inputs), range(heads)):
        scores = q[i, :, h] @ k[i, :, h].T * size ** -0.5
        if masked:
            scores += data["mask"].reshape(inputs, tokens)[i].astype(numpy.float32)
        weights = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        out[i, :, h] = weights / weights.sum(axis=1, keepdims=True) @ v[i, :, h]
    return out.ravel()


class Attentions(Gpu):
    """The driver, with the inputs of one shape and room for its result."""

    def load(self, shape):
        import numpy
        random = numpy.random.default_rng(1)
        inputs, heads, tokens, size, _, masked = shape
        count = inputs * tokens * heads * size
        names = ["q", "k", "mask", "v"] if masked else ["q", "k", "v"]  # in the order in which the kernel takes them
        self.data = {name: (2 * random.standard_normal(inputs * tokens if name == "mask" else count)).astype(numpy.float16)
                     for name in names}
        self.pointers = [self.allocate(2 * count) for _ in range(len(names) + 1)]
        for name, pointer in zip(names, self.pointers):
            self.call("cuMemcpyHtoD_v2", pointer, self.data[name].ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.data[name].nbytes))
        self.result, self.expected = numpy.empty(count, numpy.float16), expected(shape, self.data)

    def run(self, variant):
        """Sets its error and its time."""
        import numpy
        module, function, spent, best = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float(), math.inf
        self.call("cuModuleLoadData", ctypes.byref(module), pathlib.Path(variant["code"]).read_bytes())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, self.entry)
        self.call("cuFuncSetAttribute", function, 8, variant["shared"])
        values = [ctypes.c_uint64(pointer.value) for pointer in self.pointers + self.memory[3:]]
        parameters = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values])
        self.call("cuMemsetD16_v2", self.pointers[-1], ctypes.c_ushort(0x7e00), ctypes.c_size_t(self.result.size))  # NaN

        def launch(times):
            for _ in range(times):
                self.call("cuLaunchKernel", function, variant["blocks"], 1, 1, variant["threads"], 1, 1, variant["shared"], None,
                          parameters, None)

        launch(1)
        self.call("cuMemcpyDtoH_v2", self.result.ctypes.data_as(ctypes.c_void_p), self.pointers[-1], ctypes.c_size_t(self.result.nbytes))
        found = self.result.astype(numpy.float32)
        variant["error"] = float(numpy.linalg.norm(found - self.expected) / numpy.linalg.norm(self.expected))
        for _ in range(4):
            self.call("cuEventRecord", self.events[0], None)
            launch(10)
            self.call("cuEventRecord", self.events[1], None)
            self.call("cuEventSynchronize", self.events[1])
            self.call("cuEventElapsedTime", ctypes.byref(spent), *self.events)
            best = min(best, 100 * spent.value)
        variant["us"] = best
        self.call("cuModuleUnload", module)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SHAPES)}; all without it")
    parser.add_argument("--packer", default="build/svod-pack")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--assemble", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    wrong, done = 0, []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        work, names = Work(options, folder), options.names or list(SHAPES)
        bases = list(zip(names, pool.map(work.base, names)))
        cases = [(base, number, tile, ahead) for base in bases for number, (tile, ahead) in enumerate(itertools.product(TILES, AHEAD))]
        variants = [variant for variant in pool.map(work.variant, cases) if variant]
        gpu = None if options.assemble else Attentions(options.arch)
        for name, of in itertools.groupby(variants, key=lambda variant: variant["shape"]):
            if gpu:
                gpu.load(SHAPES[name])
            for variant in of:
                if gpu:
                    gpu.run(variant)
                    wrong += not variant["error"] < MOST_ERROR
                del variant["code"]
                done.append(variant)
                print(name, variant["tile"], f"ahead {variant['ahead']}:", *(f"{key} {variant[key]:.4g}" for key in
                      ("registers", "spilled", "shared", "error", "us") if key in variant), flush=True)
    if options.json:
        options.json.write_text(json.dumps(done))
    print(f"{len(done)} tiles, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
