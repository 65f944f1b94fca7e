"""A packed model as a Python callable."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from svod_pack._device import Device, addresses
from svod_pack._device_array import DeviceArray, device_array, stream_handle
from svod_pack._errors import run_error
from svod_pack._library import ALIGN, Library, TensorInfo
from svod_pack._tensors import fixed_value, input_array, output_array

Array = np.ndarray[Any, Any]


class _Arenas:
    """Working memory: a call takes an arena and gives it back, so there are as many as calls ran at one time."""

    def __init__(self, library: Library):
        self._library = library
        self._free: list[Array] = []

    def take(self) -> Array:
        try:
            return self._free.pop()
        except IndexError:
            return self._library.new_arena()

    def give_back(self, arena: Array) -> None:
        self._free.append(arena)


class Model:
    """A packed model. Calls from several threads run at the same time, without Python's global lock.

    inputs, outputs: what it takes and gives; info: the packer's facts about it; path: the library. runs_on_device: whether
    calls go to a GPU, where they take turns; device_text: which one, or why none.
    """

    def __init__(self, path: Path, name: str = "infer", place: str = "auto"):
        self._library = Library(path, name)
        self._name, self._place = name, place
        self._device = Device(self._library, place)
        self._arenas = _Arenas(self._library)
        self._fixed = {info.name: fixed_value(info, row["fixed"])
                       for info, row in zip(self._library.inputs, self._library.input_rows) if "fixed" in row}
        # Outputs of a bounded size are followed by the sizes of each run, which are nobody's result.
        self._sizes = {info.name: row["shape_output"]
                       for info, row in zip(self._library.outputs, self._library.output_rows) if "shape_output" in row}
        self._shown = [i for i in range(len(self._library.outputs)) if i not in self._sizes.values()]

    @property
    def inputs(self) -> list[TensorInfo]:
        return list(self._library.inputs)

    @property
    def outputs(self) -> list[TensorInfo]:
        return [self._library.outputs[i] for i in self._shown]

    @property
    def info(self) -> dict[str, Any]:
        return self._library.info

    @property
    def path(self) -> Path:
        return self._library.path

    @property
    def runs_on_device(self) -> bool:
        return self._device.is_open

    @property
    def device_text(self) -> str:
        return self._device.text

    def close(self) -> None:
        """Gives back what a GPU holds for the model, as its end does; calls go to the processor then."""
        self._device.close()

    def __repr__(self) -> str:
        def listed(tensors: list[TensorInfo]) -> str:
            return ", ".join(f"{t.name}: {t.dtype}{list(t.shape)}" for t in tensors)
        return f"<svod_pack.Model ({listed(self.inputs)}) -> ({listed(self.outputs)})>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Model, (self.path, self._name, self._place)

    def __call__(self, *inputs: Any, out: Any = None, **named: Any) -> Any:
        """Runs the model on arrays in its order, on one dict by name, or on keywords.

        Arrays of the right type go to C as they are; tensors of other libraries through DLPack. out: an array, or a dict
        of arrays by name, to write outputs into. Returns the output, or, of several, a dict by name.
        """
        results = self.run(self._by_name(inputs, named), out=self._outputs_by_name(out))
        return next(iter(results.values())) if len(self._shown) == 1 else results

    def run(self, inputs: Mapping[str, Any], out: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """The same on a dict of inputs; always returns a dict of outputs."""
        given = dict(inputs)
        arrays = [self._input(info, given) for info in self._library.inputs]
        self._check_names("input", given, self.inputs)
        asked = dict(out or {})
        results = [output_array(info, asked.pop(info.name, None)) for info in self._library.outputs]
        self._check_names("output", asked, self.outputs)
        if out:
            self._check_overlap(arrays, results)
        self._run(arrays, results)
        return {self._library.outputs[i].name: self._result(i, results) for i in self._shown}

    def run_device(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], stream: Any = None) -> None:
        """Puts a run on a stream of the GPU: arrays that lie there are read and written where they lie.

        inputs, outputs: all of them by name, contiguous and aligned to 64 bytes, with __dlpack__ or
        __cuda_array_interface__. stream: a number (cudaStream_t) or an object with __cuda_stream__; None is the default
        stream. Nobody waits: what the caller puts on the same stream comes afterwards, and until then arrays must stay.
        Sizes of an output of a bounded size are an output, too.
        """
        number = stream_handle(stream)
        given, asked = dict(inputs), dict(outputs)
        takes = [self._there("input", info, given, number) for info in self._library.inputs]
        gives = [self._there("output", info, asked, number) for info in self._library.outputs]
        self._check_names("input", given, self.inputs)
        self._check_names("output", asked, self._library.outputs)
        self._device.run_device(takes, [array for array in gives if array is not None], number)

    def finish_device(self) -> None:
        """Waits for what run_device put on streams. Raises IndexError where an index in the data was out of range."""
        self._device.finish()

    def _there(self, role: str, info: TensorInfo, given: dict[str, Any], stream: int) -> DeviceArray | None:
        value = given.pop(info.name, None)
        if value is not None:
            return device_array(role, info, value, stream, ALIGN)
        if role == "input" and self._fixed.get(info.name) is not None:
            return None
        raise TypeError(f"{role} '{info.name}' is missing ({info.dtype}{list(info.shape)})")

    def _by_name(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            return {**inputs[0], **named}
        # Inputs that are packed for one value need not be given.
        names = [info.name for info in self.inputs if self._fixed.get(info.name) is None]
        if len(inputs) == len(self.inputs):
            names = [info.name for info in self.inputs]
        if len(inputs) > len(names):
            raise TypeError(f"{len(inputs)} inputs are given, the model has {len(names)}: {self._names(self.inputs)}")
        twice = [name for name in names[:len(inputs)] if name in named]
        if twice:
            raise TypeError(f"input '{twice[0]}' is given twice")
        return {**dict(zip(names, inputs)), **named}

    def _outputs_by_name(self, out: Any) -> Mapping[str, Array] | None:
        if out is None or isinstance(out, Mapping):
            return out
        if len(self._shown) != 1:
            raise TypeError(f"out is a dict by name, since there are {self._names(self.outputs)}")
        return {self.outputs[0].name: out}

    def _names(self, tensors: list[TensorInfo]) -> str:
        return ", ".join(f"'{info.name}'" for info in tensors) or "none"

    def _check_names(self, role: str, left: Mapping[str, Any], known: list[TensorInfo]) -> None:
        if left:
            raise TypeError(f"there is no {role} '{next(iter(left))}'; there are {self._names(known)}")

    def _input(self, info: TensorInfo, given: dict[str, Any]) -> Array:
        value = given.pop(info.name, None)
        if value is None:
            value = self._fixed.get(info.name)
        if value is None:
            raise TypeError(f"input '{info.name}' is missing ({info.dtype}{list(info.shape)})")
        return input_array(info, value)

    @staticmethod
    def _check_overlap(inputs: list[Array], outputs: list[Array]) -> None:
        for output in outputs:
            if any(np.may_share_memory(output, other) for other in [*inputs, *(o for o in outputs if o is not output)]):
                raise ValueError("an output overlaps an input or another output")

    def _run(self, inputs: list[Array], outputs: list[Array]) -> None:
        takes = addresses([array.__array_interface__["data"][0] for array in inputs])
        gives = addresses([array.__array_interface__["data"][0] for array in outputs])
        if self._device.is_open and self._device.run(takes, gives):
            return
        arena = self._arenas.take()
        status = self._library.run(arena.__array_interface__["data"][0], arena.size, takes, gives)
        self._arenas.give_back(arena)
        if status != 0:
            raise run_error(status, f"{self.path.name}: {self._library.status_text(status)}")

    def _result(self, i: int, outputs: list[Array]) -> Array:
        """A view of what a run of a bounded size filled; else all of the output."""
        sizes = self._sizes.get(self._library.outputs[i].name)
        if sizes is None:
            return outputs[i]
        return outputs[i][tuple(slice(int(n)) for n in outputs[sizes])]
