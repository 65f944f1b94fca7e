#!/usr/bin/env python3
"""--emit=cmake and its likes: folders that other build systems take. The one for CMake is built by arm-none-eabi-gcc and
run on an emulated board; the others are read as their build systems read them."""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import firmware
from packing import (DIGITS, PACKER, SAMPLES, SOURCE, check, labels_right, pack, run, work_folder)
import shutil
import struct

PROJECT = """cmake_minimum_required(VERSION 3.20)
project(app C)
add_subdirectory(digits)
add_executable(app main.c)
target_compile_options(app PRIVATE -O2 -ffreestanding -Wall -Wextra -Werror)
target_include_directories(app PRIVATE ${CMAKE_CURRENT_LIST_DIR})
target_link_options(app PRIVATE -nostdlib -Wl,--gc-sections -T ${CMAKE_CURRENT_LIST_DIR}/link.ld)
target_link_libraries(app PRIVATE digits gcc)
"""


def packed(folder, kind, target="cortex-m4"):
    place = folder / kind
    pack(DIGITS, place, f"--emit={kind}", "--target", target, "--name", "digits")
    files = sorted(str(p.relative_to(place)) for p in place.rglob("*") if p.is_file())
    check(all((place / f).stat().st_size > 20 for f in files), f"{kind}: {', '.join(files)}")
    return place, files


def cmake(folder):
    place, _ = packed(folder, "cmake")
    if not (shutil.which("cmake") and shutil.which(firmware.GCC) and shutil.which(firmware.QEMU)):
        print("not built: cmake, arm-none-eabi-gcc or qemu-system-arm is missing")
        return
    project = folder / "project"
    shutil.copytree(place, project / "digits")
    (project / "CMakeLists.txt").write_text(PROJECT)
    for file in ("main.c", "link.ld"):
        shutil.copy(SOURCE / "tests" / "firmware" / file, project)
    (project / "samples.h").write_text(firmware.samples_header())
    flags = " ".join(firmware.CPU)
    run("cmake", "-S", project, "-B", project / "build", "-DCMAKE_SYSTEM_NAME=Generic", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_C_COMPILER={firmware.GCC}", f"-DCMAKE_C_FLAGS={flags}", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY")
    run("cmake", "--build", project / "build")
    done = run(firmware.QEMU, "-M", "mps2-an386", "-display", "none", "-serial", "none", "-monitor", "none",
               "-semihosting-config", "enable=on,target=native", "-kernel", project / "build" / "app")
    lines = [line.split() for line in (done.stdout + done.stderr).decode().split("\n")]
    scores = [[struct.unpack(">f", bytes.fromhex(word))[0] for word in line] for line in lines if len(line) == 10]
    check(len(scores) == len(SAMPLES) and labels_right(scores) == 10, "cmake: built, run on a board, all digits right")


def others(folder):
    place, files = packed(folder, "zephyr")
    module = (place / "zephyr/module.yml").read_text()
    check(re.match(r"name: digits\nbuild:\n  cmake: \.\n  kconfig: Kconfig\n$", module), "zephyr: module.yml")
    symbol = re.search(r"config (\w+)", (place / "Kconfig").read_text())[1]
    text = (place / "CMakeLists.txt").read_text()
    check(f"CONFIG_{symbol}" in text and "lib/libdigits.a" in text and "lib/libdigits.a" in files, f"zephyr: {symbol}")

    place, files = packed(folder, "esp-idf", "rv32imc")
    text = (place / "CMakeLists.txt").read_text()
    check("idf_component_register(INCLUDE_DIRS include)" in text and "lib/libdigits.a" in files, "esp-idf: component")

    place, files = packed(folder, "arduino")
    rows = dict(line.split("=", 1) for line in (place / "library.properties").read_text().splitlines())
    check(rows["name"] == "digits" and rows["precompiled"] == "true" and rows["ldflags"] == "-ldigits" and
          "src/digits.h" in files and "src/cortex-m4/libdigits.a" in files, "arduino: library.properties")

    place, files = packed(folder, "platformio")
    library = json.loads((place / "library.json").read_text())
    check(library["name"] == "digits" and library["build"]["extraScript"] in files, "platformio: library.json")
    compile((place / "link.py").read_text(), "link.py", "exec")

    place, files = packed(folder, "cmsis-pack")
    package = tree.parse(place / "svod.digits.pdsc").getroot()
    named = [f.get("name") for f in package.iter("file") if f.get("category") != "include"]
    check(package.find("name").text == "digits" and all(name in files for name in named), f"cmsis-pack: {named}")


def main():
    folder = work_folder("layouts")
    told = run(PACKER, DIGITS, "-o", "x", "--emit=cmake", "--pkg-config", cwd=folder, expect=2).stderr.decode()
    check("--pkg-config" in told, told.splitlines()[0])
    others(folder)
    cmake(folder)


if __name__ == "__main__":
    sys.exit(main())
