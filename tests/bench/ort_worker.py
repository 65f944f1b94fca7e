#!/usr/bin/env python3
"""One model in ONNX Runtime, in its own process, told by lines on stdin what to do.

    ort_worker.py MODEL INPUT_DIR THREADS OUTPUT_DIR

Writes its outputs as OUTPUT_DIR/K.npy and answers `ready NAMES-AS-JSON`; then to each line `run SECONDS` it
answers with the median and the least milliseconds of the runs that fit (at least three). `quit` ends it.
"""
import json
import pathlib
import sys
import time

import numpy as np
import onnx
import onnxruntime


def inputs_of(session, folder):
    files = sorted(pathlib.Path(folder).glob("input_*.pb"), key=lambda p: int(p.stem[6:]))
    return {i.name: onnx.numpy_helper.to_array(onnx.load_tensor(str(f)))
            for i, f in zip(session.get_inputs(), files, strict=True)}


def main():
    model, input_dir, threads, output_dir = sys.argv[1:]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = inputs_of(session, input_dir)
    for k, value in enumerate(session.run(None, feed)):
        np.save(f"{output_dir}/{k}.npy", value)
    print("ready", json.dumps([o.name for o in session.get_outputs()]), flush=True)
    for line in sys.stdin:
        if line.strip() == "quit":
            break
        end, times = time.perf_counter() + float(line.split()[1]), []
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            session.run(None, feed)
            times.append(1000 * (time.perf_counter() - start))
        print(sorted(times)[len(times) // 2], min(times), flush=True)


if __name__ == "__main__":
    main()
