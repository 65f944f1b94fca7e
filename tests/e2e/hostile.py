#!/usr/bin/env python3
"""Hostile models: each ends within a second and 300 MB, with the right exit code, and leaves no file.

The files are made here, by hand: truncations, lies about sizes, shapes that overflow, broken graphs, paths that
leave the model's folder, bombs, names. 1: the model is invalid; 3: valid, but not supported; 4: a file of the
model cannot be read.
"""
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import (BOOL, FLOAT, INT64, data, graph, model, node, number, random_tensor, tensor,
                         value, varint)
from packing import DIGITS, PACKER, check, work_folder

SECONDS, MEGABYTES = 1.0, 300
X, Y = [value("x", [1, 4])], [value("y", [1, 4])]
CASES = {}  # name -> (bytes, allowed exit codes, {file name: what to put beside the model})


def case(name, content, *codes, beside=None):
    CASES[name] = (content, codes or (1,), beside or {})


def relu(**more):
    return model([node("Relu", ["x"], ["y"])], X, Y, **more)


def ints(name, values):
    return tensor(name, [len(values)], values, INT64)


def with_shape(op, values, *extra, **attributes):
    """One node whose second input is a constant list of integers."""
    return model([node(op, ["x", "s", *extra], ["y"], **attributes)], X, [value("y", ["n"])],
                 [ints("s", values)])


def damaged_files():
    good = DIGITS.read_bytes()
    for size in (0, 1, 2, 3, 17, 1000, len(good) // 2, len(good) - 1):
        case(f"cut at {size} bytes", good[:size])
    small = relu()
    for size in range(len(small)):
        case(f"a small model cut at {size} bytes", small[:size])
    weighed = model([node("Add", ["x", "w"], ["y"])], X, Y, [random_tensor("w", [1, 4], 1)])
    for size in range(0, len(weighed), 2):
        case(f"a model with weights cut at {size} bytes", weighed[:size])
    case("random bytes", random.Random(1).randbytes(5000))
    case("all ones", b"\xff" * 5000)
    case("a text", b"this is not a model\n" * 50)
    case("length past the end", data(2, "x") + varint(7 << 3 | 2) + varint(1 << 40))
    case("varint of eleven bytes", b"\x08" + b"\xff" * 10 + b"\x01" + relu()[2:])
    case("field number 0", b"\x00\x01" + relu())
    case("graph given as a number", number(1, 8) + number(7, 5) + data(8, number(2, 17)))


def lies_about_sizes():
    def weight(dims, raw, more=b"", dtype=FLOAT):
        t = b"".join(number(1, d) for d in dims) + number(2, dtype) + data(8, "w") + data(9, raw) + more
        return model([node("Add", ["x", "w"], ["y"])], X, Y, [t])
    case("raw data too short", weight([1, 4], bytes(15)))
    case("raw data too long", weight([1, 4], bytes(17)))
    case("no data", weight([1, 4], b""))
    case("two data fields", weight([1, 4], bytes(16), data(4, bytes(16))))
    case("negative dimension", weight([1, -4], bytes(16)))
    case("2^62 x 4 elements", weight([1 << 62, 4], b""))
    case("2^32 x 2^32 elements", weight([1 << 32, 1 << 32], b""))
    case("rank 200", weight([1] * 200, bytes(4)))
    case("element type 99", weight([1, 4], bytes(16), dtype=99), 1, 3)
    case("strings", weight([1, 4], b"", data(6, "a") * 4, 8), 1, 3)


def overflowing_shapes():
    big = 1 << 60
    case("ConstantOfShape 2^60", model([node("ConstantOfShape", ["s"], ["y"])], X, [value("y", ["n"])],
                                       [ints("s", [big])]), 1, 3)
    doubling = [node("Concat", [f"t{i}", f"t{i}"], [f"t{i + 1}"], axis=0) for i in range(70)]
    case("Concat doubles 70 times", model([node("Identity", ["x"], ["t0"]), *doubling], X,
                                          [value("t70", ["n", 4])]), 1, 3)
    case("Expand to 2^60", with_shape("Expand", [big, 1, 4]), 1, 3)
    case("Tile 2^60 times", with_shape("Tile", [big, 1]), 1, 3)
    case("Pad by 2^60", with_shape("Pad", [big, 0, 0, 0]), 1, 3)
    case("Reshape with two -1", with_shape("Reshape", [-1, -1]))
    case("Reshape to another count", with_shape("Reshape", [3, 3]))
    case("Reshape to -2", with_shape("Reshape", [-2, 4]))
    case("Unsqueeze axis 2^60", with_shape("Unsqueeze", [big]))
    case("Range of 2^60", model([node("Range", ["a", "b", "c"], ["y"])], X, [value("y", ["n"])],
                                [tensor(n, [], [v], INT64) for n, v in zip("abc", (0, big, 1))]), 1, 3)
    case("input of 2^60", model([node("Relu", ["x"], ["y"])], [value("x", [big])], Y), 1, 3)
    case("input of negative size", model([node("Relu", ["x"], ["y"])], [value("x", [-7, 4])], Y))

    def conv(**attributes):
        return model([node("Conv", ["x", "w"], ["y"], **attributes)], [value("x", [1, 4, 8, 8])],
                     [value("y", ["a", "b", "c", "d"])], [random_tensor("w", [4, 4, 3, 3], 1)])
    for name, attributes in [("strides 0", {"strides": [0, 1]}), ("negative strides", {"strides": [-1, 1]}),
                             ("dilations 0", {"dilations": [0, 1]}), ("group 0", {"group": 0}),
                             ("group 3", {"group": 3}), ("group -1", {"group": -1}),
                             ("huge pads", {"pads": [big, 0, 0, 0]}), ("huge dilation", {"dilations": [big, 1]}),
                             ("one stride", {"strides": [1]}), ("wrong kernel_shape", {"kernel_shape": [5, 5]})]:
        case(f"Conv with {name}", conv(**attributes), 1, 3)
    case("Concat axis 9", model([node("Concat", ["x", "x"], ["y"], axis=9)], X, Y))
    case("MatMul that does not fit", model([node("MatMul", ["x", "x"], ["y"])], X, Y))


def broken_graphs():
    case("cycle", model([node("Relu", ["b"], ["a"]), node("Relu", ["a"], ["b"])], X, [value("b", [1, 4])]))
    case("node reads itself", model([node("Relu", ["y"], ["y"])], X, Y))
    case("cycle of three", model([node("Relu", ["c"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["b", "x"], ["c"])],
                                 X, [value("c", [1, 4])]))
    case("two nodes define one name", model([node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])], X, Y))
    case("two weights of one name", model([node("Add", ["x", "w"], ["y"])], X, Y,
                                          [random_tensor("w", [1, 4], 1)] * 2))
    case("unknown name", model([node("Add", ["x", "nosuch"], ["y"])], X, Y))
    case("output that nobody makes", model([node("Relu", ["x"], ["t"])], X, Y))
    case("no output", model([node("Relu", ["x"], ["y"])], X, []))
    case("no graph", number(1, 8) + data(8, number(2, 17)))
    case("no operator name", model([node("", ["x"], ["y"])], X, Y), 1, 3)
    case("no opset", number(1, 8) + data(7, data(1, node("Relu", ["x"], ["y"]))))
    case("unknown operator", model([node("Frobnicate", ["x"], ["y"])], X, Y), 3)
    case("unknown domain", model([node("Relu", ["x"], ["y"], domain="com.example")], X, Y), 3, 1)
    case("opset 999", relu(opset=999), 3)
    case("opset -1", relu(opset=-1), 1, 3)
    case("IR version 999", number(1, 999) + relu()[2:], 3)
    case("unknown attribute", model([node("Relu", ["x"], ["y"], frobnicate=1)], X, Y), 1, 3)
    case("attribute of another type", model([node("Concat", ["x"], ["y"], axis=1.5)], X, Y))
    case("too few inputs", model([node("Add", ["x"], ["y"])], X, Y))
    case("too many inputs", model([node("Relu", ["x", "x", "x"], ["y"])], X, Y))
    body = graph([node("Identity", ["c"], ["d"])], [value("i", [], INT64), value("c", [], BOOL)], [value("d", [], BOOL)])
    case("loop with more outputs than its body", model([node("Loop", ["n", ""], ["y"], body=body)], X, Y,
                                                       [tensor("n", [], [2], INT64)]))
    nothing = graph([], [], [])
    case("branches that give nothing", model([node("If", ["c"], ["y"], then_branch=nothing, else_branch=nothing)],
                                             [value("c", [], BOOL)], Y))


def nested_graph(depth):
    """An If in an If in an If ..."""
    graph = data(1, node("Identity", ["x"], ["y"])) + data(12, value("y", [1, 4]))
    for _ in range(depth):
        branches = b"".join(data(5, data(1, n) + data(6, graph) + number(20, 5))
                            for n in ("then_branch", "else_branch")[:1])
        graph = data(1, node("If", ["c"], ["y"]) + branches) + data(12, value("y", [1, 4]))
    return graph


def bombs():
    case("200 nested graphs", number(1, 8) + data(7, nested_graph(200) + data(11, X[0])) +
         data(8, number(2, 17)), 1, 3)

    def function(name, body):
        return data(25, data(1, name) + data(4, "x") + data(5, "y") + b"".join(data(7, n) for n in body) +
                    data(9, number(2, 17)) + data(9, data(1, "f") + number(2, 1)) + data(10, "f"))
    domain = data(8, data(1, "f") + number(2, 1))
    call = model([node("f0", ["x"], ["y"], domain="f")], X, Y) + domain
    twice = [[node(f"f{i + 1}", ["x"], ["t"], domain="f"), node(f"f{i + 1}", ["t"], ["y"], domain="f")]
             for i in range(40)] + [[node("Relu", ["x"], ["y"])]]
    case("functions that double 40 times",
         call + b"".join(function(f"f{i}", body) for i, body in enumerate(twice)), 1, 3)
    case("function that calls itself", call + function("f0", [node("f0", ["x"], ["y"], domain="f")]), 1, 3)
    case("name of 2 MB", model([node("Relu", ["x"], ["y"], "n" * 2_000_000)], X, Y))
    case("100 attributes", model([node("Relu", ["x"], ["y"], **{f"a{i}": i for i in range(100)})], X, Y), 1, 3)


def outside_files(folder):
    def external(location, offset=None, length=16):
        entries = {"location": location, "length": str(length)}
        if offset is not None:
            entries["offset"] = str(offset)
        t = number(1, 1) + number(1, 4) + number(2, FLOAT) + data(8, "w") + number(14, 1)
        t += b"".join(data(13, data(1, k) + data(2, v)) for k, v in entries.items())
        return model([node("Add", ["x", "w"], ["y"])], X, Y, [t])
    (folder / "secret.bin").write_bytes(bytes(64))
    case("external data above the folder", external("../secret.bin"), 1, 4)
    case("external data through a folder", external("a/../../secret.bin"), 1, 4)
    case("external data at an absolute path", external("/etc/passwd"), 1, 4)
    case("external data in a device", external("/dev/zero"), 1, 4)
    case("external data of no file", external("nosuch.bin"), 1, 4)
    case("external data with no name", external(""), 1, 4)
    case("external data past the end", external("w.bin", 60), 1, 4, beside={"w.bin": bytes(64)})
    case("external data at a negative offset", external("w.bin", -16), 1, 4, beside={"w.bin": bytes(64)})
    case("external data of another length", external("w.bin", 0, 20), 1, 4, beside={"w.bin": bytes(64)})
    case("external data in a link", external("w.bin"), 1, 4, beside={"w.bin": folder / "secret.bin"})
    case("external data in a folder", external("sub"), 1, 4, beside={"sub": None})
    case("external data with a line break", external("w\n.bin"), 1, 4)


def run_case(folder, number_, name):
    content, codes, beside = CASES[name]
    place = folder / f"{number_:02}"
    place.mkdir()
    (place / "model.onnx").write_bytes(content)
    for file, what in beside.items():
        if isinstance(what, bytes):
            (place / file).write_bytes(what)
        elif what is None:
            (place / file).mkdir()
        else:
            (place / file).symlink_to(what)
    before = sorted(p.name for p in place.iterdir())
    environment = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"), TMPDIR=str(place))
    start = time.monotonic()
    with open(folder / "messages.txt", "w+b") as messages:
        child = subprocess.Popen([str(PACKER), "model.onnx", "-o", "infer"], cwd=place, env=environment,
                                 stdin=subprocess.DEVNULL, stdout=messages, stderr=messages)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        messages.seek(0)
        text = messages.read()
    wall, used = time.monotonic() - start, usage.ru_utime + usage.ru_stime
    faults = []
    if child.returncode not in codes:
        faults.append(f"exit {child.returncode}, expected {' or '.join(map(str, codes))}")
    # A busy machine must not fail the test: the limit is on our own time, the wall only ends hangs.
    if used > SECONDS or wall > 20 * SECONDS:
        faults.append(f"{used:.2f} s")
    if usage.ru_maxrss > MEGABYTES * 1024:
        faults.append(f"{usage.ru_maxrss / 1024:.0f} MB")
    if sorted(p.name for p in place.iterdir()) != before:
        faults.append("left a file")
    if b"error" not in text:
        faults.append("no error text")
    if any(c < 32 and c != 10 or c > 126 for c in text):
        faults.append("unprintable text")
    if faults:
        print(f"{name}: {', '.join(faults)}: {text[-300:]!r}")
    return not faults, used, usage.ru_maxrss / 1024


def main():
    folder = work_folder("hostile")
    damaged_files(), lies_about_sizes(), overflowing_shapes(), broken_graphs(), bombs()
    outside_files(folder)
    results = [run_case(folder, k, name) for k, name in enumerate(CASES)]
    good = sum(ok for ok, _, _ in results)
    check(good == len(CASES) >= 200, f"{good} of {len(CASES)} hostile models are refused as they should be; "
          f"slowest {max(r[1] for r in results):.2f} s, largest {max(r[2] for r in results):.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
