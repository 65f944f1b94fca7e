#!/usr/bin/env python3
"""A library for a GPU, end to end without one: against the driver of stand_in_driver.cpp, and where there is none; and the
example of docs/gpu.md."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import INT64, model, node, value
from packing import BUILD, DIGITS, SOURCE, check, need, pack, run, sample, work_folder
from program import StandIn, has_driver, kernels

WORDS = ["-std=c11", "-D_DEFAULT_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror"]
STAND_IN = BUILD / "tests" / "stand_in"


def build(folder, source, header, library, output, *words):
    run("gcc", *WORDS, "-I", folder, "-include", folder / header, source, library, *words, "-pthread", "-ldl",
        f"-Wl,-rpath,{folder}", "-o", output)
    return output


def main():
    need("gcc", "g++")
    folder = work_folder("gpu_library")
    (folder / "cuda.h").write_text((SOURCE / "tests/gpu/cuda_h.txt").read_text())
    for name, words in (("net", ["--device", "cuda:sm_80,sm_90", "--ptxas", "off"]), ("plain", [])):
        for suffix in ("so", "a"):
            pack(DIGITS, folder / f"lib{name}.{suffix}", "--name", name, *words)
    (folder / "again").mkdir()
    pack(DIGITS, folder / "again/libnet.so", "--name", "net", "--device", "cuda:sm_80,sm_90", "--ptxas", "off")
    pack(DIGITS, folder / "program", "--device", "cuda:sm_80,sm_90", "--ptxas", "off")
    side = folder / "digits.so"
    kernels(DIGITS, side)
    driver = StandIn(folder, side)
    image = folder / "image.raw"
    image.write_bytes(sample("digit_0.npy").read_bytes()[-256:])

    def scores(program, what, env=None, expect=0):
        out = folder / "scores.raw"
        done = run(program, what, image, out, env=env, expect=expect)
        return out.read_bytes(), (done.stdout + done.stderr).decode().strip()

    def of_program(env, *words):
        out = folder / "program.raw"
        run(folder / "program", f"image=@{image}", "--output", f"scores=@{out}", *words, env=env)
        return out.read_bytes()

    for kind, library in (("static", "libnet.a"), ("shared", "libnet.so")):
        program = build(folder, SOURCE / "tests/library/gpu_library.c", "libnet.h", folder / library, folder / f"use_{kind}")
        on_cpu = of_program(driver.env(), "--device=cpu")
        check(scores(program, "here", driver.env())[0] == on_cpu, f"{kind}: on the processor, the bits of the program there")
        check("module" not in driver.log.read_text(), "and no driver is asked for anything")
        found, text = scores(program, "there", driver.env())
        check(text == "stand-in GPU, kernels of sm_80", f"it says where it runs: {text}")
        check(scores(program, "in_place", driver.env())[0] == of_program(driver.env(), "--device=cuda"),
              "tensors on the GPU, a context of the caller's, three threads: the program's bits")
        runs = driver.log.read_text().split("\n").count("run")
        check(runs > 0, "arenas run as graphs")
        for settings, phrase in (({"ARCH": "75"}, "no GPU here runs what was packed"),
                                 ({"GPUS": "0"}, "the driver does not start, as without a GPU"),
                                 ({"REFUSES": "k3"}, "in kernel k3_sm_80 of node")):
            found, text = scores(program, "nowhere", driver.env(**settings))
            check(phrase in text and found == on_cpu, f"{settings}: {text}; then the processor's bits")
        text = scores(program, "lost", driver.env(LOST="2"))[1]
        check("the GPU's driver refuses: a run: unspecified launch failure, status 719" in text, text)
        if not has_driver():
            found, text = scores(program, "nowhere")
            check("no libcuda.so.1 is found" in text and found == on_cpu, f"without a driver: {text}")
    check("net_open" in (folder / "libnet.h").read_text() and "plain_open" not in (folder / "libplain.h").read_text(),
          "a library without --device has none of it")
    check((folder / "again/libnet.so").read_bytes() == (folder / "libnet.so").read_bytes(), "packed twice, equal bytes")
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", folder / "libnet.so").stdout.decode())
    check(set(needed) <= {"libc.so.6", "libdl.so.2"}, f"a shared library needs {needed}")
    undefined = {line.split()[-1] for line in run("nm", "-u", folder / "libnet.a").stdout.decode().splitlines()
                 if line.split()[:1] == ["U"]} - {"net_weights"}
    check(undefined == {"dlopen", "dlsym"}, f"a static one {sorted(undefined)}")
    wrapper(folder, scores, driver, of_program)
    out_of_range(folder)
    example(folder, driver)


def wrapper(folder, scores, driver, of_program):
    """svod::Model."""
    program = folder / "use_wrapper"
    run("g++", "-std=c++20", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti", "-I", folder,
        SOURCE / "tests/library/gpu_wrapper.cpp", folder / "libnet.a", "-pthread", "-ldl", "-o", program)
    found, text = scores(program, "there", driver.env())
    check(text == "stand-in GPU, kernels of sm_80", f"svod::Model says where it runs: {text}")
    there = of_program(driver.env(), "--device=cuda")
    check(found == there and scores(program, "in_place", driver.env())[0] == there, "and gives the program's bits, both ways")
    found, text = scores(program, "nowhere", driver.env(REFUSES="k3"))
    check("in kernel k3_sm_80 of node" in text and found == of_program(driver.env(), "--device=cpu"), text)
    text = scores(program, "lost", driver.env(LOST="2"))[1]
    check("a run: unspecified launch failure" in text, text)


def out_of_range(folder):
    path, side = folder / "gather.onnx", folder / "gather.so"
    path.write_bytes(model([node("Gather", ["x", "i"], ["y"], "pick")], [value("x", [4, 3]), value("i", [2], INT64)],
                           [value("y", [2, 3])]))
    pack(path, folder / "libgather.a", "--name", "net", "--device", "cuda:sm_80", "--ptxas", "off")
    kernels(path, side)
    program = build(folder, SOURCE / "tests/library/gpu_index.c", "libgather.h", folder / "libgather.a",
                    folder / "use_gather", STAND_IN / "libcuda.so.1")
    said = run(program, env=StandIn(folder, side).env()).stdout.decode().splitlines()
    check(len(said) == 2 and all("out of range, in kernel" in line and "pick" in line for line in said), said[0])


def example(folder, driver):
    """The C program of the docs, as it stands there."""
    text = (SOURCE / "docs/gpu.md").read_text()
    source = folder / "example.c"
    source.write_text(re.search(r"```c\n(.*?)```", text, re.S)[1])
    pack(DIGITS, folder / "libdigits.so", "--name", "digits", "--device", "cuda:sm_80", "--ptxas", "off")
    run("gcc", *WORDS, "-I", folder, source, folder / "libdigits.so", STAND_IN / "libcuda.so.1", f"-Wl,-rpath,{folder}", "-o",
        folder / "example")
    said = run(folder / "example", env=driver.env()).stdout.decode().splitlines()
    check(said[0] == "GPU: stand-in GPU, kernels of sm_80" and len(said) == 3, said[0])
    check(said[1] == said[2] and said[1].startswith("ok: "), f"both ways to run it: {said[1]}")
    alone = run(folder / "example", env=driver.env(GPUS="0")).stdout.decode().splitlines()
    check(alone[0].startswith("processor: the driver does not start") and alone[1:] == said[1:2], alone[0])


if __name__ == "__main__":
    main()
