#!/usr/bin/env python3
"""Inputs that are picture files (--image): through a program as Pillow has them, and every way that they can be wrong."""
import json
import pathlib
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import FLOAT, UINT8, model, node, tensor, value
from packing import PACKER, SOURCE, check, need, pack, read_npy, run, work_folder

IMAGES = SOURCE / "tests/images"
FITS = {"stretch": "resize={0}x{1}", "cover": "fit=crop", "contain": "fit=pad,fill=114", "shorter": "resize={0},crop={2}x{3}",
        "keep": "crop={2}x{3}"}


def ppm(height, width, pixels):
    return f"P6 {width} {height} 255\n".encode() + bytes(pixels)


def spec_of(mode, height, width, fit, box_height, box_width, name):
    spec = f"{mode},{FITS[fit].format(box_height, box_width, height, width)},filter={name}"
    return spec + (f",crop={height}x{width}" if fit == "stretch" and (height, width) != (box_height, box_width) else "")


def as_pillow(folder, path, program):
    """A case for each way to fit, of those that check_prepared compares; the filters take turns."""
    seen = set()
    for line in (IMAGES / "prepared.txt").read_text().splitlines():
        picture, mode, height, width, fit, box_height, box_width, name, crc = line.split()
        if mode == "gray" or fit in seen or picture.split(".")[1] not in ("jpg", "png"):
            continue
        if fit == "stretch" and height == box_height or name != ("bilinear", "bicubic", "nearest")[len(seen) % 3]:
            continue
        seen.add(fit)
        sizes = int(height), int(width)
        path.write_bytes(model([node("Identity", ["x"], ["y"])], [value("x", [1, *sizes, 3], UINT8)],
                               [value("y", [1, *sizes, 3], UINT8)]))
        spec = spec_of(mode, *sizes, fit, int(box_height), int(box_width), name)
        pack(path, program, "--image", spec + ",formats=jpeg/png")
        out = folder / "y.raw"
        run(program, IMAGES / picture, "--output", f"y=@{out}")
        check(zlib.crc32(out.read_bytes()) == int(crc), f"{picture}, {spec}: the bits of Pillow")
    check(len(seen) == 5, "each way to fit")


def numbers(folder, path, program):
    """A picture of 2x2 pixels, as it is, becomes numbers."""
    pixels = [0, 51, 102, 153, 204, 255, 1, 2, 3, 128, 129, 130]
    picture, out = folder / "small.ppm", folder / "y.npy"
    picture.write_bytes(ppm(2, 2, pixels))
    mean, deviation = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    path.write_bytes(model([node("Identity", ["x"], ["y"])], [value("x", [1, 3, 2, 2])], [value("y", [1, 3, 2, 2])]))

    def values(spec, change):
        pack(path, program, "--image", spec + ",formats=bmp")
        run(program, f"x=@{picture}", "--output", f"y=@{out}")
        have = read_npy(out)[1]
        want = [change(pixels[3 * at + channel] / 255, channel) for channel in range(3) for at in range(4)]
        check(all(abs(a - b) < 1e-6 * max(1, abs(b)) for a, b in zip(have, want)), f"{spec}: {have[:3]}")

    values("rgb", lambda x, c: x)
    values("x=rgb,mean=0.5,std=0.5", lambda x, c: (x - 0.5) / 0.5)
    values("rgb,scale=1,mean=100/110/120", lambda x, c: 255 * x - (100, 110, 120)[c])
    values("rgb,crop=2,scale=1/255,mean=0.485/0.456/0.406,std=0.229/0.224/0.225",
           lambda x, c: (x - mean[c]) / deviation[c])
    values("yolo", lambda x, c: x)


def wrong_pictures(folder, path, program):
    path.write_bytes(model([node("Identity", ["x"], ["y"])], [value("x", [1, 3, 8, 8])], [value("y", [1, 3, 8, 8])]))
    pack(path, program, "--image", "rgb,formats=jpeg", "--limit-image", "19x26")
    jpeg, none = (IMAGES / "jpg_21_rgb.jpg").read_bytes(), folder / "none.jpg"

    def refused(data, expect, *words):
        none.write_bytes(data)
        said = run(program, none, expect=expect)
        check(said.stdout == b"" and all(word.encode() in said.stderr for word in ("none.jpg", *words)),
              said.stderr.decode().strip())

    refused(jpeg, 11, "27 pixels wide and 19 high", "494 pixels", "--limit-image")
    refused(b"", 1, "no picture", "'x'")
    refused(b"no picture at all", 1, "no picture", "(jpeg/pnm)")
    refused((IMAGES / "png_08_rgb.png").read_bytes(), 1, "no picture")
    refused(jpeg.ljust(4 * 19 * 26 + 65537, b"\0"), 1, "larger than the", "--limit-image")
    check(b"cannot be read" in run(program, folder / "missing.jpg", expect=4).stderr, "a file that is not there")
    pack(path, program, "--image", "rgb,formats=jpeg/png/tiff")
    for cut in (len(jpeg) // 2, len(jpeg) * 9 // 10):
        refused(jpeg[:cut], 1, "cut short", "27 pixels wide")
    # What nobody exports has a size, but no decoder: arithmetic codes, and those of fax machines.
    tiff = (IMAGES / "tiff_19_bits.tiff").read_bytes()
    compression = b"\x03\x01\x03\0\x01\0\0\0"
    for odd in (jpeg.replace(b"\xff\xc0", b"\xff\xc9"), tiff.replace(compression + b"\x01", compression + b"\x04")):
        refused(odd, 1, "27 pixels wide", "of a kind that is not decoded")
    progressive = (IMAGES / "jpg_24_rgb.jpg").read_bytes()
    refused(progressive[:len(progressive) * 2 // 3], 1, "cut short")
    check(b"(a picture file) is not given" in run(program, expect=2).stderr, "no picture")
    streamed = run(program, "--stream", expect=2).stderr + run(program, "--stream=jsonl", expect=2).stderr
    check(streamed.count(b"--batch-dir") == 2, "pictures are no records")
    # A picture before does not leave anything behind for the next one, wrong or not.
    many, answers = folder / "many", folder / "answers"
    many.mkdir()
    for name, data in (("a.jpg", jpeg), ("b.JPG", jpeg[:300]), ("c.png", (IMAGES / "png_08_rgb.png").read_bytes()),
                       ("notes.txt", b"left alone"), ("d.ppm", ppm(1, 1, [1, 2, 3]))):
        (many / name).write_bytes(data)
    said = run(program, "--batch-dir", many, "--output-dir", answers, expect=1).stderr
    check(sorted(p.name for p in answers.iterdir()) == ["a.npy", "c.npy", "d.npy"] and b"b.JPG" in said and
          b"3 ran, 1 failed" in said, "a folder of pictures")
    run(program, many / "a.jpg", "--output", f"y=@{folder / 'a.npy'}")
    check((folder / "a.npy").read_bytes() == (answers / "a.npy").read_bytes(), "the same as one by one")
    piped = subprocess.run([program, "-"], input=jpeg, capture_output=True, timeout=60)
    check(piped.stdout == run(program, many / "a.jpg").stdout and piped.stdout, "standard input")
    for made in ("zeros", "random:3"):
        check(b"y: 1x3x8x8xf32" in run(program, f"x={made}").stdout, f"a picture of {made}")
    run(program, "--bench", "--min-time", "0.01")


def what_is_said(path, program):
    shown = run(program, "--info").stdout
    check(b"picture file, at most" in shown and b"to rgb,resize=8x8,filter=bilinear" in shown, "--info")
    facts = json.loads(run(program, "--info=json").stdout)["entries"][0]["inputs"]
    check(facts[0]["prepared"].startswith("rgb,resize=8x8") and facts[1]["name"] == "x.shape", "--info=json")
    check(b"picture file" in run(program, "--help").stdout, "--help")

    def key(*options):
        return run(PACKER, "key", path, *options).stdout

    check(len({key(), key("--image", "rgb"), key("--image", "bgr"), key("--image", "rgb,formats=jpeg"),
               key("--image", "rgb", "--limit-image", "64x64")}) == 5, "each has a key of its own")
    check(key("--image", "rgb") == key("--image", "x=rgb,scale=1/255"), "what is said by default is the same")


def wrong_options(path, program):
    for spec, words in (("gray", "three channels"), ("rgb,crop=9", "crop=8x8"), ("rgb,resize=4", "less than"),
                        ("z=rgb", "'x'"), ("rgb,mean=1/2", "2 numbers"), ("rgb,rezise=9", "'resize'"),
                        ("rgb,fit=pad,crop=8", "leave out"), ("rgb,fill=3", "fit=pad"), ("rgb,layout=nhwc", "layout"),
                        ("rgb,std=0", "std"), ("rgb,scale=1/0", "scale"), ("rgb,resize=0x3", "size"), ("", "unknown"),
                        ("rgb,resize=9x9", "crop=8x8"), ("rgb,formats=gif", "jpeg")):
        said = run(PACKER, path, "-o", program, "--image", spec, expect=2).stderr.decode()
        check(words in said, said.splitlines()[0])
    for options, words in ((("--target", "cortex-m4", "--emit", "static"), "firmware"), (("--target", "wasm32"), "modules"),
                           (("--emit", "source"), "source"), (("--dim", "x[2]=1..8"), "--shape"),
                           (("--device", "cuda"), "--device"), (("--limit-image", "9999x9999"), "--limit-image"),
                           (("--shape", "x=1x3x8x8", "--shape", "x=1x3x9x9"), "one set"), (("--bisect",), "--bisect")):
        said = run(PACKER, path, "-o", program, "--image", "rgb", *options, expect=2).stderr.decode()
        check(words in said, said.splitlines()[0])
    path.write_bytes(model([node("Add", ["x", "z"], ["y"])], [value("x", [1, 3, 8, 8]), value("z", [1, 3, 8, 8])],
                           [value("y", [1, 3, 8, 8])]))
    said = run(PACKER, path, "-o", program, "--image", "rgb", expect=2).stderr.decode()
    check("'x', 'z'" in said and "NAME=" in said, said.splitlines()[0])
    path.write_bytes(model([node("Identity", ["x"], ["y"])], [value("x", ["n", 3, "h", 8])], [value("y", ["n", 3, "h", 8])]))
    said = run(PACKER, path, "-o", program, "--image", "rgb", expect=3).stderr.decode()
    check("--shape h=N" in said, said.splitlines()[0])
    said = run(PACKER, path, "-o", program, "--image", "rgb", "--shape", "x=2x3x8x8", expect=2).stderr.decode()
    check("several pictures" in said, said.splitlines()[0])


def several_inputs(folder, path, program):
    """Two pictures and an array: in their order, by name, and in folders."""
    path.write_bytes(model([node("Sub", ["x", "z"], ["d"]), node("Mul", ["d", "w"], ["y"])],
                           [value("x", [1, 3, 2, 2]), value("w", [1]), value("z", [1, 3, 2, 2])],
                           [value("y", [1, 3, 2, 2])]))
    pack(path, program, "--image", "x=rgb,scale=1,formats=bmp", "--image", "z=rgb,scale=1,formats=bmp")
    for name, pixel in (("x", 9), ("z", 5)):
        (folder / f"{name}.ppm").write_bytes(ppm(2, 2, [pixel] * 12))
    want = b"y: 1x3x2x2xf32=[" + b"8 " * 11 + b"8]\n"
    check(run(program, folder / "x.ppm", "w=1xf32=[2]", folder / "z.ppm").stdout == want, "two pictures")
    sets = folder / "sets"
    (sets / "one").mkdir(parents=True)
    for name in ("x", "z"):
        (sets / "one" / f"{name}.ppm").write_bytes((folder / f"{name}.ppm").read_bytes())
    check(want in run(program, "w=1xf32=[2]", "--batch-dir", sets).stdout, "a folder of each run")
    (folder / "z.ppm").write_bytes(b"P6")
    said = run(program, folder / "x.ppm", "w=1xf32=[2]", folder / "z.ppm", expect=1).stderr
    check(b"z.ppm" in said and b"'z'" in said, "the wrong one is named")


def verified(folder, path, program):
    sets = folder / "test_data_set_0"
    sets.mkdir()
    path.write_bytes(model([node("Neg", ["x"], ["y"])], [value("x", [1, 3, 2, 2])], [value("y", [1, 3, 2, 2])]))
    values = [float(i) for i in range(12)]
    (sets / "input_0.pb").write_bytes(tensor("x", [1, 3, 2, 2], values))
    (sets / "output_0.pb").write_bytes(tensor("y", [1, 3, 2, 2], [-v for v in values]))
    words = [PACKER, path, "-o", program, "--image", "rgb,formats=bmp"]
    check(b"not verified" in run(*words).stderr, "data beside the model are passed over, which is said")
    check(b"verified without --image" in run(*words, "--verify", folder).stderr, "the model itself is verified")
    run(*words, "--verify", "random")
    (sets / "output_0.pb").write_bytes(tensor("y", [1, 3, 2, 2], values))
    program.unlink()
    run(*words, "--verify", folder, expect=7)
    check(not program.exists(), "nothing is written on a mismatch")
    # Pictures may be data, too.
    data = ppm(2, 2, range(12))
    (sets / "input_0.pb").write_bytes(tensor("x", [len(data)], list(data), UINT8))
    want = [-(3 * at + c) / 255 for c in range(3) for at in range(4)]
    (sets / "output_0.pb").write_bytes(tensor("y", [1, 3, 2, 2], want))
    said = run(*words, "--verify", folder).stderr
    check(b"without" not in said and b"max abs" in said, "a data set of pictures")
    for file in sets.iterdir():
        file.unlink()
    sets.rmdir()


CALLER = """
#include "libmodel.h"
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  FILE* file = fopen(argv[1], "rb");
  unsigned char* bytes = malloc(MODEL_INPUT_0_BYTES);
  int64_t count = (int64_t)fread(bytes, 1, MODEL_INPUT_0_BYTES, file);
  void* arena = aligned_alloc(MODEL_ARENA_ALIGN, (MODEL_ARENA_BYTES + MODEL_ARENA_ALIGN - 1) / MODEL_ARENA_ALIGN * MODEL_ARENA_ALIGN);
  float y[MODEL_OUTPUT_0_COUNT];
  const void* inputs[MODEL_NUM_INPUTS];
  inputs[0] = bytes;
  inputs[MODEL_INPUT_0_SHAPE_INPUT] = &count;
  void* outputs[] = {y};
  int status = model_run(arena, inputs, outputs);
  if (status != 0 || argc > 2) return -status;
  printf("%.6f %.6f\\n", y[0], y[11]);
  return 0;
}
"""


def library(folder, path):
    path.write_bytes(model([node("Identity", ["x"], ["y"])], [value("x", [1, 3, 2, 2])], [value("y", [1, 3, 2, 2])]))
    pack(path, folder / "libmodel.a", "--name", "model", "--image", "rgb,formats=bmp", "--limit-image", "64x64")
    header = (folder / "libmodel.h").read_text()
    check("A picture file, of at most so many bytes" in header and "rgb,resize=2x2" in header, "the header says what it takes")
    source, program, picture = folder / "caller.c", folder / "caller", folder / "p.ppm"
    source.write_text(CALLER)
    run("gcc", "-O1", "-I", folder, source, folder / "libmodel.a", "-o", program)
    picture.write_bytes(ppm(2, 2, [255, 0, 51] * 4))
    check(run(program, picture).stdout == b"1.000000 0.200000\n", "a library decodes")
    picture.write_bytes(b"P6 2 2 255\n123")
    run(program, picture, expect=1)  # BAD_ARGUMENT
    picture.write_bytes(ppm(65, 64, [1] * (3 * 65 * 64)))
    run(program, picture, expect=8)  # LIMIT
    check(True, "what it cannot take has a status")


def main():
    need("gcc")
    folder = work_folder("pictures")
    path, program = folder / "m.onnx", folder / "m"
    as_pillow(folder, path, program)
    numbers(folder, path, program)
    wrong_pictures(folder, path, program)
    what_is_said(path, program)
    wrong_options(path, program)
    several_inputs(folder, path, program)
    verified(folder, path, program)
    library(folder, path)


if __name__ == "__main__":
    sys.exit(main())
