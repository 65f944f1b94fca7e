#!/usr/bin/env python3
"""Hostile inputs of a packed program: each ends within a second and 300 MB, with exit code 1 and a reason.

Every file is made here from one that is right: cut at each length, and with a lie about its type, its shape, its sizes.
"""
import io
import os
import pathlib
import struct
import subprocess
import sys
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import FLOAT, data, model, node, number, tensor, value, varint
from packing import check, pack, run, work_folder

SECONDS, MEGABYTES = 1.0, 300
VALUES = [1.5, -2.0, 3.0, 4.0, 5.0, 6.0]
RAW = struct.pack("<6f", *VALUES)
CASES = {}  # name with its suffix -> bytes


def npy(descr="'<f4'", shape="(2, 3)", order="False", content=RAW, version=1, length=None):
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text) if length is None else length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + content


def npz(how=zipfile.ZIP_STORED, member="x.npy"):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", how) as archive:
        archive.writestr(member, npy())
    return made.getvalue()


def arrays():
    right = npy()
    for size in range(len(right)):
        CASES[f"cut at {size}.npy"] = right[:size]
    for name, what in {"another type": dict(descr="'<i4'"), "objects": dict(descr="'|O'"), "a structure": dict(descr="[('a', '<f4')]"),
                       "no type": dict(descr="''"), "big endian": dict(descr="'>f4'"), "another rank": dict(shape="(6,)"),
                       "another shape": dict(shape="(3, 2)"), "negative": dict(shape="(-2, -3)"), "no tuple": dict(shape="6"),
                       "2^64 elements": dict(shape="(4294967296, 4294967296)"), "2^63": dict(shape="(9223372036854775807, 1)"),
                       "a product that wraps": dict(shape="(2, 9223372036854775811)"), "rank 40": dict(shape=f"({'1, ' * 40})"),
                       "data too long": dict(content=RAW + b"\0"), "a header to the end": dict(length=60000),
                       "version 9": dict(version=9), "4 GiB of header": dict(version=2, length=2**32 - 1),
                       "a word for the order": dict(order="Perhaps")}.items():
        CASES[f"{name}.npy"] = npy(**what)


def archives():
    right = npz()
    for size in range(0, len(right), 7):
        CASES[f"cut at {size}.npz"] = right[:size]
    at = right.rindex(b"PK\x01\x02")
    for name, place, content in (("sizes", at + 20, b"\xff" * 8), ("place", at + 42, b"\xff\xff\xff\x7f"), ("a method", at + 10, b"\x63\0"),
                                 ("check sum", at + 16, b"\0\0\0\0"), ("length of a name", at + 28, b"\xff\xff")):
        CASES[f"another {name}.npz"] = right[:place] + content + right[place + len(content):]
    CASES["a bomb.npz"] = bomb()
    CASES["another member.npz"] = npz(member="y.npy")


def bomb():
    """A gigabyte of zeros in a megabyte."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        member.write(npy(shape="(16384, 16384)", content=b""))
        for _ in range(64):
            member.write(bytes(1 << 22))
    return made.getvalue()


def messages():
    right = tensor("x", [2, 3], VALUES)
    for size in range(len(right)):
        CASES[f"cut at {size}.pb"] = right[:size]
    dims = number(1, 2) + number(1, 3)
    for name, content in {"two data fields": right + data(4, RAW), "another type": tensor("x", [2, 3], [1] * 6, 7),
                          "type 99": dims + number(2, 99) + data(9, RAW), "raw too short": dims + number(2, FLOAT) + data(9, RAW[:-1]),
                          "raw too long": dims + number(2, FLOAT) + data(9, RAW + b"\0"), "no data": dims + number(2, FLOAT),
                          "a length past the end": varint(9 << 3 | 2) + varint(1 << 40), "2^62 elements": number(1, 1 << 31) * 2 + number(2, FLOAT),
                          "rank 200": number(1, 1) * 200 + number(2, FLOAT) + data(9, RAW[:4]), "a varint of eleven bytes": b"\x08" + b"\xff" * 10 + b"\1"}.items():
        CASES[f"{name}.pb"] = content


def texts():
    right = b"[[1.5, -2, 3], [4, 5, 6]]"
    for size in range(len(right)):
        CASES[f"cut at {size}.json"] = right[:size]
    for name, text in {"deep": "[" * 100000, "another shape": "[[1, 2], [3, 4], [5, 6]]", "a number": "5", "more": "[[1,2,3],[4,5,6]] 7",
                       "words": '[["a", "b", "c"], ["d", "e", "f"]]', "an object": '{"x": [[1,2,3],[4,5,6]]}', "a comma": "[[1,2,3,],[4,5,6]]"}.items():
        CASES[f"{name}.json"] = text.encode()
    for size in (0, 1, 23, 25, 4000):
        CASES[f"{size} bytes.raw"] = bytes(size)


def run_case(folder, program, name, content):
    path = folder / name
    path.write_bytes(content)
    start = time.monotonic()
    with open(folder / "messages.txt", "w+b") as messages_file:
        child = subprocess.Popen([str(program), "--input", f"x=@{path}", "--output", f"y=@{folder / 'y.npy'}"],
                                 stdin=subprocess.DEVNULL, stdout=messages_file, stderr=messages_file)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        messages_file.seek(0)
        text = messages_file.read(4096)
    used = usage.ru_utime + usage.ru_stime
    faults = []
    if child.returncode != 1:
        faults.append(f"exit {child.returncode}, expected 1")
    if used > SECONDS or time.monotonic() - start > 20 * SECONDS:
        faults.append(f"{used:.2f} s")
    if usage.ru_maxrss > MEGABYTES * 1024:
        faults.append(f"{usage.ru_maxrss / 1024:.0f} MB")
    if (folder / "y.npy").exists():
        faults.append("an output was written")
    if b"error" not in text or any(c < 32 and c != 10 or c > 126 for c in text):
        faults.append("no printable error")
    if faults:
        print(f"{name}: {', '.join(faults)}: {text[-300:]!r}")
    path.unlink()
    (folder / "y.npy").unlink(missing_ok=True)
    return not faults, used, usage.ru_maxrss / 1024


def main():
    folder = work_folder("hostile_data")
    source, program = folder / "relu.onnx", folder / "relu"
    source.write_bytes(model([node("Relu", ["x"], ["y"])], [value("x", [2, 3])], [value("y", [2, 3])]))
    pack(source, program)
    for name, content in (("right.npy", npy()), ("right.npz", npz()), ("deflated.npz", npz(zipfile.ZIP_DEFLATED)),
                          ("right.pb", tensor("x", [2, 3], VALUES)), ("right.json", b"[[1.5, -2, 3], [4, 5, 6]]"), ("right.raw", RAW)):
        (folder / name).write_bytes(content)
        run(program, "--input", f"x=@{folder / name}")
    arrays(), archives(), messages(), texts()
    results = [run_case(folder, program, name, content) for name, content in CASES.items()]
    good = sum(ok for ok, _, _ in results)
    check(good == len(CASES) >= 200, f"{good} of {len(CASES)} hostile inputs are refused as they should be; "
          f"slowest {max(r[1] for r in results):.2f} s, largest {max(r[2] for r in results):.0f} MB")


if __name__ == "__main__":
    sys.exit(main())
