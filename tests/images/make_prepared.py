#!/usr/bin/env python3
"""Writes prepared.txt: what pictures of this folder become by --image, as Pillow resamples and as torchvision rounds.

Run by hand where a case is added; needs the packages pillow (before 13, which resamples some pictures down first) and numpy.
check_prepared.cpp prepares the pictures with our code and compares the CRC-32 of all bytes. Pillow is given what torchvision's Resize
and CenterCrop make of a size, written down here anew.
"""
import pathlib
import zlib

import numpy
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent
FILTERS = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
PICTURES = ["jpg_21_rgb.jpg", "png_09_gray.png", "png_13_alpha.png", "png_49_runs.png", "webp_29_rgb.webp", "bmp_02_palette.bmp",
            "pnm_05_rgb.pnm", "jp2_36_rgb.jp2", "jpg_26_inks.jpg", "webp_43_rgb.webp", "webp_44_few.webp"]
# height and width of the result, how it fits, height and width of the box
SHAPES = [(19, 27, "stretch", 19, 27), (8, 10, "stretch", 8, 10), (40, 33, "stretch", 40, 33), (19, 5, "stretch", 19, 5),
          (5, 27, "stretch", 5, 27), (7, 9, "stretch", 16, 14), (8, 8, "shorter", 9, 9), (16, 16, "shorter", 17, 17),
          (32, 32, "shorter", 37, 37), (12, 15, "cover", 12, 15), (15, 12, "cover", 15, 12), (24, 24, "contain", 24, 24),
          (20, 9, "contain", 20, 9), (32, 64, "contain", 32, 64), (10, 12, "keep", 1, 1), (11, 13, "keep", 1, 1),
          (30, 21, "keep", 1, 1), (23, 31, "keep", 1, 1)]


def resized(image, fit, height, width):
    """The size that the picture is resampled to, as (width, height)."""
    if fit == "stretch":
        return width, height
    if fit == "shorter":  # torchvision's Resize of one number
        short, long = sorted(image.size)
        other = int(height * long / short)
        return (height, other) if image.width <= image.height else (other, height)
    if fit == "cover":
        if height / image.height >= width / image.width:
            return int(image.width * height / image.height), height
        return width, int(image.height * width / image.width)
    if fit == "contain":
        if height / image.height <= width / image.width:
            return max(round(image.width * height / image.height), 1), height
        return width, max(round(image.height * width / image.width), 1)
    return image.size


def pasted(image, height, width, fill):
    """In the middle of a larger picture, a row and a column less before it than behind it."""
    out = Image.new(image.mode, (width, height), (fill,) * len(image.getbands()))
    out.paste(image, ((width - image.width) // 2, (height - image.height) // 2))
    return out


def center_crop(image, height, width):
    """torchvision's CenterCrop."""
    image = pasted(image, max(height, image.height), max(width, image.width), 0)
    top, left = int(round((image.height - height) / 2)), int(round((image.width - width) / 2))
    return image.crop((left, top, left + width, top + height))


def prepared(image, shape, name):
    height, width, fit, box_height, box_width = shape
    image = image.resize(resized(image, fit, box_height, box_width), FILTERS[name])
    return pasted(image, height, width, 114) if fit == "contain" else center_crop(image, height, width)


def main():
    lines = []
    for i, picture in enumerate(PICTURES):
        color = Image.open((HERE / picture).with_suffix(".ppm")).convert("RGB")
        for j, shape in enumerate(SHAPES):
            for name in FILTERS:
                mode = ("rgb", "bgr", "gray")[(i + j) % 3]
                image = color if mode != "gray" else color.convert("L")
                pixels = numpy.array(prepared(image, shape, name))
                if mode == "bgr":
                    pixels = pixels[:, :, ::-1]
                crc = zlib.crc32(numpy.ascontiguousarray(pixels).tobytes())
                lines.append(" ".join(map(str, (picture, mode, *shape, name, crc))))
    (HERE / "prepared.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
