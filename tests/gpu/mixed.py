#!/usr/bin/env python3
"""Models of which the processor runs some steps between a GPU's, end to end against the driver that stands in for NVIDIA's: a
function of the user's in the middle, pictures that are decoded at the front, boxes that are chosen at the back. What a driver is
asked for tells what is copied."""
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from library import build
from onnx_writer import FLOAT, INT64, UINT8, model, node, random_tensor, tensor, value
from packing import BUILD, PACKER, SOURCE, check, need, pack, read_npy, run, work_folder, write_npy
from program import StandIn, text_of

OPS = SOURCE / "tests" / "custom_ops" / "soft_swish.cpp"
ROWS, COLUMNS = 32, 256
BYTES = ROWS * COLUMNS * 4
TARGET = ["--target", "x86-64-v3"]  # whose times are predicted alike everywhere
WORDS = ["--device", "cuda:sm_80", "--ptxas", "off", *TARGET]
CUSTOM = ["--custom-op", OPS]


def written(path, nodes, inputs, outputs, initializers=(), opset=17):
    path.write_bytes(model(nodes, inputs, outputs, initializers, opset=opset, domains=[("my.domain", 1)]))
    return path


def weights(name, rows, columns, seed):
    return random_tensor(name, [rows, columns], seed, rows ** -0.5)


def middle(path, functions=1, rows=ROWS):
    """Products on either side of functions that all read one tensor."""
    swishes = [node("SoftSwish", ["t"], [f"s{i}"], f"act{i}", "my.domain", beta=0.5 + i) for i in range(functions)]
    nodes = [node("MatMul", ["x", "v"], ["p"]), node("Relu", ["p"], ["t"]), *swishes,
             node("Sum", [*(f"s{i}" for i in range(functions)), "t"], ["u"]), node("MatMul", ["u", "w"], ["y"])]
    return written(path, nodes, [value("x", [rows, COLUMNS])], [value("y", [rows, COLUMNS])],
                   [weights("v", COLUMNS, COLUMNS, 1), weights("w", COLUMNS, COLUMNS, 2)])


def ends(path):
    """Functions at both ends: an input and an output that only the processor touches."""
    nodes = [node("SoftSwish", ["x"], ["a"], "front", "my.domain", beta=0.5), node("MatMul", ["a", "v"], ["p"]), node("Relu", ["p"], ["t"]),
             node("MatMul", ["t", "w"], ["q"]), node("SoftSwish", ["q"], ["y"], "back", "my.domain", beta=0.5)]
    return written(path, nodes, [value("x", [ROWS, COLUMNS])], [value("y", [ROWS, COLUMNS])],
                   [weights("v", COLUMNS, COLUMNS, 1), weights("w", COLUMNS, COLUMNS, 2)])


class Packed:
    """A model packed for both, and the driver."""

    def __init__(self, folder, path, *words):
        self.folder, self.program, side = folder, path.with_suffix(""), path.with_suffix(".so")
        self.said = text_of(run(PACKER, path, "-o", self.program, "--verify", "off", "--no-cache", *WORDS, *words))
        run(BUILD / "tests" / "gpu_kernels", path, side, "sm_80", *[word for word in words if str(word).endswith(".cpp")])
        self.driver = StandIn(folder, side)

    def answer(self, place, name, *words, expect=0, **settings):
        target = self.folder / f"{name}_{place}.npy"
        done = run(self.program, f"--device={place}", *words, "--output", f"{name}=@{target}", expect=expect,
                   env=self.driver.env(**settings))
        return target.read_bytes() if expect == 0 else text_of(done)

    def log(self):
        return self.driver.log.read_text().splitlines()

    def graphs(self):
        return [line.removeprefix("holds ").split(", ") for line in self.log() if line.startswith("holds ")]


def near(folder, name):
    here, there = (read_npy(folder / f"{name}_{place}.npy")[1] for place in ("cpu", "cuda"))
    return len(here) == len(there) and all(abs(a - b) < 1e-4 for a, b in zip(here, there))


def made_input(folder):
    x = folder / "x.npy"
    generator = random.Random(5)
    write_npy(x, (ROWS, COLUMNS), [generator.gauss(0, 1) for _ in range(ROWS * COLUMNS)])
    return ["--input", f"x=@{x}"]


def user_function(folder):
    packed = Packed(folder, middle(folder / "middle.onnx"), *CUSTOM)
    words = made_input(folder)
    check("for a GPU: 3 kernels" in packed.said and "on the processor, as C++ of its own: k1 (act0)" in packed.said and
          f"2 graphs, with 2 copies of {2 * BYTES // 1024}.0 KiB" in packed.said, "packing says what runs where, and why")
    packed.answer("cpu", "y", *words)
    there = packed.answer("cuda", "y", *words)
    check(near(folder, "y"), "the processor's answers")
    check(packed.answer("cuda", "y", *words) == there, "the same bits each time")
    first, second = packed.graphs()
    check(first[1:] == ["launch", f"down {BYTES}", first[-1]] and first[0].startswith("up ") and len(first) == 4,
          f"the first graph: {first}")
    check(second[0] == f"up {BYTES}" and second.count("launch") == len(second) - 2 and second[-1].startswith("down "),
          f"the second: {second}")
    check(packed.log().count("run") == 2, "a run is two graphs")
    check(sum(line.startswith("module") for line in packed.log()) == 1 + len(second) - 2, "the function is no module")
    lost = packed.answer("cuda", "y", *words, expect=9, LOST="2")
    check("unspecified launch failure" in lost and packed.log().count("run") == 1, "a GPU that is lost between the two ends it")
    info = text_of(run(packed.program, "--info", env=packed.driver.env()))
    check("on the processor, as C++ of its own: act0" in info, "--info says what runs where")
    told = json.loads(run(packed.program, "--device=cuda", *words, "--profile=json", "--min-time=0.02", env=packed.driver.env()).stdout)
    rows = [(row["name"], row["place"]) for row in told["kernels"]]
    check(rows[:4] == [("k0", "gpu"), ("down", "gpu"), ("k1", "cpu"), ("up", "gpu")] and
          all(row["us"] > 0 for row in told["kernels"] if row["place"] == "cpu"), f"--profile does, too: {rows}")
    check("k1 cpu" in text_of(run(packed.program, "--device=cuda", *words, "--profile", "--min-time=0.02", env=packed.driver.env())),
          "as text")
    told = json.loads(run(packed.program, "--device=cuda", *words, "--bench=json", "--min-time=0.02", env=packed.driver.env()).stdout)
    times = {row["name"]: row["real_time"] for row in told["benchmarks"]}
    check(all(times[f"{name}/min"] > 0 for name in ("kernels", "graph", "launch", "host")), "--bench has its time")


def plan_text(folder):
    path = middle(folder / "plan.onnx", functions=2)
    text = run(PACKER, path, *WORDS[:2], *CUSTOM, "--emit=plan").stdout.decode()
    steps = [re.sub(r" k\d+ x1( s\d+)*| s\d+$", "", line) for line in text.splitlines()
             if line.startswith(("launch", "copy "))]
    here = "launch on the processor, as C++ of its own"
    check(steps[:6] == ["launch", "copy down", here, here, "copy up", "copy up"] and here not in steps[6:],
          f"two functions share a copy down: {steps}")
    packed = Packed(folder, path, *CUSTOM)
    told = json.loads(run(PACKER, path, "-o", folder / "other", "--verify", "off", *WORDS, *CUSTOM, "--json").stdout)["device"]
    entry = told["entries"][0]
    check(told["runs_on"] == "both" and entry["graphs"] == 2 and entry["copies"] == 3 and entry["copied_bytes"] == 3 * BYTES and
          [step["nodes"] for step in entry["steps_on_cpu"]] == ["act0", "act1"] and
          entry["predicted_us"]["gpu"] < entry["predicted_us"]["cpu"], f"--json: {told}")
    sets = [word for rows in (ROWS, 2 * ROWS) for word in ("--shape", f"n={rows}")]
    told = json.loads(run(PACKER, middle(folder / "sets.onnx", rows="n"), "-o", folder / "sets", "--verify", "off", *WORDS, *CUSTOM, *sets,
                          "--json").stdout)["device"]
    check([(entry["steps_on_cpu"][0]["nodes"], entry["copied_bytes"]) for entry in told["entries"]] ==
          [("act0", 2 * BYTES), ("act0", 4 * BYTES)], f"each set of shapes has its own: {told}")
    for place in ("cpu", "cuda"):
        packed.answer(place, "y", *made_input(folder))
    check(near(folder, "y"), "and compute what the processor does")
    check([work for graph in packed.graphs() for work in graph].count(f"down {BYTES}") == 1, "once")


def turns(folder):
    """Two branches with a function each: both run in one turn, whatever the order of the nodes."""
    nodes = []
    for i in range(2):
        nodes += [node("MatMul", ["x", f"v{i}"], [f"t{i}"]), node("SoftSwish", [f"t{i}"], [f"s{i}"], f"act{i}", "my.domain", beta=0.5),
                  node("MatMul", [f"s{i}", f"w{i}"], [f"y{i}"])]
    path = written(folder / "branches.onnx", nodes, [value("x", [ROWS, COLUMNS])], [value(f"y{i}", [ROWS, COLUMNS]) for i in range(2)],
                   [weights(f"{name}{i}", COLUMNS, COLUMNS, ord(name) + i) for i in range(2) for name in "vw"])
    packed = Packed(folder, path, *CUSTOM)
    words = made_input(folder)
    check("2 graphs, with 4 copies" in packed.said, "two turns of the GPU")
    for name in ("y0", "y1"):
        for place in ("cpu", "cuda"):
            packed.answer(place, name, *words)
        check(near(folder, name), f"the processor's answers: {name}")


def picture(folder):
    """The picture's bytes and the decoder are the processor's; what it makes goes up."""
    size, stream = 32, 32 * 32 * 3 + 13
    nodes = [node("ImageDecoder", ["file"], ["picture"], "decode"), node("Cast", ["picture"], ["f"], to=FLOAT),
             node("Reshape", ["f", "shape"], ["r"]), node("Mul", ["r", "scale"], ["m"]), node("MatMul", ["m", "v"], ["p"]),
             node("Relu", ["p"], ["t"]), node("MatMul", ["t", "w"], ["q"]), node("Relu", ["q"], ["s"]),
             node("MatMul", ["s", "u"], ["y"])]
    path = folder / "picture.onnx"
    path.write_bytes(model(nodes, [value("file", [stream], UINT8)], [value("y", [size, 512])],
                           [tensor("shape", [2], [size, 3 * size], INT64), tensor("scale", [], [1 / 255]),
                            weights("v", 3 * size, 512, 1), weights("w", 512, 512, 2), weights("u", 512, 512, 3)], opset=20,
                           values=[value("picture", [size, size, 3], UINT8)]))
    packed = Packed(folder, path)
    check("(decode)" in packed.said and "1 graphs, with 1 copies" in packed.said, "decoding is the processor's")
    file = folder / "picture.raw"
    file.write_bytes(b"P6 32 32 255\n" + random.Random(3).randbytes(size * size * 3))
    words = ["--input", f"file=@{file}"]
    packed.answer("cpu", "y", *words)
    packed.answer("cuda", "y", *words)
    check(near(folder, "y"), "the processor's answers")
    graph, = packed.graphs()
    check(graph[1] == f"up {3 * size * size}" and int(graph[0].split()[1]) < stream and packed.log().count("run") == 1,
          f"the picture goes up and its file does not: {graph}")
    file.write_bytes(b"P6 31 32 255\n" + bytes(size * size * 3))
    here, there = (packed.answer(place, "y", *words, expect=11) for place in ("cpu", "cuda"))
    check("decode" in there and "decode" in here and "run" not in packed.log(), f"one of another size ends the run before: {there}")


def boxes(folder):
    """What the network finds is chosen among by the processor, whose results nobody else touches."""
    count = ROWS
    nodes = [node("MatMul", ["x", "v"], ["p"]), node("Relu", ["p"], ["t"]), node("MatMul", ["t", "w"], ["q"]),
             node("ReduceMean", ["q"], ["mean"], axes=[1], keepdims=0), node("Sigmoid", ["mean"], ["s"]),
             node("Reshape", ["s", "shape"], ["scores"]),
             node("NonMaxSuppression", ["boxes", "scores", "most", "overlap"], ["y"], "choose")]
    path = folder / "boxes.onnx"
    path.write_bytes(model(nodes, [value("x", [count, 512]), value("boxes", [1, count, 4])], [value("y", ["n", 3], INT64)],
                           [tensor("shape", [3], [1, 1, count], INT64), tensor("most", [1], [count], INT64),
                            tensor("overlap", [1], [0.5]), weights("v", 512, 512, 1), weights("w", 512, 512, 2)]))
    packed = Packed(folder, path)
    check("choose" in packed.said, "choosing boxes is the processor's")
    generator = random.Random(11)
    write_npy(folder / "found.npy", (count, 512), [generator.gauss(0, 1) for _ in range(count * 512)])
    corners = [(generator.uniform(0, 2), generator.uniform(0, 2)) for _ in range(count)]
    write_npy(folder / "boxes.npy", (1, count, 4), [n for a, b in corners for n in (a, b, a + 1, b + 1)])
    words = ["--input", f"x=@{folder / 'found.npy'}", "--input", f"boxes=@{folder / 'boxes.npy'}"]
    here = packed.answer("cpu", "y", *words)
    check(packed.answer("cuda", "y", *words) == here and len(here) > 128 + 24 * 4, "the processor's boxes")
    first, second = packed.graphs()
    check(first[-2] == f"down {4 * count}", f"scores go down: {first}")
    check(second[0] == "up 8" and all(int(work.split()[1]) < 24 * count for work in second if work.startswith("down")),
          f"how many boxes there are goes up, for the extents; the boxes stay: {second}")


def out_of_range(folder):
    """An index that is out of range on the GPU ends the run before the processor sees what comes of it."""
    nodes = [node("Gather", ["x", "i"], ["g"], "pick"), node("MatMul", ["g", "v"], ["t"]),
             node("SoftSwish", ["t"], ["s"], "act", "my.domain", beta=0.5), node("MatMul", ["s", "w"], ["y"])]
    path = written(folder / "gather.onnx", nodes, [value("x", [ROWS, COLUMNS]), value("i", [ROWS], INT64)],
                   [value("y", [ROWS, COLUMNS])], [weights("v", COLUMNS, COLUMNS, 1), weights("w", COLUMNS, COLUMNS, 2)])
    packed = Packed(folder, path, *CUSTOM)
    good = [*made_input(folder), "--input", "i=zeros"]
    packed.answer("cuda", "y", *good)
    rows = " ".join(["9999"] * ROWS)
    told = packed.answer("cuda", "y", *made_input(folder), "--input", f"i={ROWS}xi64=[{rows}]", expect=11)
    check("out of range" in told and "pick" in told and packed.log().count("run") == 1, "the second graph does not run")


def no_gain(folder):
    """Copies and waits that take longer than the processor."""
    nodes = [node("Add", ["x", "x"], ["d"]), node("SoftSwish", ["d"], ["s"], "act", "my.domain", beta=0.5), node("Neg", ["s"], ["y"])]
    path = written(folder / "small.onnx", nodes, [value("x", [2, 3])], [value("y", [2, 3])])
    done = run(PACKER, path, "-o", folder / "small", "--verify", "off", *WORDS, *CUSTOM, "--no-cache")
    check("packed for the CPU alone, since with steps on the processor (act) a GPU is predicted to take" in text_of(done),
          "a small model stays on the processor, and the note says what it was compared by")
    told = json.loads(run(PACKER, path, "-o", folder / "small", "--verify", "off", *WORDS, *CUSTOM, "--json").stdout)["device"]
    check(told["runs_on"] == "cpu" and told["entries"][0]["predicted_us"]["cpu"] < told["entries"][0]["predicted_us"]["gpu"],
          f"--json: {told}")
    nodes = [node("SoftSwish", ["x"], ["y"], "act", "my.domain", beta=0.5)]
    path = written(folder / "alone.onnx", nodes, [value("x", [2, 3])], [value("y", [2, 3])])
    done = run(PACKER, path, "-o", folder / "alone", "--verify", "off", *WORDS, *CUSTOM, "--no-cache")
    check("all that it computes is C++ of its own" in text_of(done), "so does one that is a function alone")


def library(folder):
    """The same of a library, and on a caller's stream: functions in the middle and at the ends, where on that stream an input comes
    down and an output goes up. The caller copies one tensor up and one down itself."""
    (folder / "cuda.h").write_text((SOURCE / "tests/gpu/cuda_h.txt").read_text())
    for path, copies in ((middle(folder / "middle.onnx"), 1), (ends(folder / "ends.onnx"), 2)):
        log, said = use_library(folder, path)
        check("stream is capturing" in said, f"{path.stem}: a stream that is captured is refused: {said}")
        downs, ups = (log.count(f"now {way} {BYTES}") for way in ("down", "up"))
        check(downs == ups == copies + 1, f"on the caller's stream: {downs} copies down and {ups} up, one of each the caller's own")


def use_library(folder, path):
    pack(path, folder / "libmixed.a", "--name", "net", *WORDS, *CUSTOM)
    side = folder / "library.so"
    run(BUILD / "tests" / "gpu_kernels", path, side, "sm_80", OPS)
    program = build(folder, SOURCE / "tests/library/gpu_mixed.c", "libmixed.h", folder / "libmixed.a", folder / "use_mixed",
                    BUILD / "tests/stand_in/libcuda.so.1")
    driver = StandIn(folder, side)
    said = run(program, env=driver.env()).stdout.decode().splitlines()
    return driver.log.read_text().splitlines(), said[0]


def main():
    need("env", "gcc")
    folder = work_folder("gpu_mixed")
    for part in (user_function, plan_text, turns, picture, boxes, out_of_range, no_gain, library):
        own = folder / part.__name__
        own.mkdir()
        part(own)


if __name__ == "__main__":
    main()
