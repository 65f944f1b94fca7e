#!/usr/bin/env python3
"""Operators of the user's own, from C++ to a packed program: here, on another CPU, and everything that can be
wrong with the file or the node."""
import json
import os
import pathlib
import re
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import FLOAT, INT64, data, model, node, number, tensor, value
from packing import LEVEL, PACKER, SOURCE, check, pack, read_npy, run, work_folder, write_npy

OPS = SOURCE / "tests" / "custom_ops"
DOMAIN = data(8, data(1, "my.domain") + number(2, 1))
DOUBLE = 11
X = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0]


def close(got, want):
    return len(got) == len(want) and all(abs(a - b) <= 1e-5 * max(1, abs(b)) for a, b in zip(got, want))


def write(path, nodes, inputs, outputs, initializers=()):
    path.write_bytes(model(nodes, inputs, outputs, initializers) + DOMAIN)
    return path


def swish_model(path, dtype=FLOAT):
    """A call between kernels of ours: its input and its result are temporaries."""
    nodes = [node("Add", ["x", "x"], ["d"]),
             node("SoftSwish", ["d"], ["s"], "act", "my.domain", beta=0.5), node("Neg", ["s"], ["y"])]
    return write(path, nodes, [value("x", [2, 3], dtype)], [value("y", [2, 3], dtype)])


def rows_model(path, outputs):
    """Two outputs, a list, a known input; `outputs` are those that the model has."""
    nodes = [node("WeighRows", ["x", "scale"], ["w", "s"], "rows", "my.domain", weights=[1, 2, 4], first=1)]
    known = {"w": value("w", [2, 3]), "s": value("s", [2], INT64)}
    # The shape of an output that nobody reads is declared all the same.
    path.write_bytes(model(nodes, [value("x", [2, 3])], [known[o] for o in outputs], [tensor("scale", [1], [10.0])],
                           values=[known[o] for o in known if o not in outputs]) + DOMAIN)
    return path


def swished():
    return [-(2 * x / (1 + abs(x))) for x in X]


def on_x(folder, program, output, *runner):
    write_npy(folder / "x.npy", (2, 3), X)
    run(*runner, program, "--input", f"x=@{folder / 'x.npy'}", "--output", f"{output}=@{folder / 'out.npy'}")
    return read_npy(folder / "out.npy")[1]


def elementwise(folder):
    path, source = swish_model(folder / "swish.onnx"), OPS / "soft_swish.cpp"
    program = folder / "swish"
    pack(path, program, "--custom-op", source, every_level=True)
    check(close(on_x(folder, program, "y"), swished()), "an elementwise operator, at each level of this machine")
    check(b": act\n" in run(program, "--info").stdout, "--info names the node of the custom kernel")
    if shutil.which("qemu-aarch64-static"):
        pack(path, program, "--custom-op", source, "--target", "aarch64")
        check(close(on_x(folder, program, "y", "qemu-aarch64-static"), swished()), "the same on aarch64")
    pack(path, folder / "swish.a", "--custom-op", source, "--target", "cortex-m4")
    check((folder / "swish.a").stat().st_size > 1000, "a library for Cortex-M4")
    deps = folder / "deps.d"
    pack(path, program, "--custom-op", source, f"--deps={deps}")
    check(str(source) in deps.read_text(), "--deps names the C++ file")


def chosen_by_type(folder):
    path = swish_model(folder / "double.onnx", DOUBLE)
    pack(path, folder / "double", "--custom-op", OPS / "soft_swish.cpp")
    (folder / "x.bin").write_bytes(struct.pack("<6d", *X))
    run(folder / "double", "--input", f"x=@{folder / 'x.bin'}", "--output", f"y=@{folder / 'y.bin'}")
    got = struct.unpack("<6d", (folder / "y.bin").read_bytes())
    check(close(got, swished()), "the function is chosen by the element types")


def several_outputs(folder):
    weighed = [10 * x * w for x, w in zip(X, [1, 2, 4] * 2)]
    for outputs in (["w", "s"], ["w"], ["s"]):
        path = rows_model(folder / "rows.onnx", outputs)
        pack(path, folder / "rows", "--custom-op", OPS / "weigh_rows.cpp")
        write_npy(folder / "x.npy", (2, 3), X)
        words = [f"--output={o}=@{folder / o}.npy" for o in outputs]
        run(folder / "rows", f"--input=x=@{folder / 'x.npy'}", *words)
        good = "w" not in outputs or close(read_npy(folder / "w.npy")[1], weighed)
        if "s" in outputs:
            sums = struct.unpack("<2q", (folder / "s.npy").read_bytes()[-16:])
            good = good and sums == (0, int(sum(weighed[3:])))
        check(good, f"two outputs, of which the model has {' and '.join(outputs)}")


def reused(folder):
    path, source = swish_model(folder / "cached.onnx"), folder / "op.cpp"
    environment = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"))
    compiled, keys = [], []
    for text in ("", "", "// another text\n"):
        source.write_text((OPS / "soft_swish.cpp").read_text() + text)
        pack(path, folder / "cached", "--custom-op", source, f"--json={folder / 'cached.json'}", *LEVEL, env=environment)
        report = json.loads((folder / "cached.json").read_text())
        compiled.append(report["cache"]["kernels_compiled"])
        keys.append(report["digest"])
    check(compiled[1] == 0 and compiled[2] > 0, f"the source is in the key of its kernel: {compiled}")
    check(keys[0] == keys[1] != keys[2], "and in the key of the plan")


def faults(folder):
    """(what is in the file, exit code, what stderr must hold)."""
    path, source = swish_model(folder / "faults.onnx"), folder / "bad.cpp"
    mark = '[[clang::annotate("svod::op", "my.domain", "SoftSwish", "same(0)")]]\n'
    rows = [
        (mark + "void f(const float* x, float* y, void (*g)(int)) {}", 6, r"bad\.cpp:2:\d+: parameter 'g' points to"),
        (mark + "void f(const float* x, float* y, const char* s) {}", 6, r"bad\.cpp:2:\d+: parameter 's' points to"),
        (mark + "int f(const float* x, float* y) { return 0; }", 6, r"bad\.cpp:2:\d+: an operator returns void"),
        (mark + "void f(const float* x) {}", 6, r"bad\.cpp:2:\d+: an operator has at least one input"),
        (mark + "void f(const float* x, float* y) { y[0] = x[0] }", 6, r"bad\.cpp:2:\d+: error: expected ';'"),
        (mark.replace("same(0)", "same(3)") + "void f(const float* x, float* y) {}", 6, r"bad\.cpp:1:\d+: shape"),
        ('extern "C" float expf(float);\n' + mark + "void f(const float* x, float* y) { y[0] = expf(x[0]); }", 6,
         r"bad\.cpp:3:\d+: call of 'expf', which is not defined here"),
        ("#include <math.h>\n" + mark + "void f(const float* x, float* y) {}", 6, r"bad\.cpp:1:\d+: #include of 'math.h'"),
        ("static int count;\n" + mark + "void f(const float* x, float* y) { count++; }", 6, r"'count' is writable"),
        ("void f(const float* x, float* y) {}", 6, r"bad\.cpp: no function has the annotation"),
        # The file is good, the node is another.
        (mark + "void f(const double* x, double* y, float beta) {}", 3,
         r"'act'.*input 0 is f32, but ::f \(bad\.cpp:2\) takes const double\* x"),
        (mark + "void f(const float* x, const float* z, float* y, float beta) {}", 3, r"'act'.*takes an input 1 'z'"),
        (mark + "void f(const float* x, float* y) {}", 3, r"'act'.*attribute 'beta' is no parameter of ::f"),
        (mark + "void f(const float* x, float* y, float beta, float gamma) {}", 3, r"'act'.*attribute 'gamma' is missing"),
        (mark + "void f(const float* x, float* y, int beta) {}", 3, r"'act'.*attribute 'beta' does not fit"),
        (mark.replace(', "same(0)"', "") + "void f(const float* x, float* y, float beta) {}", 3,
         r"'act'.*declares no shape for output 0"),
    ]
    for text, code, wanted in rows:
        source.write_text(text + "\n")
        said = run(PACKER, path, "-o", folder / "never", "--custom-op", source, expect=code).stderr.decode()
        check(re.search(wanted, said), f"exit {code}: {wanted}")
    run(PACKER, path, "-o", folder / "never", "--custom-op", folder / "absent.cpp", expect=4)
    check(not (folder / "never").exists(), "nothing was written")
    run(PACKER, path, "-o", folder / "verified", "--custom-op", OPS / "soft_swish.cpp", "--verify=random", *LEVEL)


def declaration(folder):
    """The declaration that the error suggests, with a body, is an operator that packs."""
    path, source = swish_model(folder / "unknown.onnx"), folder / "suggested.cpp"
    said = run(PACKER, path, "-o", folder / "never", expect=3).stderr.decode()
    found = re.search(r"your own function: (.*)", said)
    check(found and "x0 /* [2,3] */" in found[1], "an unknown operator comes with the function to write")
    source.write_text("#include <stdint.h>\n" + found[1] + "{ for (int i = 0; i < 6; ++i) y0[i] = x0[i] * beta; }\n")
    pack(path, folder / "suggested", "--custom-op", source)
    check(close(on_x(folder, folder / "suggested", "y"), [-x for x in X]), "which is right as it stands")


def main():
    folder = work_folder("custom_op")
    for part in (elementwise, chosen_by_type, several_outputs, reused, faults, declaration):
        part(folder)


if __name__ == "__main__":
    sys.exit(main())
