#!/usr/bin/env python3
"""Sizes that a run decides (--dim): each one's answers are those of a pack for it alone, and sizes outside are refused."""
import json
import math
import os
import pathlib
import random
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import INT64, model, node, random_tensor, tensor, value
from packing import BUILD, LEVEL, PACKER, check, pack, read_npy, run, work_folder, write_npy

def numbers(count, seed):
    rng = random.Random(seed)
    return [rng.gauss(0, 1) for _ in range(count)]


def split(x, to):
    return node("Reshape", [x, "split"], [to])


def turn(x, to, perm):
    return node("Transpose", [x], [to], perm=perm)


def attention():
    """Scores of each row with each, softmax, and the mean they make; heads by a reshape to sizes of the run."""
    heads = tensor("heads", [1], [4], INT64), tensor("per_head", [1], [8], INT64)
    return model(
        [node("Shape", ["x"], ["sizes"]), node("Slice", ["sizes", "zero", "two"], ["rows"]),
         node("Concat", ["rows", "heads", "per_head"], ["split"], axis=0),
         node("MatMul", ["x", "wq"], ["q"]), split("q", "q4"), turn("q4", "qh", [0, 2, 1, 3]),
         node("MatMul", ["x", "wk"], ["k"]), split("k", "k4"), turn("k4", "kh", [0, 2, 3, 1]),
         node("MatMul", ["qh", "kh"], ["scores"]), node("Softmax", ["scores"], ["p"], axis=-1),
         split("x", "x4"), turn("x4", "xh", [0, 2, 1, 3]), node("MatMul", ["p", "xh"], ["mixed"]),
         turn("mixed", "back", [0, 2, 1, 3]), node("Reshape", ["back", "joined"], ["y"])],
        [value("x", ["batch", "seq", 32])], [value("y", ["batch", "seq", 32])],
        [random_tensor("wq", [32, 32], 1, 0.3), random_tensor("wk", [32, 32], 2, 0.3), *heads,
         tensor("zero", [1], [0], INT64), tensor("two", [1], [2], INT64),
         tensor("joined", [3], [0, 0, 32], INT64)])


def flattened():
    """Products of rows of all batches at once, as exporters write linear layers; batch and rows are taken apart in between, and
    at the end the batch is what is left."""
    return model(
        [node("Shape", ["x"], ["sizes"]), node("Slice", ["sizes", "zero", "two"], ["rows"]),
         node("Slice", ["sizes", "one", "two"], ["seq"]),
         node("Reshape", ["x", "flat32"], ["xf"]), node("Gemm", ["xf", "w1", "b1"], ["g"]),
         node("Concat", ["rows", "w48"], ["to48"], axis=0), node("Reshape", ["g", "to48"], ["g3"]),
         node("Split", ["g3"], ["q", "k", "v"], axis=2), node("Mul", ["q", "k"], ["qk"]), node("Add", ["qk", "v"], ["qkv"]),
         node("Reshape", ["qkv", "flat16"], ["f"]), node("Gemm", ["f", "w2"], ["h"]),
         node("Concat", ["left", "seq", "w32"], ["to32"], axis=0), node("Reshape", ["h", "to32"], ["h3"]),
         node("Add", ["x", "h3"], ["y"])],
        [value("x", ["batch", "seq", 32])], [value("y", ["batch", "seq", 32])],
        [random_tensor("w1", [32, 48], 4, 0.3), random_tensor("b1", [48], 5, 0.3), random_tensor("w2", [16, 32], 6, 0.3),
         *(tensor(name, [1], [number], INT64)
           for name, number in (("zero", 0), ("one", 1), ("two", 2), ("w48", 48), ("w32", 32), ("left", -1))),
         tensor("flat32", [2], [-1, 32], INT64), tensor("flat16", [2], [-1, 16], INT64)], opset=11)


def positions():
    """As many positions as there are rows, counted on from another size, as decoders count from their past: n + m - n of them, in
    one row for all batches. It is m divided by m that says that there is one."""
    return model(
        [node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "first"], ["past"]), node("Gather", ["sizes", "second"], ["seq"]),
         node("Add", ["seq", "past"], ["until"]), node("Range", ["past", "until", "second"], ["places"]),
         node("Slice", ["sizes", "one", "two"], ["rows"]), node("Concat", ["left", "rows"], ["to"], axis=0),
         node("Reshape", ["places", "to"], ["row"]), node("Gather", ["table", "row"], ["of_places"]),
         node("Add", ["x", "of_places"], ["y"])],
        [value("x", ["batch", "seq", 8])], [value("y", ["batch", "seq", 8])],
        [random_tensor("table", [20, 8], 7, 0.3), tensor("first", [], [0], INT64), tensor("second", [], [1], INT64),
         *(tensor(name, [1], [number], INT64) for name, number in (("one", 1), ("two", 2), ("left", -1)))], opset=11)


def picture():
    """A convolution with a border, its maxima in pairs, and the mean of all: what lies beyond a picture must not be seen."""
    return model(
        [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], kernel_shape=[3, 3]), node("Relu", ["c"], ["r"]),
         node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2], strides=[2, 2]),
         node("GlobalAveragePool", ["m"], ["y"])],
        [value("x", [1, 3, "h", "w_"])], [value("y", [1, 8, 1, 1])],
        [random_tensor("w", [8, 3, 3, 3], 3, 0.3)])


def decoder():
    """Tokens against a cache that they grow; a mask has a number for each row of both."""
    nodes = [node("MatMul", ["x", "wq"], ["q"]), node("MatMul", ["x", "wk"], ["k"]),
             node("Concat", ["past", "k"], ["present"], axis=1), node("Transpose", ["present"], ["kt"], perm=[0, 2, 1]),
             node("MatMul", ["q", "kt"], ["s"]), node("Add", ["s", "mask"], ["sm"]), node("Softmax", ["sm"], ["p"], axis=-1),
             node("MatMul", ["p", "present"], ["y"])]
    return model(nodes, [value("x", [1, "seq", 16]), value("past", [1, "kept", 16]), value("mask", [1, "kept + seq"])],
                 [value("y", [1, "seq", 16]), value("present", [1, "kept + seq", 16])],
                 [random_tensor("wq", [16, 16], 1, 0.3), random_tensor("wk", [16, 16], 2, 0.3)])


def decodes(folder):
    """A dimension that is an expression of others follows from them, with --dim and with --shape."""
    path, program = folder / "decoder.onnx", folder / "decoder"
    path.write_bytes(decoder())
    env = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"))
    run(PACKER, path, "-o", program, "-q", "--verify", "random", *LEVEL, "--dim", "kept=0..20", "--dim", "seq=1..3", env=env)

    def inputs(past, seq, total):
        words = []
        for name, shape in (("x", [1, seq, 16]), ("past", [1, past, 16]), ("mask", [1, total])):
            file = folder / f"{name}.npy"
            write_npy(file, shape, numbers(shape[1] * (shape[2] if len(shape) > 2 else 1), shape[1]))
            words += ["--input", f"{name}=@{file}"]
        return words

    for past, seq in ((0, 1), (0, 3), (1, 1), (7, 2), (19, 1), (20, 3)):
        if past > 0:
            pack(path, folder / "alone", "--shape", f"kept={past}", "--shape", f"seq={seq}")
        for name in ("y", "present"):
            run(program, *inputs(past, seq, past + seq), "--output", f"{name}=@{folder / 'got.npy'}")
            shape, _ = read_npy(folder / "got.npy")
            check(shape == (1, past + seq if name == "present" else seq, 16), f"{name} at {past}, {seq} is {shape}")
            if past == 0:
                continue
            run(folder / "alone", *inputs(past, seq, past + seq), "--output", f"{name}=@{folder / 'want.npy'}")
            check(close(folder / "got.npy", folder / "want.npy"), f"{name} at {past}, {seq}: as packed for it alone")
    told = run(program, *inputs(5, 2, 6), expect=11).stderr.decode()
    check("do not agree on a size" in told, "a mask of another size is refused")


def close(got, want):
    shape, values = read_npy(got)
    wanted_shape, wanted = read_npy(want)
    return shape == wanted_shape and all(abs(a - b) <= 1e-5 + 1e-4 * abs(b) for a, b in zip(values, wanted))


def as_alone(folder, name, network, options, sizes):
    """`sizes`: dimensions with values, and the shape of x."""
    path, program = folder / f"{name}.onnx", folder / name
    path.write_bytes(network)
    env = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"))
    run(PACKER, path, "-o", program, "-q", "--verify", "random", *LEVEL, *options, env=env, seconds=300)
    for dims, shape in sizes:
        count = 1
        for extent in shape:
            count *= extent
        write_npy(folder / "x.npy", shape, numbers(count, count))
        pack(path, folder / "alone", *[word for d in dims.items() for word in ("--shape", f"{d[0]}={d[1]}")])
        for one, to in ((program, "got.npy"), (folder / "alone", "want.npy")):
            run(one, folder / "x.npy", "--output", folder / to)
        check(close(folder / "got.npy", folder / "want.npy"), f"{name} at {dims}: as packed for it alone")
    return program


def refusals(folder, program):
    write_npy(folder / "long.npy", [1, 13, 32], numbers(13 * 32, 1))
    told = run(program, folder / "long.npy", expect=1)
    check(b"f32[2,12,32], at most" in told.stderr, "a size beyond its bound is exit 1 and told")
    write_npy(folder / "other.npy", [1, 4, 31], numbers(4 * 31, 1))
    check(b"at most" in run(program, folder / "other.npy", expect=1).stderr, "an axis that is fixed stays so")
    info = run(program, "--info").stdout.decode()
    check("at most; a run decides" in info and "x.shape" not in info, "--info tells bounds")
    path = folder / "attention.onnx"
    for options, words in ((("--dim", "sequence=1..4"), "no dimension 'sequence'"),
                           (("--dim", "seq=4"), "LEAST..MOST"), (("--dim", "seq=5..4"), "LEAST..MOST"),
                           (("--dim", "seq=1..4", "--dim", "seq=1..5"), "given twice"),
                           (("--dim", "seq=1..4", "--shape", "seq=3"), "by --dim and by --shape")):
        told = pack(path, folder / "no", *options, expect=2)
        check(words in told.stderr.decode(), f"{' '.join(options)}: exit 2, {words}")


def disagreements(folder):
    """Inputs that say different things of one size, and a size below what was packed, stop the run."""
    path, program = folder / "sum.onnx", folder / "sum"
    path.write_bytes(model([node("Add", ["a", "b"], ["y"])], [value("a", ["n", 2]), value("b", ["n", 2])], [value("y", ["n", 2])]))
    pack(path, program, "--dim", "n=2..5")

    def words(a, b):
        return [w for name, rows in (("a", a), ("b", b)) for w in ("--input", f"{name}={rows}x2xf32=[{' '.join(['1'] * 2 * rows)}]")]

    run(program, *words(3, 3))
    for a, b in ((3, 4), (4, 3), (1, 1)):
        told = run(program, *words(a, b), expect=11).stderr.decode()
        check("do not agree on a size" in told, f"{a} rows and {b} rows are exit 11")


def steps(folder):
    """Kernels for multiples of a size: a run takes the first that it fits into."""
    program = as_alone(folder, "steps", attention(), ("--dim", "batch=1..2", "--dim", "seq=1..12/4"),
                       [({"batch": b, "seq": s}, [b, s, 32]) for b, s in ((1, 1), (1, 4), (2, 5), (2, 12))])
    for size, entry in ((3, "0"), (4, "0"), (5, "1"), (12, "2")):
        write_npy(folder / "x.npy", [1, size, 32], numbers(size * 32, size))
        told = run(program, "--bench", "--min-time", "0", folder / "x.npy").stdout.decode()
        check(told.startswith(f"entry {entry}\n"), f"{size} rows are for entry {entry}")


def explained(path, options, env):
    """--explain says which loops end with the run's sizes, in words and in numbers, and nothing of them where all sizes are known."""
    words = run(PACKER, path, "-o", "-", *LEVEL, *options, "--emit=fused", "--explain", env=env).stdout.decode()
    told = run(PACKER, path, "-o", path.parent / "told", *LEVEL, *options, "--explain", "--json", "--verify", "off", env=env)
    ends = [kernel["run_ends"] for kernel in json.loads(told.stdout)["explain"]["kernels"]]
    bounds = {int(word.rsplit("..", 1)[1]) for word in options if ".." in word}
    check(not any(ends) or any(bounds & set(e) for e in ends), f"loops that end have a bound of {sorted(bounds)}")
    check(words.count("  sizes       loops of ") == sum(bool(e) for e in ends), "--explain says so of each kernel that has one")
    check(words.count("  sizes       every run computes all of it") > 0, "and of those whose loops do not end")


def behind_others(folder, name, network, options, most, runs_of):
    """What a run computes does not depend on what runs before it have left where it ends early: NaNs, of the largest size.
    `runs_of`: dimensions with values, and the shape of x."""
    path, program, runs, out = folder / f"{name}.onnx", folder / "behind", folder / "runs", folder / "answers"
    path.write_bytes(network)
    env = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"))
    run(PACKER, path, "-o", program, "-q", *LEVEL, *options, env=env, seconds=300)
    told = run(PACKER, path, "-o", "-", *LEVEL, *options, "--emit=fused", env=env).stdout.decode()
    explained(path, options, env)
    for d in (runs, out):
        shutil.rmtree(d, ignore_errors=True)
        d.mkdir()
    for i, (_, shape) in enumerate(runs_of):
        write_npy(runs / f"{2 * i:02}.npy", most, [float("nan")] * math.prod(most))
        write_npy(runs / f"{2 * i + 1:02}.npy", shape, numbers(math.prod(shape), i))
    run(program, "--batch-dir", runs, "--output-dir", out, seconds=120)
    for i, (dims, _) in enumerate(runs_of):
        pack(path, folder / "alone", *[word for d in dims.items() for word in ("--shape", f"{d[0]}={d[1]}")])
        run(folder / "alone", runs / f"{2 * i + 1:02}.npy", "--output", folder / "want.npy")
        (got,) = out.glob(f"{2 * i + 1:02}*")
        check(close(got, folder / "want.npy"), f"{name} at {dims} behind a run of NaNs: as packed for it alone")
    return told.count("  ends i")


def main():
    folder = work_folder("dims")
    program = as_alone(folder, "attention", attention(), ("--dim", "batch=1..2", "--dim", "seq=1..12"),
                       [({"batch": b, "seq": s}, [b, s, 32]) for b, s in ((1, 1), (2, 7), (1, 12), (2, 12))])
    refusals(folder, program)
    as_alone(folder, "picture", picture(), ("--dim", "h=4..20", "--dim", "x[3]=4..24"),
             [({"h": h, "w_": w}, [1, 3, h, w]) for h, w in ((4, 4), (7, 24), (20, 5), (20, 24))])
    as_alone(folder, "positions", positions(), ("--dim", "batch=1..3", "--dim", "seq=1..6"),
             [({"batch": b, "seq": s}, [b, s, 8]) for b, s in ((1, 1), (3, 2), (2, 6), (3, 6))])
    disagreements(folder)
    steps(folder)
    decodes(folder)
    ends = behind_others(folder, "attention", attention(), ("--dim", "batch=1..3", "--dim", "seq=1..70"), [3, 70, 32],
                         [({"batch": b, "seq": s}, [b, s, 32])
                          for b, s in ((1, 1), (3, 64), (2, 17), (1, 33), (3, 5), (2, 70), (1, 70), (1, 2))])
    check(ends >= 8, "loops over rows and over keys end with the run's sizes")
    ends = behind_others(folder, "flattened", flattened(), ("--dim", "batch=1..3", "--dim", "seq=1..70"), [3, 70, 32],
                         [({"batch": b, "seq": s}, [b, s, 32]) for b, s in ((1, 1), (3, 64), (2, 17), (3, 70), (1, 70), (1, 2))])
    check(ends >= 9, "loops over rows of all batches, and over those of each, end with the run's sizes")
    behind_others(folder, "picture", picture(), ("--dim", "h=4..40", "--dim", "x[3]=4..48"), [1, 3, 40, 48],
                  [({"h": h, "w_": w}, [1, 3, h, w]) for h, w in ((4, 4), (7, 48), (40, 5), (17, 33), (40, 48))])


main()
