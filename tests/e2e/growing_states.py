#!/usr/bin/env python3
"""--state with --dim: caches that grow by the rows of each run. A loop of runs gives the bits of the same program without
states whose caller carries the caches, in the program and the library, for one bound and for several sets of kernels; `--long` has several sets for prompts, too."""
import ctypes
import json
import pathlib
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import INT64, model, node, random_tensor, tensor, value
from packing import LEVEL, LONG, PACKER, check, pack, run, work_folder, write_npy

FOLDER = work_folder("growing_states")
LAYERS, HEADS, SIZE = 2, 2, 4
WIDTH = HEADS * SIZE
MOST = 40  # rows that a run may begin with
LIMIT = -8  # of the library
NAMES = [f"{part}.{layer}" for layer in range(LAYERS) for part in ("key", "value")]


def decoder():
    """Two layers of two heads, as exporters write them: what is past grows along the third axis, and a mask of ones and zeros
    says which rows count."""
    nodes = [node("Cast", ["mask"], ["seen"], to=1), node("Sub", ["one", "seen"], ["unseen"]),
             node("Mul", ["unseen", "lowest"], ["bias2"]), node("Unsqueeze", ["bias2", "axes"], ["bias"])]
    tensors = [tensor("one", [1], [1.0]), tensor("lowest", [1], [-1e4]), tensor("axes", [2], [1, 2], INT64),
               tensor("split", [4], [1, -1, HEADS, SIZE], INT64), tensor("join", [3], [1, -1, WIDTH], INT64)]
    x = "x"
    for layer in range(LAYERS):
        def at(name, layer=layer):
            return f"{name}_{layer}"
        tensors += [random_tensor(at(f"w{part}"), [WIDTH, WIDTH], 10 * layer + i, 0.4) for i, part in enumerate("qkvo")]
        for part in "qkv":
            nodes += [node("MatMul", [x, at(f"w{part}")], [at(part)]), node("Reshape", [at(part), "split"], [at(f"{part}4")]),
                      node("Transpose", [at(f"{part}4")], [at(f"{part}h")], perm=[0, 2, 1, 3])]
        nodes += [node("Concat", [f"past.key.{layer}", at("kh")], [f"present.key.{layer}"], axis=2),
                  node("Concat", [f"past.value.{layer}", at("vh")], [f"present.value.{layer}"], axis=2),
                  node("Transpose", [f"present.key.{layer}"], [at("kt")], perm=[0, 1, 3, 2]),
                  node("MatMul", [at("qh"), at("kt")], [at("s")]), node("Add", [at("s"), "bias"], [at("sb")]),
                  node("Softmax", [at("sb")], [at("p")], axis=-1), node("MatMul", [at("p"), f"present.value.{layer}"], [at("m")]),
                  node("Transpose", [at("m")], [at("mt")], perm=[0, 2, 1, 3]), node("Reshape", [at("mt"), "join"], [at("j")]),
                  node("MatMul", [at("j"), at("wo")], [at("o")]), node("Add", [x, at("o")], [at("y")])]
        x = at("y")
    nodes.append(node("Relu", [x], ["y"]))
    return model(nodes, [value("x", [1, "new", WIDTH]), *(value(f"past.{n}", [1, HEADS, "past", SIZE]) for n in NAMES),
                         value("mask", [1, "past + new"], INT64)],
                 [value("y", [1, "new", WIDTH]), *(value(f"present.{n}", [1, HEADS, "past + new", SIZE]) for n in NAMES)], tensors)


MODEL = FOLDER / "decoder.onnx"
STATES = ["--state", "past.*=present.*"]


def token(step, new=1):
    rng = random.Random(step)
    return [rng.uniform(-1, 1) for _ in range(new * WIDTH)]


def mask(rows, step):
    """The row before the last is not seen every third time."""
    return [0 if step % 3 == 2 and r == rows - 2 else 1 for r in range(rows)]


def raw(values, form="f"):
    return struct.pack(f"<{len(values)}{form}", *values)


def wanted(steps, new=1):
    """The evaluation of the model as it is written, in doubles."""
    caches = {n: [[] for _ in range(HEADS)] for n in NAMES}
    weights = {(part, layer): weight(10 * layer + i) for layer in range(LAYERS) for i, part in enumerate("qkvo")}
    answers = []
    for step in range(steps):
        flat = token(step, new)
        rows = [flat[i * WIDTH:(i + 1) * WIDTH] for i in range(new)]
        count = (step + 1) * new
        seen = mask(count, step)
        for layer in range(LAYERS):
            q, k, v = ([times(r, weights[part, layer]) for r in rows] for part in "qkv")
            for h in range(HEADS):
                caches[f"key.{layer}"][h] += [r[h * SIZE:(h + 1) * SIZE] for r in k]
                caches[f"value.{layer}"][h] += [r[h * SIZE:(h + 1) * SIZE] for r in v]
            mixed = [[0.0] * WIDTH for _ in rows]
            for i in range(new):
                for h in range(HEADS):
                    keys, values = caches[f"key.{layer}"][h], caches[f"value.{layer}"][h]
                    scores = [sum(a * b for a, b in zip(q[i][h * SIZE:(h + 1) * SIZE], key)) - 1e4 * (1 - s)
                              for key, s in zip(keys, seen)]
                    most = max(scores)
                    weights_of = [2.718281828459045 ** (s - most) for s in scores]
                    total = sum(weights_of)
                    for d in range(SIZE):
                        mixed[i][h * SIZE + d] = sum(w * row[d] for w, row in zip(weights_of, values)) / total
            rows = [[a + b for a, b in zip(r, times(m, weights["o", layer]))] for r, m in zip(rows, mixed)]
        answers += [max(value, 0) for r in rows for value in r]
    return answers


def weight(seed):
    """What random_tensor made."""
    raw_data = random_tensor("w", [WIDTH, WIDTH], seed, 0.4)
    values = struct.unpack(f"<{WIDTH * WIDTH}f", raw_data[-4 * WIDTH * WIDTH:])
    return [values[i * WIDTH:(i + 1) * WIDTH] for i in range(WIDTH)]


def times(row, matrix):
    return [sum(a * matrix[i][j] for i, a in enumerate(row)) for j in range(WIDTH)]


def near(got, want):
    return len(got) == len(want) and all(abs(a - b) <= 1e-5 + 1e-4 * abs(b) for a, b in zip(got, want))


def floats(data):
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def stream(program, steps, *words, expect=0):
    records = b"".join(raw(token(s)) + raw(mask(s + 1, s), "q") for s in range(steps))
    done = subprocess.run([str(program), "--stream", *words], input=records, capture_output=True, timeout=120)
    if done.returncode != expect:
        check(False, f"--stream of {steps} is exit {done.returncode}: {done.stderr.decode()}")
    return done


class Library:
    """A packed library, called with the shapes of its header."""

    def __init__(self, name, *options):
        path = FOLDER / f"lib{name}.so"
        pack(MODEL, path, "--name", name, *options)
        self.name, self.so = name, ctypes.CDLL(str(path))
        text = (FOLDER / f"lib{name}.h").read_text()
        self.numbers = {k: int(v) for k, v in re.findall(rf"#define {name.upper()}_(\w+) \(?(-?\d+)", text)}
        self.header = text
        size = getattr(self.so, f"{name}_arena_bytes")
        size.restype = ctypes.c_size_t
        self.memory = ctypes.create_string_buffer(b"\xa5" * (size() + 64), size() + 64)
        self.arena = ctypes.c_void_p(ctypes.addressof(self.memory) + 63 & ~63)

    def inputs(self):
        return re.findall(r"_INPUT_\d+_NAME \"([^\"]*)\"", self.header)

    def outputs(self):
        return re.findall(r"_OUTPUT_\d+_NAME \"([^\"]*)\"", self.header)

    def call(self, given):
        """`given`: by name the bytes. The status, and the bytes of outputs by name."""
        ins = [ctypes.create_string_buffer(given[n], max(len(given[n]), self.numbers[f"INPUT_{i}_BYTES"]))
               for i, n in enumerate(self.inputs())]
        outs = [ctypes.create_string_buffer(self.numbers[f"OUTPUT_{i}_BYTES"] * 2) for i in range(len(self.outputs()))]
        pointers = (ctypes.c_void_p * len(ins))(*[ctypes.addressof(b) for b in ins])
        results = (ctypes.c_void_p * len(outs))(*[ctypes.addressof(b) for b in outs])
        status = getattr(self.so, f"{self.name}_run")(self.arena, pointers, results)
        return status, {n: o.raw for n, o in zip(self.outputs(), outs)}

    def reset(self):
        getattr(self.so, f"{self.name}_reset")(self.arena)


def carried(plain, steps):
    """The answers of a library without states: the caller carries the caches, whose rows lie as its bound says."""
    caches = {n: b"" for n in NAMES}
    answers = b""
    room = 4 * SIZE
    bound = {n: plain.numbers[f"INPUT_{plain.inputs().index('past.' + n)}_BYTES"] // HEADS for n in NAMES}
    for step in range(steps):
        given = {"x": raw(token(step)), "mask": raw(mask(step + 1, step), "q"), "mask.shape": raw([1, step + 1], "q")}
        for n in NAMES:
            rows = caches[n]
            size = step * room
            given[f"past.{n}"] = b"".join(rows[h * size:(h + 1) * size].ljust(bound[n], b"\0") for h in range(HEADS))
            given[f"past.{n}.shape"] = raw([1, HEADS, step, SIZE], "q")
        status, out = plain.call(given)
        check(status == 0, f"without states step {step} is {status}") if status else None
        answers += out["y"][:4 * WIDTH]
        for n in NAMES:
            whole = plain.numbers[f"OUTPUT_{plain.outputs().index('present.' + n)}_BYTES"] // HEADS
            caches[n] = b"".join(out[f"present.{n}"][h * whole:h * whole + (step + 1) * room] for h in range(HEADS))
    return answers


def one_token():
    """A row a run, in one set of kernels and in several."""
    expected = wanted(MOST + 1)
    bits = None
    for name, past in (("exact", f"past=0..{MOST}"), ("steps", f"past=0..{MOST}/16")):
        options = ["--shape", "new=1", "--dim", past]
        program = FOLDER / name
        pack(MODEL, program, *STATES, *options)
        got = stream(program, MOST + 1).stdout
        check(near(floats(got), expected), f"{name}: {MOST + 1} runs have the numbers of the model")
        kept = json.loads(run(program, "--info=json").stdout)["entries"][0]["states"]
        check({s["kind"] for s in kept} == {"place"} and len(kept) == 2 * LAYERS, f"{name}: caches stay in their place")
        check(all(s["grows_along"] == 2 and s["copied_bytes"] == 0 for s in kept), f"{name}: nothing of them is copied")
        full = stream(program, MOST + 2, expect=11)
        check(full.stdout == got, f"{name}: what fits is answered before")
        told = full.stderr.decode()
        check("is full: it holds 41 rows, and a run begins with at most 40" in told, f"{name}: a full state is told: {told}")
        again = stream(program, 3, expect=0).stdout
        check(again == got[:len(again)], f"{name}: another process begins anew")
        if name == "exact":
            bits = carried(Library("plain", *options), MOST + 1)
            check(got == bits, f"{name}: the bits of a caller that carries the caches")
        library = Library(f"{name}_kept", *STATES, *options)
        as_library(library, got, name)
    return bits


def step_of(library, step):
    return library.call({"x": raw(token(step)), "mask": raw(mask(step + 1, step), "q"), "mask.shape": raw([1, step + 1], "q")})


def as_library(library, wanted_bytes, name):
    check(library.inputs() == ["x", "mask", "mask.shape"], f"{name}: the caller gives {library.inputs()}")
    for turn in range(2):
        got = b""
        for step in range(MOST + 1):
            status, out = step_of(library, step)
            check(status == 0, f"{name}: library, step {step} is {status}") if status else None
            got += out["y"][:4 * WIDTH]
        check(got == wanted_bytes, f"{name}: library, turn {turn}")
        status, _ = step_of(library, MOST + 1)
        check(status == LIMIT, f"{name}: a full state is LIMIT, {status}")
        library.reset()


def several_tokens():
    """Rows of a prompt at once, then one a run: as many rows as a run says are added, whatever the bound is."""
    new = 3
    expected = wanted(4, new)
    for name, dims in (("prompt", [f"new=1..{new + 2}", f"past=0..{MOST}"]),
                       ("prompts", [f"new=1..{new + 2}/4", f"past=0..{MOST}/20"]))[:2 if LONG else 1]:
        program = FOLDER / name
        pack(MODEL, program, *STATES, *(word for d in dims for word in ("--dim", d)))
        lines = b"".join(json.dumps({"x": [[token(s, new)[i * WIDTH:(i + 1) * WIDTH] for i in range(new)]],
                                     "mask": [mask((s + 1) * new, s)]}).encode() + b"\n" for s in range(4))
        done = subprocess.run([str(program), "--stream=jsonl"], input=lines, capture_output=True, timeout=120)
        check(done.returncode == 0, f"{name}: lines are answered: {done.stderr.decode()}{done.stdout.decode()[:300]}")
        answers = [json.loads(line)["y"][0] for line in done.stdout.splitlines()]
        check(all(len(a) == new for a in answers), f"{name}: an answer for each of {new} tokens")
        check(near([v for a in answers for row in a for v in row], expected), f"{name}: the numbers of the model")
        kinds = {s["kind"] for s in json.loads(run(program, "--info=json").stdout)["entries"][0]["states"]}
        check(kinds == {"place"}, f"{name}: caches stay in their place")


def begun():
    """A first run that is given rows goes on from them; --bench repeats one step."""
    program = FOLDER / "exact"
    rows = 7
    words = []
    for n in NAMES:
        rng = random.Random(n)
        write_npy(FOLDER / f"{n}.npy", [1, HEADS, rows, SIZE], [rng.gauss(0, 1) for _ in range(HEADS * rows * SIZE)])
        words += ["--input", f"past.{n}=@{FOLDER / n}.npy"]
    write_npy(FOLDER / "x.npy", [1, 1, WIDTH], token(0))
    seen = f"mask=1x{rows + 1}xi64=[{' '.join('1' * (rows + 1))}]"
    given = [*words, "--input", f"x=@{FOLDER / 'x.npy'}", "--input", seen]
    pack(MODEL, FOLDER / "alone", "--shape", "new=1", "--shape", f"past={rows}")
    for file, one in (("got", program), ("other", FOLDER / "steps"), ("want", FOLDER / "alone")):
        run(one, *given, "--output", f"y=@{FOLDER / file}.raw")
    want = floats((FOLDER / "want.raw").read_bytes())
    check(near(floats((FOLDER / "got.raw").read_bytes()), want), "a first run goes on from rows that are given")
    check(near(floats((FOLDER / "other.raw").read_bytes()), want), "in the entry that has room for them, too")
    told = run(program, *given[:-1], f"mask=1x{rows}xi64=[{' '.join('1' * rows)}]", expect=11).stderr.decode()
    check("do not agree on a size" in told, "a mask of another size is refused")
    run(program, "--bench", "--min-time", "0.02")
    run(FOLDER / "steps", "--bench", "--min-time", "0.02")
    run(FOLDER / "steps", "--bench", "--reset-state", "--min-time", "0.02")
    lines = [line for line in run(program, "--info").stdout.decode().splitlines() if line.startswith("state")]
    check(len(lines) == 2 * LAYERS and "grows along axis 2; a run begins with at most 40" in lines[0], f"--info tells: {lines[0]}")


def told(text, *words, expect=2):
    said = run(PACKER, MODEL, "-o", FOLDER / "none", *words, expect=expect).stderr.decode()
    check(text in said, f"{' '.join(words)}: {said.strip().splitlines()[0]}")
    check(not (FOLDER / "none").exists(), "nothing is written")


def faults():
    one = ["--shape", "new=1"]
    told("so the range of 'past' begins with 0 (--dim past=0..9)", *STATES, *one, "--dim", "past=1..9")
    told("leave out --device", *STATES, *one, "--dim", "past=0..9", "--device", "cuda")
    told("fixed sizes", *STATES, *one, "--dim", "past=0..9", "--emit", "source")
    told("a state grows along one dimension", *STATES, *one, "--dim", "past.key.0[2]=0..9", "--dim", "past.key.0[3]=0..4",
         "--dim", "past=0..9")


def verified():
    done = run(PACKER, MODEL, "-o", FOLDER / "verified", "--verify", "random", *LEVEL, *STATES, "--shape", "new=1", "--dim", "past=0..9")
    check(b"max abs" in done.stderr, "--verify random runs a first step")


def main():
    MODEL.write_bytes(decoder())
    one_token()
    several_tokens()
    begun()
    faults()
    verified()


main()
