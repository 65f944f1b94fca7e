#!/usr/bin/env python3
"""Writes the pictures of this folder, and beside each what Pillow decodes it to (name.ppm, RGB).

Run by hand where a format or a case is added; needs the packages pillow and numpy, jpegtran and tiffcp. check_images.cpp decodes the
pictures with our decoders and compares all bytes.
"""
import pathlib
import re
import subprocess

import numpy
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
HEIGHT, WIDTH = 19, 27


def picture():
    """Edges, a slope and some noise."""
    noise = numpy.random.default_rng(7).integers(0, 24, (HEIGHT, WIDTH, 3))
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    waves = 110 + 80 * numpy.sin(x / 5 + y / 9)
    planes = numpy.stack([waves, (x // 6 * 61 + y // 5 * 37) % 230, 9 * y + 2 * x], 2)
    return Image.fromarray(numpy.clip(planes + noise, 0, 255).astype(numpy.uint8))


def runs():
    """A picture that is much wider than the others, of runs of both colours."""
    def row(lengths):
        pixels = numpy.concatenate([numpy.full(n, i % 2 == 0) for i, n in enumerate(lengths)])
        return numpy.pad(pixels, (0, 2700 - len(pixels)), constant_values=True)

    short = list(range(1, 64))
    rows = [row(short), row([0] + short)]
    for start in range(64, 2561, 64):
        rows += [row([start]), row([0, start])]
    return Image.fromarray(numpy.stack(rows))


def forms():
    color = picture()
    gray = color.convert("L")
    with_alpha = color.copy()
    with_alpha.putalpha(gray)
    wide = Image.fromarray(numpy.array(gray).astype(numpy.uint16) * 257)
    return {"rgb": color, "gray": gray, "palette": color.quantize(40), "few": color.quantize(4),
            "bits": color.convert("1"), "runs": runs(), "alpha": with_alpha, "inks": color.convert("CMYK"), "wide": wide}


# form, suffix, what Pillow's writer is told
CASES = [
    ("rgb", "bmp", {}), ("gray", "bmp", {}), ("palette", "bmp", {}), ("bits", "bmp", {}), ("alpha", "bmp", {}),
    ("rgb", "pnm", {}), ("gray", "pnm", {}), ("bits", "pnm", {}),
    ("rgb", "png", {}), ("gray", "png", {"compress_level": 0}), ("palette", "png", {}), ("few", "png", {}),
    ("bits", "png", {}), ("alpha", "png", {"optimize": True}), ("wide", "png", {}),
    ("rgb", "tiff", {}), ("gray", "tiff", {"compression": "tiff_lzw"}),
    ("rgb", "tiff", {"compression": "tiff_lzw", "tiffinfo": {317: 2, 278: 5}}),
    ("palette", "tiff", {"compression": "packbits"}), ("bits", "tiff", {}),
    ("inks", "tiff", {"compression": "tiff_adobe_deflate"}),
    ("rgb", "jpg", {}), ("rgb", "jpg", {"quality": 98, "subsampling": "4:4:4"}),
    ("rgb", "jpg", {"quality": 40, "subsampling": "4:2:2"}), ("rgb", "jpg", {"progressive": True}),
    ("gray", "jpg", {"progressive": True}), ("inks", "jpg", {}), ("rgb", "jpg", {"restart_marker_blocks": 2}),
    ("rgb", "jpg", {"keep_rgb": True}),
    ("rgb", "webp", {}), ("rgb", "webp", {"quality": 20, "method": 6}), ("alpha", "webp", {"quality": 95}),
    ("rgb", "webp", {"lossless": True}), ("alpha", "webp", {"lossless": True, "method": 6, "quality": 100}),
    ("palette", "webp", {"lossless": True}), ("few", "webp", {"lossless": True}),
    ("rgb", "jp2", {}), ("gray", "jp2", {}), ("alpha", "jp2", {"irreversible": True}),
    ("rgb", "jp2", {"quality_mode": "rates", "quality_layers": [12, 6, 3], "progression": "RLCP"}),
    ("rgb", "jp2", {"tile_size": [16, 12], "progression": "PCRL", "num_resolutions": 3}),
    ("rgb", "jp2", {"irreversible": True, "precinct_size": [16, 16], "codeblock_size": [4, 4],
                    "num_resolutions": 3, "progression": "RPCL", "quality_mode": "dB", "quality_layers": [28, 40]}),
    ("rgb", "jp2", {"precinct_size": [16, 16], "codeblock_size": [8, 8], "num_resolutions": 2,
                    "progression": "CPRL", "mct": 0, "no_jp2": True}),
    ("rgb", "webp", {"save_all": True, "film": None}), ("few", "webp", {"lossless": True, "film": (4, 2)}),
    ("rgb", "tiff", {"compression": "jpeg"}), ("gray", "tiff", {"compression": "jpeg", "tiffinfo": {278: 8}}),
    ("rgb", "tiff", {"recode": "-c jpeg:80 -r 16"}), ("rgb", "tiff", {"recode": "-c jpeg:95 -t -w 16 -l 16"}),
    ("runs", "png", {}), ("rgb", "jp2", {"mct": 1}), ("rgb", "jp2", {"mct": 1, "irreversible": True}),
    ("inks", "jpg", {"as_luma": True}), ("rgb", "jpg", {"subsampling": "4:2:2", "recode": "-transpose"}),
]


def as_film(still, left, top):
    """A film whose one frame, a still WebP file's picture, stands somewhere on a larger canvas."""
    def number(value, count):
        return value.to_bytes(count, "little")

    def chunk(name, content):
        return name + number(len(content), 4) + content + bytes(len(content) % 2)

    canvas = number(WIDTH + left + 3 - 1, 3) + number(HEIGHT + top + 5 - 1, 3)
    frame = number(left // 2, 3) + number(top // 2, 3) + number(WIDTH - 1, 3) + number(HEIGHT - 1, 3)
    body = (chunk(b"VP8X", bytes([2, 0, 0, 0]) + canvas) + chunk(b"ANIM", bytes(6)) +
            chunk(b"ANMF", frame + number(100, 3) + b"\0" + still[12:]))
    return chunk(b"RIFF", b"WEBP" + body)


def as_rgb(image):
    if image.mode.startswith("I;16"):  # the high bytes; Pillow would clip
        image = Image.fromarray((numpy.array(image) >> 8).astype(numpy.uint8))
    return image.convert("RGB")


def main():
    for old in HERE.glob("*_*.*"):
        if old.suffix not in (".py", ".cpp"):
            old.unlink()
    images = forms()
    for number, (form, suffix, options) in enumerate(CASES):
        path = HERE / f"{suffix}_{number:02}_{form}.{suffix}"
        kind = {"pnm": "PPM", "jp2": "JPEG2000", "jpg": "JPEG"}.get(suffix, suffix.upper())
        place, recode, as_luma = options.pop("film", ()), options.pop("recode", ""), options.pop("as_luma", False)
        if place is None:
            options["append_images"] = [images["palette"].convert("RGB").rotate(180)]
        images[form].save(path, format=kind, **options)
        if place:
            path.write_bytes(as_film(path.read_bytes(), *place))
        if as_luma:  # the last byte of Adobe's segment: inks as luma and chroma, as Photoshop writes them
            path.write_bytes(re.sub(rb"(Adobe.{6}).", rb"\1" + b"\x02", path.read_bytes(), count=1, flags=re.S))
        if recode:  # Pillow does not write tables apart, tiles and samples halved down alone, but reads them
            made = path.with_suffix(".new")
            tool = ["jpegtran", "-outfile", made] if suffix == "jpg" else ["tiffcp"]
            subprocess.run([*tool, *recode.split(), path, *([] if suffix == "jpg" else [made])], check=True)
            made.rename(path)
        decoded = Image.open(path)
        if form != "runs":  # which is large: a bit for a pixel is enough
            decoded = as_rgb(decoded)
        decoded.save(path.with_suffix(".ppm"), format="PPM")


if __name__ == "__main__":
    main()
