#!/usr/bin/env python3
"""--bisect: healthy models have no kernel that differs; one broken by hand is named, with its nodes and the place."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import data, model, node, number, random_tensor, value
from packing import BUILD, DIGITS, PACKER, SOURCE, check, run, work_folder

LEVEL = ["--target", "x86-64-v3", "--cache-dir", BUILD / "e2e" / "cache"]


def product():
    """A product too long for a sequence, and one that reads it; -Os has no Strassen."""
    return model([node("MatMul", ["x", "w"], ["h"], "head/product"), node("Tanh", ["h"], ["t"], "head/tanh"),
                  node("MatMul", ["t", "v"], ["y"], "tail/product")],
                 [value("x", [96, 128])], [value("y", [96, 256])],
                 [random_tensor("w", [128, 512], 1, 0.1), random_tensor("v", [512, 256], 2, 0.1)])


def scan(steps):
    """A recurrent cell; so many steps stay a loop."""
    def graph(nodes, inputs, outputs, weights):
        return (b"".join(data(1, n) for n in nodes) + data(2, "body") + b"".join(data(5, w) for w in weights) +
                b"".join(data(11, i) for i in inputs) + b"".join(data(12, o) for o in outputs))

    cell = graph([node("MatMul", ["h", "w"], ["m"], "cell/product"), node("Add", ["m", "u"], ["s"], "cell/add"),
                  node("Tanh", ["s"], ["n"], "cell/tanh"), node("Identity", ["n"], ["o"], "cell/out")],
                 [value("h", [64, 96]), value("u", [64, 96])], [value("n", [64, 96]), value("o", [64, 96])],
                 [random_tensor("w", [96, 96], 5, 0.1)])
    loop = (node("Scan", ["h0", "us"], ["last", "all"], "recurrent", num_scan_inputs=1) +
            data(5, data(1, "body") + data(6, cell) + number(20, 5)))
    return model([loop], [value("h0", [64, 96]), value("us", [steps, 64, 96])],
                 [value("last", [64, 96]), value("all", [steps, 64, 96])])


def bisect(path, *options, expect=0):
    return run(PACKER, path, "--bisect", *LEVEL, *options, expect=expect).stderr.decode()


def text_of(path, kernel, *options):
    text = run(PACKER, path, "--emit=cpp", "--verify", "off", "-q", *LEVEL, *options).stdout.decode()
    found = re.search(rf"^// {kernel}\n(.*?)(?=^// k\d+_|\Z)", text, re.M | re.S)
    check(found is not None, f"--emit=cpp has the text of {kernel}")
    return found[1]


def broken(folder, path, kernel, pattern, replacement, *options):
    """The option that takes a kernel's text with one place changed."""
    text, count = re.subn(pattern, replacement, text_of(path, kernel, *options), count=1, flags=re.S)
    check(count == 1, f"{kernel} has a place to break")
    file = folder / f"{kernel}.cpp"
    file.write_text(text)
    return ["--replace-kernel", f"{kernel}={file}"]


def check_product(folder):
    path = folder / "product.onnx"
    path.write_bytes(product())
    small = ["-Os", "--verify", "random"]
    said = bisect(path, *small)
    check(re.search(r"no kernel differs from the evaluator, on random inputs: \d+ launches, CPU level v3", said),
          "no kernel of a healthy model differs")
    check(list(folder.iterdir()) == [path], "without -o nothing is written")

    # The second row of a tile gets the sums of the first.
    bad = broken(folder, path, "k1_v3", r"(store\(a\d+ \+ [^,]*\+ \d+, )c1\)", r"\1c0)", "-Os")
    said = bisect(path, *small, *bad, expect=7)
    print(said)
    check("kernel k1 (CPU level v3) differs from the evaluator" in said, "a broken kernel is named")
    check("ONNX nodes: 'tail/product'" in said, "and its ONNX node")
    check(re.search(r"f32\[96,256[^]]*\] stored as .*a\d of the kernel", said), "and the buffer that it writes")
    check(re.search(r"\d+ of 24576 elements are wrong, the first at \[1, 0[0, ]*\]: got \S+, expected \S+\n", said),
          "and where it is wrong")
    for name, begins in (("its text:", "// k1_v3\n"), ("its schedule:", "kernel k1\n")):
        command = re.search(rf"{name} +svod-pack (.*)", said)[1]
        shown = subprocess.run(f"{PACKER} {command}", shell=True, capture_output=True).stdout.decode()
        check(shown.startswith(begins) and "c0);" in shown or begins in shown[:20], f"the command for {name[:-1]} prints it")

    report = folder / "report.json"
    bisect(path, *small, *bad, f"--json={report}", expect=7)
    told = json.loads(report.read_text())
    report.unlink()
    check(any("kernel k1 (CPU level v3) differs" in one["text"] and one["severity"] == "error"
              for one in told["diagnostics"]) and told["exit"] == 7, "the report names it, too")

    crashes = broken(folder, path, "k1_v3", r"store\(a\d+ \+ [^;]*;", "*static_cast<volatile int*>(nullptr) = 1;", "-Os")
    said = bisect(path, *small, *crashes, expect=7)
    check("signal 11 ended kernel k1, ONNX nodes 'tail/product'" in said, "a kernel that crashes is named")


def check_sequence(folder):
    said = bisect(DIGITS, "--verify", SOURCE / "models" / "test_data_set_0")
    check(f"no kernel differs from the evaluator, on the inputs of {SOURCE / 'models' / 'test_data_set_0'}" in said,
          "inputs of a folder")
    check(int(re.search(r"(\d+) launches", said)[1]) > 3, "a sequence runs part by part")
    said = bisect(DIGITS)
    check("on the inputs of" in said, "the data beside the model without --verify")
    name = re.search(r"^// (k\d+_v3)\n(?:(?!^// k\d+_).)*part", run(
        PACKER, DIGITS, "--emit=cpp", "--verify", "off", "-q", *LEVEL).stdout.decode(), re.M | re.S)
    kernel = name[1] if name else "k0_v3"
    bad = broken(folder, DIGITS, kernel, r"(.*store\([^,;]*, )(\w+)\);", r"\1\2 + \2);")
    said = bisect(DIGITS, *bad, expect=7)
    check("each of its kernels by itself gives what is expected" in said or "elements are wrong" in said,
          "a sequence whose text is wrong while its parts are right is named")


def check_accuracy(folder):
    """Each stored tensor beside the same one in double precision, up to where a kernel is wrong."""
    path, report = folder / "product.onnx", folder / "accuracy.json"

    def tensors(*options, expect=0):
        bisect(path, "-Os", "--verify", "random", f"--json={report}", *options, expect=expect)
        return json.loads(report.read_text())["accuracy"]["tensors"]

    right = tensors("-o", folder / "infer")
    check([t["nodes"][-1] for t in right][-1] == "tail/product" and right[-1]["type"] == "f32[96,256]",
          f"the last tensor is the model's output: {right[-1]}")
    check(all(0 < t["error"] < 1e-5 and 0 <= t["alone"] < 1e-5 for t in right), "floats have roundings, and no more")
    # An error that the comparison with the evaluator takes for one of rounding.
    bad = broken(folder, path, "k0_v3", r"(store\(a\d+ \+ [^,;]*, )(\w+)\);", r"\1\2 * vf32(1.00001f));", "-Os")
    wrong = tensors("-o", folder / "infer", *bad)
    check(wrong[0]["alone"] > 1e-6 > right[0]["alone"], f"a kernel that errs by 1e-5 shows it: {wrong[0]}")
    for made in (report, folder / "infer"):
        made.unlink()


def check_loop(folder):
    path = folder / "scan.onnx"
    path.write_bytes(scan(400))
    said = bisect(path, "--verify", "random")
    check("400 launches" in said, "a loop's kernel is compared in every iteration")
    bad = broken(folder, path, "k0_v3", r"(store\(a\d+ \+ [^,;]*, )(\w+)\);", r"\1\2 + \2);")
    said = bisect(path, "--verify", "random", *bad, expect=7)
    check("ONNX nodes: 'recurrent/body/cell/product', 'recurrent/body/cell/add'" in said,
          "a kernel in a loop is named by the nodes of the loop's body")
    check("elements are wrong, the first at [0, 0]" in said, "and by the place")


def check_refused(folder):
    path = folder / "product.onnx"
    for options, reason in ((["--emit=cpp"], "is for programs and libraries"),
                            (["--verify", "off"], "--verify=off denies"),
                            (["--target", "cortex-m4"], "do not run here"),
                            (["--replace-kernel", f"k99_v3={path}"], "no kernel of this model is k99_v3"),
                            (["--replace-kernel", "k0_v3"], "is not KERNEL=FILE.cpp")):
        done = run(PACKER, path, "--bisect", *options, expect=2).stderr.decode()
        check(reason in done, f"exit 2 says: {reason}")


def main():
    folder = work_folder("bisect")
    check_product(folder)
    check_accuracy(folder)
    check_sequence(folder)
    check_loop(folder)
    check_refused(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
