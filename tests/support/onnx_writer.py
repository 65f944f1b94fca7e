"""Writes ONNX models with nothing but the standard library: the few protobuf fields that tests need.

Field numbers are those of onnx.proto. A model is built from the functions below, each returning the bytes of
its message; text may be given as str or, for hostile names, as raw bytes.
"""
import random
import struct

FLOAT, UINT8, INT8, INT32, INT64, BOOL, FLOAT16 = 1, 2, 3, 6, 7, 9, 10  # TensorProto.DataType
FORMS = {FLOAT: "f", UINT8: "B", INT8: "b", INT32: "i", INT64: "q", BOOL: "?", FLOAT16: "e"}  # as in struct


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, dims, values, dtype=FLOAT):
    raw = struct.pack(f"<{len(values)}{FORMS[dtype]}", *values)
    return b"".join(number(1, d) for d in dims) + number(2, dtype) + data(8, name) + data(9, raw)


def random_tensor(name, dims, seed, scale=1.0):
    count = 1
    for d in dims:
        count *= d
    rng = random.Random(seed)
    return tensor(name, dims, [rng.gauss(0, scale) for _ in range(count)])


def attribute(name, value):
    """Integers, floats, texts and lists of one of them; bytes are a graph's."""
    if isinstance(value, bytes):
        return data(1, name) + data(6, value) + number(20, 5)
    if isinstance(value, str):
        return data(1, name) + data(4, value) + number(20, 3)
    if isinstance(value, list) and isinstance(value[0], float):
        return data(1, name) + data(7, struct.pack(f"<{len(value)}f", *value)) + number(20, 6)
    if isinstance(value, list) and isinstance(value[0], str):
        return data(1, name) + b"".join(data(9, v) for v in value) + number(20, 8)
    if isinstance(value, list):
        return data(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)
    if isinstance(value, float):
        return data(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    return data(1, name) + number(3, value) + number(20, 2)


def node(op, inputs, outputs, name="", domain="", **attributes):
    return (b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs) +
            data(3, name) + data(4, op) +
            b"".join(data(5, attribute(k, v)) for k, v in attributes.items()) +
            (data(7, domain) if domain else b""))


def value(name, dims, dtype=FLOAT):
    """A graph input or output; a dimension is a number or a name."""
    shape = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, dtype) + data(2, shape)))


def graph(nodes, inputs, outputs, initializers=(), name="g", values=()):
    return (b"".join(data(1, n) for n in nodes) + data(2, name) +
            b"".join(data(5, t) for t in initializers) +
            b"".join(data(11, i) for i in inputs) + b"".join(data(12, o) for o in outputs) +
            b"".join(data(13, v) for v in values))


def model(nodes, inputs, outputs, initializers=(), opset=17, graph_name="g", producer="test",
          values=(), domains=()):
    made = graph(nodes, inputs, outputs, initializers, graph_name, values)
    imports = [number(2, opset), *(data(1, name) + number(2, version) for name, version in domains)]
    return number(1, 8) + data(2, producer) + data(7, made) + b"".join(data(8, i) for i in imports)


def small_cnn(names=str, graph_name="g", producer="test"):
    """A CNN big enough to be split over threads; `names` maps each of its plain names to the one written."""
    n = names
    return model(
        [node("Conv", [n("x"), n("w1"), n("b1")], [n("c1")], n("first"), kernel_shape=[3, 3],
              pads=[1, 1, 1, 1]),
         node("Relu", [n("c1")], [n("r1")], n("relu")),
         node("Conv", [n("r1"), n("w2")], [n("c2")], n("second"), kernel_shape=[3, 3],
              strides=[2, 2], pads=[1, 1, 1, 1]),
         node("Sigmoid", [n("c2")], [n("s")], n("sigmoid")),
         node("GlobalAveragePool", [n("s")], [n("p")], n("pool")),
         node("Flatten", [n("p")], [n("f")], n("flat")),
         node("Gemm", [n("f"), n("w3"), n("b3")], [n("y")], n("dense"), transB=1)],
        [value(n("x"), [1, 3, 40, 40])], [value(n("y"), [1, 7])],
        [random_tensor(n("w1"), [32, 3, 3, 3], 1, 0.2), random_tensor(n("b1"), [32], 2),
         random_tensor(n("w2"), [48, 32, 3, 3], 3, 0.06), random_tensor(n("w3"), [7, 48], 4),
         random_tensor(n("b3"), [7], 5)],
        graph_name=graph_name, producer=producer)


def small_mlp():
    """A second model: another shape, two inputs."""
    return model(
        [node("MatMul", ["a", "w"], ["h"]), node("Tanh", ["h"], ["t"]),
         node("Add", ["t", "b"], ["y"])],
        [value("a", [4, 24]), value("b", [4, 16])], [value("y", [4, 16])],
        [random_tensor("w", [24, 16], 6, 0.2)])


def random_forest(trees=40, depth=5, features=12, targets=3, seed=7):
    """A tree ensemble of full binary trees with random splits."""
    rng = random.Random(seed)
    inner, total = 2**depth - 1, 2 ** (depth + 1) - 1
    rows = [(t, i, i < inner) for t in range(trees) for i in range(total)]
    weights = [(t, i, k) for t, i, splits in rows if not splits for k in range(targets)]
    ensemble = node(
        "TreeEnsembleRegressor", ["x"], ["y"], "forest", "ai.onnx.ml", n_targets=targets,
        nodes_treeids=[t for t, _, _ in rows], nodes_nodeids=[i for _, i, _ in rows],
        nodes_featureids=[rng.randrange(features) if splits else 0 for _, _, splits in rows],
        nodes_values=[rng.gauss(0, 1) if splits else 0.0 for _, _, splits in rows],
        nodes_modes=["BRANCH_LEQ" if splits else "LEAF" for _, _, splits in rows],
        nodes_truenodeids=[2 * i + 1 if splits else 0 for _, i, splits in rows],
        nodes_falsenodeids=[2 * i + 2 if splits else 0 for _, i, splits in rows],
        target_treeids=[t for t, _, _ in weights], target_nodeids=[i for _, i, _ in weights],
        target_ids=[k for _, _, k in weights], target_weights=[rng.gauss(0, 1) for _ in weights])
    return model([ensemble], [value("x", [8, features])], [value("y", [8, targets])],
                 domains=[("ai.onnx.ml", 3)])
