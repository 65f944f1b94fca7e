#!/usr/bin/env python3
"""Makes the tree ensembles of the speed comparison; runs in the bench venv (onnx, numpy).

    trees.py OUT [CORPUS]       prepares OUT/NAME (model.onnx, test_data_set_0) and prints the names

Trees are grown on random samples: each node splits its samples at a random feature near their median, so that
inputs of the same kind reach every leaf. With CORPUS, the models in its real/tabular that have trees follow.
"""
import heapq
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES = 20
#         name            trees depth leaves
SHAPES = [("trees_10x3", 10, 3, None), ("trees_100x6", 100, 6, None), ("trees_500x8", 500, 8, None),
          ("trees_20_leaves_1000", 20, None, 1000)]
ROWS = (1, 1000)


def grow(rng, samples, depth, leaves):
    """Nodes as (feature, threshold, yes, no), a leaf as (weight,); the fullest leaf is split next."""
    nodes, heap = [(rng.normal(),)], [(-len(samples), 0, 0, samples)]
    count = 1
    while heap and (leaves is None or count < leaves):
        _, at, level, here = heapq.heappop(heap)
        if level == depth or len(here) < 2:
            continue
        feature = int(rng.integers(FEATURES))
        threshold = np.quantile(here[:, feature], rng.uniform(0.25, 0.75)).astype(np.float32)
        goes = here[:, feature] <= threshold
        nodes[at] = (feature, float(threshold), len(nodes), len(nodes) + 1)
        for side in (goes, ~goes):
            heapq.heappush(heap, (-int(side.sum()), len(nodes), level + 1, here[side]))
            nodes.append((rng.normal(),))
        count += 1
    return nodes


def ensemble(rng, trees, depth, leaves):
    columns = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "truenodeids", "falsenodeids", "modes")}
    weights = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for t in range(trees):
        for i, node in enumerate(grow(rng, rng.normal(size=(4096, FEATURES)), depth, leaves)):
            leaf = len(node) == 1
            row = (t, i, *((0, 0.0, 0, 0) if leaf else node), "LEAF" if leaf else "BRANCH_LEQ")
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
            if leaf:
                for column, value in zip(weights.values(), (t, i, 0, float(node[0])), strict=True):
                    column.append(value)
    node = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1,
        **{f"nodes_{k}": v for k, v in columns.items()}, **{f"target_{k}": v for k, v in weights.items()})
    graph = helper.make_graph(
        [node], "trees", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 1])])
    return helper.make_model(graph, ir_version=8, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)])


def write(out, name, model, rows):
    """The model with one input of so many rows, seeded."""
    folder = out / f"{name}_batch{rows}"
    (folder / "test_data_set_0").mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))
    value = model.graph.input[0]
    width = value.type.tensor_type.shape.dim[1].dim_value
    data = np.random.default_rng(1).normal(size=(rows, width)).astype(np.float32)
    tensor = numpy_helper.from_array(data, value.name)
    (folder / "test_data_set_0" / "input_0.pb").write_bytes(tensor.SerializeToString())
    (folder / "ready").touch()
    return folder.name


def with_trees(corpus):
    """Models of the corpus with a tree ensemble, one float matrix in and tensors out."""
    for path in sorted(corpus.glob("real/tabular/*/model.onnx")):
        model = onnx.load(str(path))
        trees = any(n.op_type.startswith("TreeEnsemble") for n in model.graph.node)
        tensors = all(v.type.HasField("tensor_type") for v in [*model.graph.input, *model.graph.output])
        if trees and tensors and len(model.graph.input) == 1:
            yield path.parent.name, model


def main():
    out = pathlib.Path(sys.argv[1])
    for name, trees, depth, leaves in SHAPES:
        model = ensemble(np.random.default_rng(0), trees, depth, leaves)
        for rows in ROWS:
            print(write(out, name, model, rows))
    if len(sys.argv) > 2:
        for name, model in with_trees(pathlib.Path(sys.argv[2])):
            for rows in ROWS:
                print(write(out, name, model, rows))


if __name__ == "__main__":
    main()
