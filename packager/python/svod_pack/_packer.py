"""The packer as a function: its options as keywords, its exit codes as exceptions."""
from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Union

from svod_pack._errors import FileError, pack_error

# A path, the bytes of a model, or an onnx.ModelProto.
ModelLike = Union[str, "os.PathLike[str]", bytes, Any]
Shape = Union[int, Sequence[int], str]


def version() -> str:
    """The version of this package, which is that of the packer; unknown where it is not installed."""
    try:
        return importlib.metadata.version("svod-pack")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def program() -> Path:
    """The packer: $SVOD_PACK_EXECUTABLE, else the one installed with this package, else the one on PATH."""
    given = os.environ.get("SVOD_PACK_EXECUTABLE")
    if given:
        return Path(given)
    try:
        files = importlib.metadata.files("svod-pack") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "svod-pack":
            return Path(str(file.locate()))
    found = shutil.which("svod-pack")
    if not found:
        raise FileError("svod-pack is not installed; SVOD_PACK_EXECUTABLE may name it", 4)
    return Path(found)


@contextmanager
def model_file(model: ModelLike) -> Iterator[Path]:
    """The model as a file, which is temporary when only its bytes are known. From the root: no name looks like an option,
    and what is noted of files beside it holds in other folders."""
    if isinstance(model, (str, os.PathLike)):
        yield Path(model).absolute()
        return
    content = model if isinstance(model, (bytes, bytearray, memoryview)) else model.SerializeToString()
    with tempfile.TemporaryDirectory(prefix="svod-pack-") as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(content)
        yield path


def _value_text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "x".join(map(str, value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def arguments(options: Mapping[str, Any], shapes: Mapping[str, Shape] | None = None,
              values: Mapping[str, Any] | None = None) -> list[str]:
    """Keywords as words of a command line: max_ram="64K" is --max-ram=64K, True is a flag alone, None and False are
    nothing, a list is an option several times. optimize is -O."""
    words = []
    for name, shape in (shapes or {}).items():
        words.append(f"--shape={name}={_value_text(shape)}")
    for name, value in (values or {}).items():
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        words.append(f"--value={name}={text}")
    for name, value in options.items():
        if name == "optimize":
            words.append(f"-O{value}")
            continue
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={_value_text(one)}")
    return words


def run(words: Sequence[str], *, echo: bool = False) -> dict[str, Any]:
    """Runs the packer; what it reports in JSON. Its messages go to the exception, or with echo to stderr as they come."""
    command = [str(program()), *words, "--json"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False,
                              stderr=None if echo else subprocess.PIPE)
    except OSError as error:
        raise FileError(f"{command[0]} cannot be run: {error.strerror}", 4) from error
    try:
        report: dict[str, Any] = json.loads(done.stdout or b"{}")
    except ValueError:
        report = {}
    if done.returncode != 0:
        text = "" if echo else done.stderr.decode(errors="replace").strip()
        raise pack_error(done.returncode, text or f"svod-pack ended with exit code {done.returncode}",
                         report.get("diagnostics"))
    return report


def pack(model: ModelLike, output: str | os.PathLike[str], *, shapes: Mapping[str, Shape] | None = None,
         values: Mapping[str, Any] | None = None, echo: bool = False, **options: Any) -> dict[str, Any]:
    """Packs a model into a program, or a library when output ends in .a or .so; returns the packer's summary.

    model: a path, the bytes of an ONNX file, or an onnx.ModelProto.
    shapes: {"image": (1, 3, 224, 224), "batch": 1}, for inputs and named dimensions.
    values: {"axes": [1, 2]}, inputs that the model is packed for.
    options: every other option of `svod-pack --help`, with _ for -: target="cortex-m4", max_ram="64K", optimize=1,
        verify="off". True is a flag, a list an option several times.
    echo: the packer's messages and progress go to stderr as they come.

    Raises PackError, by the packer's exit code one of its subclasses.
    """
    with model_file(model) as path:
        return run([str(path), "-o", os.fspath(output), *arguments(options, shapes, values)], echo=echo)


def main() -> None:
    """`python -m svod_pack` is the packer itself."""
    os.execv(program(), ["svod-pack", *sys.argv[1:]])
