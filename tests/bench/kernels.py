"""Each kernel of a packed program beside the roofs of this machine, for bench.py --kernels.

The program's --profile gives time, operations and bytes of each kernel inside the model, weights as cold as they
are there. Multiply-add and stream probes run before and after; a kernel's share of the roof is the larger of its
share of the one and of the other. What a kernel is (GEMM, 1x1, ...) follows from the first contraction among the
ONNX nodes that it came from.
"""
import collections
import json
import math
import os
import subprocess

import onnx

# A contraction below this is bound by other things than its multiplications.
LEAST_FLOPS = 20e6
# Classes in the order of the summary; the goal is a share of the probe's multiply-adds.
GOALS = {"GEMM": 92, "1x1": 92, "direct": 92, "depthwise": 80, "Winograd": None, "Winograd transform": None,
         "other": None}
MATRIX_OPS = ("MatMul", "Gemm", "Einsum", "FusedMatMul", "Attention", "MultiHeadAttention", "LSTM", "GRU", "RNN")


class Kernel:
    """One kernel of the program; a kernel that several steps launch counts once, with all its launches."""

    def __init__(self, name, nodes):
        self.name, self.nodes = name, nodes
        self.launches, self.us, self.flops, self.bytes = 0, 0.0, 0.0, 0.0
        self.kind = "other"


def profile(program, inputs, threads, seconds):
    command = [str(program), *inputs, "--profile", "--threads", str(threads), "--min-time", str(seconds)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kernels = collections.OrderedDict()
    for line in text.splitlines()[1:]:
        field = line.split(None, 7)
        if field[0] == "total":
            continue
        nodes = field[7].removesuffix("...").split(",") if len(field) > 7 else []
        kernel = kernels.setdefault(field[0], Kernel(field[0], nodes))
        kernel.launches += 1
        kernel.us += float(field[1])
        kernel.flops += float(field[3])
        kernel.bytes += float(field[5])
    return list(kernels.values())


def convolution_kind(node, weights):
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    shape = weights.get(node.input[1])
    window = values.get("kernel_shape") or (shape[2:] if shape else [])
    # A filter per channel: [channels, 1, ...] in as many groups.
    if values.get("group", 1) > 1 and shape and shape[1] == 1:
        return "depthwise"
    return "1x1" if all(size == 1 for size in window) else "direct"


def kinds_of_nodes(path):
    """{name of a node: what contraction it is}"""
    graph = onnx.load(str(path), load_external_data=False).graph
    weights = {t.name: list(t.dims) for t in graph.initializer}
    kinds = {}
    for node in graph.node:
        if node.op_type in ("Conv", "ConvTranspose"):
            kinds[node.name] = convolution_kind(node, weights)
        elif node.op_type in MATRIX_OPS:
            kinds[node.name] = "GEMM"
    return kinds


def classify(kernels, kinds):
    """A convolution that three kernels or more compute went through Winograd's transforms: the one with most of the
    operations is its product."""
    computing = collections.defaultdict(list)
    for kernel in kernels:
        main = next((n for n in kernel.nodes if n in kinds), None)
        if main is None or kernel.flops == 0:
            continue
        kernel.kind = kinds[main]
        computing[main].append(kernel)
    for main, parts in computing.items():
        if kinds[main] != "direct" or len(parts) < 3:
            continue
        product = max(parts, key=lambda k: k.flops / k.launches)
        for part in parts:
            part.kind = "Winograd" if part is product else "Winograd transform"


def row_of(kernel, total, peak, stream):
    rate, flow = kernel.flops / kernel.us / 1e3, kernel.bytes / kernel.us / 1e3
    share = 100 * rate / peak
    return (f"| {kernel.name} | {kernel.kind} | {kernel.launches} | {kernel.us:.1f} | {100 * kernel.us / total:.1f} "
            f"| {rate:.1f} | {share:.0f} | {flow:.1f} | {max(share, 100 * flow / stream):.0f} "
            f"| {','.join(kernel.nodes)[:60]} |")


def is_large(kernel):
    return kernel.flops / kernel.launches >= LEAST_FLOPS or kernel.kind == "depthwise"


def sum_up(kernels, peak):
    """{class: what its large kernels take together, and the least share of the peak among them}"""
    classes = {}
    for kernel in kernels:
        if kernel.us == 0:  # less than the clock can tell
            continue
        kind = kernel.kind if is_large(kernel) else "other"
        row = classes.setdefault(kind, {"us": 0.0, "ideal_us": 0.0, "least": math.inf, "below": 0, "kernels": 0})
        ideal = kernel.flops / peak / 1e3
        row["us"] += kernel.us
        row["ideal_us"] += ideal
        row["kernels"] += 1
        row["least"] = min(row["least"], 100 * ideal / kernel.us)
        row["below"] += GOALS[kind] is not None and 100 * ideal / kernel.us < GOALS[kind]
    return classes


def class_lines(name, classes):
    total = sum(row["us"] for row in classes.values())
    lines = []
    for kind, goal in GOALS.items():
        if kind not in classes:
            continue
        row = classes[kind]
        text = f"{name}, {kind}: {row['kernels']} kernels, {100 * row['us'] / total:.1f} % of the time"
        if kind != "other":
            text += f", {100 * row['ideal_us'] / row['us']:.1f} % of peak, least {row['least']:.1f} %"
        lines.append(text + (f", {row['below']} below {goal} %" if goal else ""))
    return lines


def report(name, program, inputs, model, options, probes):
    """Lines to print, and what sum_up finds."""
    before = probes()
    kernels = profile(program, inputs, options.threads, options.seconds)
    after = probes()
    peak, stream = options.threads * max(before[0], after[0]), max(before[1], after[1])
    classify(kernels, kinds_of_nodes(model))
    total = sum(k.us for k in kernels)
    classes = sum_up(kernels, peak)
    lines = [f"\n{name}: {total / 1000:.4g} ms; multiply-adds {before[0]:.0f}, {after[0]:.0f} GFLOP/s a core, "
             f"stream {before[1]:.1f}, {after[1]:.1f} GB/s\n",
             "| kernel | class | launches | us | % time | GFLOP/s | % of peak | GB/s | % of roof | nodes |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    shown = [k for k in kernels if is_large(k) or k.us > total / 200]
    lines += [row_of(k, total, peak, stream) for k in sorted(shown, key=lambda k: -k.us)]
    return [*lines, "", *class_lines(name, classes)], classes


def summary(models):
    """One line per class over all models."""
    together = {}
    for classes in models.values():
        for kind, row in classes.items():
            whole = together.setdefault(kind, dict.fromkeys(row, 0) | {"least": math.inf})
            for key, value in row.items():
                whole[key] = min(whole[key], value) if key == "least" else whole[key] + value
    return ["", *class_lines(f"{len(models)} models", together)]
