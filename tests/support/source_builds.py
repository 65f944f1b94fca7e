"""A packed source file built by the compilers that are here, and run: in this process as a shared object, on an
emulated board as firmware."""
import ctypes
import pathlib
import shutil

import emulated
from packed_header import Header
from packing import run

WARNINGS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti"]
HOSTS = ["g++", "g++-10", "g++-11", "clang++-14", "clang++-19"]
# Compilers of other cores: what they are told, and the core that they make code for.
CORES = [("arm-none-eabi-g++", ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"], "cortex-m4"),
         ("arm-none-eabi-g++", ["-mcpu=cortex-m0plus", "-mthumb"], "cortex-m0plus"),
         ("riscv64-unknown-elf-g++", ["-march=rv32imac", "-mabi=ilp32", "-ffreestanding"], ""),
         ("xtensa-lx106-elf-g++", ["-ffreestanding"], "")]


def hosts():
    return [compiler for compiler in HOSTS if shutil.which(compiler)]


def links(core):
    """Whether the C library of a compiler is there, which the program on a board needs."""
    found = run(core[0], *core[1], "-print-file-name=libc.a").stdout.decode().strip()
    return pathlib.Path(found).is_absolute()


def cores():
    """Those whose compiler is here, and the C library and the emulator where they run."""
    return [core for core in CORES if shutil.which(core[0]) and
            (not core[2] or (links(core) and shutil.which(emulated.QEMU)))]


def run_here(compiler, source, inputs, level="-O2"):
    """The outputs' bytes of a build for this machine."""
    library = source.with_suffix(f".{compiler}.so")
    run(compiler, *WARNINGS, level, "-shared", "-fPIC", source, "-o", library, seconds=300)
    header = Header(source.with_suffix(".h"))
    prefix = header.prefix.lower()
    align = header["ARENA_ALIGN"]
    arena = ctypes.create_string_buffer(header["ARENA_BYTES"] + align)
    arena_at = -(-ctypes.addressof(arena) // align) * align
    given = [ctypes.create_string_buffer(data, len(data)) for data in inputs]
    written = [ctypes.create_string_buffer(max(1, port.bytes)) for port in header.ports("OUTPUT")]
    pointers = [(ctypes.c_void_p * max(1, len(buffers)))(*(ctypes.addressof(b) for b in buffers))
                for buffers in (given, written)]
    loaded = ctypes.CDLL(str(library))
    status = loaded[f"{prefix}_run"](ctypes.c_void_p(arena_at), *pointers)
    return status, [b.raw[:port.bytes] for b, port in zip(written, header.ports("OUTPUT"))]


def build_for(core, source, level="-Os"):
    """The object that a compiler of another core makes."""
    compiler, flags, name = core
    built = source.with_suffix(f".{name or compiler}.o")
    run(compiler, *WARNINGS, level, *flags, "-ffunction-sections", "-fdata-sections", "-c", source, "-o", built,
        seconds=300)
    return built


def run_on_board(core, source, inputs, folder):
    """The outputs' bytes of a build for a Cortex-M, linked with the C library of its compiler."""
    compiler, flags, name = core
    target = emulated.find_target(name)
    built = build_for(core, source)
    header = Header(source.with_suffix(".h"))
    (folder / "infer.h").write_bytes(source.with_suffix(".h").read_bytes())
    outputs = header.ports("OUTPUT")
    places = emulated.write_data(folder, inputs, outputs)
    program = folder / "program"
    run(compiler.replace("g++", "gcc"), *flags, "-std=c11", "-O2", "-I", folder, "-nostartfiles", "-Wl,--gc-sections",
        "-T", emulated.SUPPORT / "emulated_board.ld", emulated.SUPPORT / "emulated_main.c", built, "-lm", "-lc", "-lgcc",
        "-o", program)
    return emulated.execute(target, program, list(zip(outputs, places)))
