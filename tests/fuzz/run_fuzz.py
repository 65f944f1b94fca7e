#!/usr/bin/env python3
"""Fuzzes all targets, or those that are named, for some minutes in all, two at a time.

    run_fuzz.py FOLDER MINUTES [TARGET...]

FOLDER is a build by the preset fuzz; what is found there stays there and is where the next run begins: FOLDER/corpus/TARGET.
Prints a row for each target, then all that FOLDER/counted.tsv remembers of this run and those before. Exit 1 when a target
failed: each case lies in FOLDER/cases, with the command that replays it. With 0 MINUTES it only prints what was counted.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
AT_ONCE, CASE_SECONDS, MEGABYTES = 2, 10, 1536
# Leaks would be reported at the end of each run, and nothing here lives so long.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0",
                   UBSAN_OPTIONS="print_stacktrace=1")


class Target:
    def __init__(self, program, line):
        self.program = program
        self.name, self.bytes, share, self.reads = line.split(" ", 3)
        self.share = int(share)
        self.cases = self.seconds = self.cpu_seconds = self.coverage = 0
        self.faults = []  # (path of the case, first line of the report)


def targets_of(folder):
    for program in sorted((folder / "tests" / "fuzz").glob("fuzz_*")):
        if program.suffix or not program.is_file():
            continue
        listed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
        yield from (Target(program, line) for line in listed.splitlines())


def summary(text):
    """What a report is about, in a line."""
    for pattern in (r"NOT TRUE: .*", r"what\(\): .*", r"runtime error: .*", r"SUMMARY: .*"):
        found = re.search(pattern, text)
        if found:
            return found.group(0)[:200]
    return text[-200:]


def fuzz_once(folder, target, seconds):
    """Until time is over or a case fails."""
    corpus, cases = folder / "corpus" / target.name, folder / "cases"
    for place in (corpus, cases):
        place.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    command = [target.program, target.name, f"-max_len={target.bytes}", f"-max_total_time={max(1, round(seconds))}",
               f"-timeout={CASE_SECONDS}", f"-rss_limit_mb={MEGABYTES}", "-print_final_stats=1", "-reload=0",
               f"-artifact_prefix={cases}/{target.name}-", corpus]
    seeds = HERE / "seeds" / target.name
    if seeds.is_dir():
        command.append(seeds)
    running = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=ENVIRONMENT)
    text = running.stdout.read().decode(errors="replace")
    running.stdout.close()
    _, status, spent = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    target.seconds += time.monotonic() - begin
    target.cpu_seconds += spent.ru_utime + spent.ru_stime
    executed = re.findall(r"stat::number_of_executed_units: +(\d+)", text) or re.findall(r"#(\d+)\t", text) or ["0"]
    target.cases += int(executed[-1])
    target.coverage = max([target.coverage, *map(int, re.findall(r"cov: (\d+)", text))])
    if running.returncode == 0:
        return True
    written = re.findall(r"Test unit written to (\S+)", text)
    target.faults.append((written[-1] if written else "(no case was written)", summary(text)))
    return False


def fuzz(folder, target, seconds):
    most_faults = 5
    end = time.monotonic() + seconds
    while len(target.faults) < most_faults and time.monotonic() < end - 1:
        if fuzz_once(folder, target, end - time.monotonic()):
            break
    rate = target.cases / max(target.seconds, 0.001)
    print(f"{target.name:<12}{target.cases:>12}{rate:>10.0f}{target.cpu_seconds:>10.1f}{target.coverage:>10}"
          f"{len(target.faults):>10}", flush=True)
    with open(folder / "counted.tsv", "a") as counted:
        counted.write(f"{target.name}\t{target.cases}\t{target.cpu_seconds:.1f}\t{target.coverage}\t{len(target.faults)}\n")
    return target


def print_counted(folder):
    """A row for each target: the sums of all runs, and the most that one has covered."""
    path, sums = folder / "counted.tsv", {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, cases, cpu, coverage, faults = line.split("\t")
        row = sums.setdefault(name, [0, 0, 0, 0, 0])
        for i, more in enumerate((1, int(cases), float(cpu))):
            row[i] += more
        row[3], row[4] = max(row[3], int(coverage)), row[4] + int(faults)
    print(f"\n{'all runs':<12}{'runs':>6}{'cases':>12}{'CPU min':>10}{'coverage':>10}{'failures':>10}")
    for name, (runs, cases, cpu, coverage, faults) in sorted(sums.items()):
        print(f"{name:<12}{runs:>6}{cases:>12}{cpu / 60:>10.1f}{coverage:>10}{faults:>10}")
    cases, cpu, faults = (sum(row[i] for row in sums.values()) for i in (1, 2, 4))
    print(f"{'all':<12}{'':>6}{cases:>12}{cpu / 60:>10.1f}{'':>10}{faults:>10}")


def main():
    if len(sys.argv) < 3:
        print(__doc__.strip())
        return 2
    folder, minutes, names = pathlib.Path(sys.argv[1]).resolve(), float(sys.argv[2]), sys.argv[3:]
    targets = [target for target in targets_of(folder) if not names or target.name in names]
    if names and len(targets) != len(set(names)):
        print(f"targets are: {' '.join(target.name for target in targets_of(folder))}")
        return 2
    if minutes == 0:
        print_counted(folder)
        return 0
    shares = sum(target.share for target in targets)
    print(f"{'target':<12}{'cases':>12}{'cases/s':>10}{'CPU s':>10}{'coverage':>10}{'failures':>10}", flush=True)
    # The longest first, so that all end at about the same time.
    targets.sort(key=lambda target: -target.share)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda t: fuzz(folder, t, AT_ONCE * 60 * minutes * t.share / shares), targets))
    faults = [(target, fault) for target in targets for fault in target.faults]
    print(f"{'all':<12}{sum(t.cases for t in targets):>12}{'':>10}{sum(t.cpu_seconds for t in targets):>10.1f}"
          f"{'':>10}{len(faults):>10}")
    print_counted(folder)
    for target, (case, report) in faults:
        print(f"\n{target.name}: {report}\n  {case}\n  replay: {target.program} {target.name} {case}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
