#!/usr/bin/env python3
"""One layer of a model changed: only the kernels that the change reaches are compiled, and the others come from the cache.

A kernel is reached when one of its ONNX nodes is of the changed layer, reads another shape than it did, or reads what
the changed layer may store otherwise.
"""
import json
import os
import re
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import model, node, random_tensor, value
from packing import PACKER, check, run, work_folder

LAYERS, SIZE, INPUTS = 5, 32, 16
TARGET = ["--target", "x86-64-v3"]  # one level, whatever machine packs


def network(activation=(), filters=(), stride=(), dilation=()):
    """Convolutions, none like another. Each argument is a pair of a layer and what it has in place of the others'."""
    nodes, tensors, channels, last, size = [], [], INPUTS, "x", SIZE

    def of(change, layer, plain):
        return change[1] if change and change[0] == layer else plain

    for i in range(LAYERS):
        outputs, step, apart = of(filters, i, 16 + 8 * i), of(stride, i, 1), of(dilation, i, 1)
        tensors.append(random_tensor(f"w{i}", [outputs, channels, 3, 3], i, (9 * channels) ** -0.5))
        nodes.append(node("Conv", [last, f"w{i}"], [f"c{i}"], f"conv{i}", kernel_shape=[3, 3], pads=[apart] * 4,
                          strides=[step] * 2, dilations=[apart] * 2))
        nodes.append(node(of(activation, i, "Relu"), [f"c{i}"], [f"r{i}"], f"act{i}"))
        channels, last, size = outputs, f"r{i}", -(-size // step)
    return model(nodes, [value("x", [1, INPUTS, SIZE, SIZE])], [value(last, [1, channels, size, size])], tensors)


# What is changed, and the layers that it reaches: a layer reads what the one before stores, whose kernels have another
# layout where this one asks for it.
CHANGES = {
    "nothing": ({}, range(0)),
    "an activation": ({"activation": (2, "Sigmoid")}, range(2, 3)),
    "the last activation": ({"activation": (4, "Tanh")}, range(4, 5)),
    "a number of filters": ({"filters": (1, 40)}, range(1, 3)),
    "a dilation": ({"dilation": (2, 2)}, range(1, 4)),
    "a stride": ({"stride": (3, 2)}, range(2, 5)),
}


def packed(path, output):
    """What --json says of the cache, and the ONNX nodes of each kernel that was compiled."""
    done = run(PACKER, path, "-o", output, "--verify", "off", "-v", f"--json={output}.json", *TARGET,
               env=dict(os.environ, SVOD_CACHE_DIR=str(output.parent / "cache")))
    told = json.loads(pathlib.Path(f"{output}.json").read_text())
    nodes = {}
    for name in re.findall(r"^compiled \d+ of \d+, (k\d+)_\w+: \d+ ms$", done.stderr.decode(), re.MULTILINE):
        nodes[name] = {n for level in told["predicted"] for kernel in level["kernels"] if kernel["name"] == name
                       for n in kernel["nodes"]}
    return told["cache"], nodes


def main():
    folder = work_folder("one_layer")
    plain = folder / "plain.onnx"
    plain.write_bytes(network())
    cache, new = packed(plain, folder / "plain")
    check(cache["plan"] == "miss" and len(new) >= LAYERS, f"the first pack compiles {len(new)} kernels")
    for what, (change, layers) in CHANGES.items():
        path, output = folder / "changed.onnx", folder / "changed"
        path.write_bytes(network(**change))
        cache, new = packed(path, output)
        reached = {f"{kind}{i}" for i in layers for kind in ("conv", "act")}
        check(cache["kernels_compiled"] == len(new) and bool(new) == bool(layers),
              f"{what}: {cache['kernels_compiled']} compiled, {cache['kernels_reused']} reused")
        check(all(nodes & reached for nodes in new.values()),
              f"  they are of {', '.join(sorted(set().union(*new.values()))) or 'no layer'}")
        run(PACKER, path, "-o", folder / "cold", "--verify", "off", "-q", "--no-cache", *TARGET)
        check(output.read_bytes() == (folder / "cold").read_bytes(), "  and the bytes are those of a cold pack")


if __name__ == "__main__":
    sys.exit(main())
