#!/usr/bin/env python3
"""A folder of inputs in one go (--batch-dir), and classes by name (--labels)."""
import math
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from numpy_module import numpy_or_skip
from onnx_writer import FLOAT, INT64, data, model, node, number, tensor, value
from packing import BUILD, DIGITS, SAMPLES, SOURCE, check, pack, run, sample, work_folder

np = numpy_or_skip()
FOLDER = work_folder("batch")
WORDS = "zero one two three four five six seven eight nine".split()


def folder_of(name):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def summary(done):
    """(ran, failed) of the last line."""
    found = re.fullmatch(r"(\d+) ran, (\d+) failed, \d+\.\d{3} ms", done.stderr.decode().splitlines()[-1])
    check(found is not None, done.stderr.decode())
    return int(found[1]), int(found[2])


def digits(program):
    out = FOLDER / "scores"
    done = run(program, "--batch-dir", SOURCE / "models" / "samples", "--output-dir", out)
    check(summary(done) == (10, 0) and done.stdout == b"", "ten samples, labels.txt beside them left alone")
    for file, _ in SAMPLES:
        run(program, sample(file), "--output", FOLDER / "one.npy")
        check((out / file).read_bytes() == (FOLDER / "one.npy").read_bytes(), f"{file} as in a run of its own")
    printed = run(program, "--batch-dir", SOURCE / "models" / "samples").stdout.decode().splitlines()
    check(printed[0::2] == sorted(file for file, _ in SAMPLES), "in the order of names")
    check(all(line.startswith("scores: 1x10xf32=[") for line in printed[1::2]), "each with its outputs")


def every_form(program):
    folder = folder_of("forms")
    x = np.load(sample("digit_7.npy"))
    np.save(folder / "a b.npy", x)
    np.savez_compressed(folder / "b.npz", image=x)
    x.tofile(folder / "c.raw")
    (folder / "d.json").write_text(repr(x.tolist()))
    (folder / "e.pb").write_bytes(tensor("image", [1, 1, 8, 8], x.ravel().tolist()))
    (folder / "größe\n.npy").write_bytes((folder / "a b.npy").read_bytes())
    (folder / "set").mkdir()
    (folder / "set" / "input_0.pb").write_bytes((folder / "e.pb").read_bytes())
    (folder / "notes.txt").write_text("no input")
    (folder / ".hidden.npy").write_text("no input")
    done = run(program, "--batch-dir", folder)
    lines = done.stdout.decode().splitlines()
    check(summary(done) == (7, 0), "seven forms of one input")
    check(lines[0::2] == ["a b.npy", "b.npz", "c.raw", "d.json", "e.pb", "größe\\x0a.npy", "set"], f"{lines[0::2]}")
    check(len(set(lines[1::2])) == 1, "with one answer")
    inside = folder / "answers"
    check(summary(run(program, "--batch-dir", folder, "--output-dir", inside)) == (7, 0), "answers in a folder inside")
    check(summary(run(program, "--batch-dir", folder, "--output-dir", inside)) == (7, 0), "which is no input")
    check(len(list(inside.iterdir())) == 7, "a file each")


def failures(program):
    folder, out = folder_of("failures"), FOLDER / "answers"
    x = np.load(sample("digit_7.npy"))
    np.save(folder / "0.npy", x)
    np.save(folder / "1.npy", x[:, :, :3])
    (folder / "2.npy").write_bytes(b"\x93NUMPY")
    (folder / "3").mkdir()
    np.save(folder / "4.npy", x)
    (folder / "5.npy").write_bytes(b"")
    done = run(program, "--batch-dir", folder, "--output-dir", out, expect=1)
    told = done.stderr.decode()
    check(summary(done) == (2, 4), told)
    check(sorted(p.name for p in out.iterdir()) == ["0.npy", "4.npy"], "those that can be answered are")
    for name in ("1.npy", "2.npy", "3", "5.npy"):
        check(f"failed: {name}\n" in told and f"{folder / name}" in told, f"{name} is named")
    first = folder_of("first")
    np.save(first / "1.npy", x)
    (first / "0.npy").symlink_to("nowhere.npy")
    (first / "2.npz").write_bytes(b"PK")
    check(summary(run(program, "--batch-dir", first, expect=1)) == (1, 1), "what is not there is not listed")
    if os.geteuid() != 0:
        (first / "0.npy").unlink()
        np.save(first / "0.npy", x)
        (first / "0.npy").chmod(0)
        check(summary(run(program, "--batch-dir", first, expect=4)) == (1, 2), "the first failure's exit code")


def usage(program):
    folder = folder_of("usage")
    told = run(program, "--batch-dir", folder, expect=4).stderr.decode()
    check("has no inputs" in told, told)
    run(program, "--batch-dir", FOLDER / "nowhere", expect=4)
    np.save(folder / "x.npy", np.load(sample("digit_7.npy")))
    told = run(program, "--batch-dir", folder, "--output-dir", folder / "..", "--output", "y.npy", expect=2).stderr
    check(b"--output-dir" in told, f"{told}")
    told = run(program, "--batch-dir", folder, "--output-dir", f"{folder}/../usage/", expect=2).stderr.decode()
    check("over inputs" in told, told)
    shutil.copy(folder / "x.npy", folder / "x.raw")
    np.save(folder / "x-2.npy", np.load(sample("digit_7.npy")))
    told = run(program, "--batch-dir", folder, "--output-dir", FOLDER / "twice", expect=2).stderr.decode()
    check("x.npy and x.raw" in told or "x.raw and x.npy" in told, told)
    run(program, "--output-dir", folder, sample("digit_7.npy"), expect=2)
    run(program, "--batch-dir", folder, "--output-dir", folder / "x.npy", expect=4)


def several_inputs():
    path, program = FOLDER / "pair.onnx", FOLDER / "pair"
    path.write_bytes(model([node("Sub", ["a", "b"], ["y"]), node("Add", ["a", "b"], ["z"])],
                           [value("a", [3]), value("b", [3])], [value("y", [3]), value("z", [3])]))
    pack(path, program, "--with", "batch")
    folder, out = folder_of("pairs"), FOLDER / "pair answers"
    a, b = np.array([1, 2, 3], np.float32), np.array([10, 20, 30], np.float32)
    np.savez(folder / "0.npz", b=b, a=a)
    np.savez(folder / "1.npz", a, b)
    (folder / "2").mkdir()
    np.save(folder / "2" / "a.npy", a)
    np.save(folder / "2" / "b.npy", b)
    (folder / "3").mkdir()
    (folder / "3" / "input_0.pb").write_bytes(tensor("a", [3], a.tolist()))
    (folder / "3" / "input_1.pb").write_bytes(tensor("b", [3], b.tolist()))
    check(summary(run(program, "--batch-dir", folder, "--output-dir", out)) == (4, 0), "archives and folders")
    for name in range(4):
        with np.load(out / f"{name}.npz") as got:
            check((got["y"] == a - b).all() and (got["z"] == a + b).all(), f"{name}.npz has both outputs")
    np.save(folder / "4.npy", a)
    np.save(folder / "2" / "b.npy", b[:2])
    done = run(program, "--batch-dir", folder, expect=1)
    check(summary(done) == (3, 2) and b"4.npy has no data for input 'b'" in done.stderr, f"{done.stderr}")
    only = folder_of("only")
    np.save(only / "5.npy", a)
    done = run(program, "--batch-dir", only, "--input", "b=3xf32=[1 1 1]")
    check(done.stdout == b"5.npy\ny: 3xf32=[0 1 2]\nz: 3xf32=[2 3 4]\n", f"a word gives the other one: {done.stdout}")


def many_runs():
    """Memory does not grow with their number, and a size that a run decides is each run's own."""
    path, program = FOLDER / "open.onnx", FOLDER / "open"
    path.write_bytes(model([node("Neg", ["x"], ["y"])], [value("x", ["n"])], [value("y", ["n"])]))
    pack(path, program, "--dim", "n=1..100000", "--with", "batch")
    folder, out = folder_of("many"), FOLDER / "many answers"
    sizes = [1 + 997 * i % 100000 for i in range(400)]
    for i, size in enumerate(sizes):
        np.save(folder / f"{i:03}.npy", np.full(size, i, np.float32))
    done = run("bash", "-c", f"ulimit -v 40000; '{program}' --threads 1 --batch-dir '{folder}' --output-dir '{out}'")
    check(summary(done) == (400, 0), "400 runs on 80 MB within 40 MB")
    check(all((np.load(out / f"{i:03}.npy") == np.full(size, -i)).all() for i, size in enumerate(sizes)),
          "each in its own size")


def labels(program):
    path = FOLDER / "labels.txt"
    path.write_text("\r\n".join(WORDS) + "\r\n")
    done = run(program, sample("digit_7.npy"), "--labels", path)
    lines = done.stdout.decode().splitlines()
    check(len(lines) == 5 and re.fullmatch(r"[01]\.\d{4}  seven", lines[0]), f"the best five: {lines}")
    run(program, sample("digit_7.npy"), "--output", FOLDER / "scores.npy")
    scores = np.load(FOLDER / "scores.npy")[0]
    order = np.argsort(-scores, kind="stable")
    check(lines == [f"{scores[i]:.4f}  {WORDS[i]}" for i in order[:5]], "as numpy sorts them")
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    lines = run(program, sample("digit_7.npy"), "--labels", path, "--softmax", "--top", "99").stdout.decode().splitlines()
    check(lines == [f"{shares[i]:.4f}  {WORDS[i]}" for i in order], f"shares of all ten: {lines}")
    lines = run(program, "--batch-dir", SOURCE / "models" / "samples", "--labels", path, "--top", "1").stdout.decode()
    wanted = [line for file, label in SAMPLES for line in (file, WORDS[int(label)])]
    check([line.split()[-1] for line in lines.splitlines()] == wanted, "of every file, its name first")
    path.write_text("\n".join(WORDS[:9]))
    told = run(program, sample("digit_7.npy"), "--labels", path, expect=1).stderr.decode()
    check("has 9 lines" in told and "scores f32[1,10]" in told, told)
    run(program, sample("digit_7.npy"), "--labels", FOLDER / "nowhere.txt", expect=4)
    run(program, sample("digit_7.npy"), "--labels", path, "--top", "0", expect=2)
    run(program, sample("digit_7.npy"), "--top", "3", expect=2)
    run(program, "--bench", "--labels", path, expect=2)
    path.write_bytes(b"\n".join([b"\x1b[31mred", b"\xff", "grün".encode()] + [b""] * 8))
    out = run(program, "--input", "image=zeros", "--labels", path, "--top", "10").stdout
    check(b"\x1b" not in out and b"\\x1b[31mred" in out and b"\\xff" in out and "grün".encode() in out,
          f"labels do not steer the terminal: {out}")


def odd_scores():
    path, program = FOLDER / "same.onnx", FOLDER / "same"
    path.write_bytes(model([node("Identity", ["x"], ["y"])], [value("x", [6], 11)], [value("y", [6], 11)]))
    pack(path, program)
    (FOLDER / "six.txt").write_text("a\nb\nc\nd\ne\nf")
    words = ["--labels", FOLDER / "six.txt", "--top", "6"]
    lines = run(program, "--input", "x=6xf64=[nan 2 -inf inf 2 -1]", *words).stdout.decode().splitlines()
    check(lines == ["inf  d", "2.0000  b", "2.0000  e", "-1.0000  f", "-inf  c", "nan  a"], f"{lines}")
    lines = run(program, "--input", "x=6xf64=[1000 999 -1000 0 0 0]", *words, "--softmax").stdout.decode().splitlines()
    check(lines[:2] == [f"{1 / (1 + math.exp(-1)):.4f}  a", f"{1 / (1 + math.e):.4f}  b"], f"{lines}")


def main():
    program = FOLDER / "digits"
    pack(DIGITS, program, "--with", "batch")
    digits(program)
    every_form(program)
    failures(program)
    usage(program)
    several_inputs()
    many_runs()
    labels(program)
    odd_scores()


if __name__ == "__main__":
    sys.exit(main())
