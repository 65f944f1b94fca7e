"""How the cases that exported_cases.py runs are written: a case is a function that gives a model,
its inputs by name, and words for svod-pack."""

import numpy as np
from onnx import numpy_helper, parser

HEAD = '<ir_version: 8, opset_import: ["":%d]>\n'
CASES = {}
RNG = np.random.default_rng()  # seeded per case by exported_cases.py


def case(make):
    assert make.__name__ not in CASES, f"two cases are called {make.__name__}"
    CASES[make.__name__] = make
    return make


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def parsed(text):
    return parser.parse_model(text)


def weights(model, **arrays):
    for name, array in arrays.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return model
