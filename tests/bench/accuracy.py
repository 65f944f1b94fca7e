"""What roundings cost: answers of ours and of ONNX Runtime beside the same model in double precision.

The judge is the evaluator on the graph with f64 in place of every float (compiler/rewrite/in_double.h), which knows
no vectors, no other order of sums and no fast forms. An error is that of the whole output,

    |found - judge| / |judge|, Euclidean norms,

the largest of a model's float outputs. What a model quantises is quantised by all three, but values that lie beside a
step may fall to either side of it: one that does is a thousand times a rounding, and for whom it does is luck, so such models are
judged over more inputs until steps fell for both, or STEPS_INPUTS are there. A few numbers are right or wrong in their last bit
by luck, too: norms go over the answers to several inputs, until there are VALUES numbers of the shortest output, or INPUTS inputs
and SECONDS have gone by.
"""
import math
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from quantised import quantises

HEADER = "| model | ours | ONNX Runtime | ours / ONNX Runtime |\n|---|---|---|---|"
# Below this an error is that of rounding the answer itself to float32.
LEAST = 2.0 ** -24
# So many numbers of an answer make a ratio of two errors that another draw repeats; and so many inputs are enough for a
# model that answers less, if more of them take long.
VALUES, INPUTS, SECONDS, MOST_INPUTS = 1000, 32, 30, 1000
# A model that quantises and errs by less than STEP has met no value beside a step, or was lucky with all of them.
STEPS_INPUTS, STEP = 12, 1e-4


def judge(build, folder, where, seconds):
    """The outputs of the model in double precision, flat; None with the reason where there are none."""
    tool = build / "tests" / "eval_model"
    run = subprocess.run([str(tool), "--double", str(where), "--seconds", str(seconds), "--jobs", "1",
                          str(folder)], capture_output=True, text=True)
    word, _, rest = run.stdout.strip().partition(" ")
    if word != "pass":
        return None, f"{word or 'no answer'} {rest.split(' ', 1)[-1]}".strip()
    files = sorted(where.rglob("*.f64"), key=lambda p: int(p.stem))
    return [np.fromfile(f, "<f8") for f in files], ""


def squares(found, wanted):
    """Squared norms of one output, of the error and of the judge's values, and how many these are; None where it is no float, or
    holds nothing."""
    if found.dtype.kind != "f" or found.size != wanted.size or found.size == 0:
        return None
    found = found.astype(np.float64).ravel()
    good = np.isfinite(wanted) & np.isfinite(found)
    return float(np.sum((found - wanted)[good] ** 2)), float(np.sum(wanted[good] ** 2)), wanted.size


def of_squares(wrong, size, _):
    return math.sqrt(wrong / size) if size > 0 else None


def error(found, wanted):
    """Of one output; None where it is no float, or holds nothing that a norm could compare."""
    both = squares(found, wanted)
    return of_squares(*both) if both else None


def squares_of(folder, names, wanted):
    """The squares of each output that lies in a folder as K.npy."""
    return [squares(np.load(folder / f"{k}.npy", allow_pickle=True), wanted[k]) for k in range(len(names))]


def largest(answers):
    """The largest error of an output, of which each answer holds squares; None where no output is a float."""
    errors = [of_squares(*map(sum, zip(*of_one))) for of_one in zip(*answers) if None not in of_one]
    return max((e for e in errors if e is not None), default=None)


def drawn_inputs(folder, where, number):
    """A folder like that of a model, with other inputs, or None where it has no floats to draw: each float is drawn from
    those that the input held, so that zeros stay as many and bytes of a picture stay such; all else stays as it is
    (numbers of words, masks, sizes)."""
    data = where / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    for file in [f for f in folder.iterdir() if f.is_file()]:
        link(where / file.name, file)
    draw, drawn = np.random.default_rng(number), False
    for file in (folder / "test_data_set_0").glob("input_*.pb"):
        given = onnx.load_tensor(str(file))
        values = numpy_helper.to_array(given)
        if values.dtype.kind == "f" and values.size > 1:
            values, drawn = draw.choice(values.ravel(), values.shape), True
        (data / file.name).write_bytes(numpy_helper.from_array(values, given.name).SerializeToString())
    return where if drawn else None


class Enough:
    """The answers to several inputs, and whether they are enough to tell two errors."""

    def __init__(self, model):
        self.quantises = quantises(model)
        self.answers, self.values, self.start = ([], []), 0, time.monotonic()

    def add(self, ours, theirs):
        """The squares of all outputs (squares_of) for one more input."""
        for found, one in zip(self.answers, (ours, theirs)):
            found.append(one)
        # Of the shortest output that is compared: the error of a few numbers is luck.
        self.values += min((both[2] for both in theirs if both), default=VALUES)

    def errors(self):
        return [largest(found) for found in self.answers]

    def reached(self):
        inputs, errors = len(self.answers[0]), self.errors()
        if self.quantises and inputs < STEPS_INPUTS and None not in errors and min(errors) < STEP:
            return False
        return self.values >= VALUES or (inputs >= INPUTS and time.monotonic() - self.start > SECONDS)


def row(name, ours, theirs):
    """The line of a model and what its ratio is."""
    ratio = max(ours, LEAST) / max(theirs, LEAST)
    return f"| {name} | {ours:.1e} | {theirs:.1e} | {ratio:.2f} |", ratio


def summary(ratios):
    if not ratios:
        return []
    mean = math.exp(statistics.mean(math.log(r) for r in ratios))
    return [f"\n{len(ratios)} models: ours over ONNX Runtime's, median {statistics.median(ratios):.2f}, geometric mean "
            f"{mean:.2f}, largest {max(ratios):.2f}; {sum(r > 2 for r in ratios)} above 2"]


def corpus_models(corpus, where):
    """{name: folder}: the corpus' real models, each linked beside its first data set."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
    import run_conformance
    folders = {}
    for case in run_conformance.cases_of("real", pathlib.Path(corpus).resolve()):
        if not case.data:
            continue
        folder = folders[case.name] = where / case.name
        folder.mkdir(parents=True, exist_ok=True)
        for file in [f for f in case.model.parent.iterdir() if f.is_file()]:
            link(folder / file.name, file)
        link(folder / "test_data_set_0", case.data[0])
    return folders


def link(at, to):
    at.unlink(missing_ok=True)
    at.symlink_to(to.resolve())
