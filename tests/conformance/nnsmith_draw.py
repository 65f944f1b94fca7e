#!/usr/bin/env python3
"""Draws ONNX graphs by NNSmith, in a python that has it; nnsmith_cases.py calls it.

    nnsmith_draw.py FOLDER FIRST COUNT

Seeds FIRST to FIRST + COUNT - 1, each alone: FOLDER/SEED/model.onnx, its inputs as test_data_set_0/input_I.pb, and what
PyTorch, which the graph was exported from, answers: torch/output_I.pb. Where NNSmith finds no graph, or the exporter refuses
it, the reason is in FOLDER/SEED/why.txt.
"""
import io
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
import numpy as np
import onnx
import torch
from nnsmith.graph_gen import model_gen
from nnsmith.materialize import Model
from nnsmith.narrow_spec import auto_opset
from nnsmith.util import set_seed

# Short graphs meet many pairs of operators in little time, long ones show what passes make of a whole.
NODES = [3, 5, 8, 12, 20]
ELEMENTS, SECONDS = 16384, 10


def draw(form, operators, seed):
    set_seed(seed)
    drawn = model_gen(opset=operators, method="symbolic-cinit", seed=seed, max_nodes=NODES[seed % len(NODES)],
                      max_elem_per_tensor=ELEMENTS, timeout_ms=1000 * SECONDS, rank_choices=None, dtype_choices=None)
    made = form.from_gir(drawn.make_concrete())
    made.refine_weights()
    return made.onnx_model, made.make_oracle()


def write(folder, kind, names, arrays):
    folder.mkdir(exist_ok=True)
    for i, name in enumerate(names):
        array = np.asarray(arrays[name])
        (folder / f"{kind}_{i}.pb").write_bytes(onnx.numpy_helper.from_array(array, name).SerializeToString())


def main():
    folder, first, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    form = Model.init("onnx", backend_target="cpu")
    form.add_seed_setter()
    operators = auto_opset(form, None)
    for seed in range(first, first + count):
        place = folder / str(seed)
        place.mkdir(parents=True, exist_ok=True)
        try:
            model, oracle = draw(form, operators, seed)
        except Exception as error:  # whatever it throws, there is no graph of this seed
            (place / "why.txt").write_text(f"{type(error).__name__}: {error}"[:500])
            continue
        write(place / "test_data_set_0", "input", [v.name for v in model.graph.input], oracle.input)
        write(place / "torch", "output", [v.name for v in model.graph.output], oracle.output)
        onnx.save(model, place / "model.onnx")
    return 0


if __name__ == "__main__":
    sys.stdout = io.StringIO()  # NNSmith tells what PyTorch's exporter refuses
    sys.exit(main())
