"""A model as a function: packed once, kept in a cache folder, loaded."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from svod_pack._model import Model
from svod_pack._packer import ModelLike, Shape, arguments, model_file, program, run, version


def default_cache() -> Path:
    """Beside the packer's own cache of kernels: $SVOD_CACHE_DIR, else $XDG_CACHE_HOME/svod, else ~/.cache/svod."""
    given = os.environ.get("SVOD_CACHE_DIR")
    if given:
        return Path(given) / "python"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "svod" / "python"


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _state(path: str) -> list[int]:
    """What tells that a file was not written since; nothing for one that is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_size, found.st_mtime_ns]


def _key(model: Path, words: list[str]) -> str:
    """Of the model's bytes, the options, and the packer. Files that these name are compared one by one (see _found)."""
    packer = program()
    facts = [_file_digest(model), words, version(), str(packer), _state(str(packer))]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _files_of_rule(text: str) -> list[str]:
    """What stands behind the colon of a Make rule."""
    words = text.replace("\\\n", " ").replace("\\ ", "\0").replace("\\#", "#").replace("$$", "$").split()
    return [word.replace("\0", " ") for word in words[1:]]


def _found(notes: Path) -> Path | None:
    """The library that notes name, if the files beside the model that it was made from are as they were."""
    try:
        entry = json.loads(notes.read_text())
        library = notes.parent / entry["library"]
    except (OSError, ValueError, KeyError):
        return None
    if not library.exists() or any(_state(path) != state for path, state in entry["files"].items()):
        return None
    for used in (notes, library):  # `svod-pack cache gc` removes what was not used for longest
        with contextlib.suppress(OSError):
            os.utime(used)
    return library


def _pack(model: Path, notes: Path, words: list[str], echo: bool) -> Path:
    """In a folder of its own first: processes that pack the same model at one time do not see each other's halves.

    A library is named by its content, since a process that has opened a path gets the same code for it again.
    """
    notes.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pack-", dir=notes.parent) as folder:
        made, rule = Path(folder) / "model.so", Path(folder) / "model.d"
        run([str(model), "-o", str(made), "--deps", str(rule), *words], echo=echo)
        library = notes.with_name(f"{notes.stem}-{_file_digest(made)[:16]}.so")
        files = [path for path in _files_of_rule(rule.read_text()) if path != str(model)]
        text = Path(folder) / "notes"
        text.write_text(json.dumps({"library": library.name, "files": {path: _state(path) for path in files}}))
        os.replace(made, library)
        os.replace(text, notes)
    return library


def compile(model: ModelLike, *, shapes: Mapping[str, Shape] | None = None, values: Mapping[str, Any] | None = None,
            cache_dir: str | os.PathLike[str] | None = None, echo: bool = False, place: str = "auto",
            **options: Any) -> Model:
    """Packs a model for this machine and loads it; a model that was packed before with the same options is loaded at once.

    model, shapes, values, options, echo: as of pack(). cache_dir: where libraries are kept. place: as of load(), for what is
    packed with device="cuda".
    """
    folder = Path(cache_dir) if cache_dir is not None else default_cache()
    words = arguments(options, shapes, values)
    with model_file(model) as path:
        notes = folder / f"{_key(path, words)}.json"
        library = _found(notes) or _pack(path, notes, words, echo)
    return Model(library, place=place)


def load(library: str | os.PathLike[str], name: str = "infer", *, place: str = "auto") -> Model:
    """A shared library that was packed before; name is what --name said when it was.

    place: where its runs go: "auto" (a GPU if the library has kernels for one that is here, else the processor), "cpu", or
    "cuda" (a GPU, or NoDevice or DeviceFault is raised).
    """
    return Model(Path(library), name, place)
