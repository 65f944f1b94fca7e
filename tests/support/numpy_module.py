"""NumPy from where the importer's package onnx lies, or as it is installed."""
import os
import pathlib
import sys

BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", pathlib.Path(__file__).resolve().parent.parent.parent / "build"))


def numpy_or_skip():
    """The module; ends the test as skipped, with the reason, where there is none."""
    sys.path.append(os.environ.get("SVOD_ONNX_PYTHON") or str(BUILD / "onnx-python"))
    try:
        import numpy
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    return numpy
