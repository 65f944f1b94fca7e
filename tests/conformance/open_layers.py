#!/usr/bin/env python3
"""Layers that ONNX Runtime's optimiser and its generation kit write, with all their sizes open (--dim): each at several sizes
against ONNX Runtime. What the batch's entries are long, what a past holds and what is hidden differ from run to run.
"""
import shutil
import sys

import open_sizes
from open_sizes import base, np, onnx, onnxruntime, packed_case
from onnx import TensorProto, helper, numpy_helper

WORK = base.WORK / "open_layers"
HEADS, HEAD = 4, 16
WIDTH = HEADS * HEAD
FLOAT, INT, LONG = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
RNG = np.random.default_rng(17)
PLAIN = [(2, 6), (1, 1), (1, 6), (2, 3), (1, 4)]  # batch, rows
BEHIND = [(1, 4, 5), (1, 1, 0), (1, 1, 3), (2, 1, 5), (1, 4, 2), (2, 4, 0)]  # batch, rows, those of the past
RANGES = {"b": "1..2", "s": "1..6", "k": "1..7", "p": "0..5", "t": "1..11"}


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def own(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), domain="com.microsoft", **attributes)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def shown(batch, keys):
    """All keys but the last ones of entries behind the first."""
    return np.array([[k < max(1, keys - entry) for k in range(keys)] for entry in range(batch)], np.int32)


def attention():
    weights = {"w": f32(WIDTH, 3 * WIDTH) / 4, "c": f32(3 * WIDTH)}
    x = ("x", FLOAT, ["b", "s", WIDTH])
    y = ("y", FLOAT, ["b", "s", WIDTH])
    for causal in (0, 1):
        how = {"num_heads": HEADS, "unidirectional": causal}
        runs = [{"x": f32(b, s, WIDTH)} for b, s in PLAIN]
        yield f"attention {causal}", [own("Attention", "x w c", "y", **how)], [x], [y], weights, runs
        masks = {"of keys": (["b", "s"], shown), "of lengths": (["b"], lambda b, s: shown(b, s).sum(1, dtype=np.int32)),
                 "of rows": (["b", "s", "s"], lambda b, s: np.tril(np.ones((b, s, s), np.int32)))}
        for name, (shape, made) in masks.items():
            runs = [{"x": f32(b, s, WIDTH), "m": made(b, s)} for b, s in PLAIN]
            yield (f"attention {causal}, mask {name}", [own("Attention", "x w c m", "y", **how)], [x, ("m", INT, shape)], [y], weights,
                   runs)
        runs = [{"x": f32(b, s, WIDTH), "m": np.ones((b, s + p), np.int32), "p": f32(2, b, HEADS, p, HEAD)} for b, s, p in BEHIND]
        yield (f"attention {causal}, past", [own("Attention", "x w c m p", "y o", **how)],
               [x, ("m", INT, ["b", "t"]), ("p", FLOAT, [2, "b", HEADS, "p", HEAD])],
               [y, ("o", FLOAT, [2, "b", HEADS, "t", HEAD])], weights, runs)


def several_heads():
    rows = [(name, FLOAT, ["b", "s", WIDTH]) for name in ("q", "k", "v")]
    y = ("y", FLOAT, ["b", "s", WIDTH])
    yield ("heads", [own("MultiHeadAttention", "q k v", "y", num_heads=HEADS)], rows, [y], {},
           [{name: f32(b, s, WIDTH) for name in "qkv"} for b, s in PLAIN])
    others = [rows[0], *((name, FLOAT, ["b", "k", WIDTH]) for name in ("key", "v")), ("m", INT, ["b", "k"])]
    yield ("heads, other keys, bias and mask",
           [helper.make_node("MultiHeadAttention", ["q", "key", "v", "c", "m"], ["y"], domain="com.microsoft", num_heads=HEADS)],
           others, [y], {"c": f32(3 * WIDTH)},
           [{"q": f32(b, s, WIDTH), "key": f32(b, s + 1, WIDTH), "v": f32(b, s + 1, WIDTH), "m": shown(b, s + 1)} for b, s in PLAIN])
    caches = [(name, FLOAT, ["b", HEADS, "p", HEAD]) for name in ("pk", "pv")]
    behind = helper.make_node("MultiHeadAttention", ["q", "k", "v", "", "", "", "pk", "pv"], ["y", "ok", "ov"],
                              domain="com.microsoft", num_heads=HEADS, unidirectional=1)
    yield ("heads, past", [behind], rows + caches, [y, *((name, FLOAT, ["b", HEADS, "t", HEAD]) for name in ("ok", "ov"))], {},
           [{name: f32(b, s, WIDTH) for name in "qkv"} | {name: f32(b, HEADS, p, HEAD) for name in ("pk", "pv")} for b, s, p in BEHIND])


def shared_keys():
    """As decoders have it: a mask of all keys says how long each entry is, and how many there are."""
    pairs = HEADS // 2
    inputs = [("q", FLOAT, ["b", "s", WIDTH]), *((name, FLOAT, ["b", "s", pairs * HEAD]) for name in "kv"),
              *((name, FLOAT, ["b", pairs, "p", HEAD]) for name in ("pk", "pv")), ("m", LONG, ["b", "t"])]
    outputs = [("y", FLOAT, ["b", "s", WIDTH]), *((name, FLOAT, ["b", pairs, "t", HEAD]) for name in ("ok", "ov"))]
    lengths = [node("ReduceSum", "m axis", "sum", keepdims=0), node("Sub", "sum first", "last"), node("Cast", "last", "lengths", to=INT),
               node("Shape", "m", "sizes"), node("Gather", "sizes first", "keys"), node("Cast", "keys", "total", to=INT)]
    known = {"axis": np.array([1]), "first": np.array(1), "cos": f32(32, HEAD // 2), "sin": f32(32, HEAD // 2)}
    runs = []
    for b, s, p in BEHIND:
        mask = shown(b, s + p) if s == 1 else np.ones((b, s + p))
        runs.append({"q": f32(b, s, WIDTH), "k": f32(b, s, pairs * HEAD), "v": f32(b, s, pairs * HEAD),
                     "pk": f32(b, pairs, p, HEAD), "pv": f32(b, pairs, p, HEAD), "m": mask.astype(np.int64)})
    for name, more, how in (("", "", {}), (", turned", " cos sin", {"do_rotary": 1}),
                            (", window", " cos sin", {"do_rotary": 1, "local_window_size": 4})):
        grouped = own("GroupQueryAttention", f"q k v pk pv lengths total{more}", "y ok ov", num_heads=HEADS, kv_num_heads=pairs, **how)
        yield f"shared keys{name}", [*lengths, grouped], inputs, outputs, known, runs


def batches():
    """Of which only the batch is open: a past has more room than there are keys."""
    pairs, room, keys = HEADS // 2, 8, 5
    inputs = [("q", FLOAT, ["b", 1, WIDTH]), *((name, FLOAT, ["b", 1, pairs * HEAD]) for name in "kv"),
              *((name, FLOAT, ["b", pairs, room, HEAD]) for name in ("pk", "pv")), ("lengths", INT, ["b"])]
    outputs = [("y", FLOAT, ["b", 1, WIDTH]), *((name, FLOAT, ["b", pairs, room, HEAD]) for name in ("ok", "ov"))]
    runs = []
    for b in (2, 1):
        lengths = np.array([keys - 1, keys - 2][:b], np.int32)
        held = np.arange(room)[:, None] < lengths[:, None, None, None]  # what lies behind is nobody's
        runs.append({"q": f32(b, 1, WIDTH), "lengths": lengths, **{n: f32(b, 1, pairs * HEAD) for n in "kv"},
                     **{n: f32(b, pairs, room, HEAD) * held for n in ("pk", "pv")}})
    grouped = own("GroupQueryAttention", "q k v pk pv lengths total", "y ok ov", num_heads=HEADS, kv_num_heads=pairs)
    yield "shared keys, room", [grouped], inputs, outputs, {"total": np.array(keys, np.int32)}, runs


def around():
    ids, segments = (("i", INT, ["b", "s"]), ("t", INT, ["b", "s"]))
    tables = {"words": f32(30, WIDTH), "places": f32(16, WIDTH), "parts": f32(2, WIDTH), "gamma": f32(WIDTH), "beta": f32(WIDTH)}
    yield ("embeddings", [own("EmbedLayerNormalization", "i t words places parts gamma beta m", "y n"), node("Cast", "n", "lengths", to=FLOAT)],
           [ids, segments, ("m", INT, ["b", "s"])], [("y", FLOAT, ["b", "s", WIDTH]), ("lengths", FLOAT, ["b"])], tables,
           [{"i": RNG.integers(0, 30, (b, s)).astype(np.int32), "t": RNG.integers(0, 2, (b, s)).astype(np.int32), "m": shown(b, s)}
            for b, s in PLAIN])
    angles = {"cos": f32(16, HEAD // 2), "sin": f32(16, HEAD // 2)}
    for name, shape, how in (("rows", ["b", "s", WIDTH], {"num_heads": HEADS}), ("heads", ["b", HEADS, "s", HEAD], {})):
        yield (f"turned {name}", [own("RotaryEmbedding", "x at cos sin", "y", **how)], [("x", FLOAT, shape), ("at", LONG, ["b", "s"])],
               [("y", FLOAT, shape)], angles,
               [{"x": f32(*({"b": b, "s": s}.get(n, n) for n in shape)), "at": RNG.integers(0, 16, (b, s))} for b, s in PLAIN])


def lookups():
    ids = ("i", LONG, ["b", "s"])
    for bits, width in ((4, 16), (8, 32)):
        known = {"table": RNG.integers(0, 256, (30, width)).astype(np.uint8), "scales": np.abs(f32(30, 2))}
        yield (f"rows of {bits} bits", [own("GatherBlockQuantized", "table i scales", "y", block_size=16, bits=bits)], [ids],
               [("y", FLOAT, ["b", "s", 32])], known, [{"i": RNG.integers(0, 30, (b, s))} for b, s in PLAIN])


def model_of(nodes, inputs, outputs, known):
    made = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
    graph = helper.make_graph(nodes, "layer", *made, [numpy_helper.from_array(array, n) for n, array in known.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def judged(nodes, inputs, outputs, known, runs):
    """What is wrong with a layer; nothing where it is right at every size that ONNX Runtime takes, of which there is one."""
    model = WORK / "model.onnx"
    onnx.save(model_of(nodes, inputs, outputs, known), model)
    open_ones = sorted({size for _, _, shape in inputs for size in shape if isinstance(size, str)})
    ranges = [word for size in open_ones for word in ("--dim", f"{size}={RANGES[size]}")]
    if why := packed_case.pack(WORK, base.PACK_SECONDS, ranges):
        return why
    session, agree = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]), 0
    names = [n for n, _, _ in outputs]
    for feed in runs:
        try:
            expected = session.run(None, feed)
        except Exception:  # of onnxruntime's own, which have no base
            continue
        wrong, ours = packed_case.run_packed(WORK, feed, names, base.RUN_SECONDS)
        wrong = wrong or "; ".join(f"{n} {what}" for n, *both in zip(names, ours, expected, strict=True)
                                   if (what := packed_case.differs(*both, least=1e-6)))
        if wrong:
            return f"{ {n: array.shape for n, array in feed.items()} }: {wrong}"
        agree += 1
    return "" if agree else "no size that ONNX Runtime runs"


def decoding(nodes, inputs, outputs, known, _):
    """What is wrong with a loop whose caches are states, which no step moves."""
    model, runs, answers = WORK / "model.onnx", WORK / "steps", WORK / "answers"
    onnx.save(model_of(nodes, inputs, outputs, known), model)
    masked = any(name == "m" for name, _, _ in inputs)
    words = ["--shape", "b=1", "--dim", "s=1..4", "--dim", "p=0..20", "--state", "pk=ok", "--state", "pv=ov",
             *(("--dim", "t=1..24") if masked else ())]
    facts = WORK / "facts.json"
    if why := packed_case.pack(WORK, base.PACK_SECONDS, [*words, f"--json={facts}"]):
        return why
    if facts.read_text().count('"kind": "place"') != 2:
        return "a cache does not stay in its place"
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    shapes = {name: shape for name, _, shape in inputs}
    caches, expected = [f32(1, shapes["pk"][1], 0, HEAD)] * 2, []
    for folder in (runs, answers):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    for step, rows in enumerate((4, 1, 1, 2, 1, 1, 3, 1, 1, 4, 1)):
        keys = caches[0].shape[2] + rows
        feed = {name: f32(1, rows, shapes[name][2]) for name in "qkv"} | ({"m": np.ones((1, keys), np.int64)} if masked else {})
        (runs / f"{step:02}").mkdir(parents=True)
        for name, array in feed.items():
            np.save(runs / f"{step:02}" / f"{name}.npy", array)
        y, *caches = session.run(None, feed | {"pk": caches[0], "pv": caches[1]})
        expected.append(y)
    code, text, _ = base.run([str(WORK / "program"), "--batch-dir", str(runs), "--output-dir", str(answers)], base.RUN_SECONDS)
    if code != 0:
        return f"exit {code}: {text}"
    wrong = [packed_case.differs(np.load(answers / f"{step:02}.npy"), y, least=1e-6) for step, y in enumerate(expected)]
    return "; ".join(f"step {step} {what}" for step, what in enumerate(wrong) if what)


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    onnxruntime.set_default_logger_severity(4)
    results = {}
    for layers in (attention, several_heads, shared_keys, batches, around, lookups):
        for name, *parts in layers():
            results[name] = judged(*parts)
            print(f"{results[name] or 'right'}: {name}", flush=True)
            if name in ("heads, past", "shared keys, turned"):
                results[f"{name} as states"] = decoding(*parts)
                print(f"{results[f'{name} as states'] or 'right'}: {name} as states", flush=True)
    bad = sum(map(bool, results.values()))
    good = len(results) - bad
    print(f"{good} right, {bad} not")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
