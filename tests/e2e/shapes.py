#!/usr/bin/env python3
"""Several sets of shapes in one package: the right entry runs, equal to a pack of its own, and nothing lies twice."""
import json
import os
import pathlib
import random
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import model, node, random_tensor, tensor, value
from packing import BUILD, DIGITS, LEVEL, PACKER, SOURCE, check, pack, run, work_folder, write_npy

BATCHES = (4, 8, 12)


def network():
    """Two layers with a free batch."""
    return model([node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["r"]), node("MatMul", ["r", "v"], ["y"])],
                 [value("x", ["batch", 512])], [value("y", ["batch", 384])],
                 [random_tensor("w", [512, 640], 1, 0.1), random_tensor("v", [640, 384], 2, 0.1)])


def numbers(count, seed):
    rng = random.Random(seed)
    return [rng.gauss(0, 1) for _ in range(count)]


def verified(model_path, output, *options):
    """Packed, and each entry compared with the evaluator."""
    env = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"))
    run(PACKER, model_path, "-o", output, "-q", "--verify", "random", *LEVEL, *options, env=env, seconds=300)


def entries_are_single_packs(folder):
    path, program = folder / "net.onnx", folder / "net"
    path.write_bytes(network())
    shapes = [word for b in BATCHES for word in ("--shape", f"batch={b}")]
    report = json.loads(pack(path, program, *shapes, "--json").stdout)
    pack(path, folder / "again", *shapes)
    check(program.read_bytes() == (folder / "again").read_bytes(), "packing twice gives equal bytes")
    singles, plans = [], 0
    for b in BATCHES:
        single, x = folder / f"net{b}", folder / f"x{b}.npy"
        told = json.loads(pack(path, single, "--shape", f"batch={b}", "--json").stdout)
        plans += told["bytes"]["code"] + told["bytes"]["image"]
        singles.append(single.stat().st_size)
        write_npy(x, [b, 512], numbers(b * 512, b))
        given = [x, f"@{x}", f"x=@{folder / 'x.raw'}"]
        (folder / "x.raw").write_bytes(x.read_bytes()[-b * 512 * 4:])
        run(single, x, "--output", folder / "right.npy")
        for word in given:
            run(program, word, "--output", folder / "got.npy")
            check((folder / "got.npy").read_bytes() == (folder / "right.npy").read_bytes(),
                  f"batch {b} as {word}: the bits of a pack of its own")
    size = program.stat().st_size
    check(size <= 1.1 * max(singles) + plans, f"weights lie once: {size} bytes, one shape {max(singles)}")
    info = json.loads(run(program, "--info=json").stdout)
    check([e["inputs"][0]["shape"] for e in info["entries"]] == [[b, 512] for b in BATCHES],
          "--info=json has three entries")
    check([e["name"] for e in info["entries"]] == ["0", "1", "2"] and info["entries"] == report["entries"],
          "by their numbers, as --json of the pack")
    text = run(program, "--info").stdout.decode()
    check(all(f"x f32[{b},512]" in text for b in BATCHES), "--info has them, too")
    return program


def weights_beside(folder):
    """One file of weights for all entries."""
    program = folder / "beside"
    pack(folder / "net.onnx", program, "--weights=file", *[w for b in BATCHES for w in ("--shape", f"batch={b}")])
    for b in BATCHES:
        for words in (["--threads", "1"], ["--threads", "2"]):
            run(program, folder / f"x{b}.npy", "--output", folder / "got.npy", *words)
            run(folder / f"net{b}", folder / f"x{b}.npy", "--output", folder / "right.npy")
            check((folder / "got.npy").read_bytes() == (folder / "right.npy").read_bytes(),
                  f"batch {b} with weights in a file, {' '.join(words)}")


def what_fits_nothing(folder, program):
    x = folder / "x5.npy"
    write_npy(x, [5, 512], numbers(5 * 512, 5))
    told = run(program, x, expect=1).stderr.decode()
    check("x f32[5,512]" in told and all(f"f32[{b},512]" in told for b in BATCHES), "a miss lists what was packed")
    raw = folder / "x5.raw"
    raw.write_bytes(bytes(100))
    check("100 bytes" in run(program, raw, expect=1).stderr.decode(), "and so do bytes of another size")
    run(program, "--entry", "1", folder / "x4.npy", expect=1)
    check("0: x f32[4,512]" in run(program, "--entry", "9", expect=2).stderr.decode(), "a wrong name lists the entries")


def modes(folder, program):
    bench = ["--bench", "--min-time", "0.01"]
    check(run(program, *bench).stdout.startswith(b"entry 0\n"), "--bench without inputs is of the first entry")
    check(run(program, *bench, folder / "x8.npy").stdout.startswith(b"entry 1\n"), "with inputs of theirs")
    check(run(program, *bench, "--entry=2").stdout.startswith(b"entry 2\n"), "--entry says which")
    check(run(program, "--profile", "--min-time", "0.01", folder / "x12.npy").stdout.startswith(b"entry 2\n"),
          "--profile, too")
    json.loads(run(program, *bench[1:], "--bench=json").stdout)
    run("/bin/sh", "-c", f"{program} - --output {folder / 'got.raw'} < {folder / 'x8.npy'}")
    check((folder / "got.raw").stat().st_size == 8 * 384 * 4, "standard input is read once")
    check("--entry NAME" in run(program, "--help").stdout.decode(), "--help has the option")
    run(program, "--self-check")


def data_sets(folder):
    """Each data set is for the entry that it fits."""
    program = folder / "digits"
    verified(DIGITS, program, "--entry", "one:image=1x1x8x8", "--entry", "pair:image=2x1x8x8")
    sets = folder / "sets"
    shutil.copytree(SOURCE / "models" / "test_data_set_0", sets / "test_data_set_0")
    two = sets / "test_data_set_1"
    two.mkdir()
    image = numbers(128, 3)
    (two / "input_0.pb").write_bytes(tensor("image", [2, 1, 8, 8], image))
    write_npy(folder / "two.npy", [2, 1, 8, 8], image)
    run(program, folder / "two.npy", "--output", folder / "scores.raw")
    scores = struct.unpack("<20f", (folder / "scores.raw").read_bytes())
    (two / "output_0.pb").write_bytes(tensor("scores", [2, 10], scores))
    said = run(program, "--verify", sets).stdout.decode()
    check("f32[1,10]" in said and "f32[2,10]" in said, "--verify takes the entry of each data set")
    run(program, "--verify", two)
    run(program, "--verify", two, "--entry", "pair")
    run(program, "--verify", two, "--entry", "one", expect=1)
    check(b"entry pair\n" in run(program, "--bench", "--entry", "pair", "--min-time", "0.01").stdout, "names are kept")


def same_size(folder):
    """Raw data may be meant as either of two shapes."""
    path, program = folder / "map.onnx", folder / "map"
    path.write_bytes(model([node("Relu", ["x"], ["y"])], [value("x", ["a", "b"])], [value("y", ["a", "b"])]))
    pack(path, program, "--shape", "a=2", "--shape", "b=3", "--shape", "a=3", "--shape", "b=2")
    raw = folder / "six.raw"
    raw.write_bytes(struct.pack("<6f", *range(6)))
    told = run(program, raw, expect=2).stderr.decode()
    check("--entry" in told and "f32[2,3]" in told and "f32[3,2]" in told, "the candidates are listed")
    check(run(program, raw, "--entry", "1").stdout.startswith(b"y: 3x2xf32="), "--entry decides")
    check(run(program, "x=3x2xf32=[1]").stdout.startswith(b"y: 3x2xf32="), "a literal has a shape")


def refusals(folder):
    two = ["--shape", "image=1x1x8x8", "--shape", "image=2x1x8x8"]
    out = folder / "refused"
    for more in (["--emit=plan"], ["--target", "cortex-m4", "--emit=static"], ["--emit=source"], ["--tune"],
                 ["--shape-from", "."], ["--max-flash", "1M"]):
        told = pack(DIGITS, out, *two, *more, expect=2).stderr.decode()
        check("several sets of shapes" in told and not out.exists(), f"{' '.join(more)} takes one set")
    told = pack(DIGITS, out, *two[:2], *two[:2], expect=3).stderr.decode()
    check("0 and 1 have inputs of the same shapes" in told, "equal sets are refused")
    many = [word for i in range(65) for word in ("--shape", f"image={i + 1}x1x8x8")]
    check("at most 64" in pack(DIGITS, out, *many, expect=2).stderr.decode(), "and more than 64")
    check("given twice" in pack(DIGITS, out, "--entry", "a:image=1x1x8x8", "--entry", "A:image=2x1x8x8",
                                expect=2).stderr.decode(), "names are macros")


LIBRARY = """
#include "libdigits.h"
#include <stdio.h>
static _Alignas(64) unsigned char arena[DIGITS_ARENA_BYTES];
int main(void) {
  static const float one[DIGITS_INPUT_0_COUNT] = {1};
  static const float two[DIGITS_ENTRY_1_INPUT_0_COUNT] = {1};
  static const int64_t dims[][DIGITS_INPUT_0_RANK] = {DIGITS_ENTRY_1_INPUT_0_DIMS, {7, 1, 8, 8}};
  const int64_t *pair[] = {dims[0]}, *other[] = {dims[1]};
  float a[DIGITS_OUTPUT_0_COUNT], b[DIGITS_ENTRY_1_OUTPUT_0_COUNT];
  const void *one_in[] = {one}, *two_in[] = {two};
  void *a_out[] = {a}, *b_out[] = {b};
  if (digits_arena_bytes() != DIGITS_ARENA_BYTES || DIGITS_NUM_ENTRIES != 2 || DIGITS_ENTRY_PAIR != 1) return 1;
  if (digits_find_entry(pair) != DIGITS_ENTRY_PAIR || digits_find_entry(other) != DIGITS_NUM_ENTRIES) return 2;
  if (digits_run(arena, one_in, a_out) != 0) return 3;
  if (digits_run_entry(1, arena, two_in, b_out) != 0) return 4;
  if (digits_run_entry(2, arena, two_in, b_out) != DIGITS_BAD_ARGUMENT) return 5;
  for (int i = 0; i < 10; i++)
    if (a[i] - b[i] > 1e-6f || b[i] - a[i] > 1e-6f) return 6;
  puts("ok");
  return 0;
}
"""


def library(folder):
    if not shutil.which("gcc"):
        print("not run: a C program, since gcc is not installed")
        return
    verified(DIGITS, folder / "libdigits.a", "--name", "digits", "--entry", "one:image=1x1x8x8",
             "--entry", "pair:image=2x1x8x8")
    (folder / "main.c").write_text(LIBRARY)
    run("gcc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", folder / "main.c", folder / "libdigits.a",
        "-I", folder, "-o", folder / "uses")
    check(run(folder / "uses").stdout == b"ok\n", "a library runs each entry in one arena")


def other_machine(folder):
    """Half as many bits of an address, and another way to start."""
    if not shutil.which("qemu-arm"):
        print("not run: a program for armv7, since qemu-arm is not installed")
        return
    program = folder / "digits-armv7"
    pack(DIGITS, program, "--target", "armv7", "--shape", "image=1x1x8x8", "--shape", "image=2x1x8x8")
    said = run("qemu-arm", program, "image=2x1x8x8xf32=[0]").stdout
    check(said.startswith(b"scores: 2x10xf32="), "a program for armv7 takes its entry")
    run("qemu-arm", program, "image=3x1x8x8xf32=[0]", expect=1)


def main():
    folder = work_folder("shapes")
    program = entries_are_single_packs(folder)
    weights_beside(folder)
    what_fits_nothing(folder, program)
    modes(folder, program)
    data_sets(folder)
    same_size(folder)
    refusals(folder)
    library(folder)
    other_machine(folder)


main()
