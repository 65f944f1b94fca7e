#!/usr/bin/env python3
"""What the search and tuning bring: packs of one model by rules, by search and tuned, in turns with other runtimes.

    search_gain.py [--all | --drawn FIRST COUNT | NAME...] [--before SVOD_PACK] [--tune MINUTES]
                   [--peers ort,openvino,ncnn] [--threads 1] [--isa LEVEL] [--rounds 4] [--seconds 0.5]
                   [--output FILE]

"rules" is a pack with --search-budget 0, "search" one without options, "tuned" one with --tune, "before" one by another
svod-pack, an older build. All are measured alternately (bench.py says why), least times in milliseconds. Columns of
ratios: above 1 the later one is faster. With --isa our programs run, and are tuned, at a lower level than the machine's;
peers do not: ONNX Runtime only judges. Programs are deleted when a model is done, since they hold its weights. With
--output each model's times are added to FILE as a line of JSON, and models that it has are not measured again. --table
FILE... prints the table of such files.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import bench

RATIOS = {"rules / search": ("rules", "search"), "before / search": ("before", "search"), "rules / tuned": ("rules", "tuned"),
          "before / tuned": ("before", "tuned"), "best peer / search": ("peer", "search"), "best peer / tuned": ("peer", "tuned")}
WHO = ["before", "rules", "search", "tuned"]


def pack(packer, folder, program, *options):
    command = [packer, folder / "model.onnx", "-o", program, "-q", "--shape-from", folder / "test_data_set_0", "--verify", "off"]
    done = subprocess.run([*map(str, command), *options], capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise bench.Failure(f"{packer} exits {done.returncode}: {done.stderr.decode(errors='replace').strip()[-300:]}")
    return program


def runner_of(level, work):
    """A command that runs a program at the level."""
    runner = work / "runner"
    runner.write_text(f'#!/bin/sh\nprogram=$1; shift\nexec "$program" --isa {level} "$@"\n')
    runner.chmod(0o755)
    return ["--runner", str(runner)]


def packed_variants(folder, work, options):
    """{who: program}"""
    ours = bench.BUILD / "svod-pack"
    programs = {"rules": pack(ours, folder, work / "rules", "--search-budget", "0"), "search": pack(ours, folder, work / "search")}
    if options.before:
        programs["before"] = pack(options.before, folder, work / "before")
    if options.tune:
        runner = runner_of(options.isa, work) if options.isa else []
        programs["tuned"] = pack(ours, folder, work / "tuned", f"--tune={options.tune}", "--tuning", str(work / "tuning"),
                                 "--threads", str(options.threads), *runner)
    return programs


def measured(name, source, options):
    """{who: least milliseconds}, of peers that agree with ONNX Runtime."""
    folder, work = bench.find_model(name, source, options), bench.WORK / "gain" / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        programs = packed_variants(folder, work, options)
        inputs = [*bench.inputs_of(folder), *(["--isa", options.isa] if options.isa else [])]
        peers, differ = bench.start_peers(name, folder, options)
        try:
            for program in programs.values():
                bench.run_ours(program, inputs, peers["ort"].names, bench.WORK / "ours" / name, options.threads)
                bench.error_between(name, bench.WORK / "ours" / name, bench.WORK / "ort" / name, peers["ort"].names)
            timed = {} if options.isa else peers
            times = {who: math.inf for who in [*programs, *timed]}
            for _ in range(options.rounds):
                for who, peer in timed.items():
                    times[who] = min(times[who], peer.measure(options.seconds)[1])
                for who, program in programs.items():
                    times[who] = min(times[who], bench.measure_ours(program, inputs, options.threads, options.seconds)[1])
        finally:
            for peer in peers.values():
                peer.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return {who: time for who, time in times.items() if who not in differ}


def goals(source):
    """{model: goal} of the suite, in its order."""
    rows = [line.split("\t") for line in (source / "SUITE.tsv").read_text().splitlines()]
    return {row[0]: float(row[rows[0].index("goal_best_over_ours")]) for row in rows[1:]}


def ratio(times, column):
    first, second = RATIOS[column]
    return times[first] / times[second] if first in times and second in times else None


def print_table(rows, wanted):
    """A line for each model, and below it the geometric mean and the least of each ratio."""
    for times in rows.values():
        if peers := [time for who, time in times.items() if who not in WHO]:
            times["peer"] = min(peers)
    who = [w for w in [*WHO, "peer"] if any(w in times for times in rows.values())]
    columns = [column for column in RATIOS if any(ratio(times, column) for times in rows.values())]
    print(f"| model | {' | '.join('best peer' if w == 'peer' else w for w in who)} | {' | '.join(columns)} | goal |")
    print("|---" * (len(who) + len(columns) + 2) + "|")
    for name, times in rows.items():
        cells = [f"{times[w]:.4g}" if w in times else "-" for w in who]
        ratios = [ratio(times, column) for column in columns]
        print(f"| {name} | {' | '.join(cells)} | {' | '.join(f'{r:.3f}' if r else '-' for r in ratios)} | {wanted.get(name, '-')} |")
    for column in columns:
        found = {name: r for name, times in rows.items() if (r := ratio(times, column))}
        least = sorted(found, key=found.get)[:4]
        print(f"\n{column}: geometric mean of {len(found)} {math.exp(sum(map(math.log, found.values())) / len(found)):.3f}; least "
              + ", ".join(f"{name} {found[name]:.3f}" for name in least), end="")
        if column.startswith("best peer"):
            print(f"; at their goal {sum(r >= wanted[name] for name, r in found.items() if name in wanted)}", end="")
    print()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="every model of SUITE.tsv")
    parser.add_argument("--drawn", nargs=2, metavar=("FIRST", "COUNT"), help="networks that cliffs.py draws, by their seeds")
    parser.add_argument("--before", type=pathlib.Path, metavar="SVOD_PACK", help="another packer to compare with")
    parser.add_argument("--tune", type=float, default=0, metavar="MINUTES", help="tune each model for so long; 0: not at all")
    parser.add_argument("--peers", default="ort,openvino,ncnn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", metavar="LEVEL", help="of our programs: v2, v3")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.5, help="per program and round")
    parser.add_argument("--output", type=pathlib.Path, help="a line of JSON for each model")
    parser.add_argument("--table", nargs="+", type=pathlib.Path, metavar="FILE", help="print the table of these, measure nothing")
    parser.set_defaults(trees=False, families=False)
    options = parser.parse_args()
    if options.isa:
        options.peers = "ort"
    return options


def read_rows(files):
    return dict(json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines())


def main():
    options = arguments()
    source = pathlib.Path(os.environ.get("SVOD_BENCH_MODELS") or
                          bench.HERE.parent.parent.parent / "shared" / "bench-models").resolve()
    wanted = goals(source)
    if options.table:
        print_table(read_rows(options.table), wanted)
        return 0
    rows = read_rows([options.output] if options.output else [])
    failures = []
    made = bench.made_here(options)
    for name in bench.make_here(made) if made else wanted if options.all else options.names:
        if name in rows:
            continue
        try:
            rows[name] = measured(name, source, options)
        except (bench.Failure, OSError, ValueError) as failure:
            failures.append(f"{name}: {failure}")
            print(failures[-1], file=sys.stderr, flush=True)
            continue
        if options.output:
            with options.output.open("a") as out:
                print(json.dumps([name, rows[name]]), file=out)
    print_table(rows, wanted)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
