"""What the scripts share that make models of their own: packing one, comparing it with ONNX Runtime's answers, and the
run over all cases."""
import argparse
import concurrent.futures
import pathlib
import sys
import time

import run_units as units

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from time_limit import corpus_share, exit_code

base, np = units.base, units.np

SHARE = 0.15  # of SVOD_CORPUS_SECONDS


def pack(folder, seconds, words=(), model=None):
    """FOLDER/program of a model, FOLDER/model.onnx where none is given: what went wrong, or nothing."""
    code, text, _ = base.run(
        [str(base.BUILD / "svod-pack"), str(model or folder / "model.onnx"), "-o", str(folder / "program"), "--target", "native",
         "--verify", "off", "-q", "--cache-dir", str(base.WORK / "cache"), *words], seconds)
    return f"pack exit {code}: {text}" if code != 0 else ""


def pack_and_run(folder, inputs, outputs, seconds):
    """(what went wrong or nothing, the outputs' arrays). `inputs`: arrays by name; `seconds` for each of both."""
    if why := pack(folder, seconds):
        return why, []
    return run_packed(folder, inputs, outputs, seconds)


def run_packed(folder, inputs, outputs, seconds):
    """The same of FOLDER/program."""
    words = []
    for i, (name, array) in enumerate(inputs.items()):
        np.save(folder / f"in{i}.npy", array)
        words += ["--input", f"{name}=@{folder / f'in{i}'}.npy"]
    for i, name in enumerate(outputs):
        words += ["--output", f"{name}=@{folder / str(i)}.npy"]
    code, text, _ = base.run([str(folder / "program"), *words], seconds)
    if code != 0:
        return f"run exit {code}: {text}", []
    return "", [np.load(folder / f"{i}.npy") for i in range(len(outputs))]


def differs(got, right, near=2e-4, least=1e-5):
    """How an output differs from what is right by more than five times `near` of itself, `near` of the root mean square of
    its tensor and `least`; nothing where it does not. Numbers that are not finite must be equal."""
    if got.shape != right.shape or got.dtype != right.dtype:
        return f"is {got.dtype}{list(got.shape)} for {right.dtype}{list(right.shape)}"
    if right.dtype.kind != "f":
        return "differs" if not np.array_equal(got, right) else ""
    a, b = got.astype(np.float64), right.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "has other numbers that are not finite"
    a, b = a[finite], b[finite]
    error = np.abs(a - b)
    allowed = least + 5 * near * np.abs(b) + near * np.sqrt(np.mean(b * b)) if b.size else 0
    return "" if (error <= allowed).all() else f"differs by {error.max():.3g} of {np.abs(b).max():.3g}"


def pack_and_compare(name, folder, model, words=()):
    """What is wrong with FOLDER/model.onnx, whose data set lies beside it, or nothing."""
    if why := pack(folder, base.PACK_SECONDS, words):
        return why
    outcome = base.Outcome(name, "failed")
    known = {"ort": "ran", "outputs": len(model.graph.output), "ops": [n.op_type for n in model.graph.node],
             "narrow": units.unit_reference.narrowest(model)}
    units.run_program(folder / "program", folder, known, outcome)
    return "" if outcome.result == "agree" else outcome.detail


def read_options(doc, seeds=None):
    """`seeds`: how many, for a script that draws its cases."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    if seeds:
        parser.add_argument("--seeds", type=int, default=seeds, help="cases of each kind")
    parser.add_argument("--filter", default="", help="only cases whose name matches")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="time limit",
                        default=corpus_share(SHARE))
    return parser.parse_args()


def run_cases(check, cases, options):
    """The exit code, after every wrong case and the counts are printed. `check` gives (name, what is wrong or nothing)."""
    start = time.monotonic()

    def within_limit(case):
        return check(case) if time.monotonic() - start <= options.seconds else None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        done = [found for found in pool.map(within_limit, cases) if found]
    wrong = [(name, why) for name, why in done if why]
    for name, why in wrong:
        print(f"{name}: {why[:400]}")
    left_out = len(cases) - len(done)
    print(f"{len(done) - len(wrong)} of {len(done)} cases agree" + (f"; no time for {left_out} more" if left_out else ""))
    return exit_code(len(done) - len(wrong), len(wrong), left_out)
