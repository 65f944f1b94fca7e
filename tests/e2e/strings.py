#!/usr/bin/env python3
"""Strings of a run at their worst: a megabyte, bytes that are no UTF-8, nothing at all, a zero inside, too many of
them, and files that are damaged. Each is computed with or refused with the right exit code; nothing crashes."""
import pathlib
import random
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.onnx_writer import FLOAT, data, model, node, number, value  # noqa: E402
from support.packing import check, pack, run, work_folder  # noqa: E402

STRING, BOOL = 8, 9
folder = work_folder("strings")


def texts(name, strings, dims=None):
    dims = [len(strings)] if dims is None else dims
    return (b"".join(number(1, d) for d in dims) + number(2, STRING) + data(8, name) +
            b"".join(data(6, s) for s in strings))


def text_attribute(name, text):
    return data(1, name) + data(4, text) + number(20, 3)


def with_attribute(message, name, text):
    return message + data(5, text_attribute(name, text))


def put(name, content):
    (folder / name).write_bytes(content)
    return folder / name


def npy(name, descr, shape, body):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return put(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + body)


def strings_of(path):
    """The strings of a TensorProto."""
    raw, at, out = path.read_bytes(), 0, []

    def number_at(at):
        value = shift = 0
        while True:
            value |= (raw[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if raw[at - 1] < 0x80:
                return value, at
    while at < len(raw):
        key, at = number_at(at)
        size, at = number_at(at)
        if key & 7 == 2:
            if key >> 3 == 6:
                out.append(raw[at:at + size])
            at += size
    return out


# Doubled, in capitals, whether it is a word, whether it is a number written out.
source = put("strings.onnx", model(
    [node("StringConcat", ["x", "x"], ["twice"]),
     with_attribute(node("StringNormalizer", ["x"], ["capitals"]), "case_change_action", "UPPER"),
     node("Equal", ["x", "word"], ["equal"]),
     with_attribute(node("RegexFullMatch", ["x"], ["digits"]), "pattern", "[0-9]+")],
    [value("x", [3], STRING)],
    [value("twice", [3], STRING), value("capitals", [3], STRING), value("equal", [3], BOOL),
     value("digits", [3], BOOL)],
    [texts("word", ["word"])], opset=21))
program = folder / "strings"
pack(source, program)
wide = folder / "wide"
pack(source, wide, "--string-bytes", "1024")


def outputs(file, which=program):
    run(which, "--input", f"x=@{file}", *(f"--output={name}=@{folder / name}.pb" for name in ("twice", "capitals")))
    return strings_of(folder / "twice.pb"), strings_of(folder / "capitals.pb")


def put_texts(strings, **more):
    return put("in.pb", texts("x", strings, **more))


def refused(file, why, which=program):
    done = run(which, "--input", f"x=@{file}", expect=1)
    check(why in done.stderr, f"refused: {done.stderr.decode(errors='replace').strip()[-100:]}")


# What fits.
given = [b"", b"word", b"x" * 64]
twice, capitals = outputs(put_texts(given))
check(twice == [s + s for s in given] and capitals == [s.upper() for s in given],
      "an empty string, a word and one of all the bytes there are")
printed = run(program, "--input", f"x=@{put_texts(given)}").stdout
check(b"equal: 3xbool=[0 1 0]" in printed, "equal to a word by all its bytes")
check(outputs(put_texts([b"", b"", b""]))[0] == [b""] * 3, "three empty strings")
check(outputs(put_texts(given), wide)[0] == twice, "the same in wider rows")
long = [b"7" * 1024, b"a" * 1023, b"7" * 1023 + b"a"]
check(outputs(put_texts(long), wide)[0] == [s + s for s in long], "strings of 1024 bytes")

# Bytes that are no UTF-8 pass through and come back as they were; what has no capitals keeps its bytes.
odd = [b"\xff\xfea", b"\xc3", b"\xe2\x82"]
twice, capitals = outputs(put_texts(odd))
check(twice == [s + s for s in odd], "bytes that are no UTF-8")
check(capitals == [b"\xff\xfeA", b"\xc3", b"\xe2\x82"], "their capitals")
printed = run(program, "--input", f"x=@{put_texts(odd)}").stdout
check(b"\\xff\\xfea" in printed and b"\xff" not in printed, "printed with escapes")
printed = run(program, "--input", f"x=@{put_texts([bytes.fromhex(h) for h in ('eda080', 'e08080', 'f4908080')])}").stdout
check(printed.isascii() and b"\\xed\\xa0\\x80" in printed, "surrogates and longer forms, too")
every = [bytes(range(1, 65)), bytes(range(128, 192)), bytes(range(192, 256))]
check(outputs(put_texts(every))[0] == [s + s for s in every], "every byte but zero")

# What does not fit.
refused(put_texts([b"x" * 65, b"", b""]), b"too long")
refused(put_texts([b"", b"", b"x" * (1 << 20)]), b"string 2: a string is too long")
refused(put_texts([b"x" * (1 << 20)] * 3), b"too long", wide)
refused(put_texts([b"a\0b", b"", b""]), b"zero byte")
refused(put_texts([b"", b"\0", b""]), b"zero byte")
refused(put_texts([b"a"] * 4), b"string[4]")
refused(put_texts([b"a"] * 2), b"string[2]")
refused(put_texts([b"a"] * 4, dims=[3]), b"error")
refused(put_texts([b"a"] * 2, dims=[3]), b"error")
refused(put_texts([b"a"] * 3, dims=[1 << 40]), b"error")
refused(put_texts([b""] * 200000), b"error")

# Arrays of NumPy: 4 bytes per character, the rest of a row zeros.
rows = "".join(s.ljust(4, "\0") for s in ("ab", "é€", "𝄞")).encode("utf-32-le")
check(outputs(npy("u.npy", "<U4", "(3,)", rows))[0] == [s.encode() * 2 for s in ("ab", "é€", "𝄞")], "characters")
check(outputs(npy("s.npy", "|S4", "(3,)", b"ab\0\0\xff\0\0\0abcd"))[0] == [b"abab", b"\xff\xff", b"abcdabcd"], "bytes")
check(outputs(npy("empty.npy", "|S0", "(3,)", b""))[0] == [b""] * 3, "rows of no bytes")
for name, descr, body in (("surrogate", "<U1", struct.pack("<3I", 0xD800, 65, 65)),
                          ("beyond", "<U1", struct.pack("<3I", 65, 0x110000, 65)),
                          ("negative", "<U1", b"\xff" * 12), ("between", "<U3", struct.pack("<9I", 65, 0, 66, *[0] * 6)),
                          ("inside", "|S3", b"a\0ba\0\0a\0\0"),
                          ("short", "|S4", b"abcd"), ("huge", "|S99999999999", b"abc"), ("vast", "<U16777216", b"")):
    refused(npy(f"{name}.npy", descr, "(3,)", body), b"error")

# Words of the command line.
for word, code in (('x=3xstring=["a b" c "\\xff"]', 0), ('x=3xstring=["a\\x00" b c]', 2), ('x=3xstring=["a]', 2),
                   ('x=3xstring=["\\xq" b c]', 2), ("x=3xstring=[a b]", 2), ("x=3xstring=[a b c d]", 2),
                   ("x=9999999999xstring=[a]", 2), ("x=3xstring=[" + "y" * 100000 + " b c]", 1)):
    run(program, "--input", word, expect=code)
check(True, "strings given as words")

# Text that is no number stops the run.
cast = folder / "cast"
pack(put("cast.onnx", model([node("Cast", ["x"], ["y"], to=FLOAT)], [value("x", [2], STRING)], [value("y", [2])],
                            opset=21)), cast, "--string-bytes", "1024")
check(b"[1 -2.5e+30]" in run(cast, "--input", f"x=@{put_texts([b'1.' + b'0' * 1000, b'-25e29'])}").stdout,
      "a number of a thousand digits")
for text in (b"", b"1,5", b"\xff", b"1e", b"0x10", b"9" * 1000 + b"x"):
    done = run(cast, "--input", f"x=@{put_texts([b'1', text])}", expect=11)
    check(b"of node Cast" in done.stderr, f"{text[:8]} is no number: {done.stderr[-60:]}")

# Damaged files: refused, or read as other strings; never a crash.
rng, good, codes = random.Random(5), texts("x", [b"word", b"", b"\xc3\xa9t\xc3\xa9"]), set()
for turn in range(300):
    damaged = bytearray(good)
    for _ in range(rng.randrange(1, 4)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    file = put("damaged.pb", bytes(damaged[:rng.randrange(len(damaged))] if turn % 3 == 0 else damaged))
    codes.add(subprocess.run([program, "--input", f"x=@{file}"], capture_output=True, timeout=20).returncode)
check(codes <= {0, 1}, f"300 damaged files end with {sorted(codes)}")
