#!/usr/bin/env python3
"""Packed programs against other runtimes, in turns in one run.

    ./bootstrap bench [NAME...] [--all | --bench-models | --trees | --families | --drawn FIRST COUNT]
                      [--peers ort,openvino,ncnn] [--kernels | --proof | --accuracy] [--threads 1] [--rounds 5] [--seconds 0.6]

For each model: pack it, check that its outputs are ONNX Runtime's, then measure the packed program and a process
of each peer alternately for some rounds (so that a drifting clock or a busy neighbour hits all of them), with a
multiply-add probe before and after. Least times, which a busy machine disturbs least, and the medians of the
rounds' medians in the JSON. The ratio is the best peer's time over ours: above 1 we are faster. A peer whose outputs
are not ONNX Runtime's is marked ! and not the best one; one that does not run the model has no time.
Models come from SVOD_BENCH_MODELS (default: ../shared/bench-models); --trees makes ensembles of decision trees instead
and takes those of SVOD_CORPUS, each with batches of 1 and 1000; --families makes one small model per operator
family; --drawn takes networks of the seeds of cliffs.py, which nobody tuned for. Prints a Markdown table; --output FILE
writes it too. A wrong output or a model that does not pack makes the exit code 1.

--kernels measures no peer: it prints each kernel of a model beside the roofs that the probes find, and how much of
the peak the contractions of each class reach (kernels.py). --proof measures start, memory, size, the scaling on two
threads and what a parallel region costs (proof.py). --accuracy measures no time: it prints how far our answers and
ONNX Runtime's are from those in double precision (accuracy.py), over --inputs N inputs; with --corpus, of the models of
SVOD_CORPUS.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

import numpy as np

import accuracy
import kernels
import proof

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", HERE.parent.parent / "build")).resolve()
WORK = BUILD / "bench"
MILLISECONDS = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
# These round their values to few bits, so one different rounding step spreads: the mean error counts.
LOW_PRECISION = ("int8", "int4", "fp16", "kws_", "quant")


class Failure(Exception):
    pass


def probe(name):
    program, source = WORK / name, HERE / f"{name}.cpp"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["g++", "-O3", "-march=native", "-o", str(program), str(source)], check=True)
    return float(subprocess.run([str(program)], check=True, capture_output=True).stdout)


def pack(name, folder, options):
    """Packs with an empty cache; returns (program, pack seconds, peak MB, summary)."""
    program, summary = WORK / "packed" / name, WORK / "packed" / f"{name}.json"
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [str(BUILD / "svod-pack"), str(folder / "model.onnx"), "-o", str(program), "-q",
               "--shape-from", str(folder / "test_data_set_0"), "--verify", "off",
               f"--json={summary}", *options.pack_option]
    if not options.warm:
        command.append("--no-cache")
    start = time.monotonic()
    child = subprocess.Popen(command, stderr=subprocess.PIPE)
    text = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - start
    code = os.waitstatus_to_exitcode(status)
    child.returncode = code
    if code != 0:
        raise Failure(f"svod-pack exit {code}: {' / '.join(text.strip().splitlines()[-3:])}")
    return program, seconds, usage.ru_maxrss / 1024, json.loads(summary.read_text())


class Peer:
    """The process of one peer with one model."""

    def __init__(self, kind, folder, threads, outputs):
        outputs.mkdir(parents=True, exist_ok=True)
        self.outputs = outputs
        self.child = subprocess.Popen(
            [sys.executable, str(HERE / "peer_worker.py"), kind, str(folder / "model.onnx"),
             str(folder / "test_data_set_0"), str(threads), str(outputs)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.names = json.loads(self.first_answer().removeprefix("ready"))

    def first_answer(self):
        for line in self.child.stdout:
            if line.startswith("ready"):
                return line
        raise Failure(f"the peer does not run this model: {self.child.communicate()[1].strip()[-200:]}")

    def tell(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()

    def answer(self, folder):
        """Writes the outputs for the inputs of another folder."""
        self.tell(f"inputs {folder / 'test_data_set_0'}")
        self.first_answer()

    def measure(self, seconds):
        self.tell(f"run {seconds}")
        median, least = self.child.stdout.readline().split()
        return float(median), float(least)

    def close(self):
        self.child.communicate("quit\n")


def inputs_of(folder):
    files = (folder / "test_data_set_0").glob("input_*.pb")
    return [str(f) for f in sorted(files, key=lambda p: int(p.stem[6:]))]


def measure_ours(program, inputs, threads, seconds):
    """Median and least milliseconds by the program's own clock."""
    run = subprocess.run([str(program), *inputs, "--bench=json", "--threads", str(threads),
                          "--min-time", str(seconds)], capture_output=True)
    if run.returncode != 0:
        raise Failure(f"the packed program exits {run.returncode}: {run.stderr.decode()[-300:]}")
    rows = {row["name"]: row["real_time"] * MILLISECONDS[row["time_unit"]]
            for row in json.loads(run.stdout)["benchmarks"]}
    return rows["run/median"], rows["run/min"]


def error_between(name, found, expected, names):
    """The largest error over all outputs, relative to each one's largest value; raises when too large."""
    worst = 0.0
    for k, output in enumerate(names):
        ours, theirs = load(found / f"{k}.npy"), load(expected / f"{k}.npy")
        text = ours.dtype.kind == theirs.dtype.kind == "U"
        if ours.shape != theirs.shape or not (text or ours.dtype == theirs.dtype):
            raise Failure(f"output {output}: {ours.dtype}{ours.shape} != {theirs.dtype}{theirs.shape}")
        value, limit = error_of(name, ours, theirs)
        if not value <= limit:
            raise Failure(f"output {output} differs: relative error {value:.2g} > {limit}")
        worst = max(worst, value)
    return worst


def load(path):
    """An array; texts, which may be UTF-8 bytes or objects, as str."""
    value = np.load(path, allow_pickle=True)
    if value.dtype.kind == "S":
        value = np.char.decode(value, "utf-8")
    return value.astype(str) if value.dtype.kind == "O" else value


def error_of(name, ours, theirs):
    """How far ours is from theirs, and how far it may be."""
    if ours.dtype.kind == "U":
        return np.mean(ours != theirs), 0
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    if (WORK / "models" / name / "random").exists():
        # Other random numbers of the same distribution.
        error = max(abs(ours.mean() - theirs.mean()), abs(ours.std() - theirs.std()))
        return error / theirs.std(), 0.05
    error = np.abs(ours - theirs)
    if any(mark in name for mark in LOW_PRECISION):
        return error.mean() / max(theirs.std(), 1e-6), 0.1
    return error.max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-2), 1e-3


def run_ours(program, inputs, names, outputs, threads):
    """Runs the packed program once; its outputs as outputs/K.npy."""
    outputs.mkdir(parents=True, exist_ok=True)
    command = [str(program), *inputs, "--threads", str(threads)]
    for k, output in enumerate(names):
        command += ["--output", f"{output}=@{outputs}/{k}.npy"]
    run = subprocess.run(command, capture_output=True)
    if run.returncode != 0:
        raise Failure(f"the packed program exits {run.returncode}: {run.stderr.decode()[-300:]}")


def start_peers(name, folder, options):
    """Peers by kind, ONNX Runtime first; and which of them do not agree with it."""
    peers, differ = {}, set()
    for kind in ["ort", *(k for k in options.peers.split(",") if k != "ort")]:
        try:
            peers[kind] = Peer(kind, folder, options.threads, WORK / kind / name)
            error_between(name, WORK / kind / name, WORK / "ort" / name, peers["ort"].names)
        except (Failure, OSError, ValueError) as failure:
            if kind == "ort":
                raise
            print(f"{name}: {kind}: {failure}", file=sys.stderr)
            differ.add(kind)
    return peers, differ


def take_turns(program, inputs, peers, options):
    """{who: [(median, least) per round]}, with "ours" beside the peers."""
    times = {who: [] for who in ["ours", *peers]}
    for peer in peers.values():
        peer.measure(options.seconds / 2)
    for _ in range(options.rounds):
        for kind, peer in peers.items():
            times[kind].append(peer.measure(options.seconds))
        times["ours"].append(measure_ours(program, inputs, options.threads, options.seconds))
    return times


def made_here(options):
    """The script whose networks are measured, with its arguments behind the folder; none: the suite's."""
    if options.trees:
        corpus = os.environ.get("SVOD_CORPUS")
        return ["trees.py", *([corpus] if corpus else [])]
    if options.families:
        return ["families.py"]
    return ["drawn.py", *options.drawn] if options.drawn else None


def make_here(made):
    """Makes the networks of one of these scripts; their names."""
    command = [sys.executable, str(HERE / made[0]), str(WORK / "models"), *made[1:]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def find_model(name, source, options):
    if not made_here(options):
        subprocess.run([sys.executable, str(HERE / "models.py"), str(source), str(WORK / "models"), name],
                       check=True)
    return WORK / "models" / name


def bench_kernels(name, source, options):
    """The lines of --kernels for one model, and its classes."""
    folder = find_model(name, source, options)
    program = pack(name, folder, options)[0]
    return kernels.report(name, program, inputs_of(folder), folder / "model.onnx", options,
                          lambda: (probe("fma_probe"), probe("stream_probe")))


def main_proof(names, source, options):
    """The table of --proof."""
    print(proof.HEADER)
    for name in names:
        folder = find_model(name, source, options)
        program = pack(name, folder, options)[0]
        inputs = inputs_of(folder)

        def measure(threads, program=program, inputs=inputs):
            return measure_ours(program, inputs, threads, options.seconds)[1]
        print(proof.prove(name, folder, program, inputs, measure), flush=True)
    print(f"\nA parallel region of two threads costs {proof.region_cost(WORK, 2)} ns beside its chunks.")
    return 0


def judged_inputs(name, folder, options):
    """Folders with the inputs to judge a model by: its own, then drawn ones, while the reader wants more."""
    yield folder
    for number in range(1, options.inputs or accuracy.MOST_INPUTS):
        drawn = accuracy.drawn_inputs(folder, WORK / "drawn" / name, number)
        if drawn is None:
            return
        yield drawn


def judge_model(name, folder, options):
    """Errors of ours and of ONNX Runtime's against double precision."""
    program, enough = pack(name, folder, options)[0], accuracy.Enough(folder / "model.onnx")
    peer, work = Peer("ort", folder, options.threads, WORK / "ort" / name), WORK / "judge" / name
    try:
        for at in judged_inputs(name, folder, options):
            shutil.rmtree(work, ignore_errors=True)
            wanted, reason = accuracy.judge(BUILD, at, work, options.judge_seconds)
            if wanted is None:
                raise Failure(f"no judge: {reason}")
            if at != folder:  # which it has answered
                peer.answer(at)
            run_ours(program, inputs_of(at), peer.names, WORK / "ours" / name, options.threads)
            enough.add(*(accuracy.squares_of(WORK / who / name, peer.names, wanted) for who in ("ours", "ort")))
            if not options.inputs and enough.reached():
                break
    finally:
        peer.close()
    if None in enough.errors():
        raise Failure("no output is a float")
    return enough.errors()


def main_accuracy(names, source, options):
    """The table of --accuracy."""
    folders = {name: None for name in names}
    if options.corpus:
        found = accuracy.corpus_models(os.environ["SVOD_CORPUS"], WORK / "models")
        folders = {name: found[name] for name in options.names or found}
    lines, ratios = [accuracy.HEADER], []
    print(accuracy.HEADER)
    for name, folder in folders.items():
        try:
            folder = folder or find_model(name, source, options)
            text, ratio = accuracy.row(name, *judge_model(name, folder, options))
            ratios.append(ratio)
        except (Failure, OSError, ValueError) as failure:
            text = f"| {name} | {str(failure)[:120]} |"
        lines.append(text)
        print(text, flush=True)
    last = accuracy.summary(ratios)
    print("\n".join(last))
    write_output(options, lines + last, ratios)
    return 0


def bench_model(name, source, options):
    folder = find_model(name, source, options)
    program, seconds, peak, summary = pack(name, folder, options)
    inputs = inputs_of(folder)
    peers, differ = start_peers(name, folder, options)
    try:
        run_ours(program, inputs, peers["ort"].names, WORK / "ours" / name, options.threads)
        error = error_between(name, WORK / "ours" / name, WORK / "ort" / name, peers["ort"].names)
        before = probe("fma_probe")
        times = take_turns(program, inputs, peers, options)
        after = probe("fma_probe")
    finally:
        for peer in peers.values():
            peer.close()
    size = summary["bytes"]
    least = {who: min(b for _, b in rounds) for who, rounds in times.items()}
    best = min((kind for kind in peers if kind not in differ), key=least.get)
    return {"name": name, "least": least, "best": best, "differ": sorted(differ),
            "median": {who: statistics.median(m for m, _ in rounds) for who, rounds in times.items()},
            "error": error, "probe": (before, after), "pack_s": seconds, "pack_mb": peak,
            "kernels": summary["kernels"], "programs": summary["programs"], "macs": summary["macs"],
            "arena": size["arena"], "arena_bound": size["arena_lower_bound"],
            "weights": size["weights"], "code": size["code"]}


def header(options):
    kinds = ["ort", *(k for k in options.peers.split(",") if k != "ort")]
    columns = ["model", *(f"{kind} ms" for kind in kinds), "ours ms", "best peer / ours", "of medians",
               "% of probe", "relative error", "probe GFLOP/s", "pack s", "pack MB", "kernels", "arena / bound"]
    return kinds, f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


# Families are compared by least times only: their models are too small for the other columns to tell anything.
def family_header(options):
    kinds = ["ort", *(k for k in options.peers.split(",") if k != "ort")]
    columns = ["family", *(f"{kind} us" for kind in kinds), "ours us", "best peer / ours", "relative error"]
    return kinds, f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def family_text(r, kinds, _):
    return (f"| {r['name'].removeprefix('family_')} | {' | '.join(peer_times(r, kinds, 1000))} "
            f"| {1000 * r['least']['ours']:.4g} | **{ratio(r, 'least'):.2f}** | {r['error']:.1e} |")


def peer_times(r, kinds, factor):
    return [f"{factor * r['least'][k]:.4g}{'!' if k in r['differ'] else ''}" if k in r["least"] else "-"
            for k in kinds]


def row_text(r, kinds, threads):
    peak = max(r["probe"]) * threads
    share = 100 * 2 * r["macs"] / (r["least"]["ours"] * 1e-3) / (peak * 1e9)
    bound = r["arena"] / r["arena_bound"] if r["arena_bound"] else 1
    return (f"| {r['name']} | {' | '.join(peer_times(r, kinds, 1))} | {r['least']['ours']:.4g} | **{ratio(r, 'least'):.2f}** "
            f"{r['best']} | {ratio(r, 'median'):.2f} | {share:.0f} | {r['error']:.1e} "
            f"| {r['probe'][0]:.0f}, {r['probe'][1]:.0f} "
            f"| {r['pack_s']:.1f} | {r['pack_mb']:.0f} | {r['kernels']} | {bound:.3f} |")


def ratio(r, which):
    return r[which][r["best"]] / r[which]["ours"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="every model of SUITE.tsv")
    parser.add_argument("--bench-models", action="store_true", help="the models with filled weights")
    parser.add_argument("--trees", action="store_true", help="ensembles of decision trees, made here")
    parser.add_argument("--peers", default="ort", help="of ort, openvino, ncnn; ort is always there")
    parser.add_argument("--families", action="store_true", help="one small model per operator family, made here")
    parser.add_argument("--drawn", nargs=2, metavar=("FIRST", "COUNT"), help="networks that cliffs.py draws, by their seeds")
    parser.add_argument("--kernels", action="store_true", help="every kernel beside the machine's roofs, no peers")
    parser.add_argument("--proof", action="store_true", help="start, memory, size, scaling; what a region costs")
    parser.add_argument("--accuracy", action="store_true", help="errors against double precision, no times")
    parser.add_argument("--corpus", action="store_true", help="--accuracy: the real models of SVOD_CORPUS")
    parser.add_argument("--inputs", type=int, default=0, metavar="N",
                        help="--accuracy: over N inputs, drawn but for the first; else until there are enough numbers")
    parser.add_argument("--judge-seconds", type=int, default=600, help="--accuracy: for one model in double precision")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.6, help="per peer and round")
    parser.add_argument("--warm", action="store_true", help="let svod-pack use its cache")
    parser.add_argument("--pack-option", action="append", default=[], metavar="OPTION")
    parser.add_argument("--output", type=pathlib.Path, help="write the table there, JSON beside it")
    return parser.parse_args()


def main():
    options = arguments()
    source = pathlib.Path(os.environ.get("SVOD_BENCH_MODELS") or
                          HERE.parent.parent.parent / "shared" / "bench-models").resolve()
    made = made_here(options)
    if not made and not (source / "SUITE.tsv").exists():
        print(f"no models: SVOD_BENCH_MODELS names {source}, which has no SUITE.tsv", file=sys.stderr)
        return 2
    WORK.mkdir(parents=True, exist_ok=True)
    if made:
        listed = make_here(made)
    else:
        which = "all" if options.all else "bench" if options.bench_models else "default"
        listing = [sys.executable, str(HERE / "models.py"), str(source), str(WORK), "--list", which]
        listed = subprocess.run(listing, check=True, capture_output=True, text=True).stdout.split()
    names = options.names or listed
    if options.kernels:
        return main_kernels(names, source, options)
    if options.accuracy:
        return main_accuracy(names, source, options)
    if options.proof:
        return main_proof(names, source, options)
    kinds, first = (family_header if options.families else header)(options)
    rows, lines, failures = [], [first], []
    print(first, flush=True)
    write_row = family_text if options.families else row_text
    for name in names:
        try:
            rows.append(bench_model(name, source, options))
            lines.append(write_row(rows[-1], kinds, options.threads))
        except Failure as failure:
            failures.append(name)
            lines.append(f"| {name} | {failure} |")
        print(lines[-1], flush=True)
    if rows:
        mean = math.exp(statistics.mean(math.log(ratio(r, "least")) for r in rows))
        lines.append(f"\n{len(rows)} models, {options.threads} thread(s): geometric mean of the "
                     f"ratios of best {mean:.3f}; {len(failures)} without a result")
        print(lines[-1])
    write_output(options, lines, rows)
    return 1 if failures else 0


def write_output(options, lines, rows):
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
        options.output.with_suffix(".json").write_text(json.dumps(rows, indent=1))


def main_kernels(names, source, options):
    lines, classes = [], {}
    for name in names:
        text, classes[name] = bench_kernels(name, source, options)
        lines += text
        print("\n".join(text), flush=True)
    last = kernels.summary(classes)
    print("\n".join(last))
    lines += last
    write_output(options, lines, classes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
