#!/usr/bin/env python3
"""Packed programs on a GPU against PyTorch on the same GPU.

    device.py [NAME...] [--packer build/svod-pack] [--batch 1,32] [--types f32,tf32,f16] [--peers eager,compile,eager_tf32,compile_tf32]
              [--together 8] [--rounds 3] [--run-seconds 0.2] [--case-seconds 240] [--seconds 540] [--profile] [--json FILE]

Needs torch, torchvision, transformers and onnx, and no network: weights are random, of a fixed seed. For each model, batch and type a
process exports it, packs it, runs it and compares its values with PyTorch's (without TF32), and compiles the peers, several cases
at once. Then they are measured one at a time, ours and the peers in turn. Every time is a GPU's time of a graph between two
events, without copies from and to the host; `run` is ours with copies, launch and wait. The ratio is the best exact peer's
time over ours, so above 1 we are faster; with TF32 f32 is not exact, so that ratio stands beside it; type tf32 packs with --accuracy tf32. What is done is printed when the
time is over. --device cpu tries all but the peers without a GPU. Programs hold machine code where PyTorch's packages bring ptxas.
"""
import argparse
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
LOG_LINES = 12  # of a case that failed
PEERS = ["eager", "compile", "eager_tf32", "compile_tf32"]


class Case:
    """One row, in its own process."""

    def __init__(self, name, batch, dtype, work, options):
        self.found = {"model": name, "batch": batch, "type": dtype, "ours": [], "peers": [], "failed": {}}
        self.label = f"{name}_{batch}_{dtype}"
        self.folder = work / self.label
        self.folder.mkdir(parents=True, exist_ok=True)
        kinds = [kind for kind in options.peers if dtype == "f32" or kind.endswith("tf32") == (dtype == "tf32")]
        self.log = (self.folder / "log").open("w")
        share = str(max(os.cpu_count() // options.together, 1))
        self.process = subprocess.Popen(
            [sys.executable, HERE / "device_worker.py", name, str(batch), dtype, self.folder, options.packer, options.device, *kinds],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, start_new_session=True,
            env=dict(os.environ, OMP_NUM_THREADS=share, TORCHINDUCTOR_COMPILE_THREADS=share))
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def answer(self, deadline):
        """A dictionary; None where the case has failed, which is then in `found`."""
        try:
            while (line := self.lines.get(timeout=max(deadline - time.monotonic(), 0.01))) is not None:
                if line.startswith("{"):
                    value = json.loads(line)
                    if "error" not in value:
                        return value
                    return self.fail(value["error"])
            return self.fail(f"its process ended, see {self.log.name}")
        except queue.Empty:
            return self.fail("no time was left")

    def fail(self, why):
        self.found["error"] = why
        self.end()

    def ask(self, text, deadline):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its answer says why
        return self.answer(deadline)

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def least(rounds, name):
    return min((r[name] for r in rounds if name in r), default=None)


def number(value, digits=3):
    return "-" if value is None else f"{value:.{digits}f}"


def summary(found):
    """What a row of the table says."""
    ours = least(found["ours"], "kernels/median")
    peers = {kind: least(found["peers"], kind) for kind in PEERS}

    def ratio(*kinds):
        times = [peers[kind] for kind in kinds if peers[kind] is not None]
        return min(times) / ours if times and ours else None
    return {"ours": ours, "run": least(found["ours"], "run/median"), "launch": least(found["ours"], "launch/median"), **peers,
            "ratio": ratio("eager", "compile"), "ratio_tf32": ratio("eager_tf32", "compile_tf32")}


def print_table(rows):
    print("| model | batch | type | ours ms | eager | compile | ratio | eager tf32 | compile tf32 | ratio tf32 | run ms | launch us | "
          "cosine | difference |")
    print("|" + " --- |" * 14)
    for found in rows:
        head = f"| {found['model']} | {found['batch']} | {found['type']} | "
        if "error" in found:
            print(head + f"{found['error']} |")
            continue
        s = summary(found)
        launch = None if s["launch"] is None else s["launch"] * 1e3
        print(head + " | ".join([number(s["ours"]), number(s["eager"]), number(s["compile"]), number(s["ratio"], 2), number(s["eager_tf32"]),
                                 number(s["compile_tf32"]), number(s["ratio_tf32"], 2), number(s["run"]), number(launch, 1),
                                 number(found.get("cosine"), 7), f"{found.get('difference', 0):.1e}"]) + " |")
    print(flush=True)


def print_steps(found):
    head = f"{found['model']} {found['batch']} {found['type']}"
    print(f"{head}: {found['profile']['steps']} steps, {found['profile']['total_us']:.1f} us")
    for step in found["profile"]["slowest"]:
        print(f"  {step['name']:8} {step['us']:10.2f} us {step['flops'] / step['us'] / 1e6:8.2f} TFLOP/s "
              f"{step['bytes'] / step['us'] / 1e3:8.1f} GB/s  {step['nodes'][:80]}")
    print(flush=True)


def measure(case, options, end):
    """With the GPU for itself."""
    deadline = min(end, time.monotonic() + options.case_seconds)
    for _ in range(options.rounds):
        found = case.ask(f"run {options.run_seconds}", deadline)
        if found is None:
            return
        case.found["ours"].append(found["ours"])
        case.found["peers"].append(found["peers"])
        case.found["failed"] = found["failed"]
    if options.profile:
        found = case.ask("profile", deadline)
        if found is not None:
            case.found["profile"] = found
            print_steps(case.found)


def run_together(keys, work, options, end):
    """Rows of these cases, which prepare at the same time."""
    deadline = min(end, time.monotonic() + options.case_seconds)
    cases = [Case(*key, work, options) for key in keys]
    for case in cases:
        found = case.answer(deadline)
        if found is not None:
            case.found |= found
            print(f"{case.label}: exported in {found['export_s']:.0f} s, packed in {found['pack_s']:.0f} s, first run after "
                  f"{found['first_run_s']:.1f} s, cosine {found['cosine']:.7f}" +
                  (f", with f32 {found['cosine_f32']:.7f}, the peer's {found['peer_cosine_f32']:.7f}" if "cosine_f32" in found else ""),
                  file=sys.stderr, flush=True)
    for case in cases:
        if "error" not in case.found:
            measure(case, options, end)
        faults = {"": case.found["error"]} if "error" in case.found else case.found["failed"]
        for kind, fault in faults.items():
            print(f"{case.label}: {kind} {fault}", file=sys.stderr, flush=True)
        case.end()
        if "error" in case.found:
            print(*(case.folder / "log").read_text(errors="replace").splitlines()[-LOG_LINES:], sep="\n", file=sys.stderr)
        if not options.keep:
            shutil.rmtree(case.folder)
    return [case.found for case in cases]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="models of device_models.py; all without it")
    parser.add_argument("--packer", type=pathlib.Path, default=HERE.parent.parent / "build" / "svod-pack")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--batch", default="1,32")
    parser.add_argument("--types", default="f32,tf32,f16")
    parser.add_argument("--peers", type=lambda text: [kind for kind in text.split(",") if kind], default=PEERS)
    parser.add_argument("--together", type=int, default=8, help="cases that prepare at once")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--run-seconds", type=float, default=0.2)
    parser.add_argument("--case-seconds", type=float, default=240, help="to prepare, and to be measured")
    parser.add_argument("--seconds", type=float, default=540, help="in all")
    parser.add_argument("--profile", action="store_true", help="the slowest ten steps of each")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "svod_device",
                        help="a folder for models and programs")
    parser.add_argument("--keep", action="store_true", help="does not remove them")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    end, rows = time.monotonic() + options.seconds, []
    options.packer = options.packer.resolve()
    import device_models
    if unknown := set(options.names) - set(device_models.ROWS):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(device_models.ROWS)}")
    keys = [(name, batch, dtype) for name in options.names or device_models.ROWS for batch in map(int, options.batch.split(","))
            if batch in device_models.ROWS[name].batches for dtype in options.types.split(",")]
    for first in range(0, len(keys), options.together):
        if time.monotonic() > end:
            print(f"no time for {len(keys) - first} cases", file=sys.stderr)
            break
        rows += run_together(keys[first:first + options.together], options.work, options, end)
        if options.json:
            options.json.write_text(json.dumps([found | summary(found) for found in rows], indent=1))
    print_table(rows)
    return 1 if any("error" in found for found in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
