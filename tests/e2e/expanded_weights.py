#!/usr/bin/env python3
"""--weights=expand: a start makes of few bytes what fast forms add; answers are those of embed, bit for bit."""
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import model, node, random_tensor, tensor, value
from packing import DIGITS, PACKER, SOURCE, check, need, pack, raw_answer, run, work_folder

FOLDER = work_folder("expanded_weights")
MAGIC = b"SVODEXP\0"
EMULATORS = {"aarch64": "qemu-aarch64-static", "armv7": "qemu-arm-static", "riscv64": "qemu-riscv64-static",
             "i686": "qemu-i386-static"}
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def network(scale=0.05, wide=True):
    """Residual blocks as resnets have them: 3x3, with strides, in groups, 1x1, and a dense layer."""
    nodes, weights = [], []

    def conv(name, x, channels, outputs, taps=3, **more):
        groups = more.get("group", 1)
        weights.append(random_tensor(f"w_{name}", [outputs, channels // groups, taps, taps], len(weights), scale))
        weights.append(random_tensor(f"b_{name}", [outputs], len(weights)))
        nodes.append(node("Conv", [x, f"w_{name}", f"b_{name}"], [name], kernel_shape=[taps, taps],
                          pads=[taps // 2] * 4, **more))
        return name

    def relu(x):
        nodes.append(node("Relu", [x], [f"{x}_relu"]))
        return f"{x}_relu"

    def add(a, b):
        nodes.append(node("Add", [a, b], [f"{a}_sum"]))
        return f"{a}_sum"

    x = relu(conv("stem", "x", 3, 64))
    x = relu(add(conv("b", relu(conv("a", x, 64, 64)), 64, 64), x))
    x = relu(add(conv("d", relu(conv("c", x, 64, 128, strides=[2, 2])), 128, 128),
                 conv("short", x, 64, 128, 1, strides=[2, 2])))
    x = relu(conv("grouped", x, 128, 128, group=32))
    if wide:
        x = relu(conv("wide", x, 128, 256, 5))
    nodes.append(node("GlobalAveragePool", [x], ["pooled"]))
    nodes.append(node("Flatten", ["pooled"], ["flat"]))
    weights.append(random_tensor("dense", [256 if wide else 128, 10], 99))
    nodes.append(node("MatMul", ["flat", "dense"], ["y"]))
    path = FOLDER / f"network{scale}{'_wide' if wide else ''}.onnx"
    path.write_bytes(model(nodes, [value("x", ["batch", 3, 28, 28])], [value("y", ["batch", 10])], weights))
    return path


def answers(program, *words, runner=()):
    return raw_answer(program, "x=random:3", "y", FOLDER / "y.raw", *words, runner=runner)


def same_answers(path):
    summary, sizes = FOLDER / "summary.json", {}
    for place in ("embed", "expand"):
        pack(path, FOLDER / place, "--shape", "batch=1", f"--weights={place}", f"--json={summary}")
        sizes[place] = json.loads(summary.read_text())["bytes"]
    stored, made, added = (sizes["expand"][key] for key in ("weights_stored", "weights", "weights_of_fast_forms"))
    check(made == sizes["embed"]["weights"] and added > made // 2, f"fast forms add {added} of {made} bytes")
    check(stored < made - 0.9 * added, f"{stored} bytes are stored")
    check((FOLDER / "expand").stat().st_size < 0.6 * (FOLDER / "embed").stat().st_size, "the file is that much smaller")
    check(json.loads(run(FOLDER / "expand", "--info=json").stdout)["bytes"] == sizes["expand"],
          "the manifest says the same")
    run(FOLDER / "expand", "--self-check")
    check(True, "--self-check: what is made has the checksum of what embed stores")
    want = answers(FOLDER / "embed")
    for threads in (1, 2, 5):
        check(answers(FOLDER / "expand", "--threads", threads) == want, f"with {threads} threads, the same answers")
    pack(path, FOLDER / "again", "--shape", "batch=1", "--weights=expand")
    check((FOLDER / "again").read_bytes() == (FOLDER / "expand").read_bytes(), "packed twice, equal bytes")
    starts = {}
    for place in ("embed", "expand"):
        starts[place] = min(timed(FOLDER / place) for _ in range(5))
    print(f"start to answer: {starts['embed']:.1f} ms with embed, {starts['expand']:.1f} ms with expand")


def timed(program):
    begin = time.perf_counter()
    run(program, "x=zeros")
    return 1000 * (time.perf_counter() - begin)


def without_fast_forms(path):
    pack(path, FOLDER / "exact", "--shape", "batch=1", "--accuracy", "exact")
    pack(path, FOLDER / "exact_small", "--shape", "batch=1", "--accuracy", "exact", "--weights=expand")
    check(answers(FOLDER / "exact") == answers(FOLDER / "exact_small"), "a pack without fast forms")


def other_options(path):
    batches = ["--shape", "batch=1", "--shape", "batch=4"]
    for name, words, runs in (("entries", batches, [["--entry", "0"], ["--entry", "1"]]),
                              ("dim", ["--dim", "batch=1..3"], [[]]), ("size", ["-Os", "--shape", "batch=1"], [[]]),
                              ("bound", ["--shape", "batch=1", "--max-weights", "1.5x"], [[]])):
        pack(path, FOLDER / f"{name}_embed", *words, "--weights=embed")
        pack(path, FOLDER / f"{name}_expand", *words, "--weights=expand")
        for words in runs:
            both = [answers(FOLDER / f"{name}_{place}", *words) for place in ("embed", "expand")]
            check(both[0] == both[1], f"{name} {' '.join(words)}: the same answers")
    sizes = [(FOLDER / f"entries_{place}").stat().st_size for place in ("embed", "expand")]
    check(sizes[1] < 0.6 * sizes[0], f"tensors of two entries lie once: {sizes[1]} bytes in place of {sizes[0]}")


def forms_of_their_own(path):
    """Sizes of a picture take fast forms of their own: unless told otherwise a program holds what they are made of."""
    sides, summary = (28, 20, 12), FOLDER / "summary.json"
    words = [word for side in sides for word in ("--shape", f"x=1x3x{side}x{side}")]
    pack(path, FOLDER / "sides", *words, f"--json={summary}")
    told = json.loads(summary.read_text())
    singles, plans = [], 0
    for entry, side in enumerate(sides):
        single = FOLDER / f"side{side}"
        alone = json.loads(pack(path, single, "--shape", f"x=1x3x{side}x{side}", "--json").stdout)["bytes"]
        singles.append(single.stat().st_size)
        plans += alone["code"] + alone["image"]
        made = told["entries"][entry]["weights"]
        check(made <= alone["weights"], f"{side}x{side}: a start makes {made} of {told['bytes']['weights']} bytes")
        check(answers(FOLDER / "sides", "--entry", entry) == answers(single), "and answers as a pack of that size alone")
    size = (FOLDER / "sides").stat().st_size
    check(size <= 1.1 * max(singles) + plans, f"three sizes take {size} bytes, one {max(singles)}")
    run(FOLDER / "sides", "--self-check")
    data_sets(FOLDER / "sides", sides)
    most = max(entry["weights"] for entry in told["entries"]) + told["bytes"]["arena"] + told["bytes"]["stack"]
    pack(path, FOLDER / "sides_ram", *words, "--max-ram", most)
    pack(path, FOLDER / "sides_ram", *words, "--max-ram", most - 1, expect=8)
    pack(path, FOLDER / "sides_embed", *words, "--weights=embed", f"--json={summary}")
    check("weights_stored" not in json.loads(summary.read_text())["bytes"], "--weights=embed holds all forms")
    check((FOLDER / "sides_embed").stat().st_size > 1.5 * size, "which take that many bytes")


def data_sets(program, sides):
    """Each entry's weights are made for the first data set that is its own."""
    sets, rng = FOLDER / "sets", random.Random(5)
    shutil.rmtree(sets, ignore_errors=True)
    for number, side in enumerate(sides):
        folder, x = sets / f"test_data_set_{number}", FOLDER / "x.pb"
        folder.mkdir(parents=True)
        x.write_bytes(tensor("x", [1, 3, side, side], [rng.gauss(0, 1) for _ in range(3 * side * side)]))
        run(program, x, "--output", FOLDER / "y.pb")
        shutil.copy(x, folder / "input_0.pb")
        shutil.copy(FOLDER / "y.pb", folder / "output_0.pb")
    run(program, "--verify", sets)
    check(True, "--verify with data of each size")


def states():
    """y = a sum of all inputs so far, through a layer."""
    path = FOLDER / "state.onnx"
    path.write_bytes(model([node("Add", ["past", "x"], ["now"]), node("MatMul", ["now", "w"], ["y"])],
                           [value("x", [1, 8]), value("past", [1, 8])], [value("y", [1, 4]), value("now", [1, 8])],
                           [random_tensor("w", [8, 4], 3)]))
    for place in ("embed", "expand"):
        pack(path, FOLDER / f"state_{place}", "--state", "past=now", f"--weights={place}")
    check(answers(FOLDER / "state_embed") == answers(FOLDER / "state_expand"), "--state, too")


def other_machines(path):
    for target, emulator in EMULATORS.items():
        if not shutil.which(emulator):
            print(f"not tried: {target}, since {emulator} is not installed")
            continue
        for place in ("embed", "expand"):
            pack(path, FOLDER / f"{target}_{place}", "--target", target, "--shape", "batch=1", f"--weights={place}")
        runner = [shutil.which(emulator)]
        run(*runner, FOLDER / f"{target}_expand", "--self-check")
        check(answers(FOLDER / f"{target}_embed", runner=runner) == answers(FOLDER / f"{target}_expand", runner=runner),
              f"{target}: the same bits are made")


def damaged(program):
    """Wherever a byte of what is stored changes, --self-check finds it and a run never crashes."""
    raw = program.read_bytes()
    places = [at for at in range(0, len(raw), 64) if raw.startswith(MAGIC, at)]
    at = places[-1]
    tensors, = struct.unpack_from("<Q", raw, at + 32)
    rng, codes, copy = random.Random(1), {0: 0, 10: 0}, FOLDER / "damaged"
    for place in list(range(56)) + [rng.randrange(56, tensors) for _ in range(60)] + \
            [rng.randrange(tensors, tensors + 100000) for _ in range(20)]:
        other, bit = bytearray(raw), rng.randrange(8)
        if place >= tensors:  # an exponent: sums of taps are rounded, which may lose the last bit of one
            place, bit = place | 3, 6
        other[at + place] ^= 1 << bit
        copy.write_bytes(other)
        copy.chmod(0o755)
        code = subprocess.run([str(copy), "x=zeros"], capture_output=True, timeout=60).returncode
        if code not in codes:
            check(False, f"byte {place} of what is stored changed: a run ends with {code}")
        codes[code] += 1
        # Behind the tables, what lies between two tensors is not read.
        if place >= tensors:
            run(copy, "--self-check", expect=10)
        elif code != 10:
            check(tensors - place < 64, f"byte {place} of the tables changed, and nobody saw it")
    check(codes[10] >= 100, f"damaged programs: {codes[10]} runs refused, {codes[0]} with other weights")


def library(path):
    need("gcc")
    for place in ("embed", "expand"):
        for suffix in ("a", "so"):
            pack(path, FOLDER / f"lib{place}.{suffix}", "--shape", "batch=1", f"--weights={place}", "--name", "net")
    sizes = [(FOLDER / f"lib{place}.a").stat().st_size for place in ("embed", "expand")]
    check(sizes[1] < 0.6 * sizes[0], f"a library is {sizes[1]} bytes in place of {sizes[0]}")
    rng = random.Random(4)
    (FOLDER / "x.raw").write_bytes(struct.pack("<2352f", *[rng.gauss(0, 1) for _ in range(3 * 28 * 28)]))
    out = FOLDER / "y.raw"
    run(FOLDER / "embed", f"x=@{FOLDER / 'x.raw'}", "--output", f"y=@{out}", "--threads", 1)
    for name, files in (("static", ["libexpand.a"]), ("shared", ["libexpand.so", "-Wl,-rpath," + str(FOLDER)])):
        program = FOLDER / f"use_{name}"
        run("gcc", *STRICT, "-I", FOLDER, "-include", FOLDER / "libexpand.h", SOURCE / "tests/library/made_weights.c",
            *[FOLDER / word if word.startswith("lib") else word for word in files], "-pthread", "-o", program)
        run(program, FOLDER / "x.raw", FOLDER / f"y_{name}.raw")
        check((FOLDER / f"y_{name}.raw").read_bytes() == out.read_bytes(), f"{name}: the program's answers")
    if shutil.which("g++"):
        run("g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-I", FOLDER, "-include",
            FOLDER / "libexpand.hpp", SOURCE / "tests/library/made_weights.cpp", FOLDER / "libexpand.a", "-o",
            FOLDER / "use_wrapper")
        run(FOLDER / "use_wrapper", FOLDER / "x.raw", FOLDER / "y_wrapper.raw")
        check((FOLDER / "y_wrapper.raw").read_bytes() == out.read_bytes(), "svod::Model of C++ has them, too")


def swapped(path):
    """Another model's weights are another size, so the program is linked anew."""
    other = network(0.1)
    for name, of in (("old", path), ("want", other)):
        pack(of, FOLDER / name, "--shape", "batch=1", "--weights=expand")
    said = run(PACKER, "swap-weights", FOLDER / "old", other, "-o", FOLDER / "got", "--verify", "off",
               seconds=300).stderr.decode()
    check("linked anew, since stored weights are of another size" in said, said.splitlines()[0])
    check((FOLDER / "got").read_bytes() == (FOLDER / "want").read_bytes(), "and has the bytes of a pack")


def refusals():
    for output, words, phrase in (
            ("lib.a", ["--target", "cortex-m7"], "firmware, modules and source take embed"),
            ("lib.cpp", [], "firmware, modules and source take embed"),
            ("lib.wasm", ["--target", "wasm32"], "firmware, modules and source take embed"),
            ("lib.a", ["--self-check"], "--self-check reads a library's weights as they lie in it"),
            ("gpu", ["--device", "cuda"], "--device goes with neither")):
        said = pack(DIGITS, FOLDER / "refused" / output, "--weights=expand", *words, expect=2).stderr.decode()
        check(phrase in said and not (FOLDER / "refused").exists(), f"{output}: {said.splitlines()[0]}")
    needed = pack(DIGITS, FOLDER / "ram", "--weights=expand", "--max-ram", "4K", expect=8).stderr.decode()
    check("expanded weights" in needed, "--max-ram counts what is made")


def main():
    path = network()
    same_answers(path)
    without_fast_forms(path)
    other_options(path)
    forms_of_their_own(path)
    states()
    damaged(FOLDER / "expand")
    library(path)
    swapped(path)
    refusals()
    other_machines(network(0.05, False))


if __name__ == "__main__":
    sys.exit(main())
