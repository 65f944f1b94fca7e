#!/usr/bin/env python3
"""Makes networks that nobody tuned for, as cliffs.py draws them; runs in the bench venv (onnx, numpy).

    drawn.py OUT FIRST COUNT    prepares OUT/drawn_SEED (model.onnx, test_data_set_0) and prints the names
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper

import cliffs


def prepare(seed, folder):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    network = cliffs.Network(seed)
    onnx.save(network.draw(8), folder / "model.onnx")
    values = np.random.default_rng(seed).standard_normal(network.start).astype(np.float32)
    (data / "input_0.pb").write_bytes(numpy_helper.from_array(values, "input").SerializeToString())


def main():
    out, first, count = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
    for seed in range(first, first + count):
        prepare(seed, out / f"drawn_{seed}")
        print(f"drawn_{seed}")


if __name__ == "__main__":
    main()
