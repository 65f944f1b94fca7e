"""Reads tensors of ONNX test data (TensorProto) with the standard library alone, and compares values."""
import math
import pathlib
import struct

# ONNX type number: letter of struct, bytes.
TYPES = {1: ("f", 4), 2: ("B", 1), 3: ("b", 1), 4: ("H", 2), 5: ("h", 2), 6: ("i", 4), 7: ("q", 8), 9: ("B", 1),
         10: ("e", 2), 11: ("d", 8), 12: ("I", 4), 13: ("Q", 8)}
FLOATS = (1, 10, 11)
# Fields with values that are not raw: field: (letter, bytes) of packed ones, None for varints.
PACKED = {4: ("f", 4), 5: None, 7: None, 10: ("d", 8), 11: None}


class NoTensor(ValueError):
    """The file holds something else, or elements that have no plain form."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, wire type, value) of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = data[at:at + size], at + size
        else:
            raise NoTensor(f"wire type {kind}")
        yield key >> 3, kind, value


def packed_values(number, kind, value):
    form = PACKED[number]
    if form:
        return list(struct.unpack(f"<{len(value) // form[1]}{form[0]}", value))
    if kind == 0:
        return [value]
    out, at = [], 0
    while at < len(value):
        one, at = varint(value, at)
        out.append(one)
    return out


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def read_tensor(path):
    """(ONNX type, dims, bytes of the elements)."""
    dims, dtype, raw, values = [], 0, None, []
    for number, kind, value in fields(pathlib.Path(path).read_bytes()):
        if number == 1:
            dims += [value] if kind == 0 else packed_values(7, kind, value)
        elif number == 2 and kind == 0:
            dtype = value
        elif number == 9:
            raw = bytes(value)
        elif number in PACKED:
            values += packed_values(number, kind, value)
    if dtype not in TYPES:
        raise NoTensor(f"elements of type {dtype}")
    letter, size = TYPES[dtype]
    count = math.prod(dims)
    if raw is None:
        if letter == "e":  # bit patterns
            letter = "H"
        elif letter in "bhiq":
            values = [signed(v, 8 * size) for v in values]
        raw = struct.pack(f"<{len(values)}{letter}", *values)
    if len(raw) != count * size:
        raise NoTensor(f"{len(raw)} bytes for {count} elements")
    return dtype, dims, raw


def difference(dtype, given, expected, rtol=1e-3, atol=1e-5):
    """What is wrong with the elements `given` (bytes), or nothing: integers are equal, floats within tolerance."""
    if len(given) != len(expected):
        return f"{len(given)} bytes instead of {len(expected)}"
    letter, size = TYPES[dtype]
    count = len(expected) // size
    pairs = zip(struct.unpack(f"<{count}{letter}", given), struct.unpack(f"<{count}{letter}", expected))
    for i, (a, b) in enumerate(pairs):
        same = a == b or (a != a and b != b)
        if dtype in FLOATS and not same and math.isfinite(a) and math.isfinite(b):
            same = abs(a - b) <= atol + rtol * abs(b)
        if not same:
            return f"element {i} is {a!r} instead of {b!r}"
    return ""
