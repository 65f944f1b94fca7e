#!/usr/bin/env python3
"""Makes the seeds of fuzzing, as far as they are not cases that once failed (those begin with "case_"), from a build.

    SVOD_BUILD=FOLDER make_seeds.py
"""
import io
import pathlib
import struct
import sys
import zipfile
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / part) for part in ("support", "golden", "e2e")]
import run_golden
from onnx_writer import FLOAT, INT64, data, model, node, number, random_tensor, tensor, value
from packing import PACKER, pack, run, work_folder

SEEDS, MOST = HERE / "seeds", 4096
FOLDER = work_folder("fuzz_seeds")


def seed(target, name, content):
    content = content.encode() if isinstance(content, str) else bytes(content)
    assert len(content) <= MOST, (target, name, len(content))
    (SEEDS / target).mkdir(parents=True, exist_ok=True)
    (SEEDS / target / name).write_bytes(content)


def npy(descr, shape, content, version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + content


def odd(content):
    """Targets take the parity of the length as a decision; spaces at the end of a text mean nothing."""
    return content if len(content) % 2 else content + b" "


def even(content):
    return content + b" " if len(content) % 2 else content


ARRAYS = {"x": npy("<f4", "(2, 3)", struct.pack("<6f", *range(6))), "n": npy("<i8", "(2,)", struct.pack("<2q", 1, -2)),
          "half": npy("<f2", "(4,)", bytes(8)), "truth": npy("|b1", "(3,)", b"\1\0\1"),
          "text": npy("|S3", "(2,)", b"abcd\0\0"), "bits": npy("|u1", "(5,)", b"\1\2\3\4\5"),
          "narrow": npy("|V1", "(2,)", b"\x38\xc0"), "c=d": npy("<c8", "(2,)", struct.pack("<4f", 1, 2, 3, 4)),
          "open": npy("<f4", "(1, 3)", struct.pack("<3f", 1, 2, 3), 2)}


def arrays():
    for number_, (name, content) in enumerate(ARRAYS.items()):
        seed("npy", name.replace("=", ""), bytes([number_]) + content)
    seed("npy", "wide_text", b"\4" + npy("<U2", "(2,)", "aéb\0".encode("utf-32-le")))
    seed("npy", "columns", b"\0" + ARRAYS["x"].replace(b"False", b"True"))
    for name, how in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        for parity in (0, 1):
            made = io.BytesIO()
            with zipfile.ZipFile(made, "w", how) as archive:
                for member, content in ARRAYS.items():
                    archive.writestr(f"{member}.npy", content)
            whole = made.getvalue()
            if len(whole) % 2 != parity:  # a comment of one byte behind all
                whole = whole[:-2] + b"\1\0c"
            seed("npz", f"{name}_{parity}", whole)


def protos():
    x = tensor("x", [2, 3], list(range(6)))
    text = number(1, 2) + number(2, 8) + data(6, "a") + data(6, "bc") + data(8, "text")
    lists = number(1, 2) + number(2, FLOAT) + data(4, struct.pack("<2f", 1, 2))
    for name, at, content in (("x", 0, x), ("n", 1, tensor("n", [2], [1, -2], INT64)), ("text", 4, text)):
        seed("proto", name, odd(bytes([at]) + content + data(12, "")))
    sequence = data(1, "s") + number(2, 1) + data(3, lists) + data(3, tensor("", [3], [1, 2, 3]))
    optional = data(1, "o") + number(2, 1) + data(3, tensor("o", [2], [1, 2], INT64))
    values = data(1, "m") + number(2, INT64) + b"".join(number(3, k) for k in (1, 5, -7)) + data(
        5, data(2, tensor("", [3], [1, 2, 3])))
    for name, at, content in (("tensor", 0, lists), ("sequence", 1, sequence), ("optional", 3, optional), ("map", 2, values)):
        whole = bytes([at]) + content
        seed("proto", name, whole if len(whole) % 2 == 0 else whole + data(12, "a"))
    for form, at in (("record", 0), ("values", 200)):
        seed("verified", form, bytes([at, 0, 0, 40]) + x.ljust(40, b"\0")[:40] + lists)


def texts():
    seed("json", "x", b"\0[[1, 2.5, -3e2], [0, null, \"nan\"]]")
    seed("json", "text", b"\4[\"a\\u00e9\", \"\\ud83d\\ude00\"]")
    seed("json", "truth", b"\3[true, false, 1]")
    seed("json", "open", b"\x08[[1,2,3]]")
    one = b'{"x": [[1,2,3],[4,5,6]], "n": [1, 2]}'
    seed("json_lines", "records", even(one + b"\n\n{}\n[1]\n" + one))
    whole = (b'{"x":[[1,2,3],[4,5,6]],"n":[1,2],"half":[0,1,2,3],"truth":[true,false,true],"text":["a","b"],"bits":[1,2,3,4,5],'
             b'"narrow":[1,2],"c=d":[[1,2],[3,4]],"open":[[1,2,3]],"one":7}\n')
    seed("json_lines", "tensors", odd(whole + b'{"x": 1}'))
    seed("records", "three", struct.pack("<6f2q", *range(8)) * 3)
    for name, start, words in (
            ("literals", [0, 0], ["x=2x3xf32=[1 2 3 4 5 6]", "n=[1]", "half=random:7", "truth=[true]", "text=2xstring=[\"a\" b]",
                                  "bits=zeros", "narrow=[0.5]", "c=d=[1 2]", "open=1x3xf32=[1e5]"]),
            ("info", [0, 1, 3], [""]), ("bench", [0, 1, 18], ["x=random", "n=zeros"]), ("trace", [0, 1, 17], ["x=zeros"]),
            ("self_check", [0, 1, 15], [""]), ("batch", [0, 1, 11], ["--output-dir", "e"]),
            ("outputs", [0, 0], ["a", "--output", "y=@b.npy", "--output", "words=@c.json", "-i", "n=@a", "--finite"]),
            ("values", [200, 0], ["s=@d/a.pb", "--input", "m=none", "--verify", "d", "--rtol", "1e-3", "--strict"])):
        seed("words", name, bytes(start) + "\0".join(words).encode())
    seed("labels", "five", b"\0\3cat\ndog\nna\xc3\xafve\r\n\xf0\x9f\x98\x80\nlast")
    seed("labels", "softmax", b"\xff\7a\nb\nc\nd\ne\n")
    seed("manifest", "small", '{"model": {"sha256": "ab", "nodes": 3}, "list": [1, -2.5e3, true, null, "\\u00e9\\n"]}')
    seed("manifest", "profile", '{"kernels": [{"name": "k0", "us": 12.5, "calls": 1}, {"name": "k1", "us": 3}], '
                                '"total_us": 15.5, "level": "v3", "unit": "us"}')
    for number_, (name, text) in enumerate((("ints", "\x1c1,-2,3"), ("floats", "\x540.5,nan,-inf"),
                                            ("sum", "\1past + 1"), ("quotient", "\1floor(samples/320)*2 - (a+b)"),
                                            ("shapes", "\2x=1x3x4x4\nbig:x=1x3x8x8,batch=2\nseq=1..512/64"),
                                            ("dims", "\x0aseq=1..512\nx[2]=1..9\n"))):
        seed("dimensions", name, text)


def pictures():
    kinds = {"bmp": "bmp", "pnm": "pnm", "png": "png", "tiff": "tiff", "jpg": "jpeg", "webp": "webp", "jp2": "jp2"}
    for suffix, target in kinds.items():
        files = sorted((HERE.parent / "images").glob(f"*.{suffix}"), key=lambda path: (path.stat().st_size, path))
        for path in files[:8]:
            if path.stat().st_size <= 700:
                seed(target, path.stem, path.read_bytes())


def streams():
    plain = b"".join(b"%d %d, " % (i, i * i % 7) for i in range(60))
    for level in (0, 1, 9):
        wrapped = zlib.compress(plain, level)
        seed("inflate", f"zlib_{level}", wrapped if len(wrapped) % 2 else wrapped + b"\0")
        bare = wrapped[2:-4]
        seed("inflate", f"bare_{level}", bare if len(bare) % 2 == 0 else bare + b"\0")
    weights = bytes(i * i % 251 for i in range(300))
    for blocks, size in ((1, 300), (3, 128)):
        frames = []
        for i in range(blocks):
            part = FOLDER / "part"
            part.write_bytes(weights[i * size:(i + 1) * size] if blocks == 3 else bytes(300))
            frames.append(run("zstd", "-19", "-q", "-c", "--no-check", part).stdout)
        places = [32 + 8 * (blocks + 1)]
        for frame in frames:
            places.append(places[-1] + len(frame))
        seed("zstd", f"blocks_{blocks}", struct.pack("<8s3Q", b"SVODZST", 300, size, blocks) +
             struct.pack(f"<{len(places)}Q", *places) + b"".join(frames))
    # A transform of two rows, then a copy with room before it; and what lies in another order.
    room, made, stored = 1, 2, 0
    numbers = [2, 1, 0, 1, 2, 0, 2, 2, 2, 2, 1, 0] + [-1, 4, 1, 1, 0, 4, -1, 1] + [0, 2, 1, 2, 2]
    steps = [step(2, 4, 3, 0, 2, 0, 0, (room, 0), (stored, 0), (stored, 16)),
             step(1, 4, 1, 1, 0, 0, 12, (made, 0), (room, 0), (0, 0)),
             step(1, 4, 2, 0, 0, 0, 20, (made, 16), (stored, 0), (0, 0))]
    tables = struct.pack("<2IQ2IQ", 0, 2, 1, 2, 1, 2) + b"".join(steps) + struct.pack(f"<{len(numbers)}q", *numbers)
    tensors = -(-(56 + len(tables)) // 64) * 64
    header = struct.pack("<8s4Q4I", b"SVODEXP", 0, 32, 64, tensors, 2, 3, len(numbers), 0)
    seed("expansion", "steps", (header + tables).ljust(tensors, b"\0") + struct.pack("<8f", *range(1, 9)))


def step(kind, element, axes, limits, kept, row, first, *operands):
    """An SvodExpansionStep."""
    return struct.pack("<8IQ", kind, element, axes, limits, kept, row, first, 0, 0) + b"".join(
        struct.pack("<2Q", *operand) for operand in operands)


def models():
    x, y = [value("x", [2, 3])], [value("y", [2, 3])]
    shape = tensor("s", [2], [3, 2], INT64)
    seed("model", "relu", model([node("Relu", ["x"], ["y"])], x, y))
    seed("model", "reshape", model([node("Reshape", ["x", "s"], ["y"])], x, [value("y", [3, 2])], [shape]))
    seed("model", "dense", model([node("MatMul", ["x", "w"], ["h"]), node("Softmax", ["h"], ["y"], axis=1)], x,
                                 [value("y", [2, 4])], [random_tensor("w", [3, 4], 1)]))
    for name in ("if", "loop", "max_pool", "elementwise", "concat_slice", "gather_rows", "layer_norm", "two_outputs"):
        content = run_golden.read(name)
        if len(content) <= 1500:
            seed("model", name, content)
    body = data(1, node("Relu", ["a"], ["b"])) + data(4, "a") + data(5, "b")
    call = model([node("f", ["x"], ["y"], domain="d")], x, y, domains=[("d", 1)])
    seed("model", "function", call + data(25, data(1, "f") + data(4, "a") + data(5, "b") + data(7, node("Relu", ["a"], ["b"])) +
                                          data(9, number(2, 17)) + data(10, "d")))
    for i in range(8):  # decisions, nothing more
        seed("operators", f"drawn_{i}", bytes((i * 37 + k * k * 11) % 256 if k % 3 else 0 for k in range(160)))


def peers():
    for path in sorted((SEEDS / "model").iterdir()):
        if path.stat().st_size < 400:
            seed("wire", path.name, path.read_bytes())
    for name, text in (("words", "[a-z]+\\d{2,3}|x\nabc12\nx\nab1"), ("groups", "(?i)(ab|c)*[^d-f]\nABcx\n\nd"),
                       ("edges", "^\\bword\\b.*$\nword up\nsword"), ("lazy", "a+?b{0,2}\\x41[[:alpha:]]\naabAz")):
        seed("regex", name, text)


def packed():
    """Images of small programs, and kernels with their schedules."""
    state = model([node("Concat", ["past", "x"], ["all"], axis=0), node("ReduceSum", ["all"], ["y"], keepdims=0)],
                  [value("x", [1, 4]), value("past", [3, 4])], [value("y", []), value("all", [4, 4])])
    kept = model([node("Add", ["x", "s"], ["n"]), node("Mul", ["n", "s"], ["y"])], [value("x", [4]), value("s", [4])],
                 [value("y", [4]), value("n", [4])])
    made = {"relu": (model([node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])]), []),
            "moves": (state, ["--state", "past=all"]), "kept": (kept, ["--state", "s=n"])}
    for name in ("if", "loop", "chain"):
        made[name] = (run_golden.read(name), [])
    for name, (content, options) in made.items():
        path, program = FOLDER / f"{name}.onnx", FOLDER / name
        path.write_bytes(content)
        pack(path, program, "--target", "x86-64", *options)
        image = bytearray(image_of(program))
        size = len(image)
        # The manifest is a text that nobody indexes by: images without it are small.
        place, length = struct.unpack_from("<2I", image, 192 - 16)
        if place + length + 8 >= size:
            image = image[:place]
            struct.pack_into("<2I", image, 192 - 16, 192, 0)
            struct.pack_into("<I", image, 12, len(image))
        if len(image) <= 2600:
            seed("image", name, image)
        if name in ("relu", "chain"):
            text = run(PACKER, path, "--target", "x86-64", "--emit=schedule", *options).stdout.decode()
            at = text.index("schedule ")
            kernel, schedule = text[:at], text[at:]
            if "\nkernel " in schedule:  # only the first
                schedule = schedule[:schedule.index("\nkernel ") + 1]
            body = "".join(line[2:] + "\n" for line in kernel.splitlines()[1:])
            seed("schedule", f"file_{name}", even((kernel + schedule).encode()))
            seed("schedule", f"kernel_{name}", (body if len(body) % 2 else body + "\n").encode())
            seed("tuning", name, "svod-pack tuning 1\nmachine x86_64-linux-gnu v4 skylake -march=x86-64-v4\n"
                                 "kernel took 12.340 us, 14.020 us before\n" + schedule + "end\n")
            if name == "relu":
                seed("tuning", "plan", "svod-pack tuning 1\nmachine x86_64-linux-gnu v4 skylake -march=x86-64-v4\n"
                                       f"plan rules-as-written of {'5a' * 32} took 12.340 us, 14.020 us before\nend\n")


def image_of(program):
    whole = program.read_bytes()
    at = next(at for at in range(0, len(whole), 64) if whole[at:at + 8] == b"SVODIMG\0")
    size, = struct.unpack_from("<I", whole, at + 12)
    return whole[at:at + size]


def kept():
    """What is kept of a pack: a whole image as swap-weights reads it, a file of weights, an entry of the cache."""
    path, program = FOLDER / "small.onnx", FOLDER / "small"
    path.write_bytes(model([node("Mul", ["x", "w"], ["y"])], [value("x", [4])], [value("y", [4])], [random_tensor("w", [4], 1)]))
    for name, options in (("plain", []), ("options", ["-O3", "--threads", "2", "--accuracy", "exact", "--shape", "x=4"])):
        pack(path, program, "--target", "x86-64", *options)
        image = even(image_of(program))
        seed("old_program", name, image)
    seed("old_program", "foreign", image.replace(b"--threads=2", b"--runner=ls"))
    for name, start in (("ours", [255, 0]), ("checked", [255, 255]), ("own", [0, 0])):
        seed("weights", name, bytes(start) + bytes([1, 2, 3, 4, 5, 6, 7, 8]).ljust(16, b"\0"))
    part = FOLDER / "entry"
    part.write_bytes(bytes(i * i % 251 for i in range(300)))
    frame = run("zstd", "-1", "-q", "-c", "--no-check", part).stdout
    seed("entry", "squares", even(struct.pack("<Q", 300) + frame))
    part.write_bytes(bytes(5000))
    frame = run("zstd", "-1", "-q", "-c", "--no-check", part).stdout
    seed("entry", "zeros", even(struct.pack("<Q", 5000) + frame))
    for i in range(4):
        seed("plan", f"edits_{i}", bytes((i * 53 + k * 17) % 256 for k in range(3 * i + 3)))


def main():
    for old in SEEDS.glob("*/*"):
        if not old.name.startswith("case_"):
            old.unlink()
    arrays(), protos(), texts(), pictures(), streams(), models(), packed(), kept(), peers()
    for target in sorted(SEEDS.iterdir()):
        files = list(target.iterdir())
        print(f"{target.name:<12} {len(files):>3} seeds, {sum(f.stat().st_size for f in files):>6} bytes")


if __name__ == "__main__":
    sys.exit(main())
