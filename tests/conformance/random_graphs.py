#!/usr/bin/env python3
"""Random graphs of all kinds of operators against ONNX Runtime: what operators of any form do to each other.

    random_graphs.py [--filter REGEX] [--jobs 2] [--seeds 160]

Where random_networks.py draws layers of real sizes, these are small tensors of odd sizes (1, primes) of up to five
axes, opsets 11 to 18, attributes away from their defaults, chains that no network has. Each node is run by ONNX Runtime as
it is drawn, so that shapes are known and what is no model (an empty tensor, a value out of range) is not taken. The
operators stand in random_ops.py. A value may differ by 1e-3 of itself and 2e-4 of the root mean square of its tensor,
whole numbers not at all. Needs numpy, onnx and onnxruntime; says so and is skipped otherwise.
"""
import random
import re
import shutil
import sys

import run_units as units

if not units.oracle.enter(units.base.BUILD):
    print("skipped: this python has no onnxruntime, onnx and numpy")
    sys.exit(77)
import onnxruntime
import packed_case
import random_ops

base, np, onnx = units.base, units.np, units.onnx
WORK = base.WORK / "graphs"
LARGEST, MOST = 1e3, 20000  # value, elements


class NoModel(Exception):
    """What was drawn is not taken."""


class Drawing:
    """Nodes, and the value of everything in them."""

    def __init__(self, seed):
        self.draw, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.opset = self.draw.choice([11, 12, 13, 14, 16, 17, 18])
        self.nodes, self.values, self.known = [], {}, set()
        for _ in range(self.draw.choice([1, 2])):
            sizes = [self.draw.choice([1, 1, 2, 3])]
            more = self.draw.choice([1, 2, 3, 3, 3, 4])
            sizes += [self.draw.choice([1, 2, 3, 4, 5, 7, 8, 11, 13, 16]) for _ in range(more)]
            self.values[self.name()] = self.normal(*sizes)
        self.inputs = list(self.values)

    def name(self):
        return f"v{len(self.values)}"

    def normal(self, *shape):
        return np.asarray(self.numbers.standard_normal(shape), np.float32)

    def whole(self, low, high, shape):
        return np.asarray(self.numbers.integers(low, high, shape), np.int64)

    def value(self, array):
        name = self.name()
        self.values[name] = np.asarray(array)
        self.known.add(name)
        return name

    def ints(self, *values):
        return self.value(np.array(values, np.int64))

    def weights(self, *shape, fan_in):
        return self.value(self.normal(*shape) / np.float32(np.sqrt(fan_in)))

    def shape(self, name):
        return self.values[name].shape

    def axis(self, name):
        return self.draw.randrange(len(self.shape(name)))

    def some(self, least=0, most=5):
        """A float tensor of so many axes, of the last ones as a rule."""
        fitting = [k for k, v in self.values.items()
                   if k not in self.known and v.dtype == np.float32 and least <= v.ndim <= most]
        if not fitting:
            raise NoModel
        return fitting[-1] if self.draw.random() < 0.5 else self.draw.choice(fitting[-8:])

    def op(self, kind, *inputs, outputs=1, **attributes):
        while inputs[-1] == "":
            inputs = inputs[:-1]
        names = [f"{self.name()}_{i}" for i in range(outputs)]
        node = onnx.helper.make_node(kind, list(inputs), names, **attributes)
        feeds = {k: self.values[k] for k in inputs if k}
        try:
            answers = self.session([node], names, feeds, {}).run(names, feeds)
        except Exception as error:  # whatever it throws: a kernel larger than its image, say
            raise NoModel from error
        for answer in answers:
            if not 0 < answer.size <= MOST or answer.ndim > 6 or \
                    not (np.isfinite(answer).all() and np.abs(answer.astype(np.float64)).max() < LARGEST):
                raise NoModel
        self.nodes.append(node)
        self.values.update(zip(names, answers))
        return names[0]

    def by_input(self, kind, x, axes, since=13, **more):
        """Axes were attributes until opset `since`."""
        if self.opset >= since:
            return self.op(kind, x, self.ints(*axes), **more)
        return self.op(kind, x, axes=axes, **more)

    def model(self, nodes, outputs, inputs, known):
        def info(name, value):
            """The shape of an output is left to be found; so is the type of one that is not known yet."""
            if value is None:
                return onnx.ValueInfoProto(name=name)
            shape = value.shape if name in inputs else None
            kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            return onnx.helper.make_tensor_value_info(name, kind, shape)

        graph = onnx.helper.make_graph(
            nodes, "drawn", [info(*item) for item in inputs.items()], [info(k, self.values.get(k)) for k in outputs],
            [onnx.numpy_helper.from_array(v, k) for k, v in known.items()])
        return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", self.opset)], ir_version=8)

    def session(self, nodes, outputs, inputs, known):
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        options.add_session_config_entry("session.x64quantprecision", "1")  # as unit_reference.py says
        return onnxruntime.InferenceSession(self.model(nodes, outputs, inputs, known).SerializeToString(), options)

    def build(self):
        wanted = self.draw.choice([4, 8, 12, 20])
        families, weights = zip(*random_ops.FAMILIES)
        for family in self.draw.choices(families, weights, k=4 * wanted):
            if len(self.nodes) >= wanted:
                break
            try:
                family(self)
            except NoModel:
                pass

    def whole_model(self):
        """(model, its outputs): all values that no node takes."""
        taken = {name for node in self.nodes for name in node.input}
        outputs = [name for node in self.nodes for name in node.output if name not in taken]
        known = {k: self.values[k] for k in sorted(self.known & taken)}
        return self.model(self.nodes, outputs, {k: self.values[k] for k in self.inputs}, known), outputs


def check(seed):
    """(name, what is wrong or nothing)"""
    name, folder = f"graph_{seed}", WORK / str(seed)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    drawing = Drawing(seed)
    drawing.build()
    model, outputs = drawing.whole_model()
    onnx.save(model, folder / "model.onnx")
    inputs = {k: drawing.values[k] for k in drawing.inputs}
    why, results = packed_case.pack_and_run(folder, inputs, outputs, units.SECONDS)
    if why:
        return name, why
    for k, got in zip(outputs, results, strict=True):
        if why := packed_case.differs(got, drawing.values[k]):
            return name, f"output {k} {why}"
    shutil.rmtree(folder)
    return name, ""


def main():
    options = packed_case.read_options(__doc__, seeds=160)
    seeds = [seed for seed in range(options.seeds) if re.search(options.filter, f"graph_{seed}")]
    return packed_case.run_cases(check, seeds, options)


if __name__ == "__main__":
    sys.exit(main())
