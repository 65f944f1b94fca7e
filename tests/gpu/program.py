#!/usr/bin/env python3
"""A program for a GPU, end to end without one: against a driver that stands in for NVIDIA's (stand_in_driver.cpp), and on a
machine without a driver. `--long` has more architectures, and the
toolkit's ptxas where that is there."""
import ctypes
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from assemble import find_ptxas
from onnx_writer import BOOL, INT64, graph, model, node, random_tensor, tensor, value
from packing import (BUILD, DIGITS, LONG, PACKER, SOURCE, check, digits_on, labels_right, largest_difference, need, pack, run, sample,
                     work_folder)

DATA = SOURCE / "models" / "test_data_set_0"


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


kernels_made = {}


def kernels(path, output, device="sm_80", *sizes):
    """sizes: n=3, of each entry. Those of a model are compiled once."""
    key = (path.read_bytes(), device, sizes)
    if key not in kernels_made:
        run(BUILD / "tests" / "gpu_kernels", path, output, device, *sizes)
        kernels_made[key] = output.read_bytes()
    output.write_bytes(kernels_made[key])


class StandIn:
    """The environment of a program that finds the driver of tests, with settings of it."""

    def __init__(self, folder, side):
        self.log = folder / "driver.log"
        self.base = dict(os.environ, LD_LIBRARY_PATH=str(BUILD / "tests" / "stand_in"), SVOD_STAND_IN_KERNELS=str(side),
                         SVOD_STAND_IN_LOG=str(self.log))

    def env(self, **settings):
        self.log.write_text("")
        return dict(self.base, **{f"SVOD_STAND_IN_{name}": text for name, text in settings.items()})


def scores_of(program, folder, *words, **more):
    target = folder / "scores.npy"
    done = run(program, *words, "--input", f"image=@{sample('digit_0.npy')}", "--output", f"scores=@{target}", **more)
    return target.read_bytes(), done.stderr.decode()


def text_of(done):
    return (done.stdout + done.stderr).decode()


def with_driver(folder, program, driver):
    env = driver.env()
    done = run(program, "--device=cuda", "--verify", DATA, env=env)
    log = driver.log.read_text().split("\n")
    check(b"cosine 1" in done.stdout, "the GPU's kernels compute what the model does")
    check([line for line in log if line.startswith("module")] == [f"module k{i}_sm_80" for i in range(5)], "each is a module")
    check(log.count("run") == 1 and "graph of 7" in log, "a run is one graph, of five kernels, a copy up and one down")
    check("stand-in GPU, sm_80" in text_of(run(program, "--info", env=env)), "--info names the GPU")
    labels = digits_on(["env", *(f"{k}={v}" for k, v in env.items())], program, folder)
    check(labels_right(labels) == 10, "ten digits are read")
    done = run(program, "--bench", "--min-time=0.02", "--device=cuda", env=driver.env())
    check(driver.log.read_text().count("graph of 7\n") == 1 < driver.log.read_text().count("\nrun"), "many runs, one graph")
    return labels


def times(program, driver):
    """What --bench and --profile say of a GPU: the driver's events tell, and the architecture is the level."""
    def told(*words):
        return json.loads(run(program, "--device=cuda", "--min-time=0.05", *words, env=driver.env()).stdout)

    found = told("--bench=json")
    rows = {row["name"]: row["real_time"] for row in found["benchmarks"]}
    check(found["context"]["isa"] == "sm_80", "--bench is of the architecture")
    for name in ("kernels", "graph", "launch"):
        check(0 < rows[f"{name}/min"] <= rows[f"{name}/median"], f"--bench tells {name}")
    check("graph of 5" in driver.log.read_text().split("\n"), "the kernels are a graph of their own, of five")
    text = text_of(run(program, "--device=cuda", "--bench", "--min-time=0.05", env=driver.env()))
    check("kernels/median" in text and "level sm_80" in text, "as text, too")
    found = told("--profile=json")
    check([row["name"] for row in found["kernels"]] == [f"k{i}" for i in range(5)], "--profile has each kernel")
    check(all(row["us"] > 0 and row["calls"] == 1 for row in found["kernels"]), "with its time")
    check(found["level"] == "sm_80" and abs(sum(row["us"] for row in found["kernels"]) - found["total_us"]) < 0.01, "and their sum")
    check("graph of 11" in driver.log.read_text().split("\n"), "which is of a graph with an event before and behind each")
    check("dense" in text_of(run(program, "--device=cuda", "--profile", "--min-time=0.05", env=driver.env())), "with ONNX nodes")


def faults(folder, program, driver):
    def refused(env, expect, *words):
        done = run(program, "--device=cuda", "--verify", DATA, expect=9, env=env)
        check(all(word in text_of(done) for word in words), expect)
        done = run(program, "--verify", DATA, env=env)
        check(b"cosine 1" in done.stdout, "and the CPU runs where nobody insists")
        return text_of(done)

    refused(driver.env(ARCH="75"), "an older GPU is exit 9", "no GPU here runs what was packed")
    refused(driver.env(GPUS="0"), "no GPU is exit 9", "the driver does not start")
    told = refused(driver.env(REFUSES="k3"), "a kernel that does not load is named", "k3_sm_80", "dense",
                   "a PTX JIT compilation failed")
    check("note: the CPU runs instead" in told, "which is said")
    done = run(program, "--device=cuda", "--bench", "--min-time=0.1", expect=9, env=driver.env(LOST="3"))
    check("unspecified launch failure" in text_of(done), "a GPU that is lost half-way ends the program with its words")


def older_driver(folder):
    """It refuses the kernels for the latest architecture, as PTX that is newer than it: those for the one before run."""
    program, side = folder / "older", folder / "older.so"
    pack(DIGITS, program, "--device", "cuda:sm_75,sm_80", "--ptxas", "off")
    kernels(DIGITS, side, "sm_75")
    driver = StandIn(folder, side)
    done = run(program, "--device=cuda", "--verify", DATA, env=driver.env(REFUSES="k0_sm_80"))
    check(b"cosine 1" in done.stdout, "an older driver takes the kernels for an earlier architecture")
    log = driver.log.read_text().split("\n")
    check([line for line in log if line.startswith("module")] == [f"module k{i}_sm_75" for i in range(5)], "all of them")
    found = json.loads(run(program, "--device=cuda", "--bench=json", "--min-time=0.02", env=driver.env(REFUSES="k0_sm_80")).stdout)
    check(found["context"]["isa"] == "sm_75", "which --bench says")


def without_driver(folder, program):
    if has_driver():
        print("not looked at: a driver is here")
        return
    plain = folder / "plain"
    pack(DIGITS, plain)
    check(scores_of(program, folder)[0] == scores_of(plain, folder)[0], "without a driver: the bits of the program without GPU")
    done = run(program, "--device=cuda", "--verify", DATA, expect=9)
    check("libcuda.so.1" in text_of(done), "exit 9 says what is missing")
    check("none: no libcuda.so.1" in text_of(run(program, "--info")), "--info says so, too")


def gather(folder):
    """An index that the data brings."""
    path, program, side = folder / "gather.onnx", folder / "gather", folder / "gather.so"
    path.write_bytes(model([node("Gather", ["x", "i"], ["y"], "pick")], [value("x", [4, 3]), value("i", [2], INT64)],
                           [value("y", [2, 3])]))
    pack(path, program, "--device", "cuda:sm_80", "--ptxas", "off")
    kernels(path, side)
    env = StandIn(folder, side).env()
    words = ["--device=cuda", "--input", "x=zeros"]
    run(program, *words, "--input", "i=2xi64=[1 3]", env=env)
    done = run(program, *words, "--input", "i=2xi64=[1 9]", expect=11, env=env)
    check("out of range" in text_of(done) and "pick" in text_of(done), "an index out of range is exit 11 with its node")


def loop(folder):
    """What only the run decides is the CPU's."""
    body = graph([node("Add", ["v", "v"], ["w"]), node("Identity", ["c"], ["d"])],
                 [value("n", [], INT64), value("c", [], BOOL), value("v", [2])], [value("d", [], BOOL), value("w", [2])])
    path = folder / "loop.onnx"
    path.write_bytes(model([node("Loop", ["m", "", "x"], ["y"], "again", body=body)], [value("m", [], INT64), value("x", [2])],
                           [value("y", [2])]))
    done = run(PACKER, path, "-o", folder / "loop", "--verify", "off", "--device", "cuda", "--no-cache")
    check("packed for the CPU alone" in text_of(done) and "again" in text_of(done), "a loop of the run: the CPU alone, and why")
    run(folder / "loop", "--input", "m=i64=3", "--input", "x=2xf32=[1 2]")


def schedules(folder):
    """A tile of another shape, from a file."""
    words = [DIGITS, "--device", "cuda:sm_80"]
    text = run(PACKER, *words, "--emit=schedule").stdout.decode()
    file = folder / "schedule.txt"
    file.write_text(text)
    as_chosen = run(PACKER, *words, "--emit=ptx").stdout
    check(run(PACKER, *words, "--emit=ptx", "--schedule", file).stdout == as_chosen, "a schedule that is printed is read back")
    tile = re.search(r"gpu tile (\d+) (\d+ \d+) thread (\d+) (\d+)", text)
    check(tile is not None, "products are tiled")
    rows, others, part, columns = tile.groups()
    file.write_text(text.replace(tile[0], f"gpu tile {2 * int(rows)} {others} thread {2 * int(part)} {columns}"))
    check(run(PACKER, *words, "--emit=ptx", "--schedule", file).stdout != as_chosen, "and so is another tile")
    file.write_text(text.replace(tile[0], f"gpu tile {rows} {others} thread 3 {columns}"))
    done = run(PACKER, *words, "--emit=ptx", "--schedule", file, expect=2)
    check(b"do not share evenly" in done.stderr, "one that does not fit is refused with the reason")


PTXAS = """#!/bin/sh
# ptxas -arch=sm_80 -o TO FROM
echo asked >> "$0.log"
[ "$1" != -arch=sm_90 ] || { echo "ptxas: no sm_90" >&2; exit 1; }
{ echo "machine code ${1#-arch=}"; cat "$4"; } > "$3"
"""


def machine_code(folder):
    """A ptxas makes one module of all kernels, which a GPU takes that runs it."""
    ptxas, program, side = folder / "ptxas", folder / "assembled", folder / "assembled.so"
    ptxas.write_text(PTXAS)
    ptxas.chmod(0o755)
    words = ["--device", "cuda:sm_80,sm_90", "--ptxas", ptxas]
    done = run(PACKER, DIGITS, "-o", program, "--verify", "off", "--no-cache", *words)
    check("machine code for sm_80" in text_of(done), "packing says which architectures have machine code")
    check("makes no machine code for sm_90" in text_of(done), "and which ptxas refuses")
    check(pathlib.Path(f"{ptxas}.log").read_text().split() == ["asked"] * 2, "ptxas runs once for each architecture")
    kernels(DIGITS, side)
    driver = StandIn(folder, side)

    def modules(arch, **settings):
        done = run(program, "--device=cuda", "--verify", DATA, env=driver.env(ARCH=arch, **settings))
        check(b"cosine 1" in done.stdout, f"right on a GPU of {arch}")
        return [line for line in driver.log.read_text().splitlines() if line.startswith(("module", "machine"))]

    check(modules("80") == ["machine code of 5 from k0_sm_80"], "machine code is one module")
    check(modules("86") == ["machine code of 5 from k0_sm_80"], "which a later GPU of the same kind takes, too")
    kernels(DIGITS, side, "sm_90")
    check(modules("90") == [f"module k{i}_sm_90" for i in range(5)], "where none was made, each kernel's PTX is")
    env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")
    check(f"ptxas: {ptxas}" in text_of(run(PACKER, "doctor", env=env)), "doctor names the ptxas of PATH")
    pack(DIGITS, program, "--device", "cuda:sm_80", env=dict(env, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache")))
    kernels(DIGITS, side)
    check(modules("80")[0].startswith("machine code"), "which is taken unasked")
    check(modules("90") == [f"module k{i}_sm_80" for i in range(5)], "a GPU that does not run machine code takes PTX")
    done = run(PACKER, DIGITS, "-o", program, "--device", "cuda", "--ptxas", "no-such-ptxas", expect=2)
    check(b"--ptxas" in done.stderr, "another that is not there is a usage error")
    run(PACKER, DIGITS, "-o", program, "--ptxas", ptxas, expect=2)


def assembled(folder):
    """What the toolkit's own ptxas makes of all kernels, where there is one."""
    ptxas = find_ptxas()
    if not ptxas:
        print("not looked at: no ptxas is here")
        return
    done = run(PACKER, DIGITS, "-o", folder / "own", "--verify", "off", "--no-cache", "--device", "cuda:sm_80,sm_90",
               "--ptxas", ptxas)
    check("machine code for sm_80, sm_90" in text_of(done), "ptxas assembles all kernels as one module")


def usage(folder):
    for words in (["-o", folder / "libx.a", "--target", "aarch64"], ["-o", folder / "x.cpp"], ["-o", folder / "x", "--target", "aarch64"], ["--emit=ptx", "--target", "x86-64"],
                  ["-o", folder / "x", "--weights=file"], ["--emit=ptx", "--search-budget", "9"]):
        done = run(PACKER, DIGITS, "--device", "cuda", *words, expect=2)
        check(b"--device" in done.stderr, f"refused: {' '.join(str(w) for w in words)}")
    for device in ("sm_80", "cuda:sm_81", "cuda:sm_80,sm_75", "cuda:"):
        run(PACKER, DIGITS, "--device", device, "--emit=ptx", expect=2)
    check(b"say --device" in run(PACKER, DIGITS, "--emit=ptx", expect=2).stderr, "--emit=ptx needs a device")


def latest_of(folder):
    """Of two architectures a GPU gets the latest that it runs, by number: 100 comes after 90."""
    program, side = folder / "blackwell", folder / "blackwell.so"
    pack(DIGITS, program, "--device", "cuda:sm_90,sm_100,sm_120", "--ptxas", "off")
    for gpu, taken in (("90", "sm_90"), ("103", "sm_100"), ("120", "sm_120")):
        kernels(DIGITS, side, taken)
        driver = StandIn(folder, side)
        run(program, "--device=cuda", "--verify", DATA, env=driver.env(ARCH=gpu))
        modules = [line for line in driver.log.read_text().splitlines() if line.startswith("module ")]
        check(modules and all(line.endswith(taken) for line in modules), f"a GPU of {gpu} runs kernels of {taken}")


def main():
    need("env")
    folder = work_folder("gpu_program")
    program, again, side = folder / "digits", folder / "again", folder / "digits.so"
    pack(DIGITS, program, "--device", "cuda:sm_80,sm_90", "--ptxas", "off")
    pack(DIGITS, again, "--device", "cuda:sm_80,sm_90", "--ptxas", "off")
    check(program.read_bytes() == again.read_bytes(), "packed twice, equal bytes")
    kernels(DIGITS, side)
    driver = StandIn(folder, side)
    scores = with_driver(folder, program, driver)
    on_cpu = digits_on(["env"], folder / "digits", folder) if not has_driver() else scores
    check(largest_difference(scores, on_cpu) < 1e-5, "the CPU's answers")
    times(program, driver)
    faults(folder, program, driver)
    check(run(program, "--device=tpu", expect=2).stderr != b"", "an unknown device is exit 2")
    without_driver(folder, program)
    if LONG:
        latest_of(folder)
    older_driver(folder)
    gather(folder)
    loop(folder)
    schedules(folder)
    machine_code(folder)
    if LONG:
        assembled(folder)
    usage(folder)


if __name__ == "__main__":
    main()
