#!/usr/bin/env python3
"""Hashes the emitted text of every kernel of many models, and compares two states of the packer.

    SVOD_CORPUS=DIR kernel_texts.py --out FILE [--keep DIR] [MODELS...]     hashes this build's texts
    SVOD_CORPUS=DIR kernel_texts.py --compare FILE [--keep DIR] [MODELS...] and compares them with FILE's

A refactor of the compiler emits the same text before and after; this says where it does not. The models are those of
SVOD_CORPUS/real, with the shapes of their test data, and the filled ones below --models DIR (NAME/model.onnx).
MODELS are regular expressions, one of which has to be found in a model's name. Small models are emitted for
the targets of SMALL_TARGETS too. --keep DIR holds the texts without their preludes, one file per model and target, so
that a difference can be read (with --compare, DIR holds the texts of FILE and those of now lie beside them as .new).

A row: model, target, exit code, kernels, SHA-256 over all kernel texts in order. Exit 1 when a row differs.
"""
import argparse
import concurrent.futures
import gzip
import hashlib
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
import run_conformance

BUILD = run_conformance.BUILD
SMALL_TARGETS = ["aarch64", "cortex-m4", "riscv64"]
SMALL_BYTES = 4 << 20
SECONDS = 600


def models(folder):
    """(name, path, folder of test data or None) of every model."""
    found = []
    corpus = os.environ.get("SVOD_CORPUS")
    if corpus:
        for case in run_conformance.cases_of("real", pathlib.Path(corpus)):
            found.append((case.name, case.model, case.data[0] if case.data else None))
    if folder:
        for model in sorted(pathlib.Path(folder).glob("*/model.onnx")):
            found.append((f"bench/{model.parent.name}", model, None))
    return found


# What stands around the kernels so that the file is whole.
WRAPPING = re.compile(r"^(#undef svod_kernel|#define svod_kernel \w+|(} // )?namespace of_k\w+( \{)?)\n", re.M)


def texts_of(output):
    """Kernel name -> (full text, text without the prelude) from --emit=cpp."""
    parts = re.split(r"^// (k\d+_\w+)\n", output, flags=re.M)
    return {name: (text, text[text.find("namespace kernel {\n") :])
            for name, text in zip(parts[1::2], parts[2::2])}


def emit(job, keep, suffix):
    name, model, data, target = job
    command = [str(BUILD / "svod-pack"), str(model), "--emit=cpp", "--verify", "off", "-q",
               "--target", target]
    if data:
        command += ["--shape-from", str(data)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
        code, output = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        code, output = 124, ""
    output = WRAPPING.sub("", output)
    kernels = texts_of(output)
    digest = hashlib.sha256(output.encode()).hexdigest()
    if keep:
        file = pathlib.Path(keep) / f"{name.replace('/', '__')}.{target}{suffix}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(file, "wt", compresslevel=3) as out:
            for kernel, (_, text) in kernels.items():
                out.write(f"// {kernel}\n{text}")
    return (name, target), (str(code), str(len(kernels)), digest)


def read(path):
    rows = [line.split("\t") for line in pathlib.Path(path).read_text().splitlines()]
    return {(row[0], row[1]): tuple(row[2:]) for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wanted", nargs="*", metavar="MODELS")
    parser.add_argument("--out")
    parser.add_argument("--compare")
    parser.add_argument("--models")
    parser.add_argument("--keep")
    parser.add_argument("--targets", default="x86-64," + ",".join(SMALL_TARGETS))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    targets = args.targets.split(",")
    jobs = []
    for name, model, data in models(args.models):
        if args.wanted and not any(re.search(w, name) for w in args.wanted):
            continue
        small = model.stat().st_size <= SMALL_BYTES
        jobs += [(name, model, data, t) for t in targets if small or t not in SMALL_TARGETS]
    if not jobs:
        print("skipped: no models; set SVOD_CORPUS, or give --models")
        return 77
    before = read(args.compare) if args.compare else {}
    suffix = ".new" if args.compare else ""
    rows, differing, new = {}, 0, 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for key, row in pool.map(lambda job: emit(job, args.keep, suffix), jobs):
            rows[key] = row
            if not args.compare:
                continue
            if key not in before:
                new += 1
            elif before[key] != row:
                differing += 1
                print(f"differs: {key[0]} for {key[1]}: {' '.join(before[key])} -> {' '.join(row)}", flush=True)
    if args.out:
        text = "".join("\t".join(key + row) + "\n" for key, row in sorted(rows.items()))
        pathlib.Path(args.out).write_text(text)
    kernels = sum(int(row[1]) for row in rows.values())
    print(f"{len(rows)} models and targets, {kernels} kernel texts; {differing} differ, {new} were not in the other state")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
