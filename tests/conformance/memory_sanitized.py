#!/usr/bin/env python3
"""Runs packed models whose kernels and stub are compiled with MemorySanitizer: what reads memory that nobody wrote.

    [SVOD_CORPUS=DIR] memory_sanitized.py [--filter REGEX] [--seconds N] [--jobs 2]

Of a program that was packed, the image and the weights are taken as they are, and its kernels from --emit=cpp; Clang compiles
them, and the stub that replays the image, with -fsanitize=memory. Before each run the arena and the outputs hold nothing
(tests/fuzz/memory_run.cpp): an output that was not written, or a branch or an address that hangs on a byte that was not, is
reported. All levels that this processor runs, but for that of tiles (amx): MemorySanitizer does not see what a tile stores.
Models as in sanitized_kernels.py: the bundled ones, generated ones, and those of the corpus that need no shapes, smallest first
as far as time allows. First kernels that write nothing have to be reported.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from onnx_writer import model, node, random_tensor, tensor, value
from packing import PACKER, SOURCE, need, pack, run, work_folder
from run_conformance import Case
from sanitized import corpus_cases, made_cases
from time_limit import corpus_share, exit_code

SECONDS, MODEL_SECONDS = 600, 120
SHARE = 0.06  # of SVOD_CORPUS_SECONDS
CLANG = "clang++-19"
# As kernels are compiled, but for the optimisation and what makes programs small.
FLAGS = ["-std=c++20", "-O1", "-gline-tables-only", "-fsanitize=memory", "-fno-exceptions", "-fno-rtti", "-fwrapv",
         "-ffp-contract=off", "-fno-math-errno", "-w"]
KERNEL_FLAGS = ["-ffreestanding", "-nostdinc"]
REPORT = re.compile(r"MemorySanitizer: |MemorySanitizer:DEADLYSIGNAL")
CUT = re.compile(r"^#undef svod_kernel\n(?=#define svod_kernel (\w+)_(\w+)\n)", re.M)
# Level: a flag of /proc/cpuinfo without which it does not run, and how it is compiled.
LEVELS = {"v2": ("ssse3", ["-march=x86-64-v2"]), "v3": ("avx2", ["-march=x86-64-v3"]),
          "v4": ("avx512bw", ["-march=x86-64-v4"]), "vnni": ("avx512_vnni", ["-march=x86-64-v4", "-mavx512vnni"])}


def more_cases(folder):
    """Steps that stay in one another's memory: branches, loops, states, quantised layers, sizes that data decide."""
    cases = [Case(name, SOURCE / "models" / name / f"{name}.onnx", []) for name in ("digits_int8", "keywords_int8")]
    made = {
        "padded": model([node("Conv", ["x", "w"], ["c"], pads=[2, 2, 2, 2]), node("Relu", ["c"], ["r"]),
                         node("MaxPool", ["r"], ["y"], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])],
                        [value("x", [1, 5, 13, 13])], [value("y", [1, 9, 7, 7])], [random_tensor("w", [9, 5, 5, 5], 1, 0.2)]),
        "sizes": model([node("NonZero", ["x"], ["y"])], [value("x", [5, 7])], [value("y", [2, "n"], 7)]),
        "lstm": model([node("LSTM", ["x", "w", "r"], ["", "y"], hidden_size=8)], [value("x", [9, 1, 6])],
                      [value("y", [1, 1, 8])], [random_tensor("w", [1, 32, 6], 1, 0.4), random_tensor("r", [1, 32, 8], 2, 0.4)]),
        "attention": model([node("MatMul", ["x", "w"], ["q"]), node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
                            node("MatMul", ["q", "t"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1),
                            node("MatMul", ["p", "x"], ["y"])], [value("x", [2, 13, 24])], [value("y", [2, 13, 24])],
                           [random_tensor("w", [24, 24], 1, 0.2)]),
    }
    for name, content in made.items():
        path = folder / f"{name}.onnx"
        path.write_bytes(content)
        cases.append(Case(f"made {name}", path, []))
    return cases


def image_of(program):
    """(image, weights behind it) of a packed program, which holds them one after the other."""
    whole = program.read_bytes()
    at = next(at for at in range(0, len(whole), 64) if whole[at:at + 8] == b"SVODIMG\0")
    size, = struct.unpack_from("<I", whole, at + 12)
    begin = -(-(at + size) // 64) * 64
    return whole[at:at + size], whole[begin:]


def glue(levels, programs, folder, image, weights):
    """What the packager writes beside kernels, for a program that runs all of them."""
    (folder / "image.bin").write_bytes(image)
    (folder / "weights.bin").write_bytes(weights)
    text = '#include "runtime_stub/replay.h"\nextern "C" {\n'
    text += "".join(f"int32_t {name}(void* const*, void*, uint32_t);\n" for _, name in sorted(programs.values()))
    text += "int32_t svod_launch(uint32_t level, uint32_t program, void* const* buffers, void* scratch, uint32_t chunk) {\n"
    text += f"  switch (level * {1 + max(p for _, p in programs)} + program) {{\n"
    for (level, program), (_, name) in sorted(programs.items()):
        text += f"  case {level * (1 + max(p for _, p in programs)) + program}: return {name}(buffers, scratch, chunk);\n"
    text += "  default: return SVOD_INDEX;\n  }\n}\n"
    text += "".join(f'asm(".section .rodata\\n.balign 64\\n.globl {n}\\n{n}: .incbin \\"{folder}/{n}.bin\\"\\n.previous");\n'
                    f"extern const uint8_t {n}[] asm(\"{n}\");\n" for n in ("image", "weights"))
    names = ", ".join(f'{{"{name}", 0}}' for name in levels)
    text += f"""static const SvodLevel kLevels[] = {{{names}}};
void svod_get_model(SvodModel* model) {{
  *model = {{image, {len(image)}, weights, svod_header(image)->weight_bytes, svod_launch, kLevels, {len(levels)}}};
}}
}}
"""
    (folder / "glue.cpp").write_text(text)


def kernels_of(text):
    """[(number, level, text)] in the order of --emit=cpp."""
    parts = CUT.split(text)[1:]
    return [(int(name[1:]), level, rest) for name, level, rest in zip(parts[0::3], parts[1::3], parts[2::3])]


def runs_here(level):
    flags = pathlib.Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split()
    return level in LEVELS and LEVELS[level][0] in flags


def compile_text(folder, name, flags):
    done = subprocess.run([CLANG, *FLAGS, *flags, "-c", str(folder / f"{name}.cpp"), "-o", str(folder / f"{name}.o")],
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[:2000]}")
    return folder / f"{name}.o"


def build(case, folder, change=lambda text: text):
    """The program, or None where the model is refused."""
    folder.mkdir(parents=True)
    words = [PACKER, case.model, "-q", "--verify", "off", "--target", "x86-64", "--search-budget", "0"]
    packed = subprocess.run([*map(str, words), "-o", str(folder / "packed")], capture_output=True, text=True)
    if packed.returncode:
        return None
    told = run(*words, "--emit=cpp", seconds=MODEL_SECONDS).stdout.decode()
    kernels = [k for k in kernels_of(told) if runs_here(k[1])]
    levels = [level for level in LEVELS if runs_here(level)]
    programs, objects = {}, []
    for number, level, text in kernels:
        name = f"k{number}_{level}"
        # MemorySanitizer takes every lane of an instruction that it does not know for a use, also what a masked store drops:
        # the forms that every processor has are told lane by lane.
        (folder / f"{name}.cpp").write_text(change(text).replace("defined(__AVX512F__)", "0"))
        objects.append(compile_text(folder, name, [*KERNEL_FLAGS, *LEVELS[level][1]]))
        # One that is there once serves the levels above its own, too.
        for at in range(levels.index(level), len(levels)):
            programs[at, number] = (at, name)
    glue(levels, programs, folder, *image_of(folder / "packed"))
    objects.append(compile_text(folder, "glue", [f"-I{SOURCE}"]))
    stub = [folder.parent / f"{name}.o" for name in ("replay", "check_image", "memory_run")]
    run(CLANG, "-fsanitize=memory", *objects, *stub, "-o", folder / "program")
    return folder / "program"


def check(case, folder, change=lambda text: text):
    """(clean, refused, too slow or reported; the report)"""
    try:
        program = build(case, folder, change)
        if not program:
            return "refused", ""
        done = subprocess.run([str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=MODEL_SECONDS,
                              env=dict(os.environ, MSAN_OPTIONS="exit_code=99"))
    except subprocess.TimeoutExpired:
        return "too slow", ""
    text = done.stdout.decode(errors="replace")
    shutil.rmtree(folder)
    if found := REPORT.search(text):
        return "reported", text[max(0, found.start() - 200):][:3000]
    return ("reported", text[-2000:]) if done.returncode else ("clean", "")


def writes_nothing(kernel):
    return re.sub(r"(svod_kernel\([^)]*\)\s*\{)", r"\1 return 0;", kernel)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="only models whose name matches")
    parser.add_argument("--seconds", type=float, default=min(SECONDS, corpus_share(SHARE)), help="time limit")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count(), 2))
    options = parser.parse_args()
    need(CLANG)
    folder, start = work_folder("memory_sanitized"), time.monotonic()
    for source in ("runtime_stub/replay", "runtime_stub/check_image", "tests/fuzz/memory_run"):
        name = pathlib.Path(source).name
        shutil.copy(SOURCE / f"{source}.cpp", folder / f"{name}.cpp")
        compile_text(folder, name, [f"-I{SOURCE}"])
    cases = [c for c in made_cases(folder) + more_cases(folder) + corpus_cases() if re.search(options.filter, c.name)]
    made = Case("made cnn", folder / "cnn.onnx", [])
    if check(made, folder / "watched", writes_nothing)[0] != "reported":
        print("kernels that write nothing are not reported")
        return 1

    def one(numbered):
        number, case = numbered
        if time.monotonic() - start > options.seconds:
            return case, "left out", ""
        return case, *check(case, folder / str(number))

    counts = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, result, text in pool.map(one, enumerate(cases)):
            counts[result] = counts.get(result, 0) + 1
            if result == "reported":
                print(f"{case.name}: {case.model}\n{text}", flush=True)
    print(f"{time.monotonic() - start:.0f} s: " + ", ".join(f"{n} {result}" for result, n in sorted(counts.items())))
    return exit_code(counts.get("clean", 0), counts.get("reported", 0), counts.get("left out", 0))


if __name__ == "__main__":
    sys.exit(main())
