#!/usr/bin/env python3
"""--state: outputs that stay in memory and are inputs of the next run. A loop of runs gives the bits that it gives when
the caller carries them, in the program, the library and the source for other compilers; what cannot be a state is told."""
import ctypes
import json
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import INT64, model, node, random_tensor, tensor, value
from packing import LEVEL, PACKER, check, need, pack, run, work_folder

FOLDER = work_folder("states")
STEPS = 40


def attention_step():
    """One token against a window of keys and values: both drop their oldest row and get a new one."""
    heads, past, size = 3, 20, 8
    width = heads * size
    nodes = [node("MatMul", ["x", "wqkv"], ["qkv"]),
             node("Split", ["qkv"], ["q1", "k1", "v1"], axis=-1)]
    for part in "qkv":
        nodes += [node("Reshape", [f"{part}1", "split"], [f"{part}2"]),
                  node("Transpose", [f"{part}2"], [f"{part}3"], perm=[0, 2, 1, 3])]
    nodes += [node("Concat", ["past.k", "k3"], ["now.k"], axis=2),
              node("Concat", ["past.v", "v3"], ["now.v"], axis=2),
              node("Transpose", ["now.k"], ["kt"], perm=[0, 1, 3, 2]),
              node("MatMul", ["q3", "kt"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1),
              node("MatMul", ["p", "now.v"], ["o"]),
              node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]), node("Reshape", ["ot", "join"], ["y"])]
    cache = [1, heads, past, size]
    return model(nodes, [value("x", [1, 1, width]), value("past.k", cache), value("past.v", cache)],
                 [value("y", [1, 1, width]), value("now.k", [1, heads, past + 1, size]),
                  value("now.v", [1, heads, past + 1, size])],
                 [random_tensor("wqkv", [width, 3 * width], 1, 0.3),
                  tensor("split", [4], [1, 1, heads, size], INT64), tensor("join", [3], [1, 1, width], INT64)])


def recurrent():
    """A GRU's state, between inputs and outputs of the caller's."""
    return model([node("GRU", ["x", "w", "r", "", "", "h"], ["ys", "hn"], hidden_size=8),
                  node("Squeeze", ["ys", "axes"], ["y"])],
                 [value("h", [1, 1, 8]), value("x", [2, 1, 6])], [value("hn", [1, 1, 8]), value("y", [2, 1, 8])],
                 [random_tensor("w", [1, 24, 6], 1, 0.4), random_tensor("r", [1, 24, 8], 2, 0.4),
                  tensor("axes", [1], [1], INT64)])


def audio():
    """A causal convolution over the last samples: the window is the outermost axis, and moves by a whole block."""
    return model([node("Concat", ["tail", "x"], ["all"], axis=0), node("Transpose", ["all"], ["t"], perm=[1, 0]),
                  node("Reshape", ["t", "row"], ["r"]), node("Conv", ["r", "w"], ["c"]), node("Relu", ["c"], ["y"])],
                 [value("x", [4, 2]), value("tail", [9, 2])], [value("y", [1, 3, 9]), value("all", [13, 2])],
                 [random_tensor("w", [3, 2, 5], 1, 0.4), tensor("row", [3], [1, 2, 13], INT64)])


def slots():
    """A cache of fixed size that a run writes one row of, at a place that it is told."""
    return model([node("ScatterElements", ["cache", "at", "x"], ["next"], axis=0),
                  node("ReduceSum", ["next", "axes"], ["y"], keepdims=0)],
                 [value("x", [1, 5]), value("cache", [6, 5]), value("at", [1, 5], INT64)],
                 [value("y", [5]), value("next", [6, 5])], [tensor("axes", [1], [0], INT64)])


def sum_and_change():
    """The old state is read after the new one could have been written, and the new one is an output twice."""
    return model([node("Add", ["s", "x"], ["n"]), node("Identity", ["n"], ["copy"]),
                  node("MatMul", ["n", "w"], ["m"]), node("Add", ["m", "s"], ["y"])],
                 [value("x", [1, 7]), value("s", [1, 7])], [value("y", [1, 7]), value("n", [1, 7]), value("copy", [1, 7])],
                 [random_tensor("w", [7, 7], 3, 0.4)])


def twice_grown():
    """A window whose output is another one, too, has no room of its own."""
    return model([node("Concat", ["past", "x"], ["now"], axis=1), node("Identity", ["now"], ["seen"]),
                  node("ReduceMax", ["now"], ["y"], axes=[1], keepdims=0)],
                 [value("x", [3, 1]), value("past", [3, 6])],
                 [value("y", [3]), value("now", [3, 7]), value("seen", [3, 7])])


# Name, model, --state words, inputs of the caller as (name, elements, form), where the state's output begins in the
# tensor of the caller's loop, and the kind that --json says.
CASES = {
    "attention_step": (attention_step, ["past.*=now.*"], "moves"),
    "recurrent": (recurrent, ["h=hn"], None),
    "audio": (audio, ["tail=all"], "moves"),
    "slots": (slots, ["cache=next"], "place"),
    "sum_and_change": (sum_and_change, ["s=n"], "turns"),
    "twice_grown": (twice_grown, ["past=now"], None),
}


def dims_of(tensors):
    return {t["name"]: t["shape"] for t in tensors}


def elements(shape):
    count = 1
    for d in shape:
        count *= d
    return count


def kept(values, shape, out_shape):
    """What the next run reads of an output: its end along the axis where it is longer."""
    if shape == out_shape:
        return values
    axis = next(i for i in range(len(shape)) if shape[i] != out_shape[i])
    inner = elements(shape[axis + 1:])
    whole, part = out_shape[axis] * inner, shape[axis] * inner
    return [v for o in range(elements(shape[:axis])) for v in values[(o + 1) * whole - part:(o + 1) * whole]]


class Case:
    def __init__(self, name):
        make, self.words, self.kind = CASES[name]
        self.path = FOLDER / f"{name}.onnx"
        self.path.write_bytes(make())
        self.name = name
        self.options = [w for word in self.words for w in ("--state", word)]
        pack(self.path, FOLDER / f"{name}.plain")
        self.facts = json.loads(run(FOLDER / f"{name}.plain", "--info=json").stdout)["entries"][0]
        self.program = FOLDER / name
        pack(self.path, self.program, *self.options)
        self.kept = json.loads(run(self.program, "--info=json").stdout)["entries"][0]
        self.states = [(s["input"], s["output"]) for s in self.kept["states"]]

    def record(self, step):
        """The caller's inputs of a run, one list for each, in the program's order."""
        rng = random.Random(step)
        return [[step % 6] * elements(t["shape"]) if t["dtype"] == "i64" else
                [rng.uniform(-1, 1) for _ in range(elements(t["shape"]))] for t in self.kept["inputs"]]

    def raw(self, records):
        forms = ["q" if t["dtype"] == "i64" else "f" for t in self.kept["inputs"]]
        return b"".join(struct.pack(f"<{len(v)}{f}", *v) for r in records for v, f in zip(r, forms))

    def answer_bytes(self):
        return sum(4 * elements(t["shape"]) for t in self.kept["outputs"])

    def carried(self, steps, first=None):
        """The answers of a program without states whose caller carries them."""
        before = {i: (first or {}).get(i, [0.0] * elements(dims_of(self.facts["inputs"])[i])) for i, _ in self.states}
        shapes, out_shapes = dims_of(self.facts["inputs"]), dims_of(self.facts["outputs"])
        own = [t["name"] for t in self.kept["inputs"]]
        answers = b""
        for step in range(steps):
            given = dict(zip(own, self.record(step)))
            record = b"".join(
                struct.pack(f"<{elements(t['shape'])}{'q' if t['dtype'] == 'i64' else 'f'}",
                            *(before[t["name"]] if t["name"] in before else given[t["name"]]))
                for t in self.facts["inputs"])
            done = run_stream(FOLDER / f"{self.name}.plain", record)
            at, outs = 0, {}
            for t in self.facts["outputs"]:
                size = 4 * elements(t["shape"])
                outs[t["name"]] = done[at:at + size]
                at += size
            for i, o in self.states:
                values = struct.unpack(f"<{len(outs[o]) // 4}f", outs[o])
                before[i] = kept(list(values), shapes[i], out_shapes[o])
            answers += b"".join(outs[t["name"]] for t in self.kept["outputs"])
        return answers


def run_stream(program, records, *words):
    done = subprocess.run([str(program), "--stream", *words], input=records, capture_output=True, timeout=60)
    check(done.returncode == 0, f"{program.name} {' '.join(words)}: {done.stderr.decode()}") if done.returncode else None
    return done.stdout


def in_a_loop(case):
    """All runs in one process give the bits of a caller's loop; --reset-state those of first runs."""
    wanted = case.carried(STEPS)
    records = case.raw(case.record(step) for step in range(STEPS))
    check(run_stream(case.program, records) == wanted, f"{case.name}: {STEPS} runs have the bits of a caller's loop")
    size = case.answer_bytes()
    check(len({wanted[i * size:(i + 1) * size] for i in range(STEPS)}) > 1, f"{case.name}: runs differ from each other")
    same = case.raw([case.record(0)] * 3)
    check(run_stream(case.program, same, "--reset-state") == wanted[:size] * 3, f"{case.name}: forgotten, each is a first run")
    if case.kind:
        kinds = {s["kind"] for s in case.kept["states"]}
        check(kinds == {case.kind}, f"{case.name}: its states are {kinds}, expected {case.kind}")
    return wanted


def as_library(case, wanted):
    library = FOLDER / f"lib{case.name}.so"
    pack(case.path, library, "--name", case.name, *case.options)
    calls_of(case, ctypes.CDLL(str(library)), wanted, "library", equal)


def as_source(case, wanted, compiler):
    source = FOLDER / f"{case.name}.cpp"
    pack(case.path, source, "--name", case.name, *case.options)
    built = FOLDER / f"{case.name}_source.so"
    run(compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", source, "-o", built)
    calls_of(case, ctypes.CDLL(str(built)), wanted, "source", near)


def equal(got, wanted):
    return got == wanted


def near(got, wanted):
    """Another compiler's code for another vector length adds in another order."""
    a, b = (struct.unpack(f"<{len(x) // 4}f", x) for x in (got, wanted))
    return len(a) == len(b) and all(abs(x - y) <= 1e-5 * max(1, abs(y)) for x, y in zip(a, b))


def calls_of(case, library, wanted, what, same):
    """Several arenas at a time, each with states of its own; a reset one begins anew."""
    size = getattr(library, f"{case.name}_arena_bytes")
    size.restype = ctypes.c_size_t
    call, reset = getattr(library, f"{case.name}_run"), getattr(library, f"{case.name}_reset")
    memory = [ctypes.create_string_buffer(b"\xa5" * (size() + 64), size() + 64) for _ in range(2)]
    arenas = [ctypes.c_void_p(ctypes.addressof(m) + 63 & ~63) for m in memory]
    outputs = [ctypes.create_string_buffer(4 * elements(t["shape"])) for t in case.kept["outputs"]]

    def step(arena, number):
        record = [struct.pack(f"<{len(v)}{'q' if t['dtype'] == 'i64' else 'f'}", *v)
                  for v, t in zip(case.record(number), case.kept["inputs"])]
        buffers = [ctypes.create_string_buffer(r, len(r)) for r in record]
        pointers = (ctypes.c_void_p * len(buffers))(*[ctypes.addressof(b) for b in buffers])
        results = (ctypes.c_void_p * len(outputs))(*[ctypes.addressof(o) for o in outputs])
        status = call(arena, pointers, results)
        check(status == 0, f"{case.name}: {what} returns {status}") if status else None
        return b"".join(o.raw for o in outputs)

    for arena in arenas:
        reset(arena)
    for _ in range(2):
        answers = [[], []]
        for number in range(STEPS):
            for arena, to in zip(arenas, answers):
                to.append(step(arena, number))
        check(all(same(b"".join(a), wanted) for a in answers), f"{case.name}: {what}, two arenas in turns")
        for arena in arenas:
            reset(arena)


def as_archive(case):
    """A static library and its C++ wrapper, in a program that runs, resets and runs again."""
    wanted = b"".join(case.carried(3)[i * case.answer_bytes():][:4] for i in range(3))
    library = FOLDER / f"lib{case.name}.a"
    pack(case.path, library, "--name", case.name, *case.options)
    inputs = [f"{{{', '.join(map(str, values))}}}" for step in range(3) for values in case.record(step)]
    text = f"""#include "lib{case.name}.hpp"
#include <cstdio>
alignas({case.name}::arena_align) static unsigned char arena[{case.name}::arena_bytes];
static const float inputs[3][{elements(case.kept["inputs"][0]["shape"])}] = {{{', '.join(inputs)}}};
static float output[{case.answer_bytes() // 4}];
int main() {{
  for (int round = 0; round < 2; round++) {{
    {case.name}::reset(arena);
    for (const auto& input : inputs) {{
      const void* in[] = {{input}};
      void* out[] = {{output}};
      if ({case.name}::run(arena, sizeof arena, in, out) != 0) return 1;
      std::printf("%.9g\\n", double(output[0]));
    }}
  }}
}}
"""
    (FOLDER / "archive.cpp").write_text(text)
    run("c++", "-std=c++20", "-I", FOLDER, FOLDER / "archive.cpp", library, "-o", FOLDER / "archive")
    said = [float(line) for line in run(FOLDER / "archive").stdout.split()]
    check(said[:3] == said[3:] and near(struct.pack("<3f", *said[:3]), wanted), f"{case.name}: static library, {said}")


def primed(case):
    """A first state that is given."""
    name = case.states[0][0]
    shape = dims_of(case.facts["inputs"])[name]
    values = [i / 50 - 1 for i in range(elements(shape))]
    wanted = case.carried(3, {name: values})
    file = FOLDER / f"{case.name}.first.raw"
    file.write_bytes(struct.pack(f"<{len(values)}f", *values))
    records = case.raw(case.record(step) for step in range(3))
    got = run_stream(case.program, records, "--input", f"{name}=@{file}")
    check(got == wanted, f"{case.name}: the first run reads the state that is given")


def told(name, text, *words, expect=2):
    done = run(PACKER, FOLDER / f"{name}.onnx", "-o", FOLDER / "none", *words, expect=expect)
    said = done.stderr.decode()
    check(text in said, f"{' '.join(words)}: {said.strip().splitlines()[0]}")
    check(not (FOLDER / "none").exists(), "nothing is written")


def faults():
    told("recurrent", "no INPUT=OUTPUT of the model", "--state", "h=nothing")
    told("recurrent", "no INPUT=OUTPUT of the model", "--state", "h")
    told("recurrent", "is a state twice", "--state", "h=hn", "--state", "h=hn")
    told("recurrent", "input 'x' is float32[2,1,6] and output 'hn' float32[1,1,8]", "--state", "x=hn")
    told("recurrent", "leave out --device", "--state", "h=hn", "--device", "cuda")
    told("recurrent", "one set of shapes", "--state", "h=hn", "--shape", "x=2x1x6", "--shape", "x=4x1x6")
    told("recurrent", "--bisect", "--state", "h=hn", "--bisect")


def summary(case):
    info = run(case.program, "--info").stdout.decode()
    for i, o in case.states:
        check(any(i in line and o in line for line in info.splitlines() if line.startswith("state")), f"--info has {i}")
    bytes_of = json.loads(run(case.program, "--info=json").stdout)["bytes"]
    check(bytes_of["states"] > 0 and bytes_of["arena"] >= bytes_of["states"], "states are part of the arena")


def verified():
    """Random data: the states of a first run are zeros."""
    for name, target in (("attention_step", []), ("recurrent", []), ("attention_step", ["--emit", "static"])):
        done = run(PACKER, FOLDER / f"{name}.onnx", "-o", FOLDER / "verified.a" if target else FOLDER / "verified",
                   "--verify", "random", *LEVEL, *Case.options_of(name), *target)
        check(b"max abs" in done.stderr, f"{name} is verified {' '.join(target)}")


Case.options_of = staticmethod(lambda name: [w for word in CASES[name][1] for w in ("--state", word)])


def main():
    need("c++")
    for name in CASES:
        case = Case(name)
        wanted = in_a_loop(case)
        as_library(case, wanted)
        as_source(case, wanted, "c++")
        primed(case)
        summary(case)
    as_archive(Case("recurrent"))
    faults()
    verified()


main()
