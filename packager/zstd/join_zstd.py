#!/usr/bin/env python3
"""Joins the decoder of zstd's own sources into one file of C that needs nothing: join_zstd.py LIB FREESTANDING OUTPUT.

LIB is zstd's folder lib. Each of its headers is put where it is first included; FREESTANDING takes the place of the C
library and of the checksum.
"""
import pathlib
import re
import sys

SOURCES = ["common/entropy_common.c", "common/error_private.c", "common/fse_decompress.c", "common/zstd_common.c",
           "decompress/huf_decompress.c", "decompress/zstd_ddict.c", "decompress/zstd_decompress_block.c",
           "decompress/zstd_decompress.c"]
REPLACED = {"common/zstd_deps.h", "common/xxhash.h", "common/zstd_trace.h"}
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<[^>]+>).*$', re.M)


class Joiner:
    def __init__(self, lib):
        self.lib, self.seen = lib.resolve(), set()

    def text_of(self, path):
        """A source or header with what it includes. Headers of the system are FREESTANDING's matter."""
        text = COMMENT.sub(" ", path.read_text())

        def included(match):
            if not match[1]:
                return ""
            header = (path.parent / match[1]).resolve()
            name = header.relative_to(self.lib).as_posix()
            if name in REPLACED or name in self.seen or name.startswith("legacy/"):
                return ""
            self.seen.add(name)
            return self.text_of(header)

        return INCLUDE.sub(included, text)


def main():
    lib, freestanding, output = map(pathlib.Path, sys.argv[1:])
    joiner = Joiner(lib)
    parts = [freestanding.read_text()] + [joiner.text_of(lib / name) for name in SOURCES]
    lines = (line.rstrip() for line in "".join(parts).splitlines())
    output.write_text("\n".join(line for line in lines if line) + "\n")


if __name__ == "__main__":
    main()
