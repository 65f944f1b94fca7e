#!/usr/bin/env python3
"""Instructions of single int8 layers on small cores, beside those of CMSIS-NN's kernels: a network of three such layers
less one of two, so that what turns the caller's layout into ours does not count.

    tests/bench/quantised_layers.py                           # four cores
    tests/bench/quantised_layers.py cortex-m7 riscv64 -- -Os  # others; what follows -- goes to svod-pack

CMSIS-NN's numbers are QEMU's for arm_convolve_1x1_s8_fast, arm_convolve_s8 and arm_depthwise_conv_3x3_s8 with -O3, of
the same shapes. Counts do not depend on this machine.
"""
import pathlib
import random
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import emulated
from instructions import Asked, measure
from onnx_writer import data, model, node, number, value

INT8, INT32, FLOAT = 3, 6, 1
# channels, height, width, window, groups
LAYERS = {"1x1 64->64, 25x5": (64, 25, 5, 1, 1), "3x3 16->16, 16x16": (16, 16, 16, 3, 1),
          "depthwise 3x3, 64 at 25x5": (64, 25, 5, 3, 64)}
CMSIS_NN = {"cortex-m4": (1033, 1371, 539), "cortex-m55": (201, 228, None), "cortex-m3": (1560, None, 641),
            "cortex-m0plus": (3799, None, None)}


def tensor(name, dims, numbers, dtype, letter):
    raw = struct.pack(f"<{len(numbers)}{letter}", *numbers)
    return b"".join(number(1, d) for d in dims) + number(2, dtype) + data(8, name) + data(9, raw)


def network(layers, channels, height, width, window, groups):
    rng, nodes, weights = random.Random(3), [], [tensor("zw", [channels], [0] * channels, INT8, "b")]
    inputs = channels // groups * window * window
    for i in range(layers):
        nodes.append(node("QLinearConv", [f"t{i}", f"s{i}", f"z{i}", f"w{i}", f"sw{i}", "zw", f"s{i + 1}", f"z{i + 1}",
                                          f"b{i}"], [f"t{i + 1}"], f"layer{i}", kernel_shape=[window, window],
                          pads=[window // 2] * 4, group=groups))
        weights += [tensor(f"w{i}", [channels, channels // groups, window, window],
                           [rng.randrange(-127, 128) for _ in range(channels * inputs)], INT8, "b"),
                    tensor(f"sw{i}", [channels], [rng.uniform(0.5, 1) * 0.05 / inputs**0.5 for _ in range(channels)],
                           FLOAT, "f"),
                    tensor(f"b{i}", [channels], [rng.randrange(-3000, 3000) for _ in range(channels)], INT32, "i")]
    for i in range(layers + 1):
        weights += [tensor(f"s{i}", [], [0.02 + 0.01 * i], FLOAT, "f"), tensor(f"z{i}", [], [i - 3], INT8, "b")]
    shape = [1, channels, height, width]
    return model(nodes, [value("t0", shape, INT8)], [value(f"t{layers}", shape, INT8)], weights, opset=13)


def count(layer, layers, target, options):
    with tempfile.TemporaryDirectory(prefix="svod-layers-") as folder:
        path = pathlib.Path(folder) / "layers.onnx"
        path.write_bytes(network(layers, *LAYERS[layer]))
        _, counts = measure(path, target, options, pathlib.Path(folder))
        return sum(counts.values())


def main():
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[:own.index("--")], own[own.index("--") + 1:]
    print(f"thousand instructions; CMSIS-NN's in brackets\n{'':16s}" + "".join(f"{name:>30s}" for name in LAYERS))
    for alias in own or CMSIS_NN:
        target = Asked(alias, "")
        cells = []
        for layer, peer in zip(LAYERS, CMSIS_NN.get(alias, (None,) * len(LAYERS))):
            mine = (count(layer, 3, target, options) - count(layer, 2, target, options)) / 1000
            cells.append(f"{mine:.0f}" + (f" ({peer})" if peer else ""))
        print(f"{alias:16s}" + "".join(f"{cell:>30s}" for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
