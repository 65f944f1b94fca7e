#!/usr/bin/env python3
"""docs/examples/cmake-app: from the build folder, once installed, for other machines; and what is packed again when."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import data, model, node, number, value
from packing import BUILD, DIGITS, PACKER, SOURCE, check, need, run, work_folder

FOLDER = work_folder("examples/cmake_app")
APP = SOURCE / "docs" / "examples" / "cmake-app"
FOUR = (APP / "four.txt").read_bytes()


def configure(name, *words, source=APP, expect=0):
    run("cmake", "-G", "Ninja", "-S", source, "-B", FOLDER / name, *words, expect=expect)
    return FOLDER / name


def build(folder, *words):
    return run("cmake", "--build", folder, *words, seconds=600).stdout.decode()


def answer(*program):
    return subprocess.run([str(p) for p in program], input=FOUR, capture_output=True, timeout=60).stdout.decode()


def from_build_folder():
    model = FOLDER / "model.onnx"
    shutil.copy(DIGITS, model)
    app = configure("app", f"-DCMAKE_PREFIX_PATH={BUILD}", f"-DMODEL={model}")
    build(app)
    check(answer(app / "read_digit").startswith("4, score "), "the example reads the four that is drawn")
    check("no work to do" in build(app), "a second build has nothing to do")
    model.write_bytes(model.read_bytes())
    check("Packing" in build(app), "a changed model is packed again")
    check("no work to do" in build(app), "once")


def external_weights():
    """A project whose model keeps its weights in a file beside it."""
    source = FOLDER / "external"
    source.mkdir()
    entries = b"".join(data(13, data(1, k) + data(2, v)) for k, v in (("location", "w.bin"), ("length", "16")))
    weights = number(1, 4) + number(2, 1) + data(8, "w") + entries + number(14, 1)
    (source / "m.onnx").write_bytes(model([node("Add", ["x", "w"], ["y"])], [value("x", [4])], [value("y", [4])],
                                          [weights]))
    (source / "w.bin").write_bytes(bytes(16))
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(external C)\nfind_package(SvodPack REQUIRED)\n"
        "svod_add_model(adder MODEL m.onnx NAME add SHAPE x=4 OPTIONS --quiet)\n"
        "add_library(user STATIC user.c)\ntarget_link_libraries(user PRIVATE adder)\n")
    (source / "user.c").write_text('#include "add.h"\nint user(void) { return ADD_INPUT_0_COUNT; }\n')
    app = configure("external_build", f"-DSvodPack_DIR={BUILD}/lib/cmake/SvodPack", source=source)
    build(app)
    check("no work to do" in build(app), "NAME, SHAPE and OPTIONS; a second build has nothing to do")
    (source / "w.bin").write_bytes(b"\1" * 16)
    check("Packing" in build(app), "changed weights in their own file are packed again")


def installed():
    prefix = FOLDER / "prefix"
    run("cmake", "--install", BUILD, "--prefix", prefix, seconds=300)
    app = configure("installed", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DMODEL={DIGITS}")
    build(app)
    check(answer(app / "read_digit").startswith("4, score "), "with the installed package")


def other_machines():
    """A C project for each, with nothing that a C library would have to be there for."""
    source = FOLDER / "firmware"
    source.mkdir()
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(firmware C)\nfind_package(SvodPack REQUIRED)\n"
        f"svod_add_model(digits MODEL {DIGITS})\n"
        "add_library(user STATIC user.c)\ntarget_link_libraries(user PRIVATE digits)\n")
    (source / "user.c").write_text(
        '#include "digits.h"\nint user(void* arena, const void* const* in, void* const* out) {\n'
        "  return digits_run(arena, in, out);\n}\n")
    clang = shutil.which("clang-19") or shutil.which("clang")
    settings = {
        "cortex-m4": ("Generic", "arm", shutil.which("arm-none-eabi-gcc"), "-mcpu=cortex-m4 -mthumb", "", "ARM"),
        "aarch64": ("Linux", "aarch64", clang, "", "aarch64-linux-gnu", "AArch64"),
        "riscv64": ("Generic", "unknown", clang, "", "riscv64-unknown-elf", "RISC-V"),
    }
    for name, (system, processor, compiler, flags, triple, machine) in settings.items():
        if not compiler:
            print(f"not tried: there is no compiler for {name}")
            continue
        tools = FOLDER / f"{name}.cmake"
        tools.write_text(f"set(CMAKE_SYSTEM_NAME {system})\nset(CMAKE_SYSTEM_PROCESSOR {processor})\n"
                         f"set(CMAKE_C_COMPILER {compiler})\nset(CMAKE_C_FLAGS_INIT \"-ffreestanding {flags}\")\n"
                         + (f"set(CMAKE_C_COMPILER_TARGET {triple})\n" if triple else "")
                         + "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n")
        app = configure(name, f"-DCMAKE_TOOLCHAIN_FILE={tools}", f"-DSvodPack_DIR={BUILD}/lib/cmake/SvodPack",
                        f"-DSVOD_PACK_EXECUTABLE={PACKER}", source=source)
        build(app)
        packed = run("readelf", "-h", app / "svod/digits/digits.a").stdout.decode()
        check(f"Machine:                           {machine}" in packed, f"packed for {name}, as CMake compiles")
    odd = FOLDER / "odd.cmake"
    odd.write_text(f"set(CMAKE_SYSTEM_NAME Generic)\nset(CMAKE_SYSTEM_PROCESSOR pdp11)\nset(CMAKE_C_COMPILER {clang})\n"
                   "set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n")
    configure("odd", f"-DCMAKE_TOOLCHAIN_FILE={odd}", f"-DSvodPack_DIR={BUILD}/lib/cmake/SvodPack", source=source,
              expect=1)
    check(True, "a processor that is not known asks for TARGET")


def main():
    need("cmake", "ninja", "gcc", "g++")
    from_build_folder()
    external_weights()
    other_machines()
    installed()


if __name__ == "__main__":
    sys.exit(main())
