#!/usr/bin/env python3
"""Trains the bundled digits model: a small CNN that reads one 8x8 handwritten digit.

    python3 models/train_digits.py        (needs numpy, scikit-learn for its data set, onnx to write the file)

The data are the 1797 scanned digits bundled with scikit-learn (UCI "Optical Recognition of Handwritten
Digits"). One fifth is held back by a seeded shuffle and never trained on; the script prints the accuracy
there. The network is small enough that plain numpy trains it in seconds, so the whole way from data to
digits.onnx can be read here.

Writes beside itself:
    digits.onnx               image f32[1,1,8,8] in 0..1  ->  scores f32[1,10], probabilities
    samples/digit_K.npy       the first held-back image of each class K, with samples/labels.txt
    test_data_set_0/*.pb      one input and its output, computed here in double precision
"""
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).resolve().parent
SEED, EPOCHS, BATCH = 7, 60, 64
CHANNELS_1, CHANNELS_2, CLASSES = 16, 32, 10


def columns(x):
    """im2col of a 3x3 window with padding 1: [n,c,h,w] -> [n, c*9, h*w]."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [padded[:, :, i:i + h, j:j + w] for i in range(3) for j in range(3)]
    return np.stack(taps, axis=2).reshape(n, c * 9, h * w)


def columns_gradient(d, shape):
    """The transpose of columns(): adds every tap back where it was read."""
    n, c, h, w = shape
    d = d.reshape(n, c, 9, h, w)
    padded = np.zeros((n, c, h + 2, w + 2))
    for k in range(9):
        i, j = divmod(k, 3)
        padded[:, :, i:i + h, j:j + w] += d[:, :, k]
    return padded[:, :, 1:-1, 1:-1]


def forward(p, x):
    """Returns the probabilities and what the backward pass needs."""
    n = len(x)
    cols1 = columns(x)
    conv1 = (p["w1"].reshape(CHANNELS_1, -1) @ cols1).reshape(n, CHANNELS_1, 8, 8)
    act1 = np.maximum(conv1 + p["b1"][:, None, None], 0)
    blocks = act1.reshape(n, CHANNELS_1, 4, 2, 4, 2)
    pooled = blocks.max(axis=(3, 5))
    cols2 = columns(pooled)
    conv2 = (p["w2"].reshape(CHANNELS_2, -1) @ cols2).reshape(n, CHANNELS_2, 4, 4)
    act2 = np.maximum(conv2 + p["b2"][:, None, None], 0)
    flat = act2.reshape(n, -1)
    logits = flat @ p["w3"].T + p["b3"]
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True), (cols1, act1, blocks, pooled, cols2, act2, flat)


def backward(p, saved, d_logits):
    cols1, act1, blocks, pooled, cols2, act2, flat = saved
    n, g = len(d_logits), {}
    g["w3"], g["b3"] = d_logits.T @ flat, d_logits.sum(axis=0)
    d = ((d_logits @ p["w3"]).reshape(act2.shape) * (act2 > 0)).reshape(n, CHANNELS_2, -1)
    g["w2"] = np.einsum("nok,nck->oc", d, cols2).reshape(p["w2"].shape)
    g["b2"] = d.sum(axis=(0, 2))
    d = columns_gradient(p["w2"].reshape(CHANNELS_2, -1).T @ d, pooled.shape)
    winner = blocks == pooled[:, :, :, None, :, None]
    d = (winner * d[:, :, :, None, :, None]).reshape(act1.shape) * (act1 > 0)
    d = d.reshape(n, CHANNELS_1, -1)
    g["w1"] = np.einsum("nok,nck->oc", d, cols1).reshape(p["w1"].shape)
    g["b1"] = d.sum(axis=(0, 2))
    return g


def start(rng):
    def he(*shape):
        return rng.normal(0, np.sqrt(2 / np.prod(shape[1:])), shape)
    return {"w1": he(CHANNELS_1, 1, 3, 3), "b1": np.zeros(CHANNELS_1),
            "w2": he(CHANNELS_2, CHANNELS_1, 3, 3), "b2": np.zeros(CHANNELS_2),
            "w3": he(CLASSES, CHANNELS_2 * 16), "b3": np.zeros(CLASSES)}


def train(images, labels, rng):
    p = start(rng)
    velocity = {k: np.zeros_like(v) for k, v in p.items()}
    for epoch in range(EPOCHS):
        rate = 0.05 * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = rng.permutation(len(images))
        for i in range(0, len(order), BATCH):
            pick = order[i:i + BATCH]
            probabilities, saved = forward(p, images[pick])
            probabilities[np.arange(len(pick)), labels[pick]] -= 1
            gradient = backward(p, saved, probabilities / len(pick))
            for k in p:
                velocity[k] = 0.9 * velocity[k] - rate * (gradient[k] + 1e-4 * p[k])
                p[k] += velocity[k]
    return {k: v.astype(np.float32) for k, v in p.items()}


def write_model(p):
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["conv1"], "conv1",
                         kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv1"], ["act1"], "relu1"),
        helper.make_node("MaxPool", ["act1"], ["pooled"], "pool",
                         kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["pooled", "w2", "b2"], ["conv2"], "conv2",
                         kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["conv2"], ["act2"], "relu2"),
        helper.make_node("Flatten", ["act2"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], "dense", transB=1),
        helper.make_node("Softmax", ["logits"], ["scores"], "softmax", axis=1),
    ]
    graph = helper.make_graph(
        nodes, "digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, CLASSES])],
        [numpy_helper.from_array(v, k) for k, v in p.items()])
    model = helper.make_model(graph, producer_name="train_digits.py", ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model, full_check=True)
    (HERE / "digits.onnx").write_bytes(model.SerializeToString())


def write_samples(p, images, labels):
    (HERE / "samples").mkdir(exist_ok=True)
    lines = []
    for k in range(CLASSES):
        image = images[labels == k][0][None].astype(np.float32)
        np.save(HERE / "samples" / f"digit_{k}.npy", image)
        lines.append(f"digit_{k}.npy {k}\n")
    (HERE / "samples" / "labels.txt").write_text("".join(lines))

    folder = HERE / "test_data_set_0"
    folder.mkdir(exist_ok=True)
    image = images[:1].astype(np.float32)
    exact = {k: v.astype(np.float64) for k, v in p.items()}
    scores = forward(exact, image.astype(np.float64))[0].astype(np.float32)
    for name, value in (("input_0", image), ("output_0", scores)):
        tensor = numpy_helper.from_array(value, "image" if name == "input_0" else "scores")
        (folder / f"{name}.pb").write_bytes(tensor.SerializeToString())


def main():
    data = load_digits()
    images = (data.images / 16.0)[:, None]
    rng = np.random.default_rng(SEED)
    order = rng.permutation(len(images))
    held = len(images) // 5
    back, rest = order[:held], order[held:]
    p = train(images[rest], data.target[rest], rng)
    answer = forward(p, images[back])[0].argmax(axis=1)
    right = int((answer == data.target[back]).sum())
    print(f"held back: {right} of {held} right ({100 * right / held:.2f} %)")
    write_model(p)
    write_samples(p, images[back], data.target[back])


if __name__ == "__main__":
    main()
