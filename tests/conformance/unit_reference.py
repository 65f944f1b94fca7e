#!/usr/bin/env python3
"""Makes inputs for a model without data and records what ONNX Runtime answers; called by oracle.py.

Such a model often has free dimensions. Which sizes and integer values make sense only the model knows (an
index, a length, an axis), so a few are tried in a fixed order until ONNX Runtime runs and its answers have the
shapes that the model declares; where none has, the first that ran counts, since hand-made models declare shapes
that no input gives. Values recorded beside the model come first. The folder then holds test_data_set_N and
reference.json. To be called in a process of its own: a model may crash ONNX Runtime or want more memory than there
is, which must not end the run.
"""
import ctypes
import json
import re
import resource
import time
import zlib

import numpy as np
import onnx
import onnx.version_converter
import onnxruntime as ort
from onnx import TensorProto, numpy_helper

import mended_models
import recorded_data
import widened_models

SIZES = [4, 8, 16, 1, 2, 3, 32, 64, 5, 12, 128, 224]
RANKS = [[2, 4], [1, 3, 8, 8], [4], [], [2, 3, 4]]
INTEGERS = ["small", "declared", "ones", "zeros", "sizes", "span"]
WHOLE = {TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32,
         TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64}
ELEMENTS = 1 << 24  # of all inputs together, where sizes are guessed
SECONDS = 40
MEMORY = 12 << 30  # bytes of address space: a wrong guess of a size may ask for any amount
WORDS = ["the", "cat", "42", "Sat on", "", "a b"]
LEVELS = [ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL]
RANDOM_OPS = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike",
              "Multinomial", "Bernoulli", "Sampling"}


def random_ops(graph):
    """Whether anything in the graph draws random numbers, so that two runs may differ."""
    false = {t.name for t in graph.initializer if t.data_type == TensorProto.BOOL and not numpy_helper.to_array(t).any()}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].HasField("t"):
            value = node.attribute[0].t
            if value.data_type == TensorProto.BOOL and not numpy_helper.to_array(value).any():
                false.add(node.output[0])
    for node in graph.node:
        if node.op_type in RANDOM_OPS:
            return True
        # With a third input, training_mode, dropout draws, unless that is known to be false.
        if "Dropout" in node.op_type and any(n and n not in false for n in node.input[2:3]):
            return True
        if any(random_ops(a.g) for a in node.attribute if a.type == onnx.AttributeProto.GRAPH):
            return True
    return False


def narrowest(model):
    """The element type with the fewest bits among values and casts: it bounds what two orders of rounding share."""
    kinds = {v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]}
    kinds |= {t.data_type for t in model.graph.initializer}
    kinds |= {a.i for n in model.graph.node for a in n.attribute if n.op_type == "Cast" and a.name == "to"}
    return next((name for name in ("BFLOAT16", "FLOAT16") if TensorProto.DataType.Value(name) in kinds), "")


def size_of(name, size, leading, first):
    """The size for a dimension's name; sums and products of names are computed."""
    parts = re.split(r"\s*\+\s*", name)
    if len(parts) > 1:
        return sum(int(p) if p.isdigit() else size_of(p, size, leading, first) for p in parts)
    if name in leading or re.search(r"batch", name, re.I):
        return first
    return 2 * size if re.match(r"total", name) else size


def shapes_for(inputs, size, rank, first):
    """One shape per tensor input: leading free dimensions are `first`, the others `size`."""
    leading = set()
    for value in inputs:
        dims = value.type.tensor_type.shape.dim
        if dims and not dims[0].HasField("dim_value") and dims[0].dim_param:
            leading.add(dims[0].dim_param)
    shapes = {}
    for value in inputs:
        tensor = value.type.tensor_type
        if not tensor.HasField("shape"):
            shapes[value.name] = list(rank)
            continue
        shape = []
        for i, dim in enumerate(tensor.shape.dim):
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                shape.append(dim.dim_value)
            elif dim.dim_param:
                shape.append(size_of(dim.dim_param, size, leading, first))
            else:
                shape.append(first if i == 0 else size)
        shapes[value.name] = shape
    return shapes


def declared_sizes(count, outputs):
    """The shape of `count` axes that an output declares: what an input that is a shape should hold."""
    for output in outputs:
        dims = output.type.tensor_type.shape.dim
        if len(dims) == count and all(d.HasField("dim_value") for d in dims):
            return [d.dim_value for d in dims]
    return None


def span(shape, number, outputs):
    """Of whole inputs the first is where a slice begins, the second where it ends, the third its axes."""
    sizes = [d.dim_value for o in outputs[:1] for d in o.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    values = [np.zeros(count), np.resize(sizes or [1], count), np.arange(count)][min(number, 2)]
    return values.reshape(shape)


def tensor_for(value, shape, integers, size, rng, outputs, number):
    kind = value.type.tensor_type.elem_type
    if kind == TensorProto.STRING:
        flat = np.array([WORDS[i % len(WORDS)] for i in range(int(np.prod(shape)))], dtype=object)
        return onnx.helper.make_tensor(value.name, kind, shape, [w.encode() for w in flat])
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    wide = {TensorProto.INT8: (-100, 100), TensorProto.UINT8: (0, 256)}
    if kind == TensorProto.BOOL:
        array = rng.integers(0, 2, shape).astype(bool)
    elif np.issubdtype(dtype, np.integer):
        sizes = declared_sizes(shape[0], outputs) if integers == "declared" and len(shape) == 1 else None
        if sizes:
            array = np.array(sizes)
        elif kind in wide and integers == "small":
            array = rng.integers(*wide[kind], shape)
        else:
            array = {"small": rng.integers(0, 2, shape), "ones": np.ones(shape),
                     "declared": rng.integers(0, 2, shape), "zeros": np.zeros(shape), "sizes": np.full(shape, size),
                     "span": span(shape, number, outputs)}[integers]
    else:
        array = rng.standard_normal(shape)
        if np.issubdtype(dtype, np.complexfloating):
            array = array + 1j * rng.standard_normal(shape)
    return numpy_helper.from_array(np.asarray(array).astype(dtype), value.name)


def has_free(inputs):
    return any(not d.HasField("dim_value") or d.dim_value < 0
               for v in inputs for d in v.type.tensor_type.shape.dim)


def map_for(value, graph, rng):
    """A map: values for the keys that the operator behind it looks up."""
    lists = [a for n in graph.node for a in n.attribute if value.name in n.input and a.name.endswith("_vocabulary")]
    keys = [k if isinstance(k, int) else k.decode() for a in lists for k in onnx.helper.get_attribute_value(a)]
    kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.map_type.value_type.tensor_type.elem_type)
    return numpy_helper.from_dict({k: np.asarray(rng.standard_normal(), dtype=kind) for k in keys}, value.name)


def attempts(inputs):
    """(shapes, how integers are made, size), the likeliest first: a free leading dimension is a batch of 1."""
    free = has_free(inputs)
    unranked = any(v.type.HasField("tensor_type") and not v.type.tensor_type.HasField("shape") for v in inputs)
    whole = any(v.type.tensor_type.elem_type in WHOLE for v in inputs)
    for leading_free in (False, True) if free else (False,):
        for rank in RANKS if unranked else RANKS[:1]:
            for size in SIZES if free else SIZES[:1]:
                shapes = shapes_for(inputs, size, rank, size if leading_free else 1)
                # Of what is large only the form with sizes of 1 is tried.
                if free and size > 1 and sum(np.prod(s, dtype=float) for s in shapes.values()) > ELEMENTS:
                    continue
                for integers in INTEGERS if whole else INTEGERS[:1]:
                    yield shapes, integers, size


def to_runtime(tensor):
    if isinstance(tensor, onnx.MapProto):
        return {k: v.item() for k, v in numpy_helper.to_dict(tensor).items()}
    if tensor.data_type == TensorProto.STRING:
        return np.array([s.decode() for s in tensor.string_data],
                        dtype=object).reshape(tuple(tensor.dims))
    array = numpy_helper.to_array(tensor)
    if tensor.data_type in (TensorProto.BFLOAT16, *range(TensorProto.FLOAT8E4M3FN,
                                                         TensorProto.FLOAT8E5M2FNUZ + 1)):
        raw = array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(raw, tensor.data_type)
    return array


def from_runtime(value):
    """numpy has no bfloat16 or float8, so ONNX Runtime gives no array of these: their bytes are read."""
    try:
        return np.array(value.numpy())  # a copy: an output may be an input's memory
    except RuntimeError:
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.element_type())
        shape = value.shape()
        size = int(np.prod(shape)) * kind.itemsize
        return np.frombuffer(ctypes.string_at(value.data_ptr(), size), kind).reshape(shape)


def run_session(session, tensors):
    if isinstance(session, (mended_models.Evaluator, widened_models.Widened)):
        return session.answer(tensors)
    names = [o.name for o in session.get_outputs()]
    feeds = {t.name: to_runtime(t) for t in tensors}
    # Of sequences, maps and strings there are no OrtValues.
    if any(not v.type.startswith("tensor") or v.type == "tensor(string)"
           for v in [*session.get_inputs(), *session.get_outputs()]):
        return names, session.run(None, feeds)
    values = {n: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v)
              for n, v in feeds.items()}
    return names, [from_runtime(v) for v in session.run_with_ort_values(None, values)]


def newer(path):
    """The model in an opset that ONNX Runtime implements: it lacks the operators of the oldest ones."""
    try:
        return onnx.version_converter.convert_version(onnx.load(str(path)), 8).SerializeToString()
    except Exception:  # whatever it throws, there is no such form
        return str(path)


def session_of(model, level):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = level
    # Without VNNI, ONNX Runtime otherwise adds pairs of byte products in 16 bits, which saturate: wrong answers.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def open_session(path):
    """(session, error): without graph optimisation, else as ONNX Runtime would by itself, else in a newer opset."""
    error = ""
    for make in (lambda: session_of(str(path), LEVELS[0]), lambda: session_of(str(path), LEVELS[1]),
                 lambda: session_of(newer(path), LEVELS[0])):
        try:
            return make(), ""
        except Exception as caught:  # whatever it throws is its reason
            error = error or str(caught)
    return None, error


def write(folder, kind, tensors):
    for i, tensor in enumerate(tensors):
        (folder / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


def as_map(value):
    out = onnx.MapProto(values=numpy_helper.from_list([np.asarray(v, np.float32) for v in value.values()]))
    if isinstance(next(iter(value)), str):
        out.key_type = TensorProto.STRING
        out.string_keys.extend(k.encode() for k in value)
    else:
        out.key_type = TensorProto.INT64
        out.keys.extend(value)
    return out


def as_proto(name, value):
    """An output of ONNX Runtime as a message, or None for what has none."""
    if isinstance(value, np.ndarray) and value.dtype == object:
        flat = [str(s).encode() for s in value.reshape(-1)]
        return onnx.helper.make_tensor(name, TensorProto.STRING, value.shape, flat)
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value, name)
    if isinstance(value, list) and value and all(isinstance(v, np.ndarray) for v in value):
        return numpy_helper.from_list(value, name)
    if isinstance(value, list) and value and all(isinstance(v, dict) and v for v in value):
        return onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP, map_values=[as_map(v) for v in value])
    return None


def fits_declared(outputs, answers):
    """Whether the answers have the shapes that the model declares, as far as it does."""
    for output, answer in zip(outputs, answers):
        tensor = output.type.tensor_type
        if not tensor.HasField("shape") or not isinstance(answer, np.ndarray):
            continue
        dims = tensor.shape.dim
        if not dims:  # graph tools write no dimensions where they know none
            continue
        known = [d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in dims]
        same = len(known) == answer.ndim and all(d in (None, n) for d, n in zip(known, answer.shape))
        # Old exporters write [1] for a scalar.
        if not same and [d for d in known if d != 1] != [n for n in answer.shape if n != 1]:
            return False
    return True


def sizes_are_tried(inputs):
    """Whether sizes of outputs may hang on the attempt: free dimensions, or integers that may be sizes."""
    kinds = {v.type.tensor_type.elem_type for v in inputs}
    return has_free(inputs) or bool(kinds & {TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL})


def run_once(session, tensors):
    """(the outputs, "") or (nothing, why there are none)."""
    try:
        return run_session(session, tensors), ""
    except Exception as caught:  # whatever it throws is its reason
        return None, str(caught)[:300]


def search_values(graph, size):
    """Input name -> a number that lets a search for text run: any other length or count of beams is refused."""
    values = {}
    for node in graph.node:
        if node.op_type in ("BeamSearch", "GreedySearch", "Sampling"):
            numbers = {1: 2 * size + 4, 2: 1}
            numbers.update({3: 3, 4: 2, 5: 1, 6: 1} if node.op_type == "BeamSearch" else {3: 1})
            values.update({name: numbers[i] for i, name in enumerate(node.input) if i in numbers})
    return values


def candidates(path, inputs, graph):
    """Input values to try: those recorded beside the model, then seeded ones."""
    yield from recorded_data.inputs_of(path, inputs)
    for shapes, integers, size in attempts(inputs):
        rng = np.random.default_rng(zlib.crc32(path.name.encode()))
        whole = [v.name for v in inputs if v.type.tensor_type.elem_type in WHOLE]
        tensors = [map_for(v, graph, rng) if v.type.HasField("map_type") else
                   tensor_for(v, shapes[v.name], integers, size, rng, graph.output,
                              whole.index(v.name) if v.name in whole else 0) for v in inputs]
        fixed = search_values(graph, size)
        yield [numpy_helper.from_array(np.full_like(numpy_helper.to_array(t), fixed[t.name]), t.name)
               if t.name in fixed else t for t in tensors]


def try_all(path, inputs, graph, folder):
    """Lets one judge after the other try: ONNX Runtime, the same for another form of the model, the evaluator."""
    session, error = open_session(path)
    start = time.monotonic()
    result = try_session(session, path, inputs, graph, folder, start)
    if result.get("ort") is None:
        why = error[:300] or result["why"]
        result = next((found for judge in others(path) for found in
                       [try_session(judge, path, inputs, graph, folder, start)] if found.get("ort") == "ran"), {})
        result.update({"mended": True} if result else {"ort": why})
    return result


def others(path):
    """Judges of a model that ONNX Runtime refuses as it stands."""
    try:
        for form in mended_models.forms(path):
            try:
                yield session_of(form, LEVELS[0])
            except Exception:  # whatever it throws, this form is none
                continue
    except Exception:  # a model that cannot be changed as it wants
        pass
    try:
        model = mended_models.with_vendor_domain(onnx.load(str(path)))
        if widened_models.can_widen(model):
            yield widened_models.Widened(model, lambda form: session_of(form, LEVELS[0]))
    except Exception:  # whatever it throws, there is no such form
        pass
    if judge := mended_models.evaluator_of(path):
        yield judge


def try_session(session, path, inputs, graph, folder, start):
    """Runs attempt after attempt; leaves the data of the one that ran as declared, else one that ran, else the first."""
    result, why = {}, ""
    declared = graph.output if sizes_are_tried(inputs) else []
    for number, tensors in enumerate(candidates(path, inputs, graph)):
        if number == 0:
            write(folder, "input", tensors)
        if session is None or time.monotonic() - start > SECONDS:
            break
        ran, failure = run_once(session, tensors)
        why = why or failure
        if ran is None:
            continue
        fits = fits_declared(declared, ran[1])
        if result and not fits:
            continue
        answers = [as_proto(n, a) for n, a in zip(*ran)]
        result = {"ort": "ran", "outputs": len(answers), "as_declared": fits_declared(graph.output, ran[1])}
        write(folder, "input", tensors)
        if any(a is None for a in answers):
            result["ort"] = "an output that is no tensor"
        else:
            write(folder, "output", answers)
        if fits:
            break
    return result or {"why": why}


def try_others(path, inputs, graph, folder):
    """Data sets of a model that ONNX Runtime does not execute: outputs recorded beside it, or qonnx's."""
    expected = recorded_data.outputs_of(path, graph.output)
    given = recorded_data.inputs_of(path, inputs)
    if not expected or len(expected) != len(given):
        given = [next(candidates(path, inputs, graph))]
        expected = [recorded_data.run_qonnx(path, given[0], graph.output)]
    for i, (tensors, answers) in enumerate(zip(given, expected)):
        if answers is None:
            break
        data = folder / f"test_data_set_{i}"
        data.mkdir(exist_ok=True)
        write(data, "input", tensors)
        write(data, "output", answers)


def reference(path, folder):
    """Fills the data sets in `folder` and says how that went."""
    model = onnx.load(str(path), load_external_data=False)
    given = {t.name for t in model.graph.initializer}
    given |= {t.values.name for t in model.graph.sparse_initializer}
    inputs = [v for v in model.graph.input if v.name not in given]
    if any(v.type.WhichOneof("value") not in ("tensor_type", "map_type") for v in inputs):
        result = {"ort": "an input that is no tensor", "no_data": True}
    else:
        (folder / "test_data_set_0").mkdir(exist_ok=True)
        result = try_all(path, inputs, model.graph, folder / "test_data_set_0")
        if any(n.domain.startswith(recorded_data.QONNX_DOMAINS) for n in model.graph.node):
            try_others(path, inputs, model.graph, folder)
    result["random"] = random_ops(model.graph)
    result["narrow"] = narrowest(model)
    result["ops"] = sorted({n.op_type for n in model.graph.node})
    return result


def answer_again(path, folder, data):
    """Data sets with the inputs of `data` and what ONNX Runtime answers here, without and with its optimisations."""
    files = sorted(data.glob("input_*.pb"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
    tensors = [onnx.TensorProto.FromString(f.read_bytes()) for f in files]
    for i, level in enumerate(LEVELS):
        session = session_of(str(path), level)
        for tensor, given in zip(tensors, session.get_inputs()):
            tensor.name = given.name
        out = folder / f"test_data_set_{i}"
        out.mkdir()
        write(out, "input", tensors)
        write(out, "output", [as_proto(n, a) for n, a in zip(*run_session(session, tensors))])


def make_reference(path, folder, given):
    """Fills `folder`: test_data_set_N and reference.json, whose `ort` is "ran" or the reason why not. With a data
    set `given`, only its inputs count."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    folder.mkdir(parents=True, exist_ok=True)
    # What is left behind when the process is ended from outside.
    result = {"ort": "it crashed or did not end"}
    (folder / "reference.json").write_text(json.dumps(result))
    try:
        if given:
            answer_again(path, folder, given)
            result = {"ort": "ran"}
        else:
            result = reference(path, folder)
    except Exception as caught:  # a file that is no model
        result = {"ort": f"not read: {caught}"[:300], "no_data": True}
    (folder / "reference.json").write_text(json.dumps(result))
