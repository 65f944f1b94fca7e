"""Links a library packed for another core with a main function and runs that under QEMU: outputs as bytes and, where
asked, how often each instruction was executed.

Modules run in Node. Linux targets and RISC-V firmware run under user-mode emulation. Cortex-M code runs on one emulated board with two GiB
of memory and a Cortex-M55, which executes the code of every smaller core.
"""
import collections
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess

from packed_header import Header, Port
from packing import BUILD, SOURCE, run

SUPPORT = pathlib.Path(__file__).resolve().parent
CLANG, LLD, OBJDUMP, NM = "clang-19", "ld.lld-19", "llvm-objdump-19", "llvm-nm-19"

QEMU = "qemu-system-arm"


def board_words(machine):
    """The command that runs a program on a board, and says there what it says by semihosting."""
    return [QEMU, "-M", machine, "-display", "none", "-serial", "none", "-monitor", "none", "-semihosting-config",
            "enable=on,target=native", "-kernel"]


BOARD = board_words("mps3-an547")
# Beginning of a triple: the command that runs a program, and who has the functions of software floats.
EMULATORS = [("x86_64", ["qemu-x86_64", "-cpu", "max"], None),
             ("i686", ["qemu-i386", "-cpu", "max"], None),
             ("aarch64", ["qemu-aarch64", "-cpu", "max"], None),
             ("thumb", BOARD, "arm-none-eabi-gcc"),
             ("arm", ["qemu-arm", "-cpu", "max"], None),
             ("riscv64", ["qemu-riscv64", "-cpu", "rv64,v=true,vext_spec=v1.0"], None),
             ("riscv32", ["qemu-riscv32"], "riscv64-unknown-elf-gcc"),
             ("wasm32", ["node", str(SUPPORT / "run_module.mjs")], None)]

# A target's CPU level, or the length of its vectors, behind a colon: the emulated CPU.
LEVEL_CPUS = {"aarch64:base": "cortex-a53", "aarch64:dotprod": "cortex-a76", "aarch64:i8mm": "max,sve=off",
              "aarch64-sve256:256": "max,sve256=on", "aarch64-sve256:128": "max,sve128=on,sve256=off",
              "aarch64-sve256:512": "max,sve512=on",
              "riscv64:base": "rv64,v=false", "riscv64-v:256": "rv64,v=true,vext_spec=v1.0,vlen=256"}

Target = collections.namedtuple("Target", "alias triple flags emulator compiler")


def rows(macro):
    """The rows of targets.def, each a list of its cells as text."""
    text = (SOURCE / "compiler/support/targets.def").read_text()
    text = re.sub(r"^(//|#).*$", "", text, flags=re.M)
    for body in re.findall(rf"{macro}\(((?:[^()\"]|\"[^\"]*\")*)\)", text):
        cells = re.findall(r'((?:"[^"]*"\s*)+|[^,"]+)(?:,|$)', body)
        yield ["".join(re.findall(r'"([^"]*)"', c)) if '"' in c else c.strip() for c in cells]


def find_target(name, cpu=""):
    """By its alias, or one of LEVEL_CPUS. What surrounds a library is compiled for the weakest level."""
    alias = name.partition(":")[0]
    levels = {cells[0]: cells[2].split() for cells in rows("LEVEL")}
    row = next(cells for cells in rows("TARGET") if cells[0] == alias)
    flags = levels[row[-1].split()[0]]
    emulator, compiler = next(e[1:] for e in EMULATORS if row[1].startswith(e[0]))
    if cpu:
        flags = [f for f in flags if not f.startswith(("-march=", "-mcpu=", "-mtune="))] + [f"-mcpu={cpu}"]
    if name != alias:
        emulator = [emulator[0], "-cpu", LEVEL_CPUS[name]]
    return Target(alias, row[1], flags, emulator, compiler)


def made_up(port, seed=1):
    """Bytes that most models take: floats between 0 and 1, any byte, small numbers."""
    draw = random.Random(seed)
    if port.dtype == "f32":
        return b"".join(struct.pack("<f", draw.random()) for _ in range(port.bytes // 4))
    if port.dtype in ("i8", "u8"):
        return draw.randbytes(port.bytes)
    if port.dtype in ("i32", "i64"):
        width = int(port.dtype[1:]) // 8
        return draw.randrange(2).to_bytes(width, "little") * (port.bytes // width)
    return bytes(port.bytes)


def write_data(folder, inputs, outputs):
    """Inputs as one file that the program includes, and where each port lies; every port on a multiple of 64 bytes."""
    def places(sizes):
        at, out = 0, []
        for size in sizes:
            out.append(at)
            at += -(-size // 64) * 64
        return out, max(at, 64)
    given, total = places(len(data) for data in inputs)
    body = bytearray(total)
    for place, data in zip(given, inputs):
        body[place:place + len(data)] = data
    (folder / "given.bin").write_bytes(body)
    written, size = places(port.bytes for port in outputs)
    (folder / "infer_data.h").write_text(
        f"#define OUTPUT_BYTES {size}\n"
        f"#define INPUTS {''.join(f'given + {p}, ' for p in given)}\n"
        f"#define OUTPUTS {''.join(f'written + {p}, ' for p in written)}\n"
        '__asm__(".section .rodata\\n.balign 64\\n.globl given\\ngiven:\\n'
        f'.incbin \\"{folder / "given.bin"}\\"\\n.text");\n')
    return written


def software_floats(target):
    """The archive with functions that a core without floating-point unit calls, when there is one."""
    if target.compiler is None or not shutil.which(target.compiler):
        return []
    flags = [f for f in target.flags if f.startswith(("-mcpu", "-march", "-mabi", "-mfloat", "-mfpu"))]
    found = run(target.compiler, *(["-mthumb"] if "arm" in target.compiler else []), *flags,
                "-print-libgcc-file-name").stdout.decode().strip()
    return [found]


def link(target, library, folder, inputs):
    """(the program, its output ports with their places)."""
    header = library.with_suffix(".h")
    (folder / "infer.h").write_bytes(header.read_bytes())
    outputs = Header(header).ports("OUTPUT")
    places = write_data(folder, inputs, outputs)
    run(CLANG, f"--target={target.triple}", *target.flags, "-std=c11", "-O2", "-ffreestanding", "-fno-pic", "-I", folder,
        "-c", SUPPORT / "emulated_main.c", "-o", folder / "main.o")
    program = folder / "program"
    board = ["-T", SUPPORT / "emulated_board.ld"] if target.emulator == BOARD else []
    run(LLD, "--gc-sections", *board, "-o", program, folder / "main.o", library, *software_floats(target))
    return program, list(zip(outputs, places))


def plugin():
    """The plugin that counts instructions, compiled once."""
    built = BUILD / "count_plugin.so"
    source = SUPPORT / "count_plugin.c"
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        run("gcc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", source, "-o", built)
    return built


def execute(target, program, outputs, counts_in=None, seconds=600):
    """(exit code, the outputs' bytes). `counts_in`: the file to write counts of instructions to."""
    counting = ["-plugin", f"{plugin()},out={counts_in}"] if counts_in else []
    words = [target.emulator[0], *counting, *target.emulator[1:], str(program)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
    return done.returncode, [done.stdout[at:at + port.bytes] for port, at in outputs]


def module_ports(loader, name):
    """kInputs or kOutputs of a module's loader."""
    found = json.loads(re.search(rf"^const {name} = (.*);$", loader.read_text(), re.M).group(1))
    return [Port(port["name"], port["dtype"], port["bytes"]) for port in found]


def execute_module(target, module, inputs, folder, seconds=600):
    """(exit code, the outputs' bytes)."""
    loader = module.with_suffix(".mjs")
    files = []
    for i, data in enumerate(inputs):
        files.append(folder / f"input_{i}")
        files[-1].write_bytes(data)
    done = subprocess.run([*target.emulator, str(loader), *map(str, files)], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=seconds)
    out, at = [], 0
    for port in module_ports(loader, "kOutputs"):
        out.append(done.stdout[at:at + port.bytes])
        at += port.bytes
    return done.returncode, out


def symbols(program, kinds="tTwW"):
    """(address, size, name) of each symbol of these kinds, of functions by themselves, in the order of addresses."""
    text = run(NM, "--defined-only", "-S", "-n", program).stdout.decode()
    found = re.findall(rf"^([0-9a-f]+) ([0-9a-f]+) [{kinds}] (.*)$", text, flags=re.M)
    return [(int(at, 16) & ~1, int(size, 16), name) for at, size, name in found if int(size, 16) != 0]


def owners(program):
    """The kernel that each function belongs to whose name does not say so, by address. A kernel of firmware has a name
    that other models have for the same code, and its own, which stands for nothing. Any other kernel's entry jumps to a
    body whose name says nothing."""
    own, current = {}, None
    names = run(NM, "--defined-only", "-n", program).stdout.decode()
    for at, name in re.findall(r"^([0-9a-f]+) t (k\d+_.*)$", names, flags=re.M):
        own.setdefault(int(at, 16) & ~1, name)
    text = run(OBJDUMP, "-d", "--no-show-raw-insn", program, seconds=600).stdout.decode(errors="replace")
    for line in text.splitlines():
        if label := re.match(r"([0-9a-f]+) <(.*)>:$", line):
            current = own.get(int(label.group(1), 16), label.group(2))
        elif current and re.match(r"k\d+_", current):
            for target, name in re.findall(r"(?:0x)?([0-9a-f]+) <([^>+]*)>", line):
                if name.startswith(("_ZN6kernel", "svod_kernel_")):
                    own.setdefault(int(target, 16), current)
    return own


def count_by_function(program, counts):
    """Executed instructions of each kernel and other function, largest first. `counts`: address to count."""
    table = symbols(program)
    own = owners(program)
    found = collections.Counter()
    ordered = sorted(counts)
    at = 0
    for start, size, name in table:
        while at < len(ordered) and ordered[at] < start:
            found["?"] += counts[ordered[at]]
            at += 1
        while at < len(ordered) and ordered[at] < start + size:
            found[own.get(start, name)] += counts[ordered[at]]
            at += 1
    found["?"] += sum(counts[a] for a in ordered[at:])
    return [(name, count) for name, count in found.most_common() if count]


def read_counts(path):
    return {int(a, 16): int(c) for a, c in (line.split() for line in pathlib.Path(path).read_text().splitlines())}
