#!/usr/bin/env python3
"""Golden texts: what each stage makes of a small model, and what each fault of a model is told.

    run_golden.py [--rebase] [NAME...]

MODELS are small models, one idea each, written here; stages/NAME.STAGE.txt holds the text form after each stage of
STAGES (STYLE: a refactor leaves every golden kernel byte-equal). ERRORS are faulty models; errors/NAME.txt holds the
exit code and everything svod-pack says. --rebase rewrites what differs; review the diff.
"""
import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from onnx_writer import INT64, data, model, node, number, random_tensor, tensor, value
from packing import PACKER, work_folder

STAGES = ["graph", "fused", "plan", "cpp"]
TARGET = ["--target", "x86-64-v3"]  # one CPU level keeps the texts short
X4, Y4 = [value("x", [1, 4])], [value("y", [1, 4])]


def image(channels, size):
    return [value("x", [1, channels, size, size])]


def any_output(rank):
    return [value("y", ["abcdef"[i] for i in range(rank)])]


def conv(nodes, inputs, weights, rank=4):
    return model(nodes, inputs, any_output(rank), weights)


MODELS = {
    "relu_of_relu": lambda: model(
        [node("Relu", ["x"], ["t"]), node("Relu", ["t"], ["y"])], X4, Y4),
    "constant_chain": lambda: model(  # Shape -> Gather -> Concat -> Reshape vanishes
        [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], axis=0),
         node("Concat", ["n", "rest"], ["to"], axis=0), node("Reshape", ["x", "to"], ["y"])],
        [value("x", [2, 3, 4])], any_output(2),
        [tensor("zero", [1], [0], INT64), tensor("rest", [1], [-1], INT64)]),
    "elementwise": lambda: model(
        [node("Mul", ["x", "w"], ["a"]), node("Add", ["a", "x"], ["b"]), node("Sigmoid", ["b"], ["c"]),
         node("Mul", ["b", "c"], ["y"])],
        [value("x", [3, 40])], any_output(2), [random_tensor("w", [40], 1)]),
    "conv_relu_add": lambda: conv(
        [node("Conv", ["x", "w", "b"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
         node("Relu", ["c"], ["r"]), node("Add", ["r", "x"], ["y"])],
        image(16, 8), [random_tensor("w", [16, 16, 3, 3], 1, 0.1), random_tensor("b", [16], 2)]),
    "depthwise": lambda: conv(
        [node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], group=32)],
        image(32, 9), [random_tensor("w", [32, 1, 3, 3], 1)]),
    "max_pool": lambda: conv(
        [node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])],
        image(8, 10), []),
    "dense_gelu": lambda: conv(
        [node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["a"]),
         node("Div", ["a", "root"], ["d"]), node("Erf", ["d"], ["e"]), node("Add", ["e", "one"], ["f"]),
         node("Mul", ["a", "f"], ["g"]), node("Mul", ["g", "half"], ["y"])],
        [value("x", [5, 24])],
        [random_tensor("w", [24, 32], 1, 0.2), random_tensor("b", [32], 2), tensor("root", [], [2 ** 0.5]),
         tensor("one", [], [1.0]), tensor("half", [], [0.5])], 2),
    "softmax": lambda: model([node("Softmax", ["x"], ["y"], axis=-1)], [value("x", [6, 50])], any_output(2)),
    "layer_norm": lambda: model(
        [node("LayerNormalization", ["x", "g", "b"], ["y"], axis=-1)], [value("x", [6, 48])], any_output(2),
        [random_tensor("g", [48], 1), random_tensor("b", [48], 2)]),
    "attention": lambda: model(
        [node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"]),
         node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "v"], ["y"])],
        [value(n, [2, 10, 16]) for n in "qkv"], any_output(3)),
    "concat_slice": lambda: model(
        [node("Concat", ["a", "b"], ["c"], axis=1), node("Slice", ["c", "from", "to", "axis"], ["y"])],
        [value("a", [2, 5]), value("b", [2, 3])], any_output(2),
        [tensor("from", [1], [1], INT64), tensor("to", [1], [7], INT64), tensor("axis", [1], [1], INT64)]),
    "gather_rows": lambda: model(
        [node("Gather", ["table", "i"], ["y"], axis=0)], [value("i", [3], INT64)], any_output(2),
        [random_tensor("table", [10, 8], 1)]),
    "two_outputs": lambda: model(
        [node("Exp", ["x"], ["y"]), node("Log", ["y"], ["z"])], X4, [*Y4, value("z", [1, 4])]),
    "resnet_block": lambda: conv(
        [node("Conv", ["x", "w1"], ["a"], kernel_shape=[1, 1]), node("Relu", ["a"], ["b"]),
         node("Conv", ["b", "w2"], ["c"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["d"]),
         node("Conv", ["d", "w3"], ["e"], kernel_shape=[1, 1]), node("Add", ["e", "x"], ["f"]),
         node("Relu", ["f"], ["g"]), node("GlobalAveragePool", ["g"], ["y"])],
        image(32, 7), [random_tensor("w1", [16, 32, 1, 1], 1, 0.2), random_tensor("w2", [16, 16, 3, 3], 2, 0.1),
                       random_tensor("w3", [32, 16, 1, 1], 3, 0.2)]),
}

ERRORS = {
    "unsupported_operators": lambda: model(  # all of them at once
        [node("Frobnicate", ["x"], ["a"], "head/frob"), node("Relu", ["a"], ["b"]),
         node("Twist", ["b"], ["y"], "tail/twist", domain="com.example")], X4, Y4) +
        data(8, data(1, "com.example") + number(2, 1)),
    "unknown_dimensions": lambda: model(
        [node("Relu", ["x"], ["y"])], [value("x", ["batch", 3, "height", "width"])], any_output(4)),
    "unknown_attribute": lambda: model([node("Relu", ["x"], ["y"], "r", frobnicate=1)], X4, Y4),
    "shapes_do_not_fit": lambda: model([node("MatMul", ["x", "x"], ["y"], "mm")], X4, Y4),
    "undefined_name": lambda: model([node("Add", ["x", "nosuch"], ["y"], "add")], X4, Y4),
    "cycle": lambda: model([node("Relu", ["b"], ["a"]), node("Relu", ["a"], ["b"])], X4, [value("b", [1, 4])]),
    "newer_opset": lambda: model([node("Relu", ["x"], ["y"])], X4, Y4, opset=99),
    "step_of_zero": lambda: model(
        [node("Slice", ["x", "a", "b", "c", "d"], ["y"], "cut")], X4, any_output(2),
        [tensor(n, [1], [v], INT64) for n, v in zip("abcd", (0, 4, 1, 0))]),
    "axis_outside": lambda: model([node("Concat", ["x", "x"], ["y"], "join", axis=7)], X4, Y4),
    "control_bytes": lambda: model([node("Frobnicate", ["x"], ["y"], "\x1b[31m\nred")], X4, Y4),
    "not_a_model": lambda: b"this is not a model\n" * 3,
    "cut_short": lambda: model([node("Relu", ["x"], ["y"])], X4, Y4)[:-9],
    "empty_file": lambda: b"",
}


def bodies(text):
    """The kernels without the scalar functions that stand before each: `// k0_v3`, then the loops."""
    out, keep = [], False
    for line in text.splitlines(keepends=True):
        if line.startswith("// k") and line.strip().removeprefix("// ").replace("_", "").isalnum():
            keep = False
            out.append(line)
        keep = keep or " body(" in line
        if keep:
            out.append(line)
    return "".join(out)


def stage_texts(folder, name):
    """Golden file -> text of one model."""
    path = folder / f"{name}.onnx"
    path.write_bytes(MODELS[name]())
    out = {}
    for stage in STAGES:
        done = subprocess.run([str(PACKER), path.name, f"--emit={stage}", "-o", f"{name}.{stage}", "-q", *TARGET],
                              cwd=folder, capture_output=True, timeout=120)
        text = done.stderr.decode(errors="replace")
        if done.returncode == 0:
            text = (folder / f"{name}.{stage}").read_text()
            text = bodies(text) if stage == "cpp" else text
        out[f"stages/{name}.{stage}.txt"] = f"exit {done.returncode}\n{text}"
    return out


def error_text(folder, name):
    (folder / "model.onnx").write_bytes(ERRORS[name]())
    done = subprocess.run([str(PACKER), "model.onnx", "-o", "infer"], cwd=folder, capture_output=True,
                          timeout=60, env=dict(os.environ, NO_COLOR="1"))
    text = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    return {f"errors/{name}.txt": f"exit {done.returncode}\n{text}"}


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
    folder, texts = work_folder("golden"), {}
    for name in MODELS:
        if not options.names or name in options.names:
            texts.update(stage_texts(folder, name))
    for name in ERRORS:
        if not options.names or name in options.names:
            texts.update(error_text(folder, name))
    differ = 0
    for file, text in texts.items():
        path = HERE / file
        expected = path.read_text() if path.exists() else "(no such file)"
        if text == expected:
            continue
        differ += 1
        print(f"{file}: {'rewritten' if options.rebase else first_difference(expected, text)}")
        if options.rebase:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    print(f"{len(texts)} texts, {differ} {'rewritten' if options.rebase else 'differ; --rebase rewrites them'}")
    return 1 if differ and not options.rebase else 0


if __name__ == "__main__":
    sys.exit(main())
