#!/usr/bin/env python3
"""Writes loudness.onnx: ten milliseconds of sound in, their loudness in decibels out, smoothed over time.

What is remembered from frame to frame is an input and an output, `past` and `level`.
"""
import onnx
from onnx import TensorProto, helper

FRAME = 160  # samples: 10 ms at 16 kHz


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def number(name, value):
    return helper.make_tensor(name, TensorProto.FLOAT, [1], [value])


nodes = [
    helper.make_node("ReduceSumSquare", ["frame"], ["energy"], axes=[0], keepdims=1),
    helper.make_node("Mul", ["energy", "fresh"], ["new"]),  # 0.2 of the mean square
    helper.make_node("Mul", ["past", "kept"], ["old"]),
    helper.make_node("Add", ["new", "old"], ["level"]),
    helper.make_node("Add", ["level", "tiny"], ["sound"]),
    helper.make_node("Log", ["sound"], ["logarithm"]),
    helper.make_node("Mul", ["logarithm", "scale"], ["decibels"]),
]
graph = helper.make_graph(
    nodes, "loudness", [floats("frame", FRAME), floats("past", 1)], [floats("decibels", 1), floats("level", 1)],
    [number("fresh", 0.2 / FRAME), number("kept", 0.8), number("tiny", 1e-10), number("scale", 4.342944819)])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "loudness.onnx")
