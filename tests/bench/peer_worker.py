#!/usr/bin/env python3
"""One model in one peer, in its own process, told by lines on stdin what to do.

    peer_worker.py PEER MODEL INPUT_DIR THREADS OUTPUT_DIR

PEER is ort (ONNX Runtime), openvino or ncnn (converted by pnnx into OUTPUT_DIR; float16 storage and arithmetic
are switched off, as the others compute in float32). Writes its outputs as OUTPUT_DIR/K.npy and answers
`ready NAMES-AS-JSON`; then to each line `run SECONDS` it answers with the median and the least milliseconds of
the runs that fit (at least three), and to `inputs INPUT_DIR` of ort with `ready` again, when its outputs for these are written.
`quit` ends it.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import time

import numpy as np
import onnx


def inputs_of(model, folder):
    """Arrays by name, in the order of the model's inputs."""
    weights = {t.name for t in model.graph.initializer}
    names = [v.name for v in model.graph.input if v.name not in weights]
    files = sorted(pathlib.Path(folder).glob("input_*.pb"), key=lambda p: int(p.stem[6:]))
    return {name: onnx.numpy_helper.to_array(onnx.load_tensor(str(f)))
            for name, f in zip(names, files, strict=True)}


def ort(path, feed, threads, _):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def openvino(path, feed, threads, _):
    import openvino as ov
    core = ov.Core()
    model = core.read_model(path)
    names = [next(n for n in feed if n in value.get_names()) for value in model.inputs]
    model.reshape({k: feed[name].shape for k, name in enumerate(names)})
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    for k, name in enumerate(names):
        request.set_input_tensor(k, ov.Tensor(np.ascontiguousarray(feed[name])))

    def run():
        request.infer()
        return [request.get_output_tensor(k).data for k in range(len(compiled.outputs))]
    return run


def ncnn(path, feed, threads, folder):
    import ncnn as engine
    converter = pathlib.Path(importlib.util.find_spec("pnnx").origin).parent / "pnnx"
    copy = pathlib.Path(folder).resolve() / "model.onnx"
    shapes = ",".join(str(list(v.shape)).replace(" ", "") + {"f": "f32", "i": "i64"}[v.dtype.kind]
                      for v in feed.values())
    param = copy.with_name("model.ncnn.param")
    if not param.exists():
        copy.unlink(missing_ok=True)
        copy.symlink_to(pathlib.Path(path).resolve())
        subprocess.run([str(converter), copy.name, f"inputshape={shapes}"], cwd=copy.parent, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    net = engine.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if net.load_param(str(param)) or net.load_model(str(param.with_suffix(".bin"))):
        raise RuntimeError("ncnn does not read what pnnx wrote")
    # pnnx drops the batch of 1, which ncnn does not have.
    mats = {f"in{k}": engine.Mat(np.ascontiguousarray(v[0] if v.shape[:1] == (1,) and v.ndim > 1 else v))
            for k, v in enumerate(feed.values())}

    def run():
        extractor = net.create_extractor()
        for name, mat in mats.items():
            extractor.input(name, mat)
        found = [extractor.extract(name) for name in net.output_names()]
        if any(status for status, _ in found):
            raise RuntimeError("ncnn stops")
        return [np.array(mat)[None] for _, mat in found]
    return run


def main():
    peer, path, input_dir, threads, output_dir = sys.argv[1:]
    model = onnx.load(path, load_external_data=False)
    feed = inputs_of(model, input_dir)
    run = {"ort": ort, "openvino": openvino, "ncnn": ncnn}[peer](path, feed, int(threads), output_dir)

    def answer():
        for k, value in enumerate(run()):
            np.save(f"{output_dir}/{k}.npy", value)
        print("ready", json.dumps([o.name for o in model.graph.output]), flush=True)
    answer()
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        if word == "quit":
            break
        if word == "inputs":
            feed.update(inputs_of(model, rest))  # which the session reads at each run
            answer()
            continue
        end, times = time.perf_counter() + float(rest), []
        while len(times) < 3 or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            times.append(1000 * (time.perf_counter() - start))
        print(sorted(times)[len(times) // 2], min(times), flush=True)


if __name__ == "__main__":
    main()
