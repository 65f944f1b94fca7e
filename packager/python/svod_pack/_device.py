"""A packed library's arena on a GPU: opened once, with the weights there, for all calls of a model."""
from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from svod_pack._device_array import DeviceArray
from svod_pack._errors import NoDevice, run_error
from svod_pack._library import Library

PLACES = {"auto": 0, "cpu": 1, "cuda": 2}
_INDEX, _NO_DEVICE, _DEVICE_FAULT = -5, -10, -11  # statuses that device_text explains


def addresses(values: Sequence[int]) -> Any:
    """As C takes a row of pointers."""
    return (ctypes.c_void_p * len(values))(*values)


class Device:
    """Where the runs of a model go. Without a GPU, text says why; calls go to the processor then.

    The calls of all threads take turns in one arena, so that weights are on the GPU once.
    """

    def __init__(self, library: Library, place: str):
        if place not in PLACES:
            raise ValueError(f"place is {', '.join(map(repr, PLACES))}, not {place!r}")
        self._library = library
        self._lock = threading.Lock()
        self._pending: Optional[int] = None  # the stream of runs that nobody has waited for
        self._close: Any = None
        self._text = "the library was packed without --device"
        functions = library.device
        if functions is None:
            if place == "cuda":
                raise NoDevice(f"{library.path.name}: {self._text}", _NO_DEVICE)
            return
        self._functions = functions
        self._arena = library.aligned(library.arena_bytes)
        status = functions.open(self._arena.ctypes.data, PLACES[place])
        self._text = self._said()
        if status != 0:
            raise self._error(status)
        if functions.runs_on_device(self._arena.ctypes.data):
            # The arena is an argument, so that it lives as long as what the GPU holds for it.
            self._close = weakref.finalize(self, _close, functions.close, self._arena)

    @property
    def is_open(self) -> bool:
        return self._close is not None

    @property
    def text(self) -> str:
        return self._text

    def close(self) -> None:
        with self._lock:
            if self._close is not None:
                self._close()
                self._close, self._pending, self._text = None, None, "the model was closed"

    def run(self, inputs: Any, outputs: Any) -> bool:
        """On arrays here, which are copied, by their addresses; false: it is not open any more."""
        with self._lock:
            if self._close is None:
                return False
            self._finish()
            self._check(self._library.run(self._arena.ctypes.data, self._arena.size, inputs, outputs))
            return True

    def run_device(self, inputs: Sequence[Optional[DeviceArray]], outputs: Sequence[DeviceArray], stream: int) -> None:
        """Puts a run on a stream. Runs share the arena, so one on another stream waits for those before. An input that is
        None was packed for one value, which nobody reads."""
        with self._lock:
            if self._close is None:
                raise NoDevice(f"{self._library.path.name}: {self._text}", _NO_DEVICE)
            if self._pending != stream:
                self._finish()
            for array in (*inputs, *outputs):
                if array is not None and array.stream is not None and array.stream != (stream or 1):
                    self._wait_for(array.stream)
            # A tensor without elements may lie nowhere, but not at null.
            arena = self._arena.ctypes.data
            takes, gives = ([array.address if array and array.address else arena for array in arrays]
                            for arrays in (inputs, outputs))
            self._pending = stream
            self._check(self._functions.run_device(arena, addresses(takes), addresses(gives), stream or None))

    def finish(self) -> None:
        """Waits for what run_device put on streams."""
        with self._lock:
            self._finish()

    def _finish(self) -> None:
        if self._close is not None and self._pending is not None:
            self._pending = None
            self._check(self._functions.finish_device(self._arena.ctypes.data))

    def _wait_for(self, stream: int) -> None:
        """For what another library still does, as its array says. The driver is there: it runs the model."""
        status = ctypes.CDLL("libcuda.so.1").cuStreamSynchronize(ctypes.c_void_p(stream))
        if status != 0:
            raise run_error(_DEVICE_FAULT, f"{self._library.path.name}: the stream of an array ends with status {status}")

    def _said(self) -> str:
        return str(self._functions.device_text(self._arena.ctypes.data).decode(errors="replace"))

    def _check(self, status: int) -> None:
        if status != 0:
            raise self._error(status)

    def _error(self, status: int) -> Exception:
        text = self._said() if status in (_INDEX, _NO_DEVICE, _DEVICE_FAULT) else self._library.status_text(status)
        return run_error(status, f"{self._library.path.name}: {text}")


def _close(close: Any, arena: np.ndarray[Any, Any]) -> None:
    close(arena.ctypes.data)
