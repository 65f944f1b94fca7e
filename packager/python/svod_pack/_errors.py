"""What can go wrong, one class for each exit code of the packer and one for a run."""
from __future__ import annotations

from typing import Any


class PackError(Exception):
    """The packer refused. str() is what it printed.

    exit_code: its exit code; diagnostics: its messages, as in its JSON, where it wrote one.
    """

    def __init__(self, text: str, exit_code: int = 0, diagnostics: list[dict[str, Any]] | None = None):
        super().__init__(text)
        self.exit_code = exit_code
        self.diagnostics = diagnostics or []


class InvalidModel(PackError, ValueError):
    """The file is no valid ONNX model."""


class UsageError(PackError, ValueError):
    """An option is unknown, or does not fit the others."""


class Unsupported(PackError, NotImplementedError):
    """The model is valid, but holds what is not supported; all of it is listed."""


class FileError(PackError, OSError):
    """A file or folder cannot be read or written."""


class PackerBug(PackError):
    """The packer is wrong."""


class ToolchainError(PackError):
    """The compiler or the linker failed."""


class VerifyMismatch(PackError):
    """The packed model does not compute what its test data says."""


class BudgetExceeded(PackError):
    """More RAM or flash is needed than max_ram or max_flash allow."""


class RunError(RuntimeError):
    """A packed model cannot run here; status is the library's."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status


class NoDevice(RunError):
    """No GPU is here that runs what was packed; the text says why."""


class DeviceFault(RunError):
    """The GPU's driver refused; the text says what, and where it was a kernel which one and of which ONNX nodes."""


_BY_EXIT_CODE = {1: InvalidModel, 2: UsageError, 3: Unsupported, 4: FileError, 5: PackerBug, 6: ToolchainError,
                 7: VerifyMismatch, 8: BudgetExceeded}


def pack_error(exit_code: int, text: str, diagnostics: list[dict[str, Any]] | None = None) -> BaseException:
    """The exception for an exit code of the packer."""
    if exit_code == 130:
        return KeyboardInterrupt()
    return _BY_EXIT_CODE.get(exit_code, PackerBug)(text, exit_code, diagnostics)


def run_error(status: int, text: str) -> Exception:
    """The exception for what a packed model returned."""
    by_status = {-1: ValueError, -5: IndexError, -8: OverflowError}
    if status in by_status:
        return by_status[status](text)
    return {-10: NoDevice, -11: DeviceFault}.get(status, RunError)(text, status)
