#!/usr/bin/env python3
"""The command line of a packed program: names, files, suffixes, and what it says of itself; `--long`: as for other machines."""
import json
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import data, model, node, number, tensor, value
from packing import DIGITS, LONG, PACKER, check, pack, read_npy, run, sample, work_folder

FOLDER = work_folder("program")


def says(done, *words):
    text = done.stderr.decode()
    check(all(word in text for word in words), f"says {words}: {text.strip()!r}")


def names_and_suffixes(program):
    image = sample("digit_1.npy")
    absent = FOLDER / "x"
    says(run(program, "--input", f"image=@{image}", "--output", f"bogus=@{absent}", expect=2),
         "'bogus'", "'scores'", "f32[1,10]")
    check(not list(FOLDER.glob("*x")), "a wrong output name writes no file")
    says(run(program, "--input", f"imag=@{image}", expect=2), "'imag'", "is it 'image'?", "inputs: image f32[1,1,8,8]")
    says(run(program, "--output", f"scores={FOLDER / 's.txt'}", expect=2), ".npy, .npz, .pb, .json, .raw, .bin")
    outputs = set()
    for word in (f"image={image}", f"image=@{image}", f"0={image}", image):
        for at in ("", "@"):
            out = FOLDER / "scores.npy"
            run(program, "--input", word, "--output", f"scores={at}{out}")
            outputs.add(out.read_bytes())
    check(len(outputs) == 1, "with @ and without, by name, by number and by place: the same")
    check(not list(pathlib.Path.cwd().glob("scores*")), "files lie where they were asked for")
    says(run(program, "--inputs", "x", expect=2), "is it --input?")
    says(run(program, "--threads", "x", expect=2), "the value of --threads is missing or wrong")


def json_files(program):
    image, there, back = sample("digit_4.npy"), FOLDER / "scores.json", FOLDER / "scores.npy"
    run(program, image, "--output", f"scores=@{there}", "--output", f"scores=@{back}")
    lists, values = json.loads(there.read_text()), read_npy(back)[1]
    exact = [struct.unpack("<f", struct.pack("<f", v))[0] for v in lists[0]]
    check(len(lists) == 1 and exact == values, "a .json file holds the same floats, in the output's shape")
    shape, pixels = read_npy(image)
    rows = [[pixels[8 * i:8 * i + 8] for i in range(8)]]
    nested = FOLDER / "image.json"
    nested.write_text(json.dumps([rows]))
    run(program, nested, "--output", f"scores=@{FOLDER / 'again.npy'}")
    check((FOLDER / "again.npy").read_bytes() == back.read_bytes(), "a .json file is read")
    nested.write_text(json.dumps(rows))
    says(run(program, nested, expect=1), "not as long as the shape says")


def reasons(program):
    says(run(program, f"{FOLDER}/absent.npy", expect=4), "No such file or directory")
    says(run(program, "--input", f"image=@{FOLDER}", expect=4), "Is a directory")
    says(run(program, sample("digit_1.npy"), "--output", "scores=@/nonexistent/s.npy", expect=4),
         "cannot be written", "No such file or directory")
    full = run(program, sample("digit_1.npy"), "--output", "scores=@/dev/full", expect=4)
    says(full, "No space left on device")
    says(run(program, "--verify", FOLDER / "absent", expect=4), "absent")


def what_it_is(program):
    version = run(PACKER, "--version").stdout.decode().split()[1]
    shown = run(program, "--version").stdout.decode()
    digest = json.loads(run(program, "--info=json").stdout)["model"]["sha256"]
    check(f"svod-pack {version}" in shown and digest in shown and "'digits'" in shown, f"--version: {shown!r}")
    check("names no licence" in run(program, "--licenses").stdout.decode(), "--licenses without one in the model")
    metadata = data(14, data(1, "License") + data(2, "CC-BY \"4.0\" é"))
    named, packed = FOLDER / "licensed.onnx", FOLDER / "licensed"
    named.write_bytes(model([node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y", [2])]) + metadata)
    pack(named, packed)
    shown = run(packed, "--licenses").stdout.decode()
    check('"CC-BY \\"4.0\\" é"' in shown and "LLVM-exception" in shown, f"--licenses: {shown.splitlines()[0]!r}")


def cpu_check(program):
    check("is used" in run(program, "--cpu-check").stdout.decode(), "--cpu-check says which level is used")
    says(run(program, "--cpu-check", "--isa", "v9", expect=2), "v2 v3 v4")
    here = set(pathlib.Path("/proc/cpuinfo").read_text().split())
    lacking = next((cpu for cpu, flag in (("sapphirerapids", "avx512_fp16"), ("cooperlake", "avx512_bf16"),
                                          ("icelake-server", "avx512_vbmi2")) if flag not in here), None)
    if lacking is None:
        print("not tried: a program that this CPU cannot run, since it has all that is asked for")
        return
    other = FOLDER / "other"
    pack(DIGITS, other, "--cpu", lacking)
    says(run(other, "--cpu-check", expect=9), "lacks", "AVX512-")
    says(run(other, sample("digit_1.npy"), expect=9), "lacks", "AVX512-")


def left_out():
    """An optional that was packed as left out takes what a test data set has for it: nothing."""
    floats = data(1, number(1, 1) + data(2, data(1, number(1, 2))))
    optional = data(1, "o") + data(2, data(9, data(1, floats)))
    path, program = FOLDER / "optional.onnx", FOLDER / "optional"
    path.write_bytes(model([node("OptionalHasElement", ["o"], ["there"]), node("Add", ["a", "b"], ["y"])],
                           [value("a", [2]), optional, value("b", [2])],
                           [value("y", [2]), value("there", [], 9)], opset=18))
    folder = FOLDER / "test_data_set_0"
    folder.mkdir()
    files = {"input_0": tensor("a", [2], [1, 2]), "input_1": data(1, "o") + number(2, 1),
             "input_2": tensor("b", [2], [10, 20]), "output_0": tensor("y", [2], [11, 22])}
    for name, content in files.items():
        (folder / f"{name}.pb").write_bytes(content)
    pack(path, program, "--shape", "o=none")
    run(program, "--verify", folder)
    inputs = [folder / f"input_{i}.pb" for i in range(3)]
    right = run(program, *inputs).stdout
    check(b"2xf32=[11 22]" in right, "the files of the data set in their order")
    check(run(program, inputs[0], inputs[2]).stdout == right, "without the one that is left out")
    named = ["--input", f"a={inputs[0]}", "--input", f"b={inputs[2]}"]
    check(run(program, *named, "--input", f"o={inputs[1]}").stdout == right, "by name")
    check(run(program, *named, "--input", "o=none").stdout == right, "as none")
    (FOLDER / "given.pb").write_bytes(data(1, "o") + number(2, 1) + data(3, tensor("", [2], [1, 2])))
    says(run(program, *named, "--input", f"o=@{FOLDER / 'given.pb'}", expect=1), "was packed as left out")
    says(run(program, *named, "--input", "o=zeros", expect=2), "o, optional that is left out")


def scale():
    """What a sum of large terms rounds away is no fault of a result near zero; other faults are."""
    path, folder, values = FOLDER / "same.onnx", FOLDER / "scale", [1000.0, -2.0, 0.001]
    x, y = value("x", [3]), value("y", [3])
    path.write_bytes(model([node("Neg", ["x"], ["y"])], [x], [y]))
    pack(path, FOLDER / "same")
    folder.mkdir(exist_ok=True)
    (folder / "input_0.pb").write_bytes(tensor("x", [3], values))
    for index, off, expect, strict in ((2, 0.005, 0, 7), (2, 0.05, 7, 7), (1, 0.001, 0, 0), (1, 0.005, 0, 7), (0, 0.5, 0, 0), (0, 5, 7, 7)):
        wanted = [-v for v in values]
        wanted[index] += off
        (folder / "output_0.pb").write_bytes(tensor("y", [3], wanted))
        run(FOLDER / "same", "--verify", folder, expect=expect)
        run(FOLDER / "same", "--verify", folder, "--strict", expect=strict)


def other_machines(program):
    """Programs for every kind of Linux link, and say the same where QEMU is there to run them."""
    here = json.loads(write(program))
    machines = (("armv7", "qemu-arm"), ("aarch64", "qemu-aarch64"), ("riscv64", "qemu-riscv64"))
    for target, emulator in machines if LONG else machines[:1]:
        other = FOLDER / f"digits_{target}"
        pack(DIGITS, other, "--target", target)
        qemu = shutil.which(f"{emulator}-static") or shutil.which(emulator)
        if qemu is None:
            print(f"{target}: packed, and not run, since {emulator} is not installed")
            continue
        there = json.loads(write(qemu, other))
        check(all(abs(a - b) < 1e-5 for a, b in zip(here[0], there[0])), f"{target}: the same scores")
        check(b"not checked" in run(qemu, other, "--cpu-check").stdout, f"{target}: its CPU is not asked")


def write(*program):
    out = FOLDER / "other.json"
    run(*program, sample("digit_2.npy"), "--output", f"scores={out}")
    return out.read_text()


def main():
    program = FOLDER / "digits"
    pack(DIGITS, program, every_level=True)
    names_and_suffixes(program)
    json_files(program)
    reasons(program)
    what_it_is(program)
    cpu_check(program)
    left_out()
    scale()
    other_machines(program)


if __name__ == "__main__":
    sys.exit(main())
