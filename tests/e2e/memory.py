#!/usr/bin/env python3
"""What a model needs: one number of its arena everywhere, a stack that is not exceeded, weights that are its own."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from firmware_models import keywords
from onnx_writer import model, node, random_tensor, value
from packing import DIGITS, SOURCE, check, need, pack, run, sample, work_folder

FOLDER = work_folder("memory")


def one_arena():
    program, library, summary = FOLDER / "digits", FOLDER / "libdigits.a", FOLDER / "summary.json"
    pack(DIGITS, program, f"--json={summary}")
    pack(DIGITS, library, "--name", "digits")
    numbers = {"packer": json.loads(summary.read_text())["bytes"]["arena"],
               "info": int(re.search(rb"arena +(\d+) bytes", run(program, "--info").stdout)[1]),
               "info=json": json.loads(run(program, "--info=json").stdout)["bytes"]["arena"],
               "header": int(re.search(r"DIGITS_ARENA_BYTES (\d+)", library.with_suffix(".h").read_text())[1])}
    check(len(set(numbers.values())) == 1, f"one arena: {numbers}")
    sizes = json.loads(summary.read_text())["bytes"]
    check(sizes["temporaries"] + sizes["scratch"] + sizes["tables"] == sizes["arena"], "its parts are the whole")
    check(sizes["stack"] <= 24 * 1024, f"{sizes['stack']} bytes of stack for the program")
    return library


def budget():
    said = pack(DIGITS, FOLDER / "small.a", "--target", "cortex-m4", "--max-ram", "1K", "--max-flash", "1K",
                expect=8).stderr.decode()
    ram = re.search(r"--max-ram: (\d+) bytes are needed, 1024 are allowed: arena (\d+) \(temporaries (\d+), scratch "
                    r"(\d+), tables (\d+)\), stack (\d+)", said)
    check(ram is not None, f"--max-ram says what it is made of: {said.splitlines()[0]}")
    total, arena, *parts, stack = map(int, ram.groups())
    check(total == arena + stack and arena == sum(parts) and stack <= 2048, "and the parts are the whole")
    check(re.search(r"weights 397\d\d, image 0", said) is not None, "so does --max-flash, of the smallest there is")
    tiny = FOLDER / "tiny.onnx"
    tiny.write_bytes(model([node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])]))
    pack(tiny, FOLDER / "tiny.a", "--target", "cortex-m4", "--max-ram", "2K")
    check(True, "a model of one kernel fits into 2 KiB of RAM, stack included")


def flash_traded():
    keywords = SOURCE / "models/keywords_int8/keywords_int8.onnx"

    def flash(*words):
        summary = FOLDER / "flash.json"
        pack(keywords, FOLDER / "keywords.a", "--target", "cortex-m4", f"--json={summary}", *words)
        packed = json.loads(summary.read_text())
        sizes, said = packed["bytes"], [d["text"] for d in packed["diagnostics"]]
        return sizes["weights"] + sizes["image"] + sizes["code"] + sizes["stub"], "\n".join(said)

    fast, small = flash()[0], flash("-Os")[0]
    check(small < fast, f"-Os takes {small} bytes of flash instead of {fast}")
    most = (fast + small) // 2
    got, said = flash("--max-flash", str(most))
    told = re.search(r"--max-flash: (\d+) of (\d+) kernels are for size, which saves (\d+) bytes of \d+; for speed are",
                     said)
    check(told is not None and small < got <= most, f"--max-flash {most}: {got} bytes, some kernels for speed")
    check(int(told[3]) == fast - got and 0 < int(told[1]) < int(told[2]), "and says what it gave up")


def turns():
    """Layers take turns row by row at any price where RAM is told; where that is not enough, what fills the arena is."""
    words, library = FOLDER / "words.onnx", FOLDER / "words.a"
    words.write_bytes(keywords())
    arenas = []
    for limit in ("1M", "14K"):
        pack(words, library, "--target", "cortex-m4", "--max-ram", limit)
        arenas.append(int(re.search(r"[A-Z]+_ARENA_BYTES (\d+)", library.with_suffix(".h").read_text())[1]))
    check(arenas[1] <= 14 * 1024 < arenas[0], f"an arena of {arenas[0]} bytes, with --max-ram 14K of {arenas[1]}")
    said = pack(words, library, "--target", "cortex-m4", "--max-ram", "4K", expect=8).stderr.decode()
    check("the arena is fullest with" in said and "kernels take turns row by row" in said, said.splitlines()[0])


def stack_bound(library):
    need("gcc")
    program = FOLDER / "stack_use"
    run("gcc", "-std=c11", "-O2", "-I", FOLDER, SOURCE / "tests/library/stack_use.c", library, "-o", program)
    used = int(run(program).stdout)
    said = int(re.search(r"DIGITS_STACK_BYTES (\d+)", library.with_suffix(".h").read_text())[1])
    check(0 < used <= said, f"a run takes {used} bytes of stack, the header says at most {said}")


def weights_of_its_own():
    def linear(seed):
        path = FOLDER / f"linear{seed}.onnx"
        path.write_bytes(model([node("MatMul", ["x", "w"], ["y"])], [value("x", [4, 64])], [value("y", [4, 64])],
                               [random_tensor("w", [64, 64], seed)]))
        program = FOLDER / f"linear{seed}"
        pack(path, program, "--weights", "file")
        return program, program.with_name(program.name + ".weights")
    (one, mine), (_, other) = linear(1), linear(2)
    check(mine.stat().st_size == other.stat().st_size, "two files of weights of the same size")
    right = run(one, "x=random", "--weights", mine).stdout
    check(run(one, "x=random").stdout == right, "the one beside the program is found")
    said = run(one, "x=random", "--weights", other, expect=10).stderr.decode()
    check("another model" in said and said.count("sha256") == 1, f"the other's is refused: {said.strip()}")
    cut = FOLDER / "cut.weights"
    cut.write_bytes(mine.read_bytes()[:-1])
    said = run(one, "x=random", "--weights", cut, expect=10).stderr.decode()
    check("cut short" in said, "so is one that is cut")
    pack(FOLDER / "linear1.onnx", FOLDER / "wide", "--weights", "file", "--cpu", "x86-64-v2")
    run(FOLDER / "wide", "x=random", "--self-check")
    said = run(one, "x=random", "--weights", FOLDER / "absent", expect=4).stderr.decode()
    check("No such file or directory" in said, "a missing one is missing")


def bench(program):
    shown = run(program, "--bench", "--min-time", "0.05").stdout.decode()
    words = [line.split()[0] for line in shown.splitlines()]
    check(words[:8] == ["run/min", "run/median", "run/p95", "run/p99", "run/mean", "first_run", "start_up", "peak"],
          f"--bench: {words}")
    report = json.loads(run(program, "--bench=json", "--min-time", "0.05").stdout)
    times = {row["name"]: row["real_time"] for row in report["benchmarks"]}
    check(times["run/median"] <= times["run/p95"] <= times["run/p99"] and times["first_run"] > 0 and
          times["start_up"] > 0, f"--bench=json: {times}")
    peak = report["context"]["peak_memory_bytes"]
    check(50_000 < peak < 4_000_000, f"peak memory: {peak} bytes")
    run(program, sample("digit_1.npy"))


def main():
    library = one_arena()
    budget()
    flash_traded()
    turns()
    bench(FOLDER / "digits")
    weights_of_its_own()
    stack_bound(library)


if __name__ == "__main__":
    sys.exit(main())
