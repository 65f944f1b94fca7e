#!/usr/bin/env python3
"""Predicted against measured time of kernels under many schedules.

    cost_pairs.py measure OUT [--variants 8] [--rounds 4]   packs, times, keeps kernels, schedules and times in OUT
    cost_pairs.py report OUT                                rank correlations and the worst misjudged pairs
    cost_pairs.py fit OUT COLUMN...                         values of the machine's columns that fit the times best

The networks of cost_networks.py are packed once for each variant of all their kernels' schedules, with all CPU levels
of x86-64. Programs take turns in several rounds; a kernel's time is the least of all rounds, each in the time that a
multiply-add probe before and behind the run took. Predictions come from build/tests/kernel_costs.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import cost_report
import schedule_variants

LEVELS = ("v2", "v3", "v4")
ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", ROOT / "build"))


def run(command, **options):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)


def pack(network, schedules, program, target, form):
    """Packs with a schedule file; the kernels that it refuses, or nothing where it took all."""
    command = [BUILD / "svod-pack", network, "--target", target, "--schedule", schedules, "--verify", "off"]
    done = run([*command, f"--emit={form}", "-o", program])
    if done.returncode == 2:
        return set(re.findall(r"schedule ([0-9a-f]{64})", done.stderr))
    if done.returncode != 0:
        sys.exit(done.stderr)
    text = run([*command, "--emit=schedule", f"--json={program}.json", "-o", f"{program}.txt"])
    assert text.returncode == 0, text.stderr
    code = run([*command, "--emit=cpp"]).stdout
    pathlib.Path(f"{program}.code").write_text(json.dumps(texts_of(code)))
    return set()


def texts_of(code):
    """{kernel and level: a digest of its text without its name}"""
    out = {}
    for part in code.split("#undef svod_kernel\n")[1:]:
        name = part.split("\n", 1)[0].split()[2]
        out[name.replace("_", " ")] = hashlib.sha256(part.replace(name, "").encode()).hexdigest()
    return out


def pack_variant(network, kernels, seed, program, target="x86-64", form="exe"):
    refused, dropped = set(), set()
    while True:
        text = "".join(schedule_variants.text_of(
            k, schedule_variants.vary(k, 0 if k.digest in dropped else seed, k.digest not in refused)) for k in kernels)
        schedules = program.with_suffix(".schedules")
        schedules.write_text(text)
        misfits = pack(network, schedules, program, target, form)
        if not misfits:
            return
        dropped |= misfits & refused
        refused |= misfits


def profile(program, level):
    """{kernel: us} of one run; launches of one kernel, its mean."""
    done = run([program, "--profile", "--isa", level, "--threads", 1, "--min-time", 0.25, "--input", "x=random"])
    assert done.returncode == 0, done.stderr
    times = {}
    for line in done.stdout.splitlines()[1:]:
        name, us = line.split()[:2]
        if name != "total":
            times.setdefault(name.split("*")[0], []).append(float(us))
    return {name: statistics.mean(us) for name, us in times.items()}


class Probe:
    """Multiply-adds of this core: what a run is told in units of."""

    def __init__(self, folder):
        self.program, self.best = folder / "fma_probe", 0
        compiler = run(["clang++-19", "-O3", "-march=native", ROOT / "tests/bench/fma_probe.cpp", "-o", self.program])
        assert compiler.returncode == 0, compiler.stderr

    def rate(self):
        rate = float(run([self.program]).stdout)
        self.best = max(self.best, rate)
        return rate


def times_of(programs, rounds, probe):
    """{(program, level): {kernel: us}}: the least of all rounds, at the best rate of the probe."""
    least = {}
    for number in range(rounds):
        for program in programs:
            for level in LEVELS:
                before = probe.rate()
                times = profile(program, level)
                rate = max(before, probe.rate())
                known = least.setdefault((program, level), {})
                for name, us in times.items():
                    known[name] = min(known.get(name, 1e30), us * rate / probe.best)
        print(f"round {number + 1}: {len(programs)} programs, probe {probe.best:.1f} GFLOP/s", file=sys.stderr)
    return least


def measure(out, variants, rounds):
    import cost_networks
    out.mkdir(parents=True, exist_ok=True)
    programs = []
    for name in cost_networks.NETWORKS:
        network = out / f"{name}.onnx"
        cost_networks.write(name, network)
        plain = run([BUILD / "svod-pack", network, "--target", "x86-64", "--emit=schedule"])
        kernels = schedule_variants.read(plain.stdout)
        for seed in range(variants):
            program = out / f"{name}-{seed}"
            if not pathlib.Path(f"{program}.txt").exists():
                pack_variant(network, kernels, seed, program)
            programs.append(program)
            print(f"packed {program.name}: {len(kernels)} kernels", file=sys.stderr)
    least = times_of(programs, rounds, Probe(out))
    rows = [{"program": program.name, "level": level, "kernel": kernel, "us": us}
            for (program, level), times in least.items() for kernel, us in times.items()]
    (out / "times.json").write_text(json.dumps(rows, indent=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "report", "fit"))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("columns", nargs="*")
    parser.add_argument("--variants", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    if options.what == "measure":
        measure(options.out, options.variants, options.rounds)
        return
    pairs = cost_report.Pairs(options.out, BUILD / "tests" / "kernel_costs")
    if options.what == "fit":
        pairs.fit(options.columns)
    print("\n".join(pairs.report()))


if __name__ == "__main__":
    main()
