#!/usr/bin/env python3
"""Pictures that a packed program decodes: their size is found by the run, within --limit-image."""
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import INT64, UINT8, model, node, tensor, value
from packing import PACKER, check, pack, run, work_folder

STREAM = 64  # bytes of the input: a shorter picture is followed by zeros


def decoder(path, shape, **attributes):
    nodes = [node("ImageDecoder", ["x"], ["y"], **attributes)]
    path.write_bytes(model(nodes, [value("x", [STREAM], UINT8)], [value("y", shape, UINT8)], opset=20))


def main():
    folder = work_folder("images")
    path, program, stream = folder / "m.onnx", folder / "m", folder / "x.raw"

    def decode(data, expect=0):
        stream.write_bytes(data.ljust(STREAM, b"\0"))
        return run(program, "--input", f"x=@{stream}", expect=expect)

    decoder(path, ["h", "w", "c"])
    pack(path, program, "--limit-image", "3x4")
    color = b"P6 2 1 255\n" + bytes([1, 2, 3, 4, 5, 6])
    check(decode(color).stdout == b"y: 1x2x3xu8=[1 2 3 4 5 6]\n", "RGB, by its own size")
    check(decode(b"P2 # grey\n4 3 3\n0 1 2 3 " + b"3 " * 8).stdout ==
          b"y: 3x4x3xu8=[0 0 0 85 85 85 170 170 170 255 255 255" + b" 255" * 24 + b"]\n", "the largest")
    check(decode(b"no picture").stdout == b"y: 0x0x3xu8=[]\n", "what cannot be decoded is empty")
    large = decode(b"P5 5 1 255\n12345", expect=11).stderr
    check(b"--limit-image" in large and b"ImageDecoder" in large, f"limit and node are named: {large}")

    for pixel_format, want in (("BGR", b"1x2x3xu8=[3 2 1 6 5 4]"), ("Grayscale", b"1x2x1xu8=[2 5]")):
        decoder(path, ["h", "w", "c"], pixel_format=pixel_format)
        pack(path, program)
        check(decode(color).stdout == b"y: " + want + b"\n", pixel_format)

    # The decoder of ONNX Runtime's extensions.
    nodes = [node("DecodeImage", ["x"], ["y"], domain="com.microsoft.extensions")]
    path.write_bytes(model(nodes, [value("x", [STREAM], UINT8)], [value("y", ["h", "w", 3], UINT8)]))
    pack(path, program)
    check(decode(color).stdout == b"y: 1x2x3xu8=[3 2 1 6 5 4]\n", "DecodeImage")

    # The length of the stream may be data as well.
    nodes = [node("Slice", ["x", "zero", "length"], ["cut"]), node("ImageDecoder", ["cut"], ["y"])]
    path.write_bytes(model(nodes, [value("x", [STREAM], UINT8), value("length", [1], INT64)],
                           [value("y", ["h", "w", "c"], UINT8)], [tensor("zero", [1], [0], INT64)], opset=20))
    pack(path, program)
    stream.write_bytes(color.ljust(STREAM, b"\0"))
    for length, want in ((17, b"1x2x3xu8=[1 2 3 4 5 6]"), (16, b"0x0x3xu8=[]")):
        shown = run(program, "--input", f"x=@{stream}", "--input", f"length=1xi64=[{length}]").stdout
        check(shown == b"y: " + want + b"\n", f"{length} of its bytes: {shown}")

    # A stream that is known when packing is decoded then.
    decoder(path, ["h", "w", "c"])
    pack(path, program, "--value", "x=" + ",".join(str(byte) for byte in color.ljust(STREAM, b"\0")))
    check(run(program).stdout == b"y: 1x2x3xu8=[1 2 3 4 5 6]\n", "decoded by the packer")
    check(program.stat().st_size < 120000, "no decoder is packed for it")

    # The model's own word about the size holds, and is checked.
    decoder(path, [1, 2, 3])
    pack(path, program)
    check(decode(color).stdout == b"y: 1x2x3xu8=[1 2 3 4 5 6]\n", "of the declared size")
    check(b"ImageDecoder" in decode(b"P6 1 1 255\n123", expect=11).stderr, "of another size")
    wrong = run(PACKER, path, "-o", program, "--limit-image", "0x7", expect=2).stderr
    check(b"--limit-image" in wrong, "a size of nothing")


if __name__ == "__main__":
    sys.exit(main())
