#!/usr/bin/env python3
"""Tiles of products on a GPU: how long each takes, and the numbers of choose_products.cpp that predict it best.

    gpu_tiles.py measure FILE.json [--packer build/svod-pack] [--arch sm_90a] [--types f16,groups] [--large] [--seconds 120]
                                                                                      on a machine with a GPU and ptxas
    gpu_tiles.py fit FILE.json...                                                                anywhere, with numpy and scipy

`measure` packs a product of each size, changes its schedule to every tile, number of splits and of tiles ahead that fits, and times
the kernel by the driver's events: the least of two series of launches. `fit` looks for the numbers of the prediction by
differential evolution, and prints the rank correlation, and for each size what would be chosen and what was best.
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
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import onnx_writer as onnx

# Rows, columns, steps, and whether the second factor lies column by column, as the weights of a convolution do.
SIZES = [(128, 768, 768, 0), (128, 768, 3072, 0), (1500, 384, 384, 0), (1500, 1536, 384, 0), (1500, 384, 1536, 0), (197, 3072, 768, 0),
         (3136, 64, 576, 1), (784, 128, 1152, 1), (196, 256, 2304, 1), (49, 512, 4608, 1), (12544, 96, 16, 1), (3136, 144, 24, 1),
         (3136, 24, 96, 1), (49, 1280, 320, 1), (2916, 64, 16, 1), (729, 256, 48, 1), (1024, 1024, 1024, 0), (4096, 4096, 4096, 0)]
# The same of 32 inputs.
LARGE = [(6304, 768, 768, 0), (6304, 3072, 768, 0), (6304, 768, 3072, 0), (4096, 768, 768, 0), (48000, 384, 384, 0),
         (100352, 64, 64, 1), (100352, 64, 576, 1), (100352, 256, 64, 1), (25088, 128, 1152, 1), (25088, 512, 128, 1),
         (6272, 256, 2304, 1), (6272, 1024, 256, 1), (1568, 512, 4608, 1), (1568, 2048, 512, 1)]
# A block's rows, columns and steps, and the rows and columns of who multiplies.
TILES = {"f16": [(128, 128, 32, 64, 64), (128, 128, 32, 32, 64), (128, 128, 32, 64, 32), (128, 64, 32, 32, 32), (64, 64, 64, 32, 32),
                 (64, 64, 32, 32, 32), (32, 64, 64, 16, 32), (32, 64, 32, 16, 32), (32, 32, 64, 16, 16), (32, 32, 32, 16, 16),
                 (16, 64, 64, 16, 16)],
         "groups": [(128, 256, 64, 64, 256), (256, 128, 64, 128, 128), (256, 128, 64, 64, 128), (192, 192, 64, 64, 192),
                    (128, 192, 64, 64, 192), (192, 128, 64, 64, 128), (128, 128, 64, 64, 128), (64, 256, 64, 64, 256),
                    (64, 128, 64, 64, 128), (128, 64, 64, 64, 64), (64, 64, 64, 64, 64), (256, 64, 64, 64, 64)],
         "f32": [(128, 128, 8, 8, 8), (128, 128, 16, 8, 8), (64, 128, 16, 8, 8), (128, 64, 16, 8, 8), (64, 128, 8, 8, 8),
                 (128, 64, 8, 8, 8), (64, 64, 16, 8, 8), (64, 64, 16, 8, 4),
                 (64, 64, 16, 4, 4), (32, 64, 16, 4, 8), (32, 64, 16, 4, 4), (32, 32, 16, 4, 4), (16, 64, 16, 4, 4)]}
SPLITS, AHEAD = (1, 2, 4, 8, 16), {"f16": (0, 3), "groups": (1, 2, 3), "f32": (0, 3)}
BYTES = {"f16": 2, "groups": 2, "f32": 4}
MULTIPLIERS = {"f16": ("warp", 32), "groups": ("group", 128), "f32": ("thread", 1)}
MOST_SHARED, MOST_BLOCKS, PITCH_BYTES = 227 << 10, 1056, 16


def threads_of(kind, tile):
    rows, columns, _, part_rows, part_columns = tile
    return rows // part_rows * (columns // part_columns) * MULTIPLIERS[kind][1]


def shared_of(kind, size, tile, ahead, splits):
    """As shared_of_tiles() of gpu_schedule.cpp."""
    rows, columns, steps, _, _ = tile
    turns = -(-(-(-size[2] // steps)) // splits)
    sums = rows * (-(-columns // 32) * 32 + 8) * 4 if kind != "f32" else 0
    if kind == "groups":
        of_columns = columns if size[3] else -(-columns // steps) * steps
        return max(min(ahead + 2, turns) * (rows + of_columns) * steps * BYTES[kind], sums)
    pitch = PITCH_BYTES // BYTES[kind]
    by_steps = {"rows": kind == "f16", "columns": kind == "f16" and size[3] == 1}
    runs = [positions * (steps + pitch) if by_steps[name] else steps * (positions + pitch)
            for name, positions in (("rows", rows), ("columns", columns))]
    return max(min(ahead + 1 if ahead else 2, turns) * sum(runs) * BYTES[kind], sums)


class Measure:
    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)

    def run(self, *words):
        return subprocess.run(words, capture_output=True, text=True)

    def base(self, job):
        """The model of a size, and its schedule."""
        kind, (rows, columns, steps, turned) = job
        path = self.folder / f"{kind}_{rows}_{columns}_{steps}_{turned}.onnx"
        dtype = onnx.FLOAT if kind == "f32" else 10
        nodes = [onnx.node("Transpose", ["w"], ["v"], "t", perm=[1, 0])] if turned else []
        nodes.append(onnx.node("MatMul", ["x", "v" if turned else "w"], ["y"], "m"))
        weights = onnx.value("w", [columns, steps] if turned else [steps, columns], dtype)
        path.write_bytes(onnx.model(nodes, [onnx.value("x", [rows, steps], dtype), weights], [onnx.value("y", [rows, columns], dtype)]))
        done = self.run(self.options.packer, path, "--device", f"cuda:{self.options.arch}", "--emit=schedule", "-o", f"{path}.txt")
        if done.returncode:
            sys.exit(done.stderr)
        return path, pathlib.Path(f"{path}.txt").read_text()

    def variant(self, case):
        """The kernel by another tile, as machine code; None where it does not fit."""
        (kind, size), (path, text), tile, splits, ahead = case
        rows, columns, steps, part_rows, part_columns = tile
        blocks = -(-size[0] // rows) * -(-size[1] // columns)
        turns = -(-size[2] // steps)
        each = -(-turns // splits)
        shared = shared_of(kind, size, tile, ahead, splits)
        if splits > 1 and (each < 2 or (splits - 1) * each >= turns or blocks * splits > MOST_BLOCKS) or shared > MOST_SHARED:
            return None
        threads = threads_of(kind, tile)
        text = re.sub(r"gpu products threads \d+", f"gpu products threads {threads}", text)
        line = f"gpu tile {rows} {columns} {steps} {MULTIPLIERS[kind][0]} {part_rows} {part_columns}"
        line += (f" ahead {ahead}" if ahead else "") + (f" splits {splits}" if splits > 1 else "")
        name = f"{path}.{'_'.join(map(str, (*tile, splits, ahead)))}"
        pathlib.Path(name).write_text(re.sub(r"gpu tile .*", line, text))
        done = self.run(self.options.packer, path, "--device", f"cuda:{self.options.arch}", "--emit=ptx", "--schedule", name, "-o",
                        name + ".ptx")
        if done.returncode or "note" in done.stderr:
            return None
        ptx = re.sub(r"(?m)^#.*\n", "", pathlib.Path(name + ".ptx").read_text())
        if f".maxntid {threads}," not in ptx:
            return None
        pathlib.Path(name + ".ptx").write_text(ptx)
        done = self.run(self.options.ptxas, f"-arch={self.options.arch}", "-v", "-o", name + ".cubin", name + ".ptx")
        if done.returncode:
            sys.exit(done.stderr)
        return {"type": kind, "size": size, "tile": tile, "splits": splits, "ahead": ahead, "threads": threads, "shared": shared,
                "blocks": blocks * splits, "registers": int(re.search(r"Used (\d+) reg", done.stderr)[1]), "code": name + ".cubin"}


class Gpu:
    """The driver, and memory for the largest size."""

    def __init__(self, arch):
        self.driver, self.entry = ctypes.CDLL("libcuda.so.1"), f"k0_{arch}".encode()
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        most = 4 * max(max(m * k, k * n, m * n) for m, n, k, _ in SIZES + LARGE)
        self.memory = [self.allocate(bytes_) for bytes_ in (most, most, most, 1 << 28, 1 << 20, 1 << 12)]
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self.events:
            self.call("cuEventCreate", ctypes.byref(event), 0)
        # Numbers between 1/2 and 1 of either type, none of which is slow or overflows.
        self.call("cuMemsetD16_v2", self.memory[0], ctypes.c_ushort(0x3a3a), ctypes.c_size_t(most // 2))
        self.call("cuMemsetD16_v2", self.memory[1], ctypes.c_ushort(0x3b3a), ctypes.c_size_t(most // 2))
        self.call("cuMemsetD8_v2", self.memory[4], 0, ctypes.c_size_t(1 << 20))

    def call(self, name, *words):
        if status := getattr(self.driver, name)(*words):
            raise RuntimeError(f"{name}: {status}")

    def allocate(self, count):
        pointer = ctypes.c_void_p()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(count))
        return pointer

    def microseconds(self, variant):
        module, function, spent, best = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float(), math.inf
        self.call("cuModuleLoadData", ctypes.byref(module), pathlib.Path(variant["code"]).read_bytes())
        self.call("cuModuleGetFunction", ctypes.byref(function), module, self.entry)
        self.call("cuFuncSetAttribute", function, 8, variant["shared"])
        values = [ctypes.c_uint64(pointer.value) for pointer in self.memory]
        parameters = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values])

        def launch(times):
            for _ in range(times):
                self.call("cuLaunchKernel", function, variant["blocks"], 1, 1, variant["threads"], 1, 1, variant["shared"], None,
                          parameters, None)

        launch(1)
        times = 3 if math.prod(variant["size"][:3]) > 1 << 34 else 30
        for _ in range(2):
            self.call("cuEventRecord", self.events[0], None)
            launch(times)
            self.call("cuEventRecord", self.events[1], None)
            self.call("cuEventSynchronize", self.events[1])
            self.call("cuEventElapsedTime", ctypes.byref(spent), *self.events)
            best = min(best, 1e3 * spent.value / times)
        self.call("cuModuleUnload", module)
        return best


def measure(options):
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        work = Measure(options, folder)
        jobs = list(itertools.product(options.types, SIZES + LARGE if options.large else SIZES))
        cases = [(job, base, tile, splits, ahead) for job, base in zip(jobs, pool.map(work.base, jobs))
                 for tile, splits, ahead in itertools.product(TILES[job[0]], SPLITS, AHEAD[job[0]])]
        variants = [variant for variant in pool.map(work.variant, cases) if variant]
        print(f"{len(variants)} kernels after {time.monotonic() - start:.0f} s", flush=True)
        gpu, done = Gpu(options.arch), []
        for variant in variants:
            if time.monotonic() - start > options.seconds:
                print("the time is over")
                break
            variant["us"] = gpu.microseconds(variant)
            del variant["code"]
            done.append(variant)
    pathlib.Path(options.files[0]).write_text(json.dumps(done))


NAMES = ["memory clocks", "busy threads", "instructions of a run", "of a copy", "f16 products per clock", "f32 products per clock",
         "waits of a join", "bytes per clock of a join", "hidden by a tile ahead", "us of a launch", "clock GHz"]
BOUNDS = [(200, 1500), (64, 1024), (2, 80), (2, 80), (256, 1600), (50, 128), (0, 12), (8, 128), (0, 1.5), (0.5, 4), (1.7, 1.98)]
MULTIPROCESSORS, RESIDENT, FIRST_CACHE, REGISTERS, REGISTERS_BESIDE = 132, 2048, 192 << 10, 65536, 64  # of an H200


def fit(options):
    import numpy
    from scipy.optimize import differential_evolution
    from scipy.stats import spearmanr

    found = [v for name in options.files for v in json.loads(pathlib.Path(name).read_text())]
    found = [v for v in found if not (v["type"] == "f32" and v["ahead"])]  # short copies, which are not chosen
    facts = []
    for v in found:
        (rows, columns, steps, part_rows, part_columns), halves = v["tile"], v["type"] == "f16"
        near = 16 // BYTES[v["type"]]
        rounds = math.ceil(v["blocks"] / MULTIPROCESSORS)
        sums = part_rows * part_columns // (WARP if halves else 1)
        resident = max(1, min(rounds, RESIDENT // v["threads"], FIRST_CACHE // v["shared"],
                              REGISTERS // (v["threads"] * (sums + REGISTERS_BESIDE))))
        read = (1 if halves else 0.5) * steps * BYTES[v["type"]] * (rows * (columns // part_columns) + columns * (rows // part_rows))
        facts.append((halves, rounds, resident, v["threads"], math.ceil(math.ceil(v["size"][2] / v["splits"]) / steps),
                      rows * columns * steps, read / 128, (rows + columns) / near * steps, v["splits"], rows * columns, v["ahead"]))
    halves, rounds, resident, threads, turns, products, read, runs, splits, tile, ahead = numpy.array(facts, float).T
    took = numpy.array([v["us"] for v in found])

    def predicted(numbers):
        memory, busy, run, copy, f16, f32, waits, joined, hidden, launch, clock = numbers
        multiplied = numpy.maximum(products / numpy.where(halves > 0, f16, f32), read)
        filled = runs * numpy.where(ahead > 0, copy, run) / 128
        out = turns * numpy.maximum(rounds * (multiplied + filled) / numpy.minimum(1, resident * threads / busy),
                                    numpy.ceil(rounds / resident) * memory / (1 + hidden * ahead))
        join = waits * memory + (1 + numpy.maximum(splits, 2 * rounds)) * tile * 4 / joined
        return launch + (out + numpy.where(splits > 1, join, 0)) / (clock * 1e3)

    best = differential_evolution(lambda n: numpy.mean(numpy.abs(numpy.log(predicted(n) / took))), BOUNDS, seed=1, maxiter=150,
                                  popsize=12, polish=False)
    for name, number in zip(NAMES, best.x):
        print(f"{name:28} {number:8.2f}")
    guess, ratios = predicted(best.x), []
    print(f"{len(found)} kernels, mean factor {math.exp(best.fun):.3f}, rank correlation {spearmanr(guess, took).statistic:.3f}")
    for key in sorted({(v["type"], tuple(v["size"])) for v in found}):
        of = [i for i, v in enumerate(found) if (v["type"], tuple(v["size"])) == key]
        taken, least = min(of, key=lambda i: guess[i]), min(of, key=lambda i: took[i])
        ratios.append(took[taken] / took[least])
        say = lambda i: f"{found[i]['tile']} splits {found[i]['splits']} ahead {found[i]['ahead']} {took[i]:.1f} us"
        print(*key, "chosen", say(taken), "best", say(least), f"ratio {ratios[-1]:.2f}")
    print(f"chosen over best, geometric mean: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "fit"])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--packer", default="build/svod-pack")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--types", type=lambda text: text.split(","), default=list(TILES))
    parser.add_argument("--large", action="store_true", help="products of 32 inputs, too")
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    measure(options) if options.what == "measure" else fit(options)


if __name__ == "__main__":
    main()
