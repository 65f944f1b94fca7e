"""Arrays at the border to C: what may go there as a pointer, and what is said of the rest."""
from __future__ import annotations

from typing import Any

import numpy as np

from svod_pack._device_array import is_on_device
from svod_pack._library import TensorInfo


def _described(array: np.ndarray[Any, Any]) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _wanted(info: TensorInfo) -> str:
    return f"{info.dtype}{list(info.shape)}"


def _as_array(info: TensorInfo, value: Any) -> np.ndarray[Any, Any]:
    """An array as it is; a tensor of another library through DLPack, sharing its memory; numbers and lists converted."""
    if isinstance(value, np.ndarray):
        return value
    if is_on_device(value):
        raise TypeError(f"input '{info.name}': the {type(value).__name__} lies on a GPU; run_device takes it there")
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except Exception as error:  # each library raises its own
            raise TypeError(f"input '{info.name}': the {type(value).__name__} cannot be read through DLPack "
                            f"({error})") from error
    if info.dtype.kind == "S":
        return _texts(info, value)
    try:
        return np.asarray(value, dtype=info.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"input '{info.name}' is {_wanted(info)}, a {type(value).__name__} was given "
                        f"({error})") from error


def _texts(info: TensorInfo, value: Any) -> np.ndarray[Any, Any]:
    """Strings as rows of UTF-8, each ended by zeros."""
    array = np.asarray(value)
    if array.dtype.kind in "UO":
        array = np.char.encode(array.astype(str), "utf-8")
    if array.dtype.kind == "S" and array.dtype.itemsize > info.dtype.itemsize:
        raise ValueError(f"input '{info.name}': a string has {array.dtype.itemsize} bytes, packed for at most "
                         f"{info.dtype.itemsize} (string_bytes)")
    return array.astype(info.dtype) if array.dtype.kind == "S" else array


def checked(role: str, info: TensorInfo, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array, when C can take it as it lies in memory."""
    if array.dtype != info.dtype:
        raise TypeError(f"{role} '{info.name}' is {_wanted(info)}, {_described(array)} was given")
    if array.shape != info.shape:
        raise ValueError(f"{role} '{info.name}' is {_wanted(info)}, {_described(array)} was given")
    if not array.flags.c_contiguous:
        raise ValueError(f"{role} '{info.name}' is not contiguous in C order; numpy.ascontiguousarray copies it")
    if not array.flags.aligned:
        raise ValueError(f"{role} '{info.name}' is not aligned to its elements; numpy.array copies it")
    return array


def input_array(info: TensorInfo, value: Any) -> np.ndarray[Any, Any]:
    """What is passed for an input."""
    array = _as_array(info, value)
    if info.dtype.kind == "S" and array.dtype.kind in "SUO" and array.dtype != info.dtype:
        array = _texts(info, array)
    return checked("input", info, array)


def output_array(info: TensorInfo, given: Any) -> np.ndarray[Any, Any]:
    """Memory for an output, of the caller or new."""
    if given is None:
        return np.empty(info.shape, info.dtype)
    if not isinstance(given, np.ndarray):
        raise TypeError(f"output '{info.name}' is written into a NumPy array, not into a {type(given).__name__}")
    if not given.flags.writeable:
        raise ValueError(f"output '{info.name}' is read-only")
    return checked("output", info, given)


def fixed_value(info: TensorInfo, text: str) -> np.ndarray[Any, Any] | None:
    """The value that an input was packed for, from the manifest; None where only its text is known."""
    if info.dtype.kind not in "biuf" or info.shape == ():
        text = text if text.startswith("[") else f"[{text}]"
    words = text.strip("[]").replace(",", " ").split()
    try:
        numbers = [word == "true" if info.dtype.kind == "b" else info.dtype.type(word) for word in words]
        return np.array(numbers, info.dtype).reshape(info.shape)
    except (TypeError, ValueError):
        return None
