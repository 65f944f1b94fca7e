#!/usr/bin/env python3
"""When kernels ran (--profile=trace.json), and what a program says of parts that were left out of it."""
import collections
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import model, node, random_tensor, value
from packing import DIGITS, PACKER, check, pack, run, work_folder

FOLDER = work_folder("traces")


def trace(program, *words):
    return json.loads(run(program, "--profile=trace.json", *words).stdout)


def spans(events, kind):
    return [e for e in events if e["ph"] == "X" and e["cat"] == kind]


def checked(program, threads):
    """Events of a trace, after what holds for each."""
    events = trace(program, "--threads", threads)["traceEvents"]
    profile = json.loads(run(program, "--profile=json", "--min-time", "0.01", "--threads", threads).stdout)
    steps = [(k["name"], k["nodes"]) for k in profile["kernels"]]
    runs = spans(events, "run")
    check([r["name"] for r in runs] == [f"run {i}" for i in range(5)], "five runs")
    lanes = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    check(lanes == set(range(int(threads))), f"a lane for each of {threads} threads")
    kernels = spans(events, "kernel")
    check({(e["name"], e["args"]["nodes"]) for e in kernels} == set(steps), "every kernel of --profile=json")
    check(all(e["tid"] in lanes for e in kernels), "in a lane")
    for one in runs:
        inside = [e for e in kernels if one["ts"] <= e["ts"] and e["ts"] + e["dur"] <= one["ts"] + one["dur"] + 0.002]
        done = collections.Counter()
        for e in inside:
            done[e["name"], e["args"]["nodes"]] += e["args"]["chunks"]
        wanted = collections.Counter()
        for e in {(e["name"], e["args"]["nodes"]): e for e in inside}.values():
            wanted[e["name"], e["args"]["nodes"]] = e["args"]["of"] * steps.count((e["name"], e["args"]["nodes"]))
        check(done == wanted and len(wanted) == len(set(steps)), f"{one['name']}: every chunk once")
    for lane in lanes:
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in kernels if e["tid"] == lane)
        check(all(a[1] <= b[0] + 0.002 for a, b in zip(own, own[1:])), f"lane {lane}: one kernel at a time")
    return kernels


def main():
    digits = FOLDER / "digits"
    pack(DIGITS, digits, "--with", "trace")
    kernels = checked(digits, "1")
    check(all(e["args"]["flops"] > 0 and e["args"]["bytes"] > 0 for e in kernels), "flops and bytes")

    hostile = '"<script>\\\n\x01é'
    path, program = FOLDER / "wide.onnx", FOLDER / "wide"
    path.write_bytes(model([node("MatMul", ["x", "w"], ["a"], name=hostile), node("Relu", ["a"], ["b"]),
                            node("MatMul", ["b", "v"], ["y"])],
                           [value("x", [256, 384])], [value("y", [256, 384])],
                           [random_tensor("w", [384, 384], 1), random_tensor("v", [384, 384], 2)]))
    pack(path, program, "--with", "trace,jsonl")
    checked(program, "1")
    kernels = checked(program, "2")
    check(len({e["tid"] for e in kernels}) == min(2, os.cpu_count()), "both threads have part in it")
    said = run(program, "--profile=trace.json").stdout
    check(b"<script" not in said, "no name can end an element of a page that holds the trace")

    left_out = {"batch": ["--batch-dir", FOLDER], "jsonl": ["--stream=jsonl"], "trace": ["--profile=trace.json"]}
    plain = FOLDER / "plain"
    pack(DIGITS, plain, "--with=none")
    help_text = run(plain, "--help").stdout.decode()
    for part, words in left_out.items():
        told = run(plain, *words, expect=2).stderr.decode()
        check(f"--with={part}" in told and words[0] in told, told)
        check(f"  {part} " in help_text and part in help_text.split("left out here")[1], f"help tells of {part}")
    for words in ([], ["--with=all"]):
        pack(DIGITS, plain, *words)
        help_text = run(plain, "--help").stdout.decode()
        check("left out" not in help_text and all(w[0] in help_text for w in left_out.values()), "with all, all are shown")
    pack(DIGITS, plain, "-Os")
    check("left out" in run(plain, "--help").stdout.decode(), "a small program has none")
    told = run(PACKER, DIGITS, "-o", plain, "--with", "bach", expect=2).stderr.decode()
    check("'bach'" in told and "batch" in told, told)
    told = run(PACKER, DIGITS, "-o", FOLDER / "libdigits.a", "--with", "batch", expect=2).stderr.decode()
    check("--with is for programs" in told, told)
    keys = {run(PACKER, "key", DIGITS, *words).stdout for words in ([], ["--with=trace"], ["--with=none"])}
    check(len(keys) == 3, "parts are of the key")


if __name__ == "__main__":
    sys.exit(main())
