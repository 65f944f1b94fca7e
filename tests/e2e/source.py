#!/usr/bin/env python3
"""--emit=source: one C++ file and one header that other compilers build without a warning, with --portable and
without, and that answers what the packed program of this machine answers. What it does not take is an error that names
the node; two models are two files of one program."""
import pathlib
import random
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import firmware_models as models
import source_builds as builds
from emulated import made_up
from onnx_writer import INT64, model, node, random_forest, random_tensor, small_cnn, small_mlp, tensor, value
from packed_header import Header
from packing import DIGITS, PACKER, SOURCE, check, need, pack, run, work_folder

FOLDER = work_folder("source")


def functions():
    """Scalar functions of every kind, and a reduction."""
    names = ["Sin", "Tan", "Exp", "Erf", "Tanh", "Sqrt", "Floor", "Atan", "Softplus"]
    nodes = [node(name, ["x"], [name]) for name in names]
    nodes += [node("Pow", ["x", "two"], ["Pow"]), node("Mod", ["x", "two"], ["Mod"], fmod=1),
              node("Concat", [*names, "Pow", "Mod"], ["all"], axis=0), node("ReduceMean", ["all"], ["y"], axes=[1])]
    return model(nodes, [value("x", [3, 7])], [value("all", [33, 7]), value("y", [33, 1])], [tensor("two", [1], [2.0])])


def attention():
    nodes = [node("MatMul", ["x", "wq"], ["q"]), node("MatMul", ["x", "wk"], ["k"]),
             node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["s"]),
             node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "x"], ["o"]),
             node("LayerNormalization", ["o", "g", "b"], ["y"], axis=-1)]
    weights = [random_tensor("wq", [16, 8], 1, 0.5), random_tensor("wk", [16, 8], 2, 0.5),
               random_tensor("g", [16], 3), random_tensor("b", [16], 4)]
    return model(nodes, [value("x", [1, 12, 16])], [value("y", [1, 12, 16])], weights)


def recurrent():
    weights = [random_tensor("w", [1, 32, 6], 1, 0.4), random_tensor("r", [1, 32, 8], 2, 0.4)]
    return model([node("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=8)], [value("x", [9, 1, 6])],
                 [value("y", [1, 1, 8])], weights)


def sorting():
    nodes = [node("TopK", ["x", "k"], ["best", "where"], axis=1), node("CumSum", ["x", "axis"], ["sums"]),
             node("GatherElements", ["x", "where"], ["again"], axis=1)]
    return model(nodes, [value("x", [4, 50])],
                 [value("best", [4, 5]), value("where", [4, 5], INT64), value("sums", [4, 50]),
                  value("again", [4, 5])], [tensor("k", [1], [5], INT64), tensor("axis", [], [1], INT64)])


def upsampling():
    nodes = [node("ConvTranspose", ["x", "w"], ["t"], strides=[2, 2]),
             node("Resize", ["t", "", "scales"], ["y"], mode="linear")]
    return model(nodes, [value("x", [1, 3, 5, 5])], [value("y", [1, 4, 22, 22])],
                 [random_tensor("w", [3, 4, 3, 3], 1), tensor("scales", [4], [1.0, 1.0, 2.0, 2.0])])


def empty():
    """A kernel that reads nothing."""
    return model([node("ReduceSum", ["x", "axis"], ["y"], keepdims=0)], [value("x", [2, 0, 4])], [value("y", [2, 4])],
                 [tensor("axis", [1], [1], INT64)])


MODELS = {"sine": models.sine(), "dense_int8": models.dense_int8(), "digits_int8": models.digits(),
          "keywords": models.keywords(), "residual": models.residual(), "digits": DIGITS.read_bytes(),
          "cnn": small_cnn(), "mlp": small_mlp(), "forest": random_forest(), "control": models.control(),
          "functions": functions(), "attention": attention(), "recurrent": recurrent(), "sorting": sorting(),
          "upsampling": upsampling(), "empty": empty()}
THOROUGH = ("keywords", "control")


def inputs_of(header):
    rng = random.Random(5)
    return [struct.pack("<q", 10) if port == ("n", "i64", 8) else made_up(port, rng.randrange(99))
            for port in header.ports("INPUT")]


def put(name, content, *options):
    """The model packed as source; (the file, inputs that fit)."""
    folder = FOLDER / name
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.onnx"
    file.write_bytes(content)
    source = folder / ("portable.cpp" if "--portable" in options else "source.cpp")
    pack(file, source, *options)
    return source, inputs_of(Header(source.with_suffix(".h")))


def apart(port, ours, theirs):
    """What is wrong with an output: floats are within rounding, as a compiler may fuse a product and a sum; a quantised
    byte that floats leave in the middle of two steps may be either; all else is equal."""
    if port.dtype == "f32":
        pairs = zip(*(struct.unpack(f"<{port.bytes // 4}f", data) for data in (ours, theirs)))
        return [(a, b) for a, b in pairs if abs(a - b) > 2e-5 * max(1, abs(a))]
    steps = 1 if port.dtype in ("i8", "u8") else 0
    return [(a, b) for a, b in zip(ours, theirs) if min((a - b) % 256, (b - a) % 256) > steps]


def answers_here(source, inputs):
    """The outputs of the packed program of this machine, packed once."""
    folder = source.parent
    header = Header(source.with_suffix(".h"))
    files = [folder / f"out{i}.raw" for i in range(header["NUM_OUTPUTS"])]
    if not files[0].exists():
        pack(folder / f"{folder.name}.onnx", folder / "program")
        for i, data in enumerate(inputs):
            (folder / f"in{i}.raw").write_bytes(data)
        run(folder / "program", *(folder / f"in{i}.raw" for i in range(len(inputs))),
            *(word for file in files for word in ("--output", f"@{file}")))
    return list(zip(header.ports("OUTPUT"), (file.read_bytes() for file in files)))


def same(source, outputs, inputs, where):
    wrong = [pair for (port, right), found in zip(answers_here(source, inputs), outputs)
             for pair in apart(port, right, found)]
    check(not wrong, f"{source.parent.name}, {where}: the answers of this machine {wrong[:3] or ''}")


def one_model(name, compilers):
    """Both forms by all compilers, or each by one of them."""
    for options in ([], ["--portable"]):
        source, inputs = put(name, MODELS[name], *options)
        for compiler in compilers if name in THOROUGH else [compilers[-1 if options else 0]]:
            status, outputs = builds.run_here(compiler, source, inputs)
            check(status == 0, f"{name} {' '.join(options)}, {compiler}: no warning, status {status}")
            same(source, outputs, inputs, compiler)


def other_cores(names):
    """Objects of all compilers that are here; those of Arm run."""
    for core in builds.cores():
        for name in names:
            source, inputs = put(name, MODELS[name], "-Os")
            if not core[2]:
                builds.build_for(core, source)
                check(True, f"{name}, {core[0]}: no warning")
                continue
            code, outputs = builds.run_on_board(core, source, inputs, source.parent)
            check(code == 0, f"{name}, {core[2]}: exit {code}")
            same(source, outputs, inputs, core[2])


def plain():
    """Nothing that a standard does not have, but behind a question for its compiler."""
    for name in ("keywords", "functions"):
        text = (FOLDER / name / "portable.cpp").read_text()
        body = re.sub("//.*", "", text[text.index("namespace svod_infer"):])
        found = [word for word in ("__builtin", "__attribute__", "#pragma", "asm", "ext_vector", "vector_size", "__INT")
                 if word in body]
        check(not found, f"{name}: the portable form has no {found or 'word of one compiler'}")


def two_models():
    folder = FOLDER / "two"
    folder.mkdir()
    for name in ("sine", "dense_int8"):
        (folder / f"{name}.onnx").write_bytes(MODELS[name])
        pack(folder / f"{name}.onnx", folder / f"{name}.cpp", "--name", name)
    (folder / "main.cpp").write_text(
        '#include "sine.h"\n#include "dense_int8.h"\n'
        "int main() { return sine_run(nullptr, nullptr, nullptr) + dense_int8_run(nullptr, nullptr, nullptr) + 2; }\n")
    run("g++", *builds.WARNINGS, "-O1", folder / "main.cpp", folder / "sine.cpp", folder / "dense_int8.cpp", "-o",
        folder / "main")
    run(folder / "main")
    check(True, "two models in one program, which refuse null")


def sections():
    source, _ = put("sine", MODELS["sine"])
    built = FOLDER / "sections.o"
    run("g++", *builds.WARNINGS, "-O1", "-c", '-DINFER_WEIGHTS_SECTION=__attribute__((section(".ext_flash")))', source,
        "-o", built)
    check(".ext_flash" in run("objdump", "-h", built).stdout.decode(), "weights lie in the section that is named")


def refused():
    file = FOLDER / "custom.onnx"
    file.write_bytes(model([node("SoftSwish", ["x"], ["y"], "gate", "my.domain", beta=0.5)], [value("x", [2, 3])],
                           [value("y", [2, 3])], domains=[("my.domain", 1)]))
    for words, code, text in (
            ([file, "-o", FOLDER / "s.cpp", "--custom-op", SOURCE / "tests/custom_ops/soft_swish.cpp"], 3, "'gate'"),
            ([DIGITS, "-o", FOLDER / "s.cpp", "--target", "aarch64"], 2, "runs an operating system"),
            ([DIGITS, "-o", FOLDER / "s.cpp", "--target", "cortex-m55"], 2, "has vectors"),
            ([DIGITS, "-o", FOLDER / "s.a", "--target", "portable"], 2, "--emit=source"),
            ([DIGITS, "-o", FOLDER / "s.a", "--portable"], 2, "--portable is for --emit=source")):
        said = run(PACKER, *words, "--verify", "off", expect=code).stderr.decode()
        check(text in said, said.strip().splitlines()[-1])


def main():
    need("g++", "objdump")
    compilers = builds.hosts()
    print("compilers:", ", ".join(compilers))
    for name in MODELS:
        one_model(name, compilers)
    missing = [core[2] or core[0] for core in builds.CORES if core not in builds.cores()]
    if missing:
        print("left out, as a compiler, its C library or an emulator is missing:", ", ".join(missing))
    other_cores(["sine", "keywords", "functions"])
    plain()
    two_models()
    sections()
    refused()


if __name__ == "__main__":
    sys.exit(main())
