"""What bench.py --proof prints of each model beside its speed: start, memory, size, scaling; and what a region costs.

Start is from exec until the last byte of the result has been read from a pipe, the file in the page cache; beside it
ONNX Runtime's session creation and first run, its library already loaded. Both on one thread, and both on as many as
they take when nobody says. Each is the least of several processes, in turns.
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ROUNDS = 5
# Creation and first run in milliseconds, then the peak of resident memory in MB.
PEER = """
import resource, sys, time
import numpy, onnx, onnxruntime
feed = {}
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = int(sys.argv[2]), 3
tensors = [onnx.numpy_helper.to_array(onnx.load_tensor(f)) for f in sys.argv[3:]]
start = time.perf_counter()
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
session.run(None, dict(zip([i.name for i in session.get_inputs()], tensors)))
spent = time.perf_counter() - start
print(spent * 1e3, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def run_process(command):
    """Milliseconds until a process has written its last byte, and its peak of resident memory in MB."""
    began = last = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, close_fds=False)
    while os.read(child.stdout.fileno(), 1 << 16):
        last = time.perf_counter()
    child.stdout.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise subprocess.CalledProcessError(child.returncode, command)
    return (last - began) * 1e3, usage.ru_maxrss / 1024


def own_peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory_text(peak, planned):
    """A process begins with its parent's peak: below that, only the bound is known."""
    if peak <= own_peak() + 1:
        return f"< {peak:.0f} | -"
    return f"{peak:.1f} | {peak - planned:+.1f}"


def peer_start(model, inputs, threads):
    command = [sys.executable, "-c", PEER, str(model), str(threads), *map(str, inputs)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(found[0]), float(found[1])


def starts(folder, program, inputs, threads):
    """Least milliseconds and most MB of ours and of the peer; 0 threads: what each takes by itself."""
    ours, peer = [], []
    asked = ["--threads", str(threads)] if threads else []
    for _ in range(ROUNDS):
        ours.append(run_process([str(program), *map(str, inputs), *asked]))
        peer.append(peer_start(folder / "model.onnx", inputs, threads))
    return [(min(ms for ms, _ in side), max(mb for _, mb in side)) for side in (ours, peer)]


def section_bytes(program):
    """Of the weights and of the arena."""
    text = subprocess.run([str(program), "--info"], check=True, capture_output=True, text=True).stdout
    return [int(re.search(rf"^{name} +(\d+) bytes", text, re.MULTILINE)[1]) for name in ("weights", "arena")]


def region_cost(work, threads):
    """Nanoseconds that a region of the pool costs beside its chunks."""
    program = work / "pool_probe"
    sources = [HERE / "pool_probe.cpp", ROOT / "runtime_stub/pool.cpp", ROOT / "runtime_stub/platform_linux.cpp"]
    subprocess.run(["g++", "-std=c++20", "-O2", f"-I{ROOT}", "-o", str(program), *map(str, sources)], check=True)
    return int(subprocess.run([str(program), str(threads)], check=True, capture_output=True).stdout)


def prove(name, folder, program, inputs, measure):
    """One row; `measure(threads)` gives the least milliseconds of a warm run."""
    (least, memory), (other, peer_memory) = starts(folder, program, inputs, 1)
    (least_all, _), (other_all, _) = starts(folder, program, inputs, 0)
    weights, arena = section_bytes(program)
    one, two = measure(1), measure(2)
    return (f"| {name} | {least:.1f} | {other:.1f} | {other / least:.2f} | "
            f"{least_all:.1f} | {other_all:.1f} | {other_all / least_all:.2f} | "
            f"{memory_text(memory, (weights + arena) / 2**20)} | {peer_memory:.0f} | "
            f"{(program.stat().st_size - weights) / 2**20:.2f} | {one:.4g} | {two:.4g} | {one / two:.2f} |")


HEADER = ("| model | start to result ms, one thread | ONNX Runtime | ratio | all threads ms | ONNX Runtime | ratio | "
          "peak MB | beside weights and arena | ONNX Runtime | file beside weights MB | 1 thread ms | 2 threads ms | "
          "scaling |\n|---" + "|---" * 13 + "|")
