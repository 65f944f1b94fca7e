#!/usr/bin/env python3
"""JSON lines through a packed program: --stream=jsonl."""
import json
import math
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import FLOAT, INT64, model, node, value
from packing import BUILD, check, pack, run, work_folder

STRING, BOOL, HALF, DOUBLE = 8, 9, 10, 11
FOLDER = work_folder("json_lines")


def packed(name, nodes, inputs, outputs, *options):
    path, program = FOLDER / f"{name}.onnx", FOLDER / name
    path.write_bytes(model(nodes, inputs, outputs))
    pack(path, program, "--with=jsonl", *options)
    return program


def stream(program, lines, *words, expect=0):
    done = subprocess.run([str(program), "--stream=jsonl", *words], input=lines, capture_output=True, timeout=60)
    check(done.returncode == expect, f"{words}: exit {done.returncode}, expected {expect}: {done.stderr.decode()}")
    return [json.loads(line, parse_constant=refuse) for line in done.stdout.decode().splitlines()]


def refuse(word):
    check(False, f"{word} is no JSON")


def several_inputs():
    program = packed("pair", [node("Sub", ["a", "b"], ["y"]), node("Greater", ["a", "b"], ["larger"])],
                     [value("a", [2, 2]), value("b", [2, 2])], [value("y", [2, 2]), value("larger", [2, 2], BOOL)])
    got = stream(program, b'{"a": [[1, 2], [3, 4.5]], "b": [[1e1, 0], [-2, 0.25]]}\n'
                          b'  { "b":[[0,0],[0,0]] ,"a" : [[1,2],[3,4]]}  \r\n\n'
                          b'{"\\u0061": [[5, 6], [7, 8]], "b": [[0, 0], [0, 0]]}')
    check(got == [{"y": [[-9, 2], [5, 4.25]], "larger": [[False, True], [True, True]]},
                  {"y": [[1, 2], [3, 4]], "larger": [[True, True], [True, True]]},
                  {"y": [[5, 6], [7, 8]], "larger": [[True, True], [True, True]]}], f"{got}")
    got = stream(program, b'[[1, 2], [3, 4]]\n{"a": [[0, 0], [0, 0]]}\n', "--input", "b=2x2xf32=[1]")
    check([g["y"] for g in got] == [[[0, 1], [2, 3]], [[-1, -1], [-1, -1]]], "the only input is a line by itself")
    return program


def errors_go_on(program):
    good = '{"a": [[1, 2], [3, 4]], "b": [[1, 2], [3, 4]]}'
    bad = ['{', '[]', '[[1, 2], [3, 4]]', 'null', '{"a": 1}', '{"a": [[1, 2], [3, 4]]}', '{"q": [[1, 2], [3, 4]]}',
           '{"a": [[1, 2], [3]], "b": [[1, 2], [3, 4]]}', good + "}", good + " " + good, '{"a": [[1, 2], [3, "x"]]}',
           '{"a": [[1, 2], [3, 4]], "a": [[1, 2], [3, 4]]}', '{"a": {"b": 1}}', '{"a": [[1, 2}, {3, 4]]}', "\0", "\xff",
           '{"a": [[1, 2], [3, 4]], "b": [[1, 2], [3, 4]],}', '{"a"}', "{}", "x" * 100000, "[" * 50000, '{"a":' * 9000]
    lines = "".join(f"{line}\n{good}\n" for line in bad).encode("latin-1")
    got = stream(program, lines, expect=1)
    check(len(got) == 2 * len(bad), f"{len(got)} answers")
    for line, told, after in zip(bad, got[0::2], got[1::2]):
        check(list(told) == ["error"] and after["y"] == [[0, 0], [0, 0]], f"{line[:50]!r}: {told}")
    check("'q'" in got[12]["error"] and "a f32[2,2]" in got[12]["error"], "what there is, is named")
    check("'b'" in got[10]["error"], "what is missing is named")
    check("longer than" in got[2 * bad.index("x" * 100000)]["error"], "a line has a most length")
    told = run(program, "--stream=jsonl", "--output", "y=@y.npy", expect=2).stderr
    check(b"--output" in told, f"{told}")
    cut = good.encode()
    for size in range(1, len(cut)):
        got = stream(program, cut[:size], expect=1)
        if len(got) != 1 or list(got[0]) != ["error"]:
            check(False, f"cut to {size}: {got}")
    print(f"ok: cut at each of {len(cut)} bytes")
    rng, allowed = random.Random(3), 0
    for _ in range(40):
        lines = []
        for _ in range(50):
            line = bytearray(cut)
            for _ in range(rng.choice([1, 2, 5])):
                line[rng.randrange(len(line))] = rng.choice(b'[]{},:"\\ 0-9eEnN\x00\xff')
            lines.append(bytes(line))
        done = subprocess.run([str(program), "--stream=jsonl"], input=b"\n".join(lines), capture_output=True, timeout=60)
        allowed += done.returncode in (0, 1) and len(done.stdout.splitlines()) == 50
    check(allowed == 40, "2000 damaged lines: an answer or an error each")


def numbers_come_back():
    """What an answer says, read by Python, is the very number."""
    rng = random.Random(1)
    for name, kind, form, size in (("f32", FLOAT, "f", 4), ("f64", DOUBLE, "d", 8), ("f16", HALF, "e", 2)):
        program = packed(name, [node("Identity", ["x"], ["y"])], [value("x", [500], kind)], [value("y", [500], kind)])
        bits = [rng.getrandbits(8 * size) for _ in range(494)]
        raw = b"".join(b.to_bytes(size, "little") for b in bits)
        raw += struct.pack(f"<6{form}", 0.0, -0.0, math.inf, -math.inf, math.nan, 0.1)
        path = FOLDER / "x.raw"
        path.write_bytes(raw)
        wanted = struct.unpack(f"<500{form}", raw)
        run(program, f"x=@{path}", "--output", f"y=@{FOLDER / 'y.raw'}")
        # By way of a line: as words, and again as this program wrote them.
        words = [v if math.isfinite(v) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(v), "NaN") for v in wanted]
        got = stream(program, json.dumps({"x": words}).encode())[0]["y"]
        check(got[496:499] == ["Infinity", "-Infinity", "NaN"], "what is no number of JSON is a string")
        back = [float(v) for v in got]
        if form != "d":  # a double may be read one unit off
            check(struct.pack(f"<500{form}", *[v for v in back if v == v]
                              if False else [0.0 if v != v else v for v in back]) ==
                  struct.pack(f"<500{form}", *[0.0 if v != v else v for v in wanted]), f"{name}: bit by bit")
        else:
            check(all(abs(a - b) <= abs(b) * 2e-15 or a == b or b != b for a, b in zip(back, wanted)), name)
        if form == "f":
            line = subprocess.run([str(program), "--stream=jsonl"], input=json.dumps({"x": [0.1] * 500}).encode(),
                                  capture_output=True).stdout
            check(line.count(b"0.1,") == 499, "as few digits as tell it from its neighbours")


def other_types():
    program = packed("ints", [node("Identity", ["i"], ["j"]), node("Identity", ["t"], ["u"])],
                     [value("i", [3], INT64), value("t", [2], STRING)],
                     [value("j", [3], INT64), value("u", [2], STRING)])
    texts = ["häß\n\"\\\t€😀", ""]
    line = {"i": [-(1 << 63), (1 << 63) - 1, (1 << 53) + 1], "t": texts}
    for ascii_only in (True, False):
        got = stream(program, json.dumps(line, ensure_ascii=ascii_only).encode() + b"\n")
        check(got == [{"j": line["i"], "u": texts}], f"{got}")
    got = stream(program, json.dumps({"i": [1, 2, 3], "t": ["x" * 65, ""]}).encode(), expect=1)
    check("--string-bytes" in got[0]["error"], f"{got}")
    got = stream(program, b'{"i": [1, 2, 3], "t": ["\xff", "a\x80b"]}\n{"i": [1.5, 2, 3], "t": ["", ""]}', expect=1)
    check(got[0]["u"] == ["\ufffd", "a\ufffdb"] and "error" in got[1], f"{got}")


def open_sizes():
    program = packed("open", [node("NonZero", ["x"], ["y"]), node("Neg", ["x"], ["z"])], [value("x", ["n", 2])],
                     [value("y", [2, "k"], INT64), value("z", ["n", 2])], "--dim", "n=1..4")
    got = stream(program, b'[[1, 0]]\n{"x": [[0, 0], [0, 3], [2, 0]]}\n[[1, 2], [3, 4], [5, 6], [7, 8]]\n'
                          b'[[1, 2], [3, 4], [5, 6], [7, 8], [9, 0]]\n[[1], [2]]\n[[1, 2], [3]]\n[[1:2]]\n', expect=1)
    check(got[0] == {"y": [[0], [0]], "z": [[-1, -0.0]]}, f"{got[0]}")
    check(got[1] == {"y": [[1, 2], [1, 0]], "z": [[0, 0], [0, -3], [-2, 0]]}, f"{got[1]}")
    check(len(got[2]["z"]) == 4, "as many as there may be")
    check(all("error" in line for line in got[3:]) and len(got) == 7, f"{got[3:]}")


def out_of_range():
    program = packed("gather", [node("Gather", ["x", "i"], ["y"])], [value("x", [3]), value("i", [1], INT64)],
                     [value("y", [1])])
    got = stream(program, b'{"x": [1, 2, 3], "i": [2]}\n{"x": [1, 2, 3], "i": [7]}\n{"x": [1, 2, 3], "i": [0]}', expect=1)
    check(got[0] == {"y": [3]} and "out of range" in got[1]["error"] and got[2] == {"y": [1]}, f"{got}")


def answers_come_at_once(program):
    with subprocess.Popen([str(program), "--stream=jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        for i in range(3):
            line = json.dumps({"a": [[i, 0], [0, 0]], "b": [[0, 0], [0, 0]]}).encode()
            server.stdin.write(line[:7])
            server.stdin.flush()
            server.stdin.write(line[7:] + b"\n")
            server.stdin.flush()
            check(json.loads(server.stdout.readline())["y"][0][0] == i, "an answer before the next line")
        server.stdin.close()
        check(server.wait(timeout=60) == 0, "and an end")


def memory_stays(program):
    line = b'{"a": [[1, 2], [3, 4]], "b": [[1, 2], [3, 4]]}\n'
    (FOLDER / "many.jsonl").write_bytes(line * 20000)
    done = run("bash", "-c", f"ulimit -v 20000; '{program}' --threads 1 --stream=jsonl < '{FOLDER / 'many.jsonl'}' | wc -l")
    check(done.stdout.strip() == b"20000", f"20000 lines within 20 MB: {done.stdout} {done.stderr}")


def main():
    program = several_inputs()
    errors_go_on(program)
    numbers_come_back()
    other_types()
    open_sizes()
    out_of_range()
    answers_come_at_once(program)
    memory_stays(program)


if __name__ == "__main__":
    sys.exit(main())
