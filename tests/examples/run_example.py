#!/usr/bin/env python3
"""The examples of docs/examples besides the CMake project, as their own texts say they are run: run_example.py NAME."""
import importlib.util
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import INT64, model, node, small_cnn, small_mlp, tensor, value
from packing import BUILD, DIGITS, PACKER, SOURCE, check, need, pack, run, work_folder

EXAMPLES = SOURCE / "docs" / "examples"
FOUR = (EXAMPLES / "cmake-app" / "four.txt").read_bytes()
ONNX = os.environ.get("SVOD_ONNX_PYTHON") or str(BUILD / "onnx-python")
STRICT = ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def fed(content, *command, **more):
    done = subprocess.run([str(c) for c in command], input=content, capture_output=True, timeout=300, **more)
    check(done.returncode == 0, f"{pathlib.Path(command[0]).name} ends with 0 {done.stderr.decode()[-500:]}")
    return done.stdout.decode()


def ctypes(folder):
    library = folder / "libdigits.so"
    pack(DIGITS, library, "--name", "digits")
    shown = fed(FOUR, sys.executable, EXAMPLES / "ctypes/read_digit.py", library)
    check(shown.startswith("4, score "), f"the four is read: {shown!r}")


def loudness(folder):
    """By the example's own script where the onnx package is there, else the same graph by hand."""
    path = folder / "loudness.onnx"
    environment = dict(os.environ, PYTHONPATH=ONNX)
    done = subprocess.run([sys.executable, EXAMPLES / "audio-stream/make_model.py"], cwd=folder, env=environment,
                          capture_output=True, timeout=60)
    if done.returncode == 0:
        return path
    print("the onnx package is not there: the model is written by the test")
    path.write_bytes(model(
        [node("ReduceSumSquare", ["frame"], ["energy"], axes=[0], keepdims=1), node("Mul", ["energy", "fresh"], ["new"]),
         node("Mul", ["past", "kept"], ["old"]), node("Add", ["new", "old"], ["level"]),
         node("Add", ["level", "tiny"], ["sound"]), node("Log", ["sound"], ["logarithm"]),
         node("Mul", ["logarithm", "scale"], ["decibels"])],
        [value("frame", [160]), value("past", [1])], [value("decibels", [1]), value("level", [1])],
        [tensor("fresh", [1], [0.2 / 160]), tensor("kept", [1], [0.8]), tensor("tiny", [1], [1e-10]),
         tensor("scale", [1], [4.342944819])], opset=13))
    return path


def audio_stream(folder):
    need("gcc")
    library = folder / "libloudness.a"
    pack(loudness(folder), library, "--name", "loudness")
    program = folder / "stream"
    run("gcc", "-std=c11", *STRICT, "-I", folder, EXAMPLES / "audio-stream/stream.c", library, "-o", program)
    loud = struct.pack("<160h", *([16384, -16384] * 80)) * 30
    silent = bytes(320) * 30
    lines = fed(loud + silent, program).splitlines()
    levels = [float(line.split()[2]) for line in lines]
    check(len(lines) == 60 and lines[0].split()[:2] == ["0", "ms"], "a line for every ten milliseconds")
    check(abs(levels[29] + 6.02) < 0.05, f"half of full scale is -6 dB: {levels[29]}")
    check(levels[0] < levels[29] > levels[59] and levels[59] < -30, "it remembers from frame to frame")


def python(folder):
    paths = [str(SOURCE / "packager" / "python"), ONNX]
    sys.path += paths
    missing = [name for name in ("numpy", "svod_pack") if importlib.util.find_spec(name) is None]
    if missing:
        skip(f"Python has no {' and no '.join(missing)}")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths), SVOD_PACK_EXECUTABLE=str(PACKER),
                       SVOD_CACHE_DIR=str(folder / "cache"))
    shown = fed(FOUR, sys.executable, EXAMPLES / "python/read_digit.py", DIGITS, env=environment)
    check(shown.startswith("4, score "), f"the four is read: {shown!r}")


def rust(folder):
    need("cargo", "rustc")
    environment = dict(os.environ, SVOD_PACK_EXECUTABLE=str(PACKER), MODEL=str(DIGITS),
                       SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"), CARGO_TARGET_DIR=str(folder / "target"))
    command = ["cargo", "build", "--release", "--offline", "--manifest-path", EXAMPLES / "rust/Cargo.toml"]
    run(*command, env=environment, seconds=600)
    (EXAMPLES / "rust/Cargo.lock").unlink(missing_ok=True)
    shown = fed(FOUR, folder / "target/release/read_digit")
    check(shown.startswith("4, score "), f"the four is read: {shown!r}")


def wrapper(folder):
    """svod::Model: two models in one program, without exceptions and type information."""
    need("g++")
    for name, content in {"cnn": small_cnn(), "mlp": small_mlp()}.items():
        (folder / f"{name}.onnx").write_bytes(content)
        pack(folder / f"{name}.onnx", folder / f"lib{name}.a", "--name", name)
    program = folder / "two_wrappers"
    for standard in ("c++20", "c++23"):
        run("g++", f"-std={standard}", *STRICT, "-fno-exceptions", "-fno-rtti", "-I", folder,
            SOURCE / "tests/library/two_wrappers.cpp", folder / "libcnn.a", folder / "libmlp.a", "-o", program)
    check(b"too small" in run(program).stdout, "two models, own and lent arenas, statuses as text")
    kinds = [("a", 10, [2]), ("b", 16, [2]), ("c", 9, [2]), ("d", 22, [3]), ("e", 8, [2]), ("f", 14, [2]), ("g", 19, [3]),
             ("s", 11, []), ("z", 1, [0, 3])]
    (folder / "types.onnx").write_bytes(model(
        [node("Identity", [name], [f"{name}_out"]) for name, _, _ in kinds] + [node("NonZero", ["c"], ["where"])],
        [value(name, dims, dtype) for name, dtype, dims in kinds],
        [value(f"{name}_out", dims, dtype) for name, dtype, dims in kinds] + [value("where", [1, "n"], INT64)], opset=21))
    pack(folder / "types.onnx", folder / "libtypes.a", "--name", "types")
    run("g++", "-std=c++20", *STRICT, "-I", folder, SOURCE / "tests/library/element_types.cpp", folder / "libtypes.a",
        "-o", folder / "types")
    check(run(folder / "types").stdout == b"ok\n", "elements of every kind")
    pack(folder / "mlp.onnx", folder / "taken.a", "--name", "new")
    check("struct new_model {" in (folder / "taken.hpp").read_text(), "a name that C++ has taken gets another")


def pkg_config(folder):
    need("pkg-config", "gcc")
    for output, name in (("libdigits.a", "digits"), ("odd name.a", "other")):
        place = folder / name
        place.mkdir()
        pack(DIGITS, place / output, "--name", name, "--pkg-config")
        words = run("pkg-config", "--cflags", "--libs", name, env=dict(os.environ, PKG_CONFIG_PATH=str(place)))
        source = place / "main.c"
        header = output.replace(".a", ".h")
        source.write_text(f'#include "{header}"\nint main(void) {{ return {name}_arena_bytes() == 0; }}\n')
        program = place / "main"
        run("sh", "-c", f"gcc '{source}' -o '{program}' {words.stdout.decode().strip()}")
        run(program)
    refused = pack(DIGITS, folder / "program", "--pkg-config", expect=2).stderr.decode()
    check("--pkg-config is for libraries" in refused, "pkg-config finds headers and libraries")


def firmware(folder):
    """The commands of docs/firmware.md but the one that installs, each with the answer that stands below it."""
    need("arm-none-eabi-gcc", "qemu-system-arm")
    block = (SOURCE / "docs/firmware.md").read_text().split("```")[1]
    for place in ("models", "docs"):
        (folder / place).symlink_to(SOURCE / place)
    environment = dict(os.environ, PATH=f"{BUILD}:{os.environ['PATH']}", SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"))
    shown = ""
    for part in block.split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        if command.startswith("sudo "):
            continue
        done = run("sh", "-c", command, env=environment, cwd=folder)
        there = (done.stdout + done.stderr).decode()  # semihosting writes to the latter
        if not command.startswith("arm-none-eabi-size"):
            check(there == shown, f"{command.split()[0]}: {there!r}")
            continue
        text, said = (int(lines.splitlines()[1].split()[0]) for lines in (there, shown))
        check(abs(text - said) < said / 10, f"{text} bytes of text, the page says {said}")
    check("this is a 4" in shown, "it ends with the four")


if __name__ == "__main__":
    globals()[sys.argv[1]](work_folder(f"examples/{sys.argv[1]}"))
