"""Packs ONNX models and runs them.

    model = svod_pack.compile("model.onnx", shapes={"image": (1, 3, 224, 224)})
    scores = model(image)

`compile` packs a model into a shared library in a cache folder and loads it; `pack` runs the packer and leaves its output
where you say; `load` opens a library that was packed before.
"""
from svod_pack._compile import compile, load
from svod_pack._errors import (BudgetExceeded, DeviceFault, FileError, InvalidModel, NoDevice, PackError, PackerBug, RunError,
                               ToolchainError, Unsupported, UsageError, VerifyMismatch)
from svod_pack._library import TensorInfo
from svod_pack._model import Model
from svod_pack._packer import pack, program, version

__version__ = version()

__all__ = ["BudgetExceeded", "DeviceFault", "FileError", "InvalidModel", "Model", "NoDevice", "PackError", "PackerBug",
           "RunError", "TensorInfo", "ToolchainError", "Unsupported", "UsageError", "VerifyMismatch", "compile", "load", "pack",
           "program"]
