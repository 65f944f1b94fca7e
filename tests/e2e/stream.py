#!/usr/bin/env python3
"""Records through a pipe: --stream of a packed program, and --finite."""
import struct
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import model, node, value
from packing import DIGITS, check, pack, read_npy, run, sample, work_folder

FOLDER = work_folder("stream")


def stream(program, records, *words, expect=0):
    done = subprocess.run([str(program), "--stream", *map(str, words)], input=records, capture_output=True, timeout=60)
    check(done.returncode == expect, f"{words}: exit {done.returncode}, expected {expect}: {done.stderr.decode()}")
    return done


def raw(*values):
    return struct.pack(f"<{len(values)}f", *values)


def as_one_by_one(program):
    records, wanted = b"", b""
    for digit in range(10):
        records += raw(*read_npy(sample(f"digit_{digit}.npy"))[1])
        out = FOLDER / "scores.raw"
        run(program, sample(f"digit_{digit}.npy"), "--output", f"scores={out}")
        wanted += out.read_bytes()
    check(stream(program, records).stdout == wanted, "ten records give the bits of ten runs")
    check(stream(program, b"").stdout == b"", "no record, no answer")
    size = len(records) // 10
    cut = stream(program, records[:2 * size + 5], expect=1)
    check(cut.stdout == wanted[:len(wanted) // 5], "whole records before the end are answered")
    check(f"within record 2, after 5 of {size} bytes" in cut.stderr.decode(), cut.stderr.decode())


def answers_come_at_once(program):
    """A caller that waits for an answer before it sends the next record gets it."""
    record = raw(*read_npy(sample("digit_3.npy"))[1])
    with subprocess.Popen([str(program), "--stream"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        answers = []
        for _ in range(3):
            server.stdin.write(record)
            server.stdin.flush()
            answers.append(server.stdout.read(40))
        server.stdin.close()
        check(server.wait(timeout=60) == 0 and len(set(answers)) == 1 and len(answers[0]) == 40, "each in its turn")


def inputs_by_words():
    """What a word gives stays for all records."""
    path, program = FOLDER / "sum.onnx", FOLDER / "sum"
    path.write_bytes(model([node("Add", ["a", "b"], ["y"])], [value("a", [2]), value("b", [2])], [value("y", [2])]))
    pack(path, program)
    check(stream(program, raw(1, 2, 10, 20, 3, 4, 30, 40)).stdout == raw(11, 22, 33, 44), "inputs lie in order")
    given = stream(program, raw(1, 2, 3, 4), "--input", "b=2xf32=[5 6]")
    check(given.stdout == raw(6, 8, 8, 10), "one input of each record is the word's")
    told = stream(program, b"", "--input", "a=zeros", "--input", "b=zeros", expect=2).stderr.decode()
    check("no input is left" in told, told)
    told = stream(program, b"", "--output", "y=y.npy", expect=2).stderr.decode()
    check("--output" in told, told)
    return program


def finite(program):
    bad = stream(program, raw(1, 2, 3, 4, 5, float("inf"), 7, 8), "--finite", expect=1)
    check(bad.stdout == raw(4, 6), "what came before is answered")
    check("'a', element 1, is inf" in bad.stderr.decode(), bad.stderr.decode())
    run(program, "--finite", "--input", "a=2xf32=[1 2]", "--input", "b=2xf32=[1 2]")
    told = run(program, "--finite", "--input", "a=2xf32=[1 2]", "--input", "b=2xf32=[1 nan]", expect=1).stderr.decode()
    check("'b', element 1, is nan" in told, told)
    run(program, "--input", "a=2xf32=[1 2]", "--input", "b=2xf32=[1 nan]")


def without_a_size():
    path, program = FOLDER / "where.onnx", FOLDER / "where"
    path.write_bytes(model([node("NonZero", ["a"], ["y"])], [value("a", [4])], [value("y", [1, "n"], 7)]))
    pack(path, program)
    told = stream(program, raw(1, 0, 1, 0), expect=2).stderr.decode()
    check("depends on the data" in told, told)


def main():
    program = FOLDER / "digits"
    pack(DIGITS, program)
    as_one_by_one(program)
    answers_come_at_once(program)
    finite(inputs_by_words())
    without_a_size()


if __name__ == "__main__":
    sys.exit(main())
