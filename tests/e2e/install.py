#!/usr/bin/env python3
"""`cmake --install`: the tree it makes runs from any place, the man page and the completions are those of the program."""
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import BUILD, DIGITS, check, need, run, work_folder


def is_static(program):
    """Whether nothing but the kernel is needed to start it: no interpreter is named."""
    return b"/ld-linux" not in program.read_bytes()[:4096]


def main():
    need("cmake", "bash")
    folder = work_folder("install")
    run("cmake", "--install", BUILD, "--prefix", folder / "prefix")
    shutil.move(folder / "prefix", folder / "moved")
    prefix = folder / "moved"
    program = prefix / "bin" / "svod-pack"
    for name in ("share/man/man1/svod-pack.1", "share/bash-completion/completions/svod-pack",
                 "share/zsh/site-functions/_svod-pack", "share/fish/vendor_completions.d/svod-pack.fish",
                 "share/doc/svod-pack/LICENSE", "share/doc/svod-pack/copyright",
                 "lib/cmake/SvodPack/SvodPackConfig.cmake"):
        check((prefix / name).stat().st_size > 500, f"{name} is there")
    run("bash", "-n", prefix / "share/bash-completion/completions/svod-pack")
    page = (prefix / "share/man/man1/svod-pack.1").read_text()
    check(page == run(program, "--man").stdout.decode(), "the man page is what the program prints")

    # With nothing in the environment and nothing beside the program.
    done = run(program, DIGITS, "-o", folder / "digits", "--no-cache", cwd=folder, env={})
    check(b"cosine 1" in done.stderr, "the installed program packs and verifies")
    run(folder / "digits", "--self-check", env={})
    if "SVOD_STATIC:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text():
        check(is_static(program), "the program is static")
        size = program.stat().st_size
        check(size < 140_000_000, f"its {size} bytes are below 140 MB")
        best = min(float(subprocess.run(["bash", "-c", f"TIMEFORMAT=%R; time {program} --version >/dev/null"],
                                        capture_output=True).stderr) for _ in range(5))
        check(best < 0.2, f"it starts in {1000 * best:.0f} ms")


if __name__ == "__main__":
    sys.exit(main())
