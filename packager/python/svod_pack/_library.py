"""A packed library through its C interface: what it takes and gives, and its functions."""
from __future__ import annotations

import ctypes
import importlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from svod_pack._errors import run_error

ALIGN = 64  # of arenas and weights, and of tensors on a GPU
# The packer's names of element types that NumPy has as well.
_NUMPY = {"bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
          "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
          "c128": "complex128"}
# Those that the package ml_dtypes brings, if it is installed; else their bytes are integers.
_ML_DTYPES = {"bf16": ("bfloat16", "uint16"), "f8e4m3fn": ("float8_e4m3fn", "uint8"),
              "f8e4m3fnuz": ("float8_e4m3fnuz", "uint8"), "f8e5m2": ("float8_e5m2", "uint8"),
              "f8e5m2fnuz": ("float8_e5m2fnuz", "uint8"), "f8e8m0": ("float8_e8m0fnu", "uint8")}
# Elements of less than a byte lie packed, lowest bits first: such a tensor is a row of bytes.
_PACKED_BITS = {"i2": 2, "u2": 2, "i4": 4, "u4": 4, "f4e2m1": 4}


def _numpy_dtype(row: dict[str, Any]) -> np.dtype[Any]:
    name = row["dtype"]
    if name in _NUMPY:
        return np.dtype(_NUMPY[name])
    if name in _PACKED_BITS:
        return np.dtype("uint8")
    if name == "string":
        return np.dtype(f"S{max(1, row['string_bytes'])}")
    if name not in _ML_DTYPES:
        raise ValueError(f"'{row['name']}' is of type {name}, which NumPy has not")
    own, raw = _ML_DTYPES[name]
    try:
        found: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), own))
        return found
    except (ImportError, AttributeError):
        return np.dtype(raw)


@dataclass(frozen=True)
class TensorInfo:
    """An input or output. dtype and shape are those of the array that is passed; kind is the model's element type.

    Where the size of an output depends on data, bounded is true and shape is the most it can be.
    """
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    kind: str
    bounded: bool = False


def _tensor(row: dict[str, Any]) -> TensorInfo:
    shape = tuple(row["shape"])
    bits = _PACKED_BITS.get(row["dtype"])
    if bits is not None:
        shape = ((int(np.prod(shape)) * bits + 7) // 8,)
    return TensorInfo(row["name"], _numpy_dtype(row), shape, row["dtype"], "shape_output" in row)


class DeviceFunctions:
    """Those of a library that was packed with --device."""

    def __init__(self, code: ctypes.CDLL, prefix: str):
        pointer, number = ctypes.c_void_p, ctypes.c_int

        def function(name: str, result: Any, *takes: Any) -> Any:
            out = getattr(code, f"{prefix}_{name}")
            out.argtypes, out.restype = takes, result
            return out

        self.open = function("open", number, pointer, number)
        self.close = function("close", None, pointer)
        self.device_text = function("device_text", ctypes.c_char_p, pointer)
        self.runs_on_device = function("runs_on_device", number, pointer)
        self.run_device = function("run_device", number, pointer, pointer, pointer, pointer)
        self.finish_device = function("finish_device", number, pointer)


class Library:
    """The C functions of a packed library under their prefix, and its manifest."""

    def __init__(self, path: Path, prefix: str):
        self.path = path
        code = ctypes.CDLL(str(path.resolve()))
        try:
            info, self.run, size, text = (getattr(code, f"{prefix}_{name}")
                                          for name in ("info", "run_sized", "arena_bytes", "status_text"))
        except AttributeError:
            raise ValueError(f"{path}: no library of svod-pack with the name {prefix}") from None
        info.restype = text.restype = ctypes.c_char_p
        size.restype = ctypes.c_size_t
        self.run.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
        self.run.restype = ctypes.c_int
        self._status_text = text
        self.arena_bytes: int = size()
        self.device = DeviceFunctions(code, prefix) if hasattr(code, f"{prefix}_run_device") else None
        self._init = getattr(code, f"{prefix}_init", None)
        self._weights: np.ndarray[Any, Any] | None = None
        self._lock = threading.Lock()
        if self._init is not None:
            self._init.argtypes = [ctypes.c_void_p] * 3
            self._init.restype = ctypes.c_int
        self.info: dict[str, Any] = json.loads(info())
        entry = self.info["entries"][0]
        self.inputs = [_tensor(row) for row in entry["inputs"]]
        self.outputs = [_tensor(row) for row in entry["outputs"]]
        self.input_rows: list[dict[str, Any]] = entry["inputs"]
        self.output_rows: list[dict[str, Any]] = entry["outputs"]
        self.output_values: list[dict[str, Any]] = entry.get("output_values", [])

    def aligned(self, size: int) -> np.ndarray[Any, Any]:
        """Memory for the library."""
        memory = np.empty(size + ALIGN, np.uint8)
        at = -memory.ctypes.data % ALIGN
        return memory[at:at + size]

    def new_arena(self) -> np.ndarray[Any, Any]:
        """An arena that runs may use. A library of --weights=expand makes its weights for the first one."""
        arena = self.aligned(self.arena_bytes)
        if self._init is not None:
            with self._lock:
                self._make_weights(arena)
        return arena

    def _make_weights(self, arena: np.ndarray[Any, Any]) -> None:
        scratch = None
        if self._weights is None:
            sizes = self.info["bytes"]
            self._weights = self.aligned(ALIGN + sizes["weights"])
            self._weights[:ALIGN] = 0
            scratch = self.aligned(max(ALIGN, sizes.get("start_scratch", 0)))
        status = self._init(arena.ctypes.data, self._weights.ctypes.data,
                            None if scratch is None else scratch.ctypes.data)
        if status != 0:
            self._weights = None
            raise run_error(status, f"{self.path}: {self.status_text(status)}")

    def status_text(self, status: int) -> str:
        return str(self._status_text(status).decode())
