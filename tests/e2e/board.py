#!/usr/bin/env python3
"""Ten models as firmware libraries on a Cortex-M4 of QEMU, and what such a library consists of.

The answers are those of a program of this machine; the stack that the header promises is what a run writes, up to a
tenth; no table, manifest or checksum is linked; what two models share is there once.
"""
import json
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import firmware_models as models
from board import BOARDS, GCC, Run, pack_for_board, same_as_host
from emulated import symbols
from onnx_writer import random_forest, small_cnn, small_mlp
from packed_header import Header
from packing import DIGITS, PACKER, SOURCE, check, need, pack, run, work_folder

FOLDER = work_folder("board")
FLOATS = 1e-5
MODELS = {"sine": models.sine(), "dense_int8": models.dense_int8(), "digits_int8": models.digits(),
          "keywords": models.keywords(), "residual": models.residual(), "digits": DIGITS.read_bytes(),
          "cnn": small_cnn(), "mlp": small_mlp(), "forest": random_forest(), "control": models.control()}
LARGE = {"mobilenet": models.mobilenet()}
ALIKE = {"small_mobilenet": models.mobilenet(64), "gates": models.gates(), "deep": models.deep()}
LONG_LOOP = struct.pack("<q", 10)


def inputs_of(header, seed=3):
    rng, out = random.Random(seed), []
    for port in header.ports("INPUT"):
        if port.dtype == "f32":
            count = port.bytes // 4
            out.append(struct.pack(f"<{count}f", *(rng.uniform(0, 1) for _ in range(count))))
        else:
            out.append(LONG_LOOP if port.dtype == "i64" else rng.randbytes(port.bytes))
    return out


def on_board(name, target="cortex-m4", *options):
    folder = FOLDER / f"{name}-{target}"
    folder.mkdir(exist_ok=True)
    model = folder / f"{name}.onnx"
    model.write_bytes((MODELS | LARGE | ALIKE)[name])
    pack_for_board(model, folder, "net", target, *options)
    inputs = inputs_of(Header(folder / "libnet.h"))
    return Run(folder, "net", target, inputs), model, folder, inputs


def runs(name):
    done, model, folder, inputs = on_board(name)
    quantised = name in ("dense_int8", "digits_int8", "keywords", "residual")
    check(same_as_host(model, folder, done.outputs, inputs, 0 if quantised else FLOATS),
          f"{name}: the answers of this machine")
    ratio = done.stack_said / done.stack
    check(1 <= ratio <= 1.1, f"{name}: {done.stack} bytes of stack written, {done.stack_said} promised: {ratio:.3f}")
    sizes = {symbol: size for _, size, symbol in symbols(done.image, "a-zA-Z")}
    mine = {n: s for n, s in sizes.items() if n.startswith(("net_", "svod_")) and n != "net_weights"
            and not n.startswith("svod_kernel_")}
    check("net_manifest" not in mine and "net_info" not in mine, f"{name}: the manifest is not linked")
    texts = sum(s for n, s in mine.items() if "status" in n)
    check(sum(mine.values()) - texts <= 1024,
          f"{name}: {sum(mine.values()) - texts} bytes beside kernels and weights, and {texts} of texts")


def small_ones():
    sine, dense = (Header(FOLDER / f"{n}-cortex-m4/libnet.h") for n in ("sine", "dense_int8"))
    check(sine["ARENA_BYTES"] <= 128, f"sine: an arena of {sine['ARENA_BYTES']} bytes")
    check(dense["ARENA_BYTES"] <= 64, f"32-16-4: an arena of {dense['ARENA_BYTES']} bytes")
    check(sine["ARENA_ALIGN"] == 8, "aligned to the largest element, where there are no vectors")


def large_one():
    """Results lie on what their layers have read, down to the place of a tile: one byte less and answers differ."""
    done, model, folder, inputs = on_board("mobilenet", "cortex-m4", "-Os", "--accuracy", "exact")
    check(same_as_host(model, folder, done.outputs, inputs), "MobileNetV1-0.25 at 224: the answers of this machine")
    # In fixed point a value in the middle of two steps may fall on the other one, and 28 layers pass it on.
    fixed, *_ = on_board("mobilenet", "cortex-m4", "-Os")
    apart = max(abs((a ^ 128) - (b ^ 128)) for a, b in zip(fixed.outputs[0], done.outputs[0]))
    check(apart <= 2, f"MobileNetV1-0.25 at 224 in fixed point: {apart} steps from them at most")
    # Layers take turns row by row (docs/decisions/turns-by-rows.md); the input is the caller's.
    arena, picture = done.header["ARENA_BYTES"], sum(len(data) for data in inputs)
    check(arena + picture <= 200 * 1024, f"{arena / 1024:.1f} KiB of arena and {picture / 1024:.1f} of input")
    same = on_board("mobilenet", "cortex-m7", "--accuracy", "exact")[0]
    check(same.outputs == done.outputs and same.header["ARENA_BYTES"] == arena, "the same on a Cortex-M7")


def several_memories():
    """What does not fit into the first memory goes into the next one; what fits into none is an error."""
    limits = {"TCM": 12 * 1024, "SRAM": 16 * 1024}
    words = ["--pool", ",".join(f"{name}={size}" for name, size in limits.items())]
    done, model, folder, inputs = on_board("keywords", "cortex-m7", *words)
    sizes = {name: done.header[f"POOL_{name}_BYTES"] for name in done.header.pools()}
    check(list(sizes) == list(limits) and all(0 < sizes[n] <= limits[n] for n in limits), f"two memories: {sizes}")
    check(same_as_host(model, folder, done.outputs, inputs), "the answers of this machine")
    check(done.stack <= done.stack_said <= 1.1 * done.stack, f"{done.stack_said} bytes of stack promised")
    said = pack(model, folder / "small.a", "--target", "cortex-m7", "--pool", "TCM=4K,SRAM=8K", expect=8).stderr.decode()
    check("--pool" in said and "memory SRAM" in said, said.splitlines()[0])
    said = run(PACKER, model, "-o", folder / "small.a", "--target", "cortex-m7", *words, "--verify", "random",
               expect=2).stderr.decode()
    check("has one arena" in said, said.splitlines()[0])
    for wrong in ("TCM", "TCM=4K,TCM=4K", "a-b=1K"):
        said = pack(model, folder / "small.a", "--target", "cortex-m7", "--pool", wrong, expect=2).stderr.decode()
        check("is not NAME=BYTES" in said, said.splitlines()[0])


def other_cores():
    """What functions of the compiler's library take is bounded, for all cores that have no floating-point unit."""
    for target in ("cortex-m0plus", "cortex-m3", "cortex-m7", "cortex-m33", "cortex-m55"):
        done = on_board("sine", target)[0]
        library = 32 if target in ("cortex-m0plus", "cortex-m3") else 0
        check(done.stack <= done.stack_said <= 1.1 * done.stack + library,
              f"sine on {target}: {done.stack} bytes of stack written, {done.stack_said} promised")
    done = on_board("dense_int8", "cortex-m0plus")[0]
    check(done.stack_said >= done.stack, f"dense_int8 there: {done.stack} bytes of stack written, {done.stack_said} "
                                         "promised")


def refuses():
    """What is wrong with a call, and data that asks for too much, by the statuses of any library."""
    model = FOLDER / "control.onnx"
    model.write_bytes(models.control())
    pack_for_board(model, FOLDER, "net", "cortex-m4")
    header = Header(FOLDER / "libnet.h")
    for count, text in ((3, "an index is out of range"), (1000, "the data exceeds a limit")):
        said = Run(FOLDER, "net", "cortex-m4", [struct.pack("<q", count), bytes(16)], expect=1).said
        check(text in said, f"{count} iterations: {said}")
    for how, text in (("-DARENA=(arena+1)", "a pointer is not aligned"), ("-DARENA=((void)arena,(void*)0)", "null, or not"),
                      ("-DMODEL_RUN(a,i,o)=net_run_sized(a,NET_ARENA_BYTES-1,i,o)", "the arena is too small")):
        said = Run(FOLDER, "net", "cortex-m4", inputs_of(header), how, expect=1).said
        check(text in said, f"{how}: {said}")


def two_models():
    for name, content in (("one", models.control()), ("two", models.keywords())):
        (FOLDER / f"{name}.onnx").write_bytes(content)
        for suffix in ("a", "o"):
            pack(FOLDER / f"{name}.onnx", FOLDER / f"lib{name}.{suffix}", "--target", "cortex-m4", "--name", name)
    for one, two in (("a", "a"), ("o", "o"), ("a", "o")):
        image = FOLDER / f"two_{one}{two}.elf"
        run(GCC, *BOARDS["cortex-m4"][1], "-mthumb", "-std=c11", "-Os", "-ffreestanding", "-nostdlib",
            "-Wl,--gc-sections,-e,reset", "-I", FOLDER, SOURCE / "tests/firmware/two_models.c",
            FOLDER / f"libone.{one}", FOLDER / f"libtwo.{two}", "-lgcc", "-o", image)
        rows = [row.split()[-1] for row in run("arm-none-eabi-nm", image).stdout.decode().splitlines()]
        shared = sorted(n for n in rows if n.startswith("svod_") and "kText" not in n)
        check(shared == sorted(set(shared)) and "svod_status_text" in shared and "svod_memmove" in shared,
              f"two models, .{one} and .{two}: once each {shared}")
        check("memmove" not in rows and "memcpy" not in rows, "no function of the program's own names")


def kernels_of(file):
    """The functions that compute, by their names for all models; a name that is there twice is a fault."""
    found = [(name, size) for _, size, name in symbols(file, "tW") if name.startswith("svod_kernel_")]
    check(len(found) == len(dict(found)), f"{file.name}: {len(found)} functions of kernels, each once")
    return dict(found)


def kernels_are_shared():
    """Two networks with weights of their own and layers of the same sizes: the image has one of equal kernels."""
    contents = {"one": models.keywords(), "two": models.keywords(seed=2)}
    libraries = {}
    for name, content in contents.items():
        (FOLDER / f"{name}.onnx").write_bytes(content)
        libraries[name] = FOLDER / f"lib{name}.a"
        pack(FOLDER / f"{name}.onnx", libraries[name], "--target", "cortex-m4", "--name", name, "-Os")
    image = FOLDER / "shared.elf"
    run(GCC, *BOARDS["cortex-m4"][1], "-mthumb", "-std=c11", "-Os", "-ffreestanding", "-nostdlib",
        "-Wl,--gc-sections,-e,reset", "-I", FOLDER, SOURCE / "tests/firmware/two_models.c", *libraries.values(), "-lgcc",
        "-o", image)
    alone = {name: kernels_of(library) for name, library in libraries.items()}
    both, all_of_them = kernels_of(image), alone["one"] | alone["two"]
    shared = set(alone["one"]) & set(alone["two"])
    check(len(shared) >= 3 and set(both) == set(all_of_them),
          f"{sum(both.values())} bytes of kernels where two images have {sum(sum(k.values()) for k in alone.values())}: "
          f"{len(shared)} functions are both models'")


def kernels_are_merged():
    """-Os makes one function of kernels that differ in numbers, where that takes fewer bytes, and says so."""
    for name in ("small_mobilenet", "gates"):
        done, model, folder, inputs = on_board(name, "cortex-m4", "-Os", "--accuracy", "exact",
                                               f"--json={FOLDER / 'told.json'}")
        groups = json.loads((FOLDER / "told.json").read_text()).get("merged", [])
        saved = sum(group["bytes_one_by_one"] - group["bytes"] for group in groups)
        check(saved > 0 and all(len(g["kernels"]) > 1 and g["numbers"] > 0 and g["bytes"] < g["bytes_one_by_one"]
                                for g in groups), f"{name}: {len(groups)} groups of kernels, {saved} bytes less")
        check(same_as_host(model, folder, done.outputs, inputs, FLOATS if name == "gates" else 0),
              f"{name}: the answers of this machine")
    said = run(PACKER, FOLDER / "gates-cortex-m4/gates.onnx", "-o", FOLDER / "said.a", "--target", "cortex-m4",
               "-Os", "-v").stderr.decode()
    check("merged: k" in said and " one by one" in said, "-v names them")


def launches_are_words():
    """Where -Os has many launches, a loop reads them: a table's address of a kernel counts in the promised stack."""
    parts = ("net_run", "run_calls", "kCalls", "kKernels")
    sizes = []
    for options in ([], ["-Os"]):
        done, model, folder, inputs = on_board("deep", "cortex-m4", "--accuracy", "exact", *options)
        sizes.append({name: size for _, size, name in symbols(done.image, "a-zA-Z") if any(p in name for p in parts)})
    check(same_as_host(model, folder, done.outputs, inputs), "40 layers: the answers of this machine")
    written_out, words = (sum(found.values()) for found in sizes)
    check(any("run_calls" in name for name in sizes[1]) and words < written_out,
          f"the run takes {words} bytes, {written_out} with its calls written out")
    check(done.stack <= done.stack_said <= 1.1 * done.stack + 16, f"{done.stack} bytes of stack, {done.stack_said} promised")
    # Layers that take turns are words for speed, too.
    for name, options in (("residual", []), ("mobilenet", ["-Os"])):
        done, *_ = on_board(name, "cortex-m4", *options)
        run = {symbol: size for _, size, symbol in symbols(done.image, "tT")
               if any(part in symbol for part in ("net_run", "run_calls", "svod_firmware"))}
        check(any("run_calls" in symbol for symbol in run) and sum(run.values()) <= 1024,
              f"{name}: {sum(run.values())} bytes of code beside kernels")
        check(done.stack <= done.stack_said <= 1.1 * done.stack + 16,
              f"{done.stack} bytes of stack, {done.stack_said} promised")


def checks_itself():
    folder = FOLDER / "self_check"
    folder.mkdir()
    model = folder / "dense.onnx"
    model.write_bytes(models.dense_int8())
    pack_for_board(model, folder, "net", "cortex-m4", "--self-check")
    inputs = inputs_of(Header(folder / "libnet.h"))
    how = "-DMODEL_RUN(a,i,o)=(net_self_check()?net_self_check():net_run(a,i,o))"
    Run(folder, "net", "cortex-m4", inputs, how)
    check(True, "--self-check finds nothing wrong with what was packed")
    library = folder / "libnet.a"
    content = library.read_bytes()
    at = content.index(b'"target"')
    library.write_bytes(content[:at + 1] + b"T" + content[at + 2:])
    said = Run(folder, "net", "cortex-m4", inputs, how, expect=1).said
    check("the library is damaged" in said, f"a changed byte is found: {said}")
    said = pack(model, folder / "program", "--self-check", expect=2).stderr.decode()
    check("--self-check is for libraries" in said, said.strip())


def main():
    need(GCC, "qemu-system-arm", "gcc")
    for name in MODELS:
        runs(name)
    small_ones()
    large_one()
    several_memories()
    other_cores()
    refuses()
    two_models()
    kernels_are_shared()
    kernels_are_merged()
    launches_are_words()
    checks_itself()


if __name__ == "__main__":
    sys.exit(main())
