"""Packed libraries on boards of QEMU: what a run answers, what stack it takes, how large the program is."""
import struct

from emulated import QEMU, board_words
from packed_header import Header
from packing import SOURCE, need, pack, run

GCC = "arm-none-eabi-gcc"
# Of a target: QEMU's machine, what gcc is told, where code and data lie, KiB of each. A Cortex-M3 runs code of a
# Cortex-M0+.
BOARDS = {
    "cortex-m0plus": ("mps2-an385", ["-mcpu=cortex-m0plus"], 0, 0x20000000, 4096),
    "cortex-m3": ("mps2-an385", ["-mcpu=cortex-m3"], 0, 0x20000000, 4096),
    "cortex-m4": ("mps2-an386", ["-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"], 0, 0x20000000, 4096),
    "cortex-m7": ("mps2-an500", ["-mcpu=cortex-m7", "-mfpu=fpv5-d16", "-mfloat-abi=hard"], 0, 0x20000000, 4096),
    "cortex-m33": ("mps2-an505", ["-mcpu=cortex-m33", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"], 0x10000000,
                   0x38000000, 4096),
    "cortex-m55": ("mps3-an547", ["-mcpu=cortex-m55", "-mfloat-abi=hard"], 0, 0x20000000, 512),
}


def data_header(prefix, header, inputs):
    """What tests/firmware/run_model.c includes: the inputs' bytes, room for the rest."""
    p, out = header.prefix, [f'#include "lib{prefix}.h"']
    pools = header.pools()
    for pool in pools or ["arena"]:
        size = f"{p}_POOL_{pool}_BYTES" if pools else f"{p}_ARENA_BYTES"
        out.append(f"static _Alignas({p}_ARENA_ALIGN) unsigned char {pool}[{size} + 1];")
    if pools:
        out.append(f"static void* const arena[] = {{{', '.join(pools)}}};\n#define MODEL_RUN {prefix}_run_pools")
    for i, content in enumerate(inputs):
        numbers = ",".join(map(str, content))
        out.append(f"static const _Alignas(16) unsigned char input{i}[] = {{{numbers}}};")
    sizes = [port.bytes for port in header.ports("OUTPUT")]
    for i, size in enumerate(sizes):
        out.append(f"static _Alignas(16) unsigned char output{i}[{size} + 1];")
    out.append("static const void* const inputs[] = {" + ", ".join(f"input{i}" for i in range(len(inputs))) + "};")
    out.append("static void* const outputs[] = {" + ", ".join(f"output{i}" for i in range(len(sizes))) + "};")
    out.append("static const uint32_t output_bytes[] = {" + ", ".join(map(str, sizes)) + "};")
    out.append(f"#define OUTPUTS {len(sizes)}\n#define MODEL_TEXT {prefix}_status_text\n"
               f"#ifndef ARENA\n#define ARENA arena\n#endif\n"
               f"#ifndef MODEL_RUN\n#define MODEL_RUN {prefix}_run\n#endif\n")
    return "\n".join(out)


def link_script(target):
    _, _, flash, ram, kib = BOARDS[target]
    text = (SOURCE / "tests/firmware/link.ld").read_text()
    return (text.replace("0x00000000", f"{flash:#010x}").replace("0x20000000", f"{ram:#010x}")
            .replace("LENGTH = 4M", f"LENGTH = {kib}K"))


class Run:
    """A library on its board: outputs as bytes, stack painted and promised, size of the program's text."""

    def __init__(self, folder, prefix, target, inputs, *defines, expect=0):
        need(GCC, QEMU)
        machine, cpu = BOARDS[target][:2]
        self.header = Header(folder / f"lib{prefix}.h")
        (folder / "data.h").write_text(data_header(prefix, self.header, inputs))
        (folder / "link.ld").write_text(link_script(target))
        image = folder / f"{prefix}.elf"
        run(GCC, *cpu, *defines, "-mthumb", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-nostdlib",
            "-Wl,--gc-sections", "-T", folder / "link.ld", "-I", folder, SOURCE / "tests/firmware/run_model.c",
            folder / f"lib{prefix}.a", "-lgcc", "-o", image)
        self.image = image
        done = run(*board_words(machine), image, seconds=300, expect=expect)
        self.said = (done.stdout + done.stderr).decode()
        if expect != 0:
            return
        lines = [bytes.fromhex(line) for line in self.said.split("\n") if line]
        self.stack, = struct.unpack("<I", lines[0])
        self.outputs = lines[1:]
        self.stack_said = self.header["STACK_BYTES"]


def pack_for_board(model, folder, prefix, target, *options):
    pack(model, folder / f"lib{prefix}.a", "--target", target, "--name", prefix, *options)


def same_as_host(model, folder, outputs, inputs, tolerance=0):
    """Whether a packed program of this machine answers the same bytes."""
    program = folder / "host"
    pack(model, program)
    arguments = []
    for i, content in enumerate(inputs):
        (folder / f"in{i}.raw").write_bytes(content)
        arguments.append(folder / f"in{i}.raw")
    for i in range(len(outputs)):
        arguments += ["--output", f"@{folder / f'out{i}.raw'}"]
    run(program, *arguments)
    there = [(folder / f"out{i}.raw").read_bytes() for i in range(len(outputs))]
    if tolerance == 0:
        return there == outputs
    a, b = (struct.unpack(f"<{len(x) // 4}f", x) for x in (b"".join(there), b"".join(outputs)))
    return all(abs(x - y) <= tolerance * max(1, abs(x)) for x, y in zip(a, b))
