#!/usr/bin/env python3
"""What `svod-pack key` sees: every attribute, shape, element type, constant, output and option, and no name.

Each attribute and tensor of a small model is changed alone; a change that the importer accepts must give a key that no
other change gave.
"""
import copy
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import onnx_writer as writer
from packing import PACKER, check, work_folder

# op, inputs, outputs, attributes
NODES = [
    ("Cast", ["n"], ["k"], {"to": writer.FLOAT}),
    ("Add", ["x", "k"], ["xk"], {}),
    ("Conv", ["xk", "w1", "b1"], ["c"], {"pads": [1, 1, 1, 1], "strides": [1, 1], "dilations": [1, 1]}),
    ("LeakyRelu", ["c"], ["r"], {"alpha": 0.25}),
    ("MaxPool", ["r"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 0, "pads": [0, 0, 0, 0]}),
    ("Transpose", ["p"], ["t"], {"perm": [0, 2, 3, 1]}),
    ("ReduceMean", ["t"], ["m"], {"axes": [1, 2], "keepdims": 0}),
    ("Gemm", ["m", "w2", "b2"], ["l"], {"transB": 1, "alpha": 1.0, "beta": 1.0}),
    ("Softmax", ["l"], ["y"], {"axis": 1}),
]
BASE = {
    "nodes": NODES,
    "inputs": {"x": ([1, 4, 13, 13], writer.FLOAT), "n": ([1], writer.INT32)},
    "outputs": {"y": [1, 7]},
    "tensors": {"w1": ([8, 4, 3, 3], 1), "b1": ([8], 2), "w2": ([7, 8], 3), "b2": ([7], 4)},
}


def untyped(name):
    """An output of any rank."""
    return writer.data(1, name) + writer.data(2, writer.data(1, writer.number(1, writer.FLOAT)))


def written(spec, name=str, order=None, producer="one", graph_name="g"):
    nodes = [writer.node(op, [name(i) for i in ins], [name(o) for o in outs], name(op + outs[0]), **attributes)
             for op, ins, outs, attributes in spec["nodes"]]
    if order:
        nodes = [nodes[i] for i in order]
    return writer.model(
        nodes, [writer.value(name(k), dims, dtype) for k, (dims, dtype) in spec["inputs"].items()],
        [writer.value(name(k), dims) if dims else untyped(name(k)) for k, dims in spec["outputs"].items()],
        [writer.random_tensor(name(k), dims, seed) for k, (dims, seed) in spec["tensors"].items()],
        producer=producer, graph_name=graph_name)


class Keys:
    def __init__(self, folder):
        self.folder, self.known = folder, {}

    def of(self, raw, *options):
        """The key, or None where the model or an option is refused."""
        path = self.folder / "model.onnx"
        path.write_bytes(raw)
        done = subprocess.run([PACKER, "key", path, *options], capture_output=True, timeout=60)
        if done.returncode not in (0, 1, 2, 3):
            check(False, f"exit {done.returncode}: {done.stderr.decode()[-300:]}")
        return done.stdout.decode().strip() if done.returncode == 0 else None

    def new(self, what, raw, *options):
        """True where it is accepted; then no other had its key."""
        key = self.of(raw, *options)
        if key is None:
            return False
        check(key not in self.known, f"{what}: {key[:12]} is a key of its own"
              + (f", not that of {self.known[key]}" if key in self.known else ""))
        self.known[key] = what
        return True


def other_values(name, value):
    """What an attribute may be instead."""
    if isinstance(value, float):
        return [value * 1.5]
    if isinstance(value, int):
        return [1 - value] if value in (0, 1) else [value + 1, value - 1]
    out = []
    for i in range(len(value)):
        for by in (1, -1):
            out.append([v + by * (i == k) for k, v in enumerate(value)])
    return out + [[0, 3, 2, 1] if name == "perm" else value[:1], [value[0] + 1] * len(value)]


# What takes a transposed matrix, and means of any rank.
SQUARE = BASE | {"tensors": BASE["tensors"] | {"w2": ([8, 8], 3), "b2": ([8], 4)}, "outputs": {"y": ["?", "?2"]}}
MEANS = BASE | {"nodes": NODES[:7], "outputs": {"m": None}}


def attributes(keys):
    accepted, wanted = set(), {f"{op}.{name}" for op, _, _, given in NODES for name in given}
    for base in (BASE | {"outputs": {"y": ["?", "?2"]}}, SQUARE, MEANS):
        keys.known.setdefault(keys.of(written(base)), "a model without a change")
        for at, (op, _, _, given) in enumerate(base["nodes"]):
            for name, value in given.items():
                if f"{op}.{name}" in accepted:
                    continue
                for other in other_values(name, value):
                    spec = copy.deepcopy(base)
                    spec["nodes"][at][3][name] = other
                    if other != value and keys.new(f"{op}.{name}={other}", written(spec)):
                        accepted.add(f"{op}.{name}")
    check(wanted - accepted == {"Cast.to"}, f"{len(accepted)} attributes changed, {wanted - accepted} cannot be")


def tensors(keys):
    for name, (dims, seed) in BASE["tensors"].items():
        spec = copy.deepcopy(BASE)
        spec["tensors"][name] = (dims, seed + 10)
        check(keys.new(f"values of {name}", written(spec)), f"values of {name} changed")
    for change in ({"w2": ([6, 8], 3), "b2": ([6], 4)}, {"w1": ([9, 4, 3, 3], 1), "b1": ([9], 2), "w2": ([7, 9], 3)},
                   {"b2": ([1, 7], 4)}, {"w1": ([8, 4, 1, 1], 1)}):
        spec = copy.deepcopy(BASE)
        spec["tensors"] |= change
        spec["outputs"]["y"] = ["?", "?2"]
        # A bias of [1, 7] is the one of [7]: equal graphs have an equal key.
        if "w1" in change or "w2" in change:
            check(keys.new(f"shapes {change}", written(spec)), f"shapes {change}")
    for dims in ([1, 4, 14, 13], [1, 4, 13, 15], [2, 4, 13, 13]):
        spec = copy.deepcopy(BASE)
        spec["inputs"]["x"] = (dims, writer.FLOAT)
        spec["outputs"]["y"] = ["?", 7]
        check(keys.new(f"x {dims}", written(spec)), f"x of {dims}")
    for dtype in (writer.INT64, writer.UINT8):
        spec = copy.deepcopy(BASE)
        spec["inputs"]["n"] = ([1], dtype)
        check(keys.new(f"n of type {dtype}", written(spec)), f"element type {dtype}")
    for outputs in ({"y": [1, 7], "l": [1, 7]}, {"l": [1, 7], "y": [1, 7]}, {"l": [1, 7]}):
        check(keys.new(f"outputs {list(outputs)}", written(BASE | {"outputs": outputs})), f"outputs {list(outputs)}")


def options(keys, folder):
    text = folder / "op.txt"
    text.write_text("\n")
    raw = written(BASE)
    for words in ("--target x86-64-v3", "--target x86-64-v4", "--target aarch64", "--target cortex-m4",
                  "--target cortex-m4 --cpu cortex-m7", "--target cortex-m4 --max-ram 64K",
                  "--target cortex-m4 --max-flash 64K", "--target cortex-m4 --pool a=64K,b=64K",
                  "--target cortex-m4 --pool a=64K,c=64K", "--target wasm32",
                  "-O0", "-O1", "-O3", "-Os", "--accuracy exact", "--threads 2", "--threads 3", "--search-budget 7",
                  "--search-budget 8", "--max-ram 1M", "--max-flash 1M", "--weights file", "--emit static",
                  "--emit shared", "--emit obj", "--emit static --name other", "--emit static --self-check",
                  "--emit source", "--emit source --portable", "--device cuda", "--device cuda:sm_80",
                  f"--schedule {text}"):
        check(keys.new(words, raw, *words.split()), f"{words} is another key")


def names(keys):
    base = keys.of(written(BASE))
    for what, raw in (("the same again", written(BASE)), ("all names", written(BASE, lambda plain: f"a/{plain}.1")),
                      ("producer and graph name", written(BASE, producer="two", graph_name="h")),
                      ("node order", written(BASE, order=[1, 0, *range(2, len(NODES))]))):
        check(keys.of(raw) == base, f"{what}: the same key")
    keys.known[base] = "the model as it is"


def main():
    folder = work_folder("keys")
    keys = Keys(folder)
    names(keys)
    attributes(keys)
    tensors(keys)
    options(keys, folder)
    print(f"{len(keys.known)} keys")


if __name__ == "__main__":
    sys.exit(main())
