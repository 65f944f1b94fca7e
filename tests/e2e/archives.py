#!/usr/bin/env python3
"""Archives of NumPy in and out of a packed program, and what damaged ones do to it."""
import io
import pathlib
import random
import struct
import subprocess
import sys
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from numpy_module import numpy_or_skip
from onnx_writer import INT64, model, node, value
from packing import LONG, check, pack, run, work_folder

np = numpy_or_skip()
FOLDER = work_folder("archives")
STEP = 1 if LONG else 8  # of the bytes that are cut or changed


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def zipped(members, method=zipfile.ZIP_STORED, **more):
    """Bytes of an archive: {name: content}."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, **more) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def packed(name, nodes, inputs, outputs):
    path, program = FOLDER / f"{name}.onnx", FOLDER / name
    path.write_bytes(model(nodes, inputs, outputs))
    pack(path, program)
    return program


def two_inputs():
    """y = a - b, z = a * b"""
    return packed("pair", [node("Sub", ["a", "b"], ["y"]), node("Mul", ["a", "b"], ["part/z"])],
                  [value("a", [40, 50]), value("b", [40, 50])], [value("y", [40, 50]), value("part/z", [40, 50])])


def in_and_out(program):
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 40, 50), dtype=np.float32)
    a[3:] = 1  # something to compress
    out = FOLDER / "out.npz"
    for save in (np.savez, np.savez_compressed):
        for arrays, named in (([], {"b": b, "other": b[:3], "a": np.asfortranarray(a)}), ([a, b], {})):
            path = FOLDER / "in.npz"
            save(path, *arrays, **named)
            run(program, "--input", f"@{path}", "--output", f"@{out}")
            with np.load(out) as got:
                check(sorted(got) == ["part/z", "y"], f"all outputs by name: {sorted(got)}")
                check((got["y"] == a - b).all() and (got["part/z"] == a * b).all(),
                      f"{save.__name__}, {'by name' if named else 'in order'}: as numpy computes")
            check(zipfile.ZipFile(out).testzip() is None, "check sums are right")
        path = FOLDER / "one.npz"
        save(path, a=a, x=b)
        np.save(FOLDER / "b.npy", b)
        run(program, "--input", f"a=@{path}", "--input", f"b=@{FOLDER / 'b.npy'}", "--output", f"y=@{out}")
        with np.load(out) as got:
            check(list(got) == ["y"] and (got["y"] == a - b).all(), "one input from an archive, one output into one")
    run(program, FOLDER / "in.npz", "--output", f"y=@{FOLDER / 'y.npy'}", "--output", f"@{out}")
    with np.load(out) as got:
        check(list(got) == ["part/z"], "an archive without a name has what no word before it has")


def every_writer(program):
    """Zip64 fields, data descriptors, comments, and other levels of compression."""
    a = np.arange(2000, dtype=np.float32).reshape(40, 50)
    members = {"a.npy": npy(a), "b.npy": npy(a + 1)}

    def answer(content):
        path = FOLDER / "in.npz"
        path.write_bytes(content)
        run(program, path, "--output", f"y=@{FOLDER / 'y.npy'}")
        return (np.load(FOLDER / "y.npy") == -1).all()

    class Pipe(io.RawIOBase):  # cannot seek: sizes follow the data
        def __init__(self):
            super().__init__()
            self.content = b""

        def writable(self):
            return True

        def write(self, data):
            self.content += bytes(data)
            return len(data)

    for level in range(10):
        check(answer(zipped(members, zipfile.ZIP_DEFLATED, compresslevel=level)), f"level {level}")
    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    check(answer(pipe.content), "written to a pipe")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.comment = b"PK\x05\x06 is in the comment, too" * 9
        for name, content in members.items():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(content)
    check(answer(out.getvalue()), "zip64 in the members, and a comment")
    # As of an archive beyond 4 GiB: numbers of the directory and of its end are the wide ones.
    whole = zipped(members)
    end = whole.rindex(b"PK\x05\x06")
    count, size, start = struct.unpack_from("<HII", whole, end + 10)
    directory, at = b"", start
    for _ in range(count):
        fixed = bytearray(whole[at:at + 46])
        packed_bytes, plain, name_size = struct.unpack_from("<IIH", fixed, 20)
        place, = struct.unpack_from("<I", fixed, 42)
        name = whole[at + 46:at + 46 + name_size]
        extra = struct.pack("<HHQQQ", 1, 24, plain, packed_bytes, place)
        struct.pack_into("<IIHH", fixed, 20, 0xffffffff, 0xffffffff, name_size, len(extra))
        struct.pack_into("<I", fixed, 42, 0xffffffff)
        directory += bytes(fixed) + name + extra
        at += 46 + name_size
    wide_end = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, count, count, len(directory), start)
    place = struct.pack("<IIQI", 0x07064b50, 0, start + len(directory), 1)
    tail = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, 0)
    wide = whole[:start] + directory + wide_end + place + tail
    check(zipfile.ZipFile(io.BytesIO(wide)).namelist() == list(members), "the wide archive is one for zipfile, too")
    check(answer(wide), "zip64 in the directory")
    twice = io.BytesIO(zipped({"a.npy": npy(a + 5), "b.npy": members["b.npy"]}))
    with zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("x.npy", b"")
        archive.filelist[-1].filename = "a.npy"
        archive.filelist[-1].orig_filename = "a.npy"
    check(b"a.npy" in refused(program, twice.getvalue()), "of two members of one name the last counts, as in NumPy")


def refused(program, content, expect=1):
    path = FOLDER / "bad.npz"
    path.write_bytes(content)
    return run(program, f"@{path}", expect=expect).stderr


def every_type():
    kinds = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9,
             "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15}
    names = list(kinds)
    program = packed("types", [node("Transpose", [f"x_{n}"], [f"y_{n}"], perm=[1, 0]) for n in names],
                     [value(f"x_{n}", [2, 3], kinds[n]) for n in names],
                     [value(f"y_{n}", [3, 2], kinds[n]) for n in names])
    arrays = {f"x_{n}": (np.arange(6) % 2 if n == "bool" else np.arange(6)).reshape(2, 3).astype(n) for n in names}
    np.savez_compressed(FOLDER / "types.npz", **arrays)
    run(program, FOLDER / "types.npz", "--output", FOLDER / "turned.npz")
    with np.load(FOLDER / "turned.npz") as got:
        for n in names:
            y = got[f"y_{n}"]
            check(y.dtype == np.dtype(n) and (y == arrays[f"x_{n}"].T).all(), n)


def of_several_shapes():
    path, program = FOLDER / "shapes.onnx", FOLDER / "shapes"
    path.write_bytes(model([node("Neg", ["x"], ["y"])], [value("x", ["n"])], [value("y", ["n"])]))
    pack(path, program, "--shape", "x=2", "--shape", "x=4000")
    for size in (2, 4000):
        x = np.arange(size, dtype=np.float32)
        np.savez_compressed(FOLDER / "x.npz", x=x)
        for word in (FOLDER / "x.npz", f"x=@{FOLDER / 'x.npz'}"):
            run(program, "--input", word, "--output", FOLDER / "y.npz")
            check((np.load(FOLDER / "y.npz")["y"] == -x).all(), f"the shapes of an archive choose the entry: {size}")


def wrong_ones(program):
    a = np.zeros((40, 50), np.float32)
    told = refused(program, zipped({"a.npy": npy(a), "b.npy": npy(a[:3])}))
    check(b"'b' is f32[40,50], this is f32[3,50]" in told, f"{told}")
    told = refused(program, zipped({"a.npy": npy(a)}), expect=2)
    check(b"input 'b'" in told and b"not given" in told, f"{told}")
    told = refused(program, zipped({"q.npy": npy(a), "r.npy": b""}))
    check(b"q.npy, r.npy" in told and b"inputs: a f32[40,50], b" in told, f"{told}")
    told = refused(program, zipped({"a.npy": npy(a), "b.npy": npy(a)}, zipfile.ZIP_LZMA))
    check(b"member 'a.npy'" in told and b"Deflate" in told, f"{told}")
    told = refused(program, zipped({"a.npy": npy(a), "b.npy": b"\x93NUMPY"}))
    check(b"member 'b.npy': it is no npy file" in told, f"{told}")
    told = refused(program, b"")
    check(b"no archive" in told, f"{told}")
    bomb = zipped({"a.npy": npy(a), "b.npy": bytes(1 << 28)}, zipfile.ZIP_DEFLATED)
    told = refused(program, bomb)
    check(b"'b.npy': it is far larger than the input" in told, f"{len(bomb)} bytes that become 256 MiB: {told}")
    stored = bytearray(zipped({"a.npy": npy(a + 1), "b.npy": npy(a)}))
    stored[500] ^= 1
    told = refused(program, bytes(stored))
    check(b"member 'a.npy': its check sum is wrong" in told, f"{told}")
    run(program, "--output", f"a.npz", expect=2)
    run(program, "--output", f"x=@a.npz", expect=2)


def damaged(program):
    """Any byte missing or changed: an error or the right answer, never a crash."""
    small = packed("small", [node("Add", ["a", "b"], ["y"])], [value("a", [2], INT64), value("b", [2], INT64)],
                   [value("y", [2], INT64)])
    a, b = np.array([3, 4]), np.array([10, 20])
    rng = random.Random(7)
    path = FOLDER / "damaged.npz"

    def tried(content, exits):
        path.write_bytes(content)
        done = subprocess.run([str(small), "--threads", "1", f"@{path}"], capture_output=True, timeout=20)
        told = done.returncode in exits and bool(done.stderr) == (done.returncode != 0)
        if not told or (done.returncode == 0 and done.stdout != b"y: 2xi64=[13 24]\n"):
            check(False, f"{content!r}: exit {done.returncode}, {done.stdout} {done.stderr}")

    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        whole = zipped({"a.npy": npy(a), "b.npy": npy(b)}, method)
        for size in range(0, len(whole), STEP):
            tried(whole[:size], {1})
        for at in range(0, len(whole), STEP):
            changed = bytearray(whole)
            changed[at] ^= 1 << rng.randrange(8)
            tried(bytes(changed), {0, 1, 2})  # 2: a member has another name
        for _ in range(300 // STEP):
            changed = bytearray(whole)
            for _ in range(rng.choice([1, 2, 6])):
                at = rng.randrange(len(changed))
                changed[at:at + rng.choice([1, 2, 4, 8])] = rng.choice([b"\xff" * 8, b"\0" * 4, b"\x7f\xff\xff\xff"])
            tried(bytes(changed), {0, 1, 2})
        print(f"ok: {len(whole)} bytes, cut and changed at one of {STEP} places")


def main():
    program = two_inputs()
    in_and_out(program)
    every_writer(program)
    every_type()
    of_several_shapes()
    wrong_ones(program)
    damaged(program)


if __name__ == "__main__":
    sys.exit(main())
