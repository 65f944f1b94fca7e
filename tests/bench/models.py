#!/usr/bin/env python3
"""Finds and fills the models of the speed comparison; runs in the bench venv (onnx, numpy).

    models.py FOLDER OUT --list all|bench|default       names, one per line
    models.py FOLDER OUT NAME                           prepares OUT/NAME: model.onnx, test_data_set_0

FOLDER holds SUITE.tsv, the graph skeletons and materialise.py, which fills them with seeded weights. Models of
the corpus beside it get seeded inputs here, with the dimensions that SUITE.tsv names.
"""
import csv
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import helper, numpy_helper

DEFAULT = ["resnet18", "resnet50", "mobilenet_v2", "bert_base", "minilm_l6", "squeezenet1_1"]


def suite(folder):
    with open(folder / "SUITE.tsv") as f:
        return {row["name"]: row for row in csv.DictReader(f, delimiter="\t")}


def names(folder, which):
    if which == "default":
        return DEFAULT
    skeletons = {p.stem for p in folder.glob("*.onnx")}
    return [n for n in suite(folder) if which == "all" or n in skeletons]


def dims_of(value, given):
    """The input's dimensions; named ones from `given`, all other unknown ones 1."""
    shape = value.type.tensor_type.shape.dim
    return [d.dim_value if d.dim_value > 0 else int(given.get(d.dim_param, 1)) for d in shape]


def write_inputs(model_path, dims, folder):
    model = onnx.load(str(model_path), load_external_data=False)
    given = dict(pair.split("=") for pair in dims.split(",") if "=" in pair)
    weights = {t.name for t in model.graph.initializer}
    rng = np.random.default_rng(1)
    folder.mkdir(parents=True, exist_ok=True)
    values = [v for v in model.graph.input if v.name not in weights]
    for k, value in enumerate(values):
        shape = dims_of(value, given)
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if np.issubdtype(dtype, np.floating):
            data = rng.normal(0, 1, shape).astype(dtype)
        else:
            data = rng.integers(0, 2, shape).astype(dtype)
        tensor = numpy_helper.from_array(np.asarray(data), value.name)
        (folder / f"input_{k}.pb").write_bytes(tensor.SerializeToString())


def prepare(folder, out, name):
    target = out / name
    if (target / "ready").exists():
        return
    row = suite(folder)[name]
    if (folder / f"{name}.onnx").exists():
        subprocess.run([sys.executable, str(folder / "materialise.py"), "--out", str(out), name],
                       check=True, stdout=subprocess.DEVNULL)
    else:
        source = (folder.parent / row["model"]).resolve()
        target.mkdir(parents=True, exist_ok=True)
        (target / "model.onnx").unlink(missing_ok=True)
        (target / "model.onnx").symlink_to(source)
        write_inputs(source, row["dims"], target / "test_data_set_0")
    (target / "ready").touch()


def main():
    folder, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    if sys.argv[3] == "--list":
        print("\n".join(names(folder, sys.argv[4])))
    else:
        prepare(folder, out, sys.argv[3])


if __name__ == "__main__":
    main()
