#!/usr/bin/env python3
"""Makes the tree ensembles of the speed comparison; runs in the bench venv (onnx, numpy).

    trees.py OUT [CORPUS]       prepares OUT/NAME (model.onnx, test_data_set_0) and prints the names

Trees are grown on random samples: each node splits its samples at a random feature near their median, so that
inputs of the same kind reach every leaf. With CORPUS, the ensembles of the models in its real/tabular follow, each by
itself: without the maps that some of these models take or give.
"""
import heapq
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES = 20
#         name            trees depth leaves
SHAPES = [("trees_8x5", 8, 5, None), ("trees_10x3", 10, 3, None), ("trees_100x6", 100, 6, None),
          ("trees_500x8", 500, 8, None), ("trees_20_leaves_1000", 20, None, 1000)]
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
    """The tree ensembles of the corpus' models, each as a model of a float matrix."""
    for path in sorted(corpus.glob("real/tabular/*/model.onnx")):
        model = onnx.load(str(path))
        for node in model.graph.node:
            if node.op_type in ("TreeEnsembleRegressor", "TreeEnsembleClassifier"):
                yield path.parent.name, alone(model, node)


def alone(model, node):
    attributes = {a.name: a for a in node.attribute}
    width = max(attributes["nodes_featureids"].ints) + 1
    score = helper.make_tensor_value_info(node.output[-1], TensorProto.FLOAT, None)
    outputs = [score]
    if node.op_type == "TreeEnsembleClassifier":
        texts = attributes.get("classlabels_strings")
        kind = TensorProto.STRING if texts and texts.strings else TensorProto.INT64
        outputs = [helper.make_tensor_value_info(node.output[0], kind, None), score]
    matrix = helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, ["rows", width])
    graph = helper.make_graph([node], "trees", [matrix], outputs)
    return helper.make_model(graph, ir_version=model.ir_version, opset_imports=model.opset_import)


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
