#!/usr/bin/env python3
"""Graphs that NNSmith draws, against ONNX Runtime.

    nnsmith_cases.py [--seeds 40] [--first 0] [--every 2] [--jobs 2] [--seconds N] [--filter REGEX]

NNSmith asks an SMT solver for graphs whose shapes and types fit, of 71 operators of PyTorch and seven element types, and
exports them to ONNX. Each seed is imported and evaluated twice, as it is and simplified; every Nth is packed for this
machine and run. All are compared with ONNX Runtime as run_units.py compares (which see for tolerances):

    agree      every output agrees
    second     ours is what PyTorch answers, from which the graph was exported, or what onnx's own reference evaluator does, and
               ONNX Runtime is alone
    nearer     each element agrees with one of them, or the elements that do not are off the model in double precision by at most
               twice what ONNX Runtime's are: the graph makes much of a rounding
    unstable   what is left changes from ONNX Runtime to the reference evaluator, or in one of them when inputs and weights change
               by four units in the last place of the narrowest type
    listed     in differs_nnsmith.txt, by the model's SHA-256, with the reason: a rounding decides; never counted as right
    wrong      anything else                                        (never acceptable)
    failed     a crash, no end, an exit code for a bug of ours       (never acceptable)
    refused    exit 3, with the reasons
    too large  for the evaluator, in 6 GB and 30 s: such a graph is packed in any case
    not drawn  NNSmith or PyTorch's exporter gave no graph

Where ONNX Runtime refuses a graph, which it does for element types that it lacks, PyTorch's answer stands for its own, in the type that
the exported graph declares.

NNSmith needs PyTorch and old versions of numpy and onnx: it has a venv of its own, build/nnsmith, or the python that
SVOD_NNSMITH_PYTHON names. Without one, or without ONNX Runtime, the test says so and is skipped. To make it:

    python3 -m venv build/nnsmith
    build/nnsmith/bin/pip install nnsmith==0.1.0 z3-solver==5.4.1.0 torch==2.1.2 onnx==1.16.2 numpy==1.26.4
"""
import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import run_units as units

if not units.oracle.enter(units.base.BUILD):
    print("skipped: this python has no onnxruntime, onnx and numpy")
    sys.exit(77)
import packed_case

base, np, onnx = units.base, units.np, units.onnx
sys.path.insert(0, str(units.oracle.HERE.parent / "bench"))
import accuracy
from onnx.reference import ReferenceEvaluator

WORK = base.WORK / "nnsmith"
TOOL = base.BUILD / "tests" / "eval_model"
PYTHON = pathlib.Path(os.environ.get("SVOD_NNSMITH_PYTHON", base.BUILD / "nnsmith" / "bin" / "python"))
RESULTS = ["agree", "second", "nearer", "unstable", "listed", "wrong", "failed", "refused", "too large", "not drawn"]
MOST_RATIO, SHAKEN = 2, 16
# Four units in the last place, as far as functions may be off.
ROUNDING = {"FLOAT16": 2.0**-8, "BFLOAT16": 2.0**-5, "": 2.0**-21}
BATCH, SECONDS, BATCH_SECONDS = 50, 30, 900
FORMS = {"evaluated": [], "simplified": ["--simplify"]}


def quiet(command, seconds=BATCH_SECONDS):
    return subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)


def arrays_of(folder):
    files = sorted(folder.glob("output_*.pb"), key=lambda p: int(p.stem.rsplit("_", 1)[1]))
    return [units.read_value(f)[0] for f in files]


def given(folder):
    data = folder / "test_data_set_0"
    return [onnx.TensorProto.FromString((data / f"input_{i}.pb").read_bytes())
            for i in range(len(list(data.glob("input_*.pb"))))]


def declared(folder, arrays):
    """PyTorch's arrays in the types that the graph declares: the exporter casts to narrower ones."""
    outputs = onnx.load(folder / "model.onnx", load_external_data=False).graph.output
    kinds = [onnx.helper.tensor_dtype_to_np_dtype(o.type.tensor_type.elem_type) for o in outputs]
    return [a.astype(kind, copy=False) for a, kind in zip(arrays, kinds)]


def answer(folder):
    """What ONNX Runtime answers, beside the inputs; where it refuses the model, what PyTorch did."""
    make, data = units.unit_reference, folder / "test_data_set_0"
    session, error = make.open_session(folder / "model.onnx")
    ran, failure = make.run_once(session, given(folder)) if session else (None, error)
    if ran:
        make.write(data, "output", [make.as_proto(n, a) for n, a in zip(*ran)])
        return
    (folder / "refusal.txt").write_text(failure)
    make.write(data, "output", [make.as_proto("", a) for a in declared(folder, arrays_of(folder / "torch"))])


def second_answer(folder):
    """What onnx's reference evaluator answers, and the least and the largest that come of changes by a rounding."""
    (folder / "second").mkdir(exist_ok=True)
    model = onnx.load(folder / "model.onnx")
    feeds = {t.name: onnx.numpy_helper.to_array(t) for t in given(folder)}
    shaken = []
    if not (folder / "refusal.txt").exists():
        make = units.unit_reference
        write_shaken(folder, model, feeds, shaken,
                     lambda m, f: make.session_of(m.SerializeToString(), make.LEVELS[0]).run(None, f))
    found = ReferenceEvaluator(model).run(None, feeds)
    units.unit_reference.write(folder / "second", "output", [onnx.numpy_helper.from_array(np.asarray(a)) for a in found])
    write_shaken(folder, model, feeds, shaken, lambda m, f: ReferenceEvaluator(m).run(None, f))


def write_shaken(folder, model, feeds, found, run):
    """Adds to `found` what `run` answers, and writes the least and the largest of all."""
    numbers = np.random.default_rng(int(folder.name))
    rounding = ROUNDING[units.unit_reference.narrowest(model)]

    def shaken(array):
        if array.dtype.kind != "f":
            return array
        return np.asarray(array * (1 + rounding * numbers.uniform(-1, 1, array.shape))).astype(array.dtype)

    for k in range(SHAKEN):
        changed = onnx.ModelProto.FromString(model.SerializeToString())
        for tensor in changed.graph.initializer if k else []:
            tensor.CopyFrom(onnx.numpy_helper.from_array(shaken(onnx.numpy_helper.to_array(tensor)), tensor.name))
        found.append(run(changed, {name: shaken(array) if k else array for name, array in feeds.items()}))
    for i, arrays in enumerate(zip(*found)):
        np.save(folder / "second" / f"least_{i}.npy", np.min(arrays, axis=0))
        np.save(folder / "second" / f"most_{i}.npy", np.max(arrays, axis=0))


class Case:
    """A graph that was drawn, and the answers that ours are compared with."""

    def __init__(self, seed):
        self.name, self.folder = str(seed), WORK / str(seed)
        self.expected = arrays_of(self.folder / "test_data_set_0")
        model = onnx.load(self.folder / "model.onnx", load_external_data=False)
        self.reference = {"ops": [n.op_type for n in model.graph.node], "narrow": units.unit_reference.narrowest(model)}
        self.known_others = None

    def differs(self, ours, theirs):
        if len(ours) != len(theirs):
            return f"{len(ours)} outputs for {len(theirs)}"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            if why := units.differs(a, b, self.reference):
                return f"output {i}: {why}"
        return ""

    def others(self):
        """The answers of PyTorch, of the reference evaluator, and of the model in double precision, as far as there are such."""
        if self.known_others is None:
            if not (self.folder / "second").exists():
                try:
                    quiet([sys.executable, __file__, "--second", self.name], seconds=2 * SECONDS)
                except subprocess.TimeoutExpired:
                    pass  # what it has written by then counts
            doubles, _ = accuracy.judge(base.BUILD, self.folder, WORK / "double" / self.name, SECONDS)
            exact = [d.reshape(e.shape) if d.size == e.size else d for d, e in zip(doubles or [], self.expected)]
            found = [declared(self.folder, arrays_of(self.folder / "torch")), arrays_of(self.folder / "second"), exact]
            self.known_others = [f if len(f) == len(self.expected) else None for f in found]
        return self.known_others

    def close(self, a, b):
        """Elementwise, by the tolerances of run_units.py."""
        if a.shape != b.shape:
            return np.zeros(a.shape, bool)
        if a.dtype.kind in "biu":
            return a == b
        epsilon = {"FLOAT16": 2.0**-10, "BFLOAT16": 2.0**-7}.get(self.reference["narrow"], 0)
        a, b = a.astype(np.float64), b.astype(np.float64)
        largest = np.max(np.abs(b), initial=0, where=np.isfinite(b))
        return np.isclose(a, b, rtol=max(1e-3, 8 * epsilon), atol=max(1e-5, 2 * epsilon * largest), equal_nan=True)

    def is_unstable(self, i, a):
        """Elementwise: whether output `i` changes by a rounding, and `a` is no further off than by so much again."""
        least, most = (self.folder / "second" / f"{kind}_{i}.npy" for kind in ("least", "most"))
        if not (least.exists() and most.exists()):
            return np.zeros(a.shape, bool)
        least, most = np.load(least), np.load(most)
        if a.dtype.kind in "biu":
            return least != most
        least, most, a = (x.astype(np.float64) for x in (least, most, a))
        with np.errstate(invalid="ignore"):
            spread = most - least
            return (a >= least - spread) & (a <= most + spread) & (spread > 0)

    def is_nearer(self, ours, unstable=False):
        judges = [j for j in self.others() if j is not None]
        exact = self.others()[2]
        for i, (a, b) in enumerate(zip(ours, self.expected)):
            if a.shape != b.shape or a.dtype != b.dtype:
                return False
            right = self.close(a, b)
            for judge in judges:
                right = right | self.close(a, judge[i])
            if unstable:
                right = right | self.is_unstable(i, a)
            if right.all():
                continue
            if exact is None or exact[i].shape != a.shape or a.dtype.kind != "f":
                return False
            ours, theirs = (accuracy.error(x[~right], exact[i][~right]) for x in (a, b))
            if ours is None or theirs is None or ours > MOST_RATIO * theirs:
                return False
        return True

    def verdict(self, ours):
        """(one of RESULTS, what differs)"""
        if not (why := self.differs(ours, self.expected)):
            return "agree", ""
        if any(other is not None and not self.differs(ours, other) for other in self.others()[:2]):
            return "second", why
        if self.is_nearer(ours):
            return "nearer", why
        if self.is_nearer(ours, unstable=True):
            return "unstable", why
        digest = hashlib.sha256((self.folder / "model.onnx").read_bytes()).hexdigest()[:16]
        return ("listed", why) if digest in base.listed("differs", "nnsmith") else ("wrong", f"{why} ({digest})")

    def read_raw(self, folder):
        """Outputs of eval_model, which are the bytes of the types that are expected."""
        out = []
        for i, expected in enumerate(self.expected):
            content = (folder / f"{i}.raw").read_bytes()
            if len(content) != expected.nbytes:
                return None
            out.append(np.frombuffer(content, expected.dtype).reshape(expected.shape))
        return out


def evaluate(cases, form):
    """{name: (result, detail)} of all cases, each evaluated in a process of its own."""
    where = WORK / form
    for case in cases:
        shutil.rmtree(where / case.name, ignore_errors=True)
    told = quiet([TOOL, "--jobs", "1", "--seconds", SECONDS, *FORMS[form], "--results", where,
                  *(case.folder for case in cases)]).stdout.decode(errors="replace")
    lines = {name: (word, rest) for word, name, *rest in (line.split(" ", 2) for line in told.splitlines())}
    out = {}
    for case in cases:
        word, detail = lines.get(case.name, ("crash", ["no answer"]))
        if word == "pass":
            ours = case.read_raw(where / case.name)
            out[case.name] = case.verdict(ours) if ours is not None else ("wrong", "the size of an output")
        else:
            result = "refused" if word == "refused" else "failed"
            if word == "slow" or "std::bad_alloc" in detail:
                result = "too large"
            out[case.name] = result, f"{word} {' '.join(detail)}"
        shutil.rmtree(where / case.name, ignore_errors=True)
    return out


def pack(case):
    if why := packed_case.pack(case.folder, base.PACK_SECONDS):
        return ("refused" if why.startswith("pack exit 3") else "failed"), why
    words = [f"@{file}" for file in sorted((case.folder / "test_data_set_0").glob("input_*.pb"),
                                            key=lambda p: int(p.stem.split("_")[1]))]
    files = [case.folder / f"ours_{i}.pb" for i in range(len(case.expected))]
    for file in files:
        words += ["--output", f"@{file}"]
    code, text, _ = base.run([str(case.folder / "program"), *words], SECONDS)
    (case.folder / "program").unlink()
    if code != 0:
        return "failed", f"run exit {code}: {text[-500:]}"
    ours = [units.read_value(f)[0] for f in files]
    for file in files:
        file.unlink()
    return case.verdict(ours)


def run_batch(seeds, options):
    """[(seed, form, result, detail)]"""
    if not all((WORK / str(seed)).is_dir() for seed in seeds):
        quiet([PYTHON, units.oracle.HERE / "nnsmith_draw.py", WORK, seeds[0], len(seeds)])
    out, cases = [], []
    # A process of its own, since a graph may crash ONNX Runtime.
    unanswered = [s for s in seeds if (WORK / str(s) / "model.onnx").exists()
                  and not list((WORK / str(s)).glob("test_data_set_0/output_*.pb"))]
    while unanswered:
        quiet([sys.executable, __file__, "--answer", *unanswered])
        left = [s for s in unanswered if not list((WORK / str(s)).glob("test_data_set_0/output_*.pb"))]
        if left == unanswered:  # it crashed at the first one
            out.append((left.pop(0), "drawn", "not drawn", "ONNX Runtime crashed"))
        unanswered = left
    for seed in seeds:
        folder = WORK / str(seed)
        if list(folder.glob("test_data_set_0/output_*.pb")):
            cases.append(Case(seed))
        elif (folder / "why.txt").exists() or not (folder / "model.onnx").exists():
            out.append((seed, "drawn", "not drawn", (folder / "why.txt").read_text() if folder.is_dir() else "no answer"))
    large = set()
    for form in FORMS:
        for name, found in evaluate(cases, form).items():
            out.append((int(name), form, *found))
            if found[0] == "too large":
                large.add(name)
    for case in cases:
        if int(case.name) % options.every == 0 or case.name in large:
            out.append((int(case.name), "packed", *pack(case)))
    return out


def report(found, seconds):
    for seed, form, result, why in found:
        if result in ("wrong", "failed"):
            print(f"{result}: {form} {WORK / str(seed)}: {why[:300]}")
    for name in ("refused", "too large", "not drawn"):
        reasons = collections.Counter(re.sub(r"\d+", "N", why.splitlines()[-1][:110] if why else "")
                                      for _, form, result, why in found if result == name)
        for why, count in reasons.most_common(10):
            print(f"  {name} {count:5}  {why}")
    print(f"{'':<12}" + "".join(f"{r:>10}" for r in RESULTS))
    for form in (*FORMS, "packed", "drawn"):
        counts = collections.Counter(result for _, f, result, _ in found if f == form)
        if counts:
            print(f"{form:<12}" + "".join(f"{counts[r]:>10}" for r in RESULTS))
    alone = len(list(WORK.glob("*/refusal.txt")))
    print(f"{len({seed for seed, *_ in found})} seeds in {seconds:.0f} s; ONNX Runtime refuses {alone} graphs, which PyTorch "
          "judges")
    return 1 if any(r in ("wrong", "failed") for _, _, r, _ in found) or not any(r == "agree" for _, _, r, _ in found) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=2, help="of so many seeds one is packed, too")
    parser.add_argument("--filter", default="", help="only seeds that match")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3600, help="time limit")
    parser.add_argument("--answer", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--second", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.second:
        second_answer(WORK / options.second)
        return 0
    if options.answer:
        for seed in options.answer:
            answer(WORK / seed)
        return 0
    if subprocess.run([PYTHON, "-c", "import nnsmith, torch"], capture_output=True).returncode if PYTHON.exists() else True:
        print(f"skipped: NNSmith is not installed: {PYTHON} is no python that has it (see --help)")
        return 77
    WORK.mkdir(parents=True, exist_ok=True)
    seeds = [s for s in range(options.first, options.first + options.seeds) if re.fullmatch(options.filter or ".*", str(s))]
    start = time.monotonic()

    def batch(at):
        return run_batch(seeds[at:at + BATCH], options) if time.monotonic() - start < options.seconds else []

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = [row for rows in pool.map(batch, range(0, len(seeds), BATCH)) for row in rows]
    return report(found, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
