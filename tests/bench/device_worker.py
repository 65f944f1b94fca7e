"""One case of device.py in a process of its own, told by lines on standard input what to do.

    device_worker.py NAME BATCH TYPE FOLDER PACKER DEVICE [PEER...]

Exports the model, packs it, runs the program and compares it with PyTorch on the same device, then compiles the peers and answers
with a line of JSON. To each line `run SECONDS` it answers with the milliseconds of the program and of each peer, in turn;
`profile` prints the program's slowest steps; `quit` ends it. What goes wrong is a line {"error": ...}.
"""
import copy
import json
import pathlib
import subprocess
import sys
import time
import traceback

import numpy as np
import torch

import device_models

DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16}
IN_A_ROW = 16  # graphs between two events, as the program's --bench does
SLOWEST = 10


class Failure(Exception):
    pass


def last_line(raw):
    return (raw.decode(errors="replace").strip().splitlines() or ["no word"])[-1][:300]


def call(words, seconds=None):
    done = subprocess.run([str(w) for w in words], capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds)
    if done.returncode != 0:
        raise Failure(f"{pathlib.Path(words[0]).name} exit {done.returncode}: {last_line(done.stderr)}")
    return done


class Program:
    """The packed program."""

    def __init__(self, folder, device, dtype):
        self.path, self.words, self.folder = folder / "program", [f"--device={device}"], folder
        self.accuracy = "tf32" if dtype == "tf32" else "fast"

    def pack(self, packer, model):
        architecture = "sm_90"
        if torch.cuda.is_available():
            major, minor = torch.cuda.get_device_capability()
            architecture = "sm_90a" if (major, minor) == (9, 0) else "sm_{}{}".format(*min((major, minor), (9, 0)))
        ptxas = pathlib.Path(torch.__file__).parent / "bin" / "ptxas"  # which PyTorch's packages bring
        words = ["--ptxas", ptxas] if ptxas.exists() else []
        start = time.monotonic()
        done = call([packer, model, "-o", self.path, "--device", f"cuda:{architecture}", "--target", "x86-64-v3", "--verify", "off",
                     "--no-cache", "--accuracy", self.accuracy, *words])
        if b"packed for the CPU alone" in done.stderr + done.stdout:
            raise Failure("packed for the CPU alone")
        return time.monotonic() - start

    def outputs(self, arguments):
        source, target = self.folder / "x.npy", self.folder / "y.npy"
        np.save(source, arguments[0].cpu().numpy())
        call([self.path, *self.words, "--input", f"@{source}", "--output", f"@{target}"])
        return np.load(target)

    def milliseconds(self, seconds):
        found = json.loads(call([self.path, *self.words, "--bench=json", f"--min-time={seconds}"]).stdout)
        return {row["name"]: row["real_time"] / 1e3 for row in found["benchmarks"]}

    def slowest(self):
        found = json.loads(call([self.path, *self.words, "--profile=json", "--min-time=0.3"]).stdout)
        steps = sorted(found["kernels"], key=lambda step: -step["us"])[:SLOWEST]
        return {"total_us": found["total_us"], "steps": len(found["kernels"]), "slowest": steps}


def difference(ours, theirs):
    """Cosine, and the largest difference as a share of the largest value."""
    a, b = ours.astype(np.float64).ravel(), theirs.astype(np.float64).ravel()
    if a.shape != b.shape or not np.isfinite(a).all() or not np.isfinite(b).all():
        raise Failure(f"values: ours {ours.shape}, theirs {theirs.shape}, finite: {np.isfinite(a).all()}, {np.isfinite(b).all()}")
    return {"cosine": float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b))), "difference": float(abs(a - b).max() / abs(b).max())}


def allow_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def captured(function, arguments):
    """A graph of it on the GPU: no time of Python or of launches is in it."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):
            function(*arguments)
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        kept = function(*arguments)
    return graph, kept


def time_graph(graph, seconds):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    samples, start = [], time.monotonic()
    while not samples or time.monotonic() - start < seconds:
        begin.record()
        for _ in range(IN_A_ROW):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        samples.append(begin.elapsed_time(end) / IN_A_ROW)
    return float(np.median(samples))


class Peers:
    """PyTorch on the GPU: operator by operator and compiled, each as one graph. Compiled, with a graph made here, is what its mode
    reduce-overhead runs, without that mode's work in Python before each run."""
    KINDS = {"eager": (False, False), "compile": (True, False), "eager_tf32": (False, True), "compile_tf32": (True, True)}

    def __init__(self, module, arguments, kinds):
        self.arguments, self.failed, self.graphs = arguments, {}, None
        self.functions = {False: module, True: torch.compile(module)}
        self.kinds = list(kinds)
        self.each(self.call)  # which compiles

    def call(self, kind):
        with torch.no_grad():
            self.functions[self.KINDS[kind][0]](*self.arguments)
        torch.cuda.synchronize()

    def each(self, work):
        """By kind. One that fails is no reason to lose the row."""
        done = {}
        for kind in [kind for kind in self.kinds if kind not in self.failed]:
            allow_tf32(self.KINDS[kind][1])
            try:
                done[kind] = work(kind)
            except Exception as fault:
                self.failed[kind] = f"{type(fault).__name__}: {last_line(str(fault).encode())}"
        allow_tf32(False)
        return done

    def milliseconds(self, seconds):
        if self.graphs is None:  # only now, with the GPU for itself, does cuDNN choose its algorithms by their times
            torch.backends.cudnn.benchmark = True
            self.graphs = self.each(lambda kind: captured(self.functions[self.KINDS[kind][0]], self.arguments))
        return {kind: time_graph(graph, seconds) for kind, (graph, _) in self.graphs.items()}


def reference(module, arguments):
    allow_tf32(False)
    with torch.no_grad():
        return module(*arguments).cpu().numpy()


def exact_reference(module, arguments):
    """With the same weights, computed in f32."""
    return reference(copy.deepcopy(module).float(), device_models.of_type(arguments, torch.float32))


def answer(value):
    print(json.dumps(value), flush=True)


def main():
    name, batch, dtype, folder, packer, device, *kinds = sys.argv[1:]
    folder = pathlib.Path(folder)
    try:
        start = time.monotonic()
        module, arguments = device_models.build(name, int(batch), DTYPES[dtype])
        where = "cuda" if device == "cuda" else "cpu"
        module, arguments = module.to(where), tuple(a.to(where) for a in arguments)
        device_models.export(module, arguments, folder / "model.onnx")
        found, program = {"export_s": time.monotonic() - start}, Program(folder, device, dtype)
        found["pack_s"] = program.pack(packer, folder / "model.onnx")
        theirs = reference(module, arguments)
        start = time.monotonic()
        ours = program.outputs(arguments)
        found["first_run_s"] = time.monotonic() - start
        found |= difference(ours, theirs)
        if dtype == "f16":  # whose values are nearer to those of f32
            exact = exact_reference(module, arguments)
            found |= {"cosine_f32": difference(ours, exact)["cosine"], "peer_cosine_f32": difference(theirs, exact)["cosine"]}
        peers = Peers(module, arguments, kinds) if device == "cuda" else None
        answer(found)
        for line in sys.stdin:
            if line.startswith("run "):
                seconds = float(line.split()[1])
                ours = program.milliseconds(seconds)
                times = peers.milliseconds(seconds) if peers else {}
                answer({"ours": ours, "peers": times, "failed": peers.failed if peers else {}})
            elif line.startswith("profile"):
                answer(program.slowest())
            else:
                break
    except Exception as fault:
        traceback.print_exc()
        answer({"error": f"{type(fault).__name__}: {last_line(str(fault).encode())}"})


if __name__ == "__main__":
    main()
