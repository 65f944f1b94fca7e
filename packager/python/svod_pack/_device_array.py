"""Arrays on a GPU at the border to C, by DLPack or __cuda_array_interface__: where they lie, and whether a model takes them."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from svod_pack._library import TensorInfo

_CUDA, _CUDA_MANAGED = 2, 13  # DLPack's kinds of devices
_LEGACY_STREAM = 1            # the default stream, as DLPack has it
# DLPack's codes of element types, by NumPy's kinds; bfloat16 is a code of its own.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = (4, 16)


class _DLTensor(ctypes.Structure):
    """What a capsule of DLPack begins with."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


@dataclass
class DeviceArray:
    """Where an array lies; holder keeps it there. stream: another one that still writes to it, as its library says."""
    address: int
    shape: tuple[int, ...]
    contiguous: bool
    kind: tuple[int, int]  # DLPack's code and bits
    read_only: bool
    stream: Optional[int]
    holder: Any


def stream_handle(stream: Any) -> int:
    """A stream as the driver's number, 0 the default one: from a number, None, or an object with __cuda_stream__."""
    if stream is None:
        return 0
    if hasattr(stream, "__cuda_stream__"):
        asked = stream.__cuda_stream__
        return int((asked() if callable(asked) else asked)[1])
    if isinstance(stream, int):
        return stream
    raise TypeError(f"a stream is a number (cudaStream_t) or has __cuda_stream__; a {type(stream).__name__} was given")


def _is_contiguous(shape: tuple[int, ...], strides: Optional[tuple[int, ...]], unit: int) -> bool:
    """In C order. strides: in units; None is that order, and where there is one element they say nothing."""
    if strides is None or 0 in shape:
        return True
    for size, stride in zip(reversed(shape), reversed(strides)):
        if size != 1 and stride != unit:
            return False
        unit *= size
    return True


def _numpy_kind(dtype: np.dtype[Any]) -> tuple[int, int]:
    return _CODES.get(dtype.kind, -1), 8 * dtype.itemsize


def _from_dlpack(value: Any, stream: int) -> DeviceArray:
    """The array's own library makes `stream` wait for what still writes to it. The capsule stays as it is, so the array is
    given back with it."""
    capsule = value.__dlpack__(stream=stream or _LEGACY_STREAM)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    tensor = _DLTensor.from_address(pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[:tensor.ndim]) if tensor.ndim else ()
    strides = tuple(tensor.strides[:tensor.ndim]) if tensor.ndim and tensor.strides else None
    kind = (tensor.code, tensor.bits) if tensor.lanes == 1 else (-1, 0)
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, shape, _is_contiguous(shape, strides, 1), kind, False, None,
                       capsule)


def _from_interface(value: Any) -> DeviceArray:
    facts = value.__cuda_array_interface__
    dtype, shape = np.dtype(facts["typestr"]), tuple(facts["shape"])
    address, read_only = facts["data"]
    contiguous = _is_contiguous(shape, facts.get("strides"), dtype.itemsize)
    return DeviceArray(address or 0, shape, contiguous, _numpy_kind(dtype), read_only, facts.get("stream"), value)


def is_on_device(value: Any) -> bool:
    """Whether an array says that it lies on a GPU."""
    if hasattr(value, "__dlpack_device__"):
        return value.__dlpack_device__()[0] in (_CUDA, _CUDA_MANAGED)
    return hasattr(value, "__cuda_array_interface__")


def _kinds(info: TensorInfo) -> list[tuple[int, int]]:
    return [_numpy_kind(info.dtype), *([_BFLOAT] if info.kind == "bf16" else [])]


def device_array(role: str, info: TensorInfo, value: Any, stream: int, align: int) -> DeviceArray:
    """An array that a run on `stream` may read, or as an output write, where it lies."""
    wanted = f"{role} '{info.name}' is {info.dtype}{list(info.shape)}"
    if not is_on_device(value):
        raise TypeError(f"{wanted} on the GPU, a {type(value).__name__} that is not there was given")
    try:
        array = _from_dlpack(value, stream) if hasattr(value, "__dlpack__") else _from_interface(value)
    except Exception as error:  # each library raises its own
        raise TypeError(f"{role} '{info.name}': the {type(value).__name__} does not say where it lies ({error})") from error
    if array.kind not in _kinds(info):
        raise TypeError(f"{wanted}, elements of another type were given ({getattr(value, 'dtype', array.kind)})")
    if array.shape != info.shape:
        raise ValueError(f"{wanted}, the shape {list(array.shape)} was given")
    if not array.contiguous:
        raise ValueError(f"{role} '{info.name}' is not contiguous in C order")
    if array.address % align != 0:
        raise ValueError(f"{role} '{info.name}' does not begin at a multiple of {align} bytes on the GPU; a copy does")
    if role == "output" and array.read_only:
        raise ValueError(f"output '{info.name}' is read-only")
    return array
