#!/usr/bin/env python3
"""What svod-pack says where a user has gone wrong, or may think so: the nearest right name, what to do, and no word too
many. Each part was a fault that somebody met."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import onnx_writer as onnx
from packing import BUILD, DIGITS, PACKER, SOURCE, check, run, work_folder

STRING = 8  # TensorProto.DataType
POINTER = ("version https://git-lfs.github.com/spec/v1\n"
           "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")


def packer(folder, *words, code=0, **more):
    env = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"), **more)
    return run(PACKER, *words, expect=code, cwd=folder, env=env, seconds=300)


def said(folder, *words, code=0):
    return packer(folder, *words, code=code).stderr.decode()


def relu(folder, *inputs):
    """A model that adds its inputs up, each given by name and dimensions."""
    path = folder / ("_".join(name for name, _ in inputs) + ".onnx")
    nodes = [onnx.node("Sum", [name for name, _ in inputs], ["y"])]
    path.write_bytes(onnx.model(nodes, [onnx.value(*i) for i in inputs], [onnx.value("y", inputs[0][1])]))
    return path


def nearest_names(folder):
    for words, nearest, kind in (
            ([DIGITS, "-o", "x", "--emti", "exe"], "--emit", "option"), (["chek", DIGITS], "check", "verb"),
            (["doctr"], "doctor", "verb"), (["cache", "statz"], "stats", "action"),
            ([DIGITS, "-o", "x", "--target", "cortex-m44"], "cortex-m4", "target"),
            ([DIGITS, "-o", "x", "--cpu", "znver44"], "znver4", "CPU"),
            ([DIGITS, "-o", "x", "--emit", "shard"], "shared", "form"),
            ([DIGITS, "-o", "x", "--print-after", "simplfy"], "simplify", "stage"),
            ([DIGITS, "-o", "x", "--shape", "imag=1x1x8x8"], "image", "input"),
            ([DIGITS, "-o", "x", "--value", "imag=1"], "image", "input with a value"),
            (["check", DIGITS, "--jsn"], "--json", "option of a verb")):
        told = said(folder, *words, code=2)
        check(f"the nearest is '{nearest}'" in told, f"an unknown {kind} names the nearest: {told.splitlines()[0]}")
    for words in ([DIGITS, "-o", "x", "--print-after", "nonsense"], [DIGITS, "--emit=graph", "--print-after", "nonsense"],
                  ["check", DIGITS, "--print-after", "nonsense"]):
        told = said(folder, *words, code=2)
        check("nonsense" in told and "contract-products" in told, "an unknown stage lists all of them")


def cpus_of_targets(folder):
    told = said(folder, DIGITS, "-o", "x.a", "--target", "cortex-m4", "--cpu", "cortex-m0", code=2)
    check("it lacks dsp" in told and "--target cortex-m0" in told, f"a CPU of another target: {told.splitlines()[0]}")
    packer(folder, DIGITS, "-o", "x.a", "--target", "cortex-m4", "--cpu", "cortex-m7")


def suffixes(folder):
    for name, instead in (("x.dll", ".so"), ("x.dylib", ".so"), ("x.lib", ".a"), ("x.exe", "without suffix")):
        told = said(folder, DIGITS, "-o", name, code=2)
        check(name in told and instead in told and "ELF" in told, f"-o {name}: {told.splitlines()[0]}")
        check(not (folder / name).exists(), "and nothing is written")
    packer(folder, DIGITS, "-o", "x.dll", "--emit=shared")
    check((folder / "x.dll").exists(), "--emit says that the name is meant")
    told = said(folder, DIGITS, "-o", "firm", "--target", "cortex-m4")
    check("firm becomes a static library" in told and "--emit=static" in told, "firmware without a suffix is explained")
    check("becomes" not in said(folder, DIGITS, "-o", "firm.a", "--target", "cortex-m4"), "and with one it is not")


def one_file_of_kernels(folder):
    """--emit=cpp compiles as it stands, and each kernel has its name."""
    clang = shutil.which("clang++-19") or shutil.which("clang++") or "/usr/lib/llvm-19/bin/clang++"
    packer(folder, DIGITS, "--emit=cpp", "-o", "all.cpp")
    names = re.findall(r"^// (k\d+_\w+)$", (folder / "all.cpp").read_text(), re.M)
    if not pathlib.Path(clang).exists():
        print("no clang++ at hand: the file is not compiled")
        return
    run(clang, "-std=c++20", "-march=x86-64-v3", "-c", "all.cpp", "-o", "all.o", cwd=folder)
    symbols = run("nm", "all.o", cwd=folder).stdout.decode()
    check(len(names) > 3 and all(re.search(rf" T {name}$", symbols, re.M) for name in names),
          f"one object defines {len(names)} kernels")


def caches(folder):
    cache = folder / "cache"
    packer(folder, DIGITS, "-o", "x", "--cache-dir", cache)
    before = packer(folder, "cache", "stats", "--cache-dir", cache).stdout
    for action in ("clear", "gc"):
        told = packer(folder, "cache", action, "--dry-run", "--cache-dir", cache).stdout.decode()
        check("would be removed" in told, f"cache {action} --dry-run says what would go: {told.strip()}")
    check(packer(folder, "cache", "stats", "--cache-dir", cache).stdout == before, "and removes nothing")
    check("removed" in packer(folder, "cache", "clear", "--cache-dir", cache).stdout.decode(), "cache clear does")
    (folder / "file").write_text("")
    told = said(folder, DIGITS, "-o", "x", "--cache-dir", "file/cache", "--verify", "random")
    check(told.count("warning: the cache file/cache cannot be written") == 1, "a cache that cannot be written: one warning")


def verifying(folder):
    told = said(folder, DIGITS, "-o", "x", "--verify", "random")
    check(told.startswith("random\n") and "/tmp" not in told, f"random data has no path: {told.splitlines()[0]}")
    packer(folder, DIGITS, "-o", "y", "--verify", "random", "--weights", "file")
    data = folder / "set"
    data.mkdir()
    nodes = [onnx.node("Relu", ["a"], ["y"]), onnx.node("Neg", ["a"], ["z"])]
    (folder / "two.onnx").write_bytes(onnx.model(nodes, [onnx.value("a", [2])],
                                                 [onnx.value("y", [2]), onnx.value("z", [2])]))
    (data / "input_0.pb").write_bytes(onnx.tensor("a", [2], [1.0, 2.0]))
    (data / "output_0.pb").write_bytes(onnx.tensor("y", [2], [1.0, 2.0]))
    told = said(folder, "two.onnx", "-o", "two", "--verify", "set")
    check("z: not compared, there is no set/output_1.pb" in told, "an output without its file is named")


def pipes():
    shell = f"set -o pipefail; '{PACKER}' ops | head -1; '{PACKER}' --help | head -1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60)
    check(done.returncode == 0 and done.stderr == b"", "a reader that has seen enough is no error")


def pointers(folder):
    (folder / "model.onnx").write_text(POINTER)
    told = said(folder, "model.onnx", "-o", "x", code=4)
    check("Git LFS" in told and "git lfs pull" in told, f"a pointer file: {told.splitlines()[0]}")
    weights = (onnx.number(1, 4) + onnx.number(2, 1) + onnx.data(8, "w") + onnx.number(14, 1) +
               onnx.data(13, onnx.data(1, "location") + onnx.data(2, "w.bin")))
    (folder / "outside.onnx").write_bytes(onnx.model([onnx.node("Add", ["a", "w"], ["y"])], [onnx.value("a", [4])],
                                                     [onnx.value("y", [4])], [weights]))
    (folder / "w.bin").write_text(POINTER)
    told = said(folder, "outside.onnx", "-o", "x", code=4)
    check("'w.bin' is a pointer of Git LFS" in told, "and one in the place of weights")


def guesses(folder):
    told = said(folder, relu(folder, ("bytes", ["n"])), "-o", "x", code=3)
    check("--shape bytes=N" in told, f"a stream of unknown length is asked for: {told.splitlines()[0]}")
    packer(folder, relu(folder, ("bytes", ["n"])), "-o", "x", "--shape", "n=16")
    packer(folder, relu(folder, ("bytes", ["n"])), "-o", "x", "--shape", "bytes=16")
    packer(folder, relu(folder, ("x", ["n", 4]), ("each", ["n"])), "-o", "x")
    told = said(folder, relu(folder, ("a", ["n", 4]), ("b", ["m", 4]), ("c", ["k", 4])), "-o", "x")
    check("leading dimensions of inputs 'a', 'b' and 'c' are unknown and become 1" in told and told.count("note") == 1,
          "one note for all guesses")


def strings_of_opset_7(folder):
    texts = onnx.number(1, 2) + onnx.number(2, STRING) + onnx.data(6, "one") + onnx.data(6, "two")
    constant = (onnx.data(2, "c") + onnx.data(4, "Constant") +
                onnx.data(5, onnx.data(1, "value") + onnx.data(5, texts) + onnx.number(20, 4)))
    (folder / "strings.onnx").write_bytes(onnx.model(
        [constant, onnx.node("Gather", ["c", "i"], ["y"])], [onnx.value("i", [1], onnx.INT64)],
        [onnx.value("y", [1], STRING)], opset=7))
    packer(folder, "strings.onnx", "-o", "strings")
    out = run(folder / "strings", "--input", "i=1xi64=[1]").stdout.decode()
    check("two" in out, f"a constant of strings in opset 7: {out.strip()}")


def branches_left_out(folder):
    """A run that takes a branch that did not fit the shapes of the pack is told so, not of an index."""
    def branch(name, shape):
        made = onnx.graph([onnx.node("Reshape", ["x", f"{name}_s"], [f"{name}_y"])], [], [onnx.value(f"{name}_y", ["k"])],
                          [onnx.tensor(f"{name}_s", [1], [shape], onnx.INT64)], name=name)
        return onnx.data(5, onnx.data(1, name) + onnx.data(6, made) + onnx.number(20, 5))
    choice = onnx.node("If", ["c"], ["y"], name="rate") + branch("then_branch", 4) + branch("else_branch", 7)
    truth = onnx.node("Cast", ["sr"], ["c"], to=9)
    (folder / "if.onnx").write_bytes(onnx.model([truth, choice], [onnx.value("x", [4]), onnx.value("sr", [1])],
                                                [onnx.value("y", ["k"])]))
    told = said(folder, "if.onnx", "-o", "if")
    check("its else_branch does not fit the shapes of this pack" in told, "the pack warns")
    run(folder / "if", "--input", "x=4xf32=[1 2 3 4]", "--input", "sr=1xf32=[1]")
    told = run(folder / "if", "--input", "x=4xf32=[1 2 3 4]", "--input", "sr=1xf32=[0]", expect=11).stderr.decode()
    check("left out when packing (else_branch of node 'rate')" in told, f"and the run says what it takes: {told.strip()}")


def kernels_that_crash(folder):
    """A kernel on which the compiler crashes is told by its nodes, with ways around it."""
    text = run(PACKER, DIGITS, "--emit=cpp", "--target", "cortex-m4", cwd=folder).stdout.decode()
    kernel = text[text.index("// k1_base"):text.index("// k2_base")]
    (folder / "k1.cpp").write_text(kernel + "#pragma clang __debug llvm_fatal_error\n")
    for words in (["-o", "x.a", "--verify", "off"], ["--emit=asm", "-o", "x.s"]):
        told = said(folder, DIGITS, "--target", "cortex-m4", "--replace-kernel", "k1_base=k1.cpp", *words, code=6)
        check("LLVM gave up" in told and "k1_base (ONNX nodes 'conv1')" in told and "--replace-kernel k1_base" in told,
              f"a crash of the compiler names kernel and node: {told.strip().splitlines()[-1][:60]}...")


def main():
    pipes()
    for part in (nearest_names, cpus_of_targets, suffixes, one_file_of_kernels, caches, verifying, pointers, guesses,
                 strings_of_opset_7, branches_left_out, kernels_that_crash):
        part(work_folder(f"messages_{part.__name__}"))


if __name__ == "__main__":
    sys.exit(main())
