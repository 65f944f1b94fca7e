"""What judges a model that comes without expected outputs: ONNX Runtime, asked once per model.

The harness runs with a bare python3. Where that lacks numpy, onnx and onnxruntime, `enter` starts the script again
with a python that has them: build/venv, or the one that SVOD_ORACLE_PYTHON names. Without one, nothing is judged.
"""
import importlib.util
import json
import multiprocessing
import os
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "support")]
from one_at_a_time import alone

SECONDS = 60


def available():
    return all(importlib.util.find_spec(m) for m in ("numpy", "onnx", "onnxruntime"))


def enter(build):
    """Whether this python can judge; does not return where another one can."""
    if available():
        return True
    other = pathlib.Path(os.environ.get("SVOD_ORACLE_PYTHON", build / "venv/bin/python"))
    if other.exists() and pathlib.Path(sys.executable) != other:
        os.execv(other, [str(other), *sys.argv])
    return False


def reference_of(model, folder, given=None):
    """(`folder`, its reference.json) as unit_reference makes them, anew when model, maker or judge changed. `given`: a
    data set whose inputs are taken."""
    import onnxruntime

    import unit_reference

    files = [unit_reference.__file__, *(HERE / f"{name}.py" for name in ("recorded_data", "vendor_ops", "widened_models"))]
    makers = [f"{pathlib.Path(m).stat().st_mtime_ns}" for m in files]
    qonnx = "qonnx" if importlib.util.find_spec("qonnx") else ""
    state = f"{model.stat().st_size} {' '.join(makers)} {onnxruntime.__version__} {qonnx}"
    mark = folder / "state"
    with alone(folder):
        if not mark.exists() or mark.read_text() != state:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            # Forked, so that the imports are there already; a process, since a model may crash ONNX Runtime.
            process = multiprocessing.get_context("fork").Process(
                target=unit_reference.make_reference, args=(model, folder, given), daemon=True)
            process.start()
            process.join(SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
            mark.write_text(state)
    return folder, json.loads((folder / "reference.json").read_text())
