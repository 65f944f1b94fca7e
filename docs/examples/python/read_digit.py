#!/usr/bin/env python3
"""Packs a model and calls it on NumPy arrays.

    pip install svod-pack
    python3 read_digit.py ../../../models/digits.onnx < ../cmake-app/four.txt
"""
import sys

import numpy as np
import svod_pack

INK = {"#": 1.0, "+": 0.5}

model = svod_pack.compile(sys.argv[1])  # once; from then on it comes out of a cache folder
image = np.zeros((1, 1, 8, 8), np.float32)
for row, line in enumerate(sys.stdin.read().splitlines()[:8]):
    for at, mark in enumerate(line[:8]):
        image[0, 0, row, at] = INK.get(mark, 0.0)
scores = model(image)
print(f"{scores.argmax()}, score {scores.max():.3g}")
