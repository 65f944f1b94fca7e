"""Checks of cases whose expected outputs are some other generator's random numbers.

No program can give those numbers: ONNX leaves the generator open. What the specification fixes is checked
instead, and such a case is counted apart from the passing ones: right by distribution, not by value.
random_SET.txt names the check of each case.

    bernoulli  the shape and type of the expected output; every element is 0 or 1. Run again with the same
               probability everywhere, from 0 to 1 in steps: each element turns from 0 to 1 once, never for 0,
               always for 1; where the elements turn is uniform (Kolmogorov and Smirnov, one in a million)
    bernoulli-falling  likewise, but from 1 to 0: what ONNX's function body says, against its text
    dropout    the shape and type of the expected outputs; an element is 0, or the input's over 1 - ratio, as
               the mask says when there is one; the share of zeros is within five deviations of the ratio
"""
import ast
import math
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from tensor_file import read_tensor

# TensorProto.DataType -> (code of struct, numpy's name in .npy)
STEPS = 64
TYPES = {1: ("f", "<f4"), 7: ("q", "<i8"), 9: ("B", "|b1"), 10: ("e", "<f2"), 11: ("d", "<f8")}


def read_pb(path):
    """(npy type name, shape, values) of a TensorProto."""
    kind, shape, raw = read_tensor(path)
    code, name = TYPES[kind]
    return name, tuple(shape), [v for v, in struct.iter_unpack("<" + code, raw)]


def read_npy(path):
    data = path.read_bytes()
    assert data[:7] == b"\x93NUMPY\x01", path
    size, = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10:10 + size].decode())
    code = {name: code for code, name in TYPES.values()}[header["descr"]]
    return header["descr"], header["shape"], [v for v, in struct.iter_unpack("<" + code, data[10 + size:])]


def write_npy(path, kind, shape, values):
    code = {name: code for code, name in TYPES.values()}[kind]
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     struct.pack(f"<{len(values)}{code}", *values))


def far_from_uniform(numbers):
    """Whether the largest distance between the numbers' share and a uniform one's has odds below 1e-6."""
    ordered, n = sorted(numbers), len(numbers)
    distance = max(max((i + 1) / n - u, u - i / n) for i, u in enumerate(ordered))
    return distance > math.sqrt(math.log(2e6) / (2 * n))


def check_bernoulli(inputs, outputs, again, falling=False):
    kind, shape, given = inputs[0]
    if any(v not in (0, 1) for v in outputs[0][2]):
        return "an element is neither 0 nor 1"
    rows = [[int(v) ^ falling for v in again(kind, shape, [k / STEPS] * len(given))] for k in range(STEPS + 1)]
    if any(rows[0]) or not all(rows[-1]):
        return "a probability of 0 gives a 1, or of 1 a 0"
    columns = list(zip(*rows))
    if any(list(c) != sorted(c) for c in columns):
        return "an element is 1 for a probability and 0 for a larger one"
    turns = [(c.index(1) - 0.5) / STEPS for c in columns]
    return f"elements turn at {turns}" if len(set(turns)) < 2 or far_from_uniform(turns) else ""


def check_falling(inputs, outputs, again):
    return check_bernoulli(inputs, outputs, again, falling=True)


def check_dropout(inputs, outputs, _):
    x, y = inputs[0][2], outputs[0][2]
    ratio = inputs[1][2][0] if len(inputs) > 1 and inputs[1][0] != "|b1" else 0.5
    mask = outputs[1][2] if len(outputs) > 1 else [v != 0 for v in y]
    for given, got, kept in zip(x, y, mask):
        if not math.isclose(got, given / (1 - ratio) if kept else 0, rel_tol=1e-5):
            return f"{given} became {got}, kept {kept}, ratio {ratio}"
    deviation = math.sqrt(ratio * (1 - ratio) * len(x))
    dropped = sum(not kept for kept in mask)
    if abs(dropped - ratio * len(x)) > 5 * deviation + 1e-9:
        return f"{dropped} of {len(x)} dropped by a ratio of {ratio}"
    return ""


CHECKS = {"bernoulli": check_bernoulli, "bernoulli-falling": check_falling, "dropout": check_dropout}


def check(name, run, program, data, limit):
    """(what is wrong, or ""; seconds): runs the program on one data set. `run` is the harness's."""
    given = sorted(data.glob("input_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    expected = sorted(data.glob("output_*.pb"), key=lambda p: int(p.stem.split("_")[1]))
    files = [program.with_name(f"{program.name}.{i}.npy") for i in range(len(expected))]
    other = program.with_name(f"{program.name}.input.npy")
    took = 0

    def run_on(paths):
        nonlocal took
        code, text, seconds = run([str(program), *(f"--input=@{p}" for p in paths),
                                   *(f"--output=@{p}" for p in files)], limit)
        took += seconds
        if code != 0:
            raise RuntimeError(f"run exit {code}: {text[-2000:]}")
        return [read_npy(p) for p in files]

    def again(*values):
        write_npy(other, *values)
        return run_on([other, *given[1:]])[0][2]

    try:
        outputs = run_on(given)
        for got, want in zip(outputs, map(read_pb, expected)):
            if got[:2] != want[:2]:
                return f"run exit 7: {got[0]}{list(got[1])} where {want[0]}{list(want[1])} is due", took
        what = CHECKS[name]([read_pb(p) for p in given], outputs, again)
        return what and f"run exit 7: {what}", took
    except RuntimeError as error:
        return str(error), took
    finally:
        for path in [*files, other]:
            path.unlink(missing_ok=True)
