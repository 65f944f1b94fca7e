#!/usr/bin/env python3
"""Sequences, optionals and maps through packed programs: files in, files out, and files that are malformed."""
import random
import struct
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.onnx_writer import FLOAT, INT64, attribute, data, model, node, number, tensor, value  # noqa: E402
from support.packing import check, pack, run, work_folder  # noqa: E402

folder = work_folder("sequences")
FLOATS = data(1, number(1, FLOAT) + data(2, data(1, number(1, 2))))  # TypeProto of float[2]


def typed(name, type_proto):
    return data(1, name) + data(2, type_proto)


def sequence_of(inner):
    return data(4, data(1, inner))


def optional_of(inner):
    return data(9, data(1, inner))


def floats(values, name=""):
    return tensor(name, [len(values)], values)


def sequence(tensors, name):
    return data(1, name) + number(2, 1) + b"".join(data(3, t) for t in tensors)


def map_of(pairs):
    values = b"".join(data(3, tensor("", [], [v])) for _, v in pairs)
    return number(2, 7) + b"".join(number(3, k) for k, _ in pairs) + data(5, number(2, 1) + values)


def ml_model(nodes, inputs, outputs):
    return model(nodes, inputs, outputs) + data(8, data(1, "ai.onnx.ml") + number(2, 1))


def put(name, content):
    (folder / name).write_bytes(content)
    return folder / name


def data_set(name, inputs, outputs):
    (folder / name).mkdir()
    for kind, files in (("input", inputs), ("output", outputs)):
        for i, content in enumerate(files):
            (folder / name / f"{kind}_{i}.pb").write_bytes(content)
    return folder / name


# y = [x1, x0 + x1, o], from a sequence of two and an optional tensor.
nodes = [node("SequenceAt", ["x", "zero"], ["x0"]), node("SequenceAt", ["x", "one"], ["x1"]),
         node("Add", ["x0", "x1"], ["sum"]), node("OptionalGetElement", ["o"], ["there"]),
         node("SequenceConstruct", ["x1", "sum", "there"], ["y"])]
source = put("sequence.onnx", model(
    nodes, [typed("x", sequence_of(FLOATS)), typed("o", optional_of(FLOATS))], [typed("y", sequence_of(FLOATS))],
    [tensor("zero", [], [0], INT64), tensor("one", [], [1], INT64)], opset=18))
x = sequence([floats([1, 2]), floats([10, 20])], "x")
o = data(1, "o") + number(2, 1) + data(3, floats([5, 6]))
y = sequence([floats([10, 20]), floats([11, 22]), floats([5, 6])], "y")
right = data_set("right", [x, o], [y])
program = folder / "sequence"
pack(source, program, "--shape-from", right)
run(program, "--verify", right)
run(program, "--verify", data_set("wrong", [x, o], [sequence([floats([10, 20]), floats([11, 23]), floats([5, 6])], "y")]),
    expect=7)
run(program, "--verify", data_set("short", [x, o], [sequence([floats([10, 20])], "y")]), expect=7)
check(True, "a data set of a sequence and an optional is verified")

put("x.pb", x)
put("o.pb", o)
run(program, "--input", f"x=@{folder}/x.pb", f"o=@{folder}/o.pb", "--output", f"y=@{folder}/y.pb")
written = (folder / "y.pb").read_bytes()
check(written.count(struct.pack("<2f", 11, 22)) == 1 and written.startswith(data(1, "y")), "outputs go into one file")
run(program, folder / "x.pb", folder / "o.pb", "--output", f"@{folder}/again.pb")
check((folder / "again.pb").read_bytes() == written, "also where the words name none")
run(program, "--input", "x[0]=2xf32=[1 2]", "x[1]=2xf32=[3 4]", "o=2xf32=[5 6]")
check(b"y[1]: 2xf32=[4 6]" in run(program, "--input", "x[0]=2xf32=[1 2]", "--input", "x[1]=2xf32=[3 4]",
                                  "--input", "o=2xf32=[5 6]").stdout, "elements have names of their own")
info = run(program, "--info").stdout
check(b"x, input: sequence of 2; input 0 to 1" in info and b"o, input: optional tensor; input 2" in info,
      "--info says what belongs together")
run(program, "--input", f"x=@{put('three.pb', sequence([floats([1, 2])] * 3, 'x'))}", "--input", "o=zeros", expect=1)
run(program, "--input", f"x=@{put('wide.pb', sequence([floats([1, 2, 3])] * 2, 'x'))}", "--input", "o=zeros", expect=1)
run(program, "--input", f"o=@{put('none.pb', data(1, 'o') + number(2, 1))}", "--input", f"x=@{folder}/x.pb", expect=1)
check(True, "other lengths, shapes and a missing optional are refused")

# A map in, a sequence of maps out.
vocabulary = attribute("int64_vocabulary", [7, 5])
dictionary = put("map.onnx", ml_model(
    [data(1, "m") + data(2, "v") + data(4, "DictVectorizer") + data(5, vocabulary) + data(7, "ai.onnx.ml"),
     data(1, "v") + data(2, "z") + data(4, "ZipMap") + data(5, attribute("classlabels_int64s", [30, 20])) +
     data(7, "ai.onnx.ml")],
    [typed("m", data(5, number(1, INT64) + data(2, data(1, number(1, FLOAT)))))], [typed("z", b"")]))
maps = folder / "map"
pack(dictionary, maps)
run(maps, "--verify", data_set("maps", [map_of([(5, 0.5), (9, 4.0), (7, 0.25)])],
                               [number(2, 4) + data(6, map_of([(20, 0.5), (30, 0.25)]))]))
run(maps, "--verify", data_set("sparse", [map_of([(7, 0.25)])], [data(6, map_of([(20, 0.0), (30, 0.25)]))]))
run(maps, "--verify", data_set("values", [map_of([(7, 0.25)])], [data(6, map_of([(20, 0.25), (30, 0.0)]))]), expect=7)
run(maps, "--verify", data_set("lacks", [map_of([(7, 0.25)])], [data(6, map_of([(30, 0.25)]))]), expect=1)
run(maps, "--verify", data_set("twice", [map_of([(7, 1.0), (7, 2.0)])], [data(6, map_of([(20, 0.0), (30, 1.0)]))]),
    expect=1)
check(True, "maps are read by key and written with their keys")

# Malformed bytes: an error of the data, never a crash.
rng = random.Random(1)
for kind, packed, word, good in (("sequence", program, "x", x), ("optional", program, "o", o),
                                 ("map", maps, "m", map_of([(5, 0.5), (7, 0.25)]))):
    rest = [] if kind == "map" else ["--input", "o=zeros"] if word == "x" else ["--input", f"x=@{folder}/x.pb"]
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        del bad[rng.randint(len(bad) // 2, len(bad)):]
        put("bad.pb", bytes(bad))
        done = subprocess.run([packed, "--input", f"{word}=@{folder}/bad.pb", *rest], capture_output=True, timeout=20)
        if done.returncode not in (0, 1):
            check(False, f"{kind}: exit {done.returncode} for {bytes(bad).hex()}")
check(True, "malformed files end with 0 or 1")
