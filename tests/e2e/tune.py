#!/usr/bin/env python3
"""--tune, --tuning and --runner: what is found is kept, merged, and gives the same bytes anywhere; answers stay right."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import DIGITS, PACKER, check, digits_on, labels_right, run, work_folder
from weighted_models import Weights, cnn

LEVEL = ["--target", "x86-64-v3"]
# Runs the program; whatever it measures, the rules' one counts tenfold, so that every first schedule wins.
RUNNER = r"""#!/bin/sh
case "$1" in
*/plan_*) ;; # whole plans, which are all the same to it
*) echo run >> "$0.runs" ;;
esac
case "$1" in
*/rules) count=100 ;;
*) count=10 ;;
esac
"$1" --profile=json --min-time 0.01 | sed 's/us": [0-9.]*/us": '$count'/; s/"unit": "us"/"unit": "instructions"/'
"""
# The rules' program counts 100, the others 10 in the first round and LATER afterwards.
LUCKY = RUNNER.replace("*) count=10 ;;", '*) if [ $(wc -l < "$0.runs") -gt 9 ]; then count=LATER; else count=10; fi ;;')
# Whatever is faster here, a program takes as long as it has launches: fast forms have more of them.
LAUNCHES = r"""#!/bin/sh
told=$("$1" --profile=json --min-time 0.01)
count=$(echo "$told" | grep -o '"name"' | wc -l)
echo "$told" | sed 's/us": [0-9.]*/us": '$count'/; s/"unit": "us"/"unit": "launches"/'
"""
ONE_ROUND = "--tune=0.001"
LOWER = """#!/bin/sh
program=$1; shift
exec "$program" --isa v2 "$@"
"""
FOREIGN = "kernel took 1.000 us, 2.000 us before\nschedule " + "ab" * 32 + "\n  loops\n    outer\n  level v9 lanes 4\n"


def program(folder, name, *options, **more):
    return run(PACKER, DIGITS, "-o", folder / name, "--verify", "off", *options, seconds=300,
               env=dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache")), **more)


def right(folder, name):
    check(labels_right(digits_on([], folder / name, folder)) == 10, f"{name}: ten digits right")


def measured_here(folder):
    file = folder / "here.tuning"
    told = program(folder, "here", "--tune=0.05", "--tuning", file).stderr.decode()
    check(re.search(r"tuning: \d+ schedules in \d+ rounds, level \w+, \d+ kernels faster", told),
          [line for line in told.splitlines() if line.startswith("tuning:")][-1])
    right(folder, "here")
    program(folder, "again", "--tuning", file)
    check((folder / "here").read_bytes() == (folder / "again").read_bytes(), "the file alone gives the same bytes")
    program(folder, "no_file", "--tune=0.05")
    right(folder, "no_file")


def runner_in(folder, name, text=RUNNER):
    runner = folder / name
    runner.write_text(text)
    runner.chmod(0o755)
    return runner


def measured_by_runner(folder):
    file, runner = folder / "runner.tuning", runner_in(folder, "runner.sh")
    file.write_text("svod-pack tuning 1\nmachine elsewhere v9\n" + FOREIGN + "end\n")
    told = program(folder, "tuned", "--tune=0.2", "--tuning", file, "--runner", runner, *LEVEL).stderr.decode()
    check("instructions, " in told, "the runner's unit is told")
    text = file.read_text()
    check("machine elsewhere v9\n" + FOREIGN in text, "the entry of another machine stays")
    check(text.count("\nschedule ") > 1 and "\nmachine x86_64" in text, f"{text.count('schedule ') - 1} kernels found")
    right(folder, "tuned")
    program(folder, "plain", *LEVEL)
    for name in ("first", "second"):
        done = program(folder, name, "--tuning", file, "--deps", folder / "deps", *LEVEL)
        check(b"ab" * 32 not in done.stderr, "a digest of another model is no note")
    packed = [(folder / name).read_bytes() for name in ("tuned", "first", "second", "plain")]
    check(packed[0] == packed[1] == packed[2], "with the file the bytes are the same")
    check(packed[3] != packed[0], "and not those without it")
    check(str(file) in (folder / "deps").read_text(), "--deps names the file")
    shared = folder / "shared.tuning"
    shared.write_text(re.sub(r"(\nmachine x86_64.*\n)", lambda m: m[1] + FOREIGN.replace("v9", "v3"), text))
    program(folder, "shared", "--tuning", shared, *LEVEL)
    check((folder / "shared").read_bytes() == packed[0], "entries of other models change nothing")
    key = [run(PACKER, "key", DIGITS, *LEVEL, *more).stdout for more in ([], ["--tuning", file], ["--tuning", shared])]
    check(key[0] != key[1] == key[2], "the key tells them apart, and not for entries of other models")
    return file


def explained(folder, file):
    """What was measured is told beside what is predicted, in the file's unit, and what lost."""
    words = [PACKER, DIGITS, "--tuning", file, "--explain", *LEVEL]
    env = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"))
    told = run(*words, "--emit=fused", cwd=folder, env=env).stdout.decode()
    tuned = re.findall(r"^  tuned  (?:part \d+: )?took (\S+) instructions, (\S+) instructions before \(rules\)$", told, re.M)
    check(tuned and all(float(now) < float(before) for now, before in tuned), f"{len(tuned)} kernels say what they took")
    check(re.search(r"^  lost   .*(less|more) \(\d+\.\d %\): \S", told, re.M), "and what lost, by how much")
    done = run(*words, "--json", "-o", "explained", "--verify", "off", cwd=folder, env=env, seconds=300)
    kernels = json.loads(done.stdout)["predicted"][0]["kernels"]
    schedules = [one for kernel in kernels for one in kernel["schedules"]]
    kept = [one["tuned"] for one in schedules if one["by"] == "tuning"]
    check(len(kept) == len(tuned) and all(one["unit"] == "instructions" for one in kept), "--json says the same")
    check(all(("tuned" in one) == (one["by"] == "tuning") for one in schedules), "of those that were tuned alone")
    rules = [lost for one in schedules for lost in one["lost"] if lost["by"] == "rules"]
    check(rules and all(lost["differs"] and lost["us"] > 0 for lost in rules), "the rules' ones are among those that lost")


def whole_plan(folder):
    """Contractions as they are written, where that is faster: a later pack plans so, too, and no other model does."""
    network, file = folder / "cnn.onnx", folder / "plan.tuning"
    network.write_bytes(cnn(Weights()))
    words = ["--verify", "off", *LEVEL]
    env = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"))

    def packed(name, *more):
        done = run(PACKER, network, "-o", folder / name, f"--json={folder / 'plan.json'}", *words, *more, env=env, seconds=300)
        return done.stderr.decode(), json.loads((folder / "plan.json").read_text())["kernels"], (folder / name).read_bytes()

    _, searched, first = packed("searched")
    told, _, tuned = packed("planned", "--tune=0.2", "--tuning", file, "--runner", runner_in(folder, "launches.sh", LAUNCHES))
    plan = re.search(r"tuning: the plan '(\S+)' takes (\S+) launches, (\S+) before", told)
    check(plan and "as-written" in plan[1] and float(plan[2]) < float(plan[3]), plan and plan[0])
    check(f"\nplan {plan[1]} of " in file.read_text(), "the file keeps it")
    _, kernels, again = packed("planned_again", "--tuning", file)
    check(again == tuned != first, "with the file the bytes are the same, and not those without it")
    check(kernels < searched, f"{kernels} launches, {searched} with fast forms")
    keys = [run(PACKER, "key", network, *LEVEL, *more, env=env).stdout for more in ([], ["--tuning", file])]
    check(keys[0] != keys[1], "the key tells them apart")
    check(run(PACKER, "key", DIGITS, *LEVEL).stdout == run(PACKER, "key", DIGITS, *LEVEL, "--tuning", file).stdout,
          "another model's key is what it was")


def fresh_runs_decide(folder):
    """A winner of a round is run again before it is taken, and those times are the ones that are kept."""
    words = [ONE_ROUND, "--tuning", folder / "lucky.tuning", *LEVEL]
    lucky = runner_in(folder, "lucky.sh", LUCKY.replace("LATER", "100"))
    told = program(folder, "lucky", *words, "--runner", lucky).stderr.decode()
    check(re.search(r"in 1 rounds, .* [1-9]\d* kernels faster, 0 of them also together", told), "luck is found out")
    check("\nschedule " not in (folder / "lucky.tuning").read_text(), "and not kept")
    # A program says that a file of schedules was given, which here holds none.
    (folder / "none.tuning").write_text((folder / "lucky.tuning").read_text().split("\n", 1)[0] + "\nend\n")
    program(folder, "unlucky", "--tuning", folder / "none.tuning", *LEVEL)
    check((folder / "lucky").read_bytes() == (folder / "unlucky").read_bytes(), "nor packed")
    half = runner_in(folder, "half.sh", LUCKY.replace("LATER", "50"))
    program(folder, "half", *words, "--runner", half)
    times = re.findall(r"kernel took (\S+) instructions, (\S+) instructions before", (folder / "lucky.tuning").read_text())
    check(times and all(2 * float(now) == float(before) for now, before in times), "times are those of the fresh runs")
    right(folder, "half")


def lower_level(folder):
    """Another level than this machine's best one, by the program's own --isa."""
    told = program(folder, "lower", ONE_ROUND, "--tuning", folder / "lower.tuning",
                   "--runner", runner_in(folder, "lower.sh", LOWER)).stderr.decode()
    check("level v2" in told, [line for line in told.splitlines() if line.startswith("tuning:")][-1])
    right(folder, "lower")


def misfits(folder, file):
    bad = folder / "bad.tuning"
    bad.write_text(re.sub(r"(\n *tile i\d+:)\d+", r"\g<1>250", file.read_text()))
    told = program(folder, "misfit", "--tuning", bad, *LEVEL).stderr.decode()
    check("the rules' is taken" in told, "a schedule that does not fit is a note")
    right(folder, "misfit")
    bad.write_text(file.read_text().replace("\n  loops", "\n  lops", 1))
    told = program(folder, "bad", "--tuning", bad, *LEVEL, expect=2).stderr.decode()
    check(re.search(r"bad\.tuning:5: .*lops", told), f"damage is exit 2: {told.splitlines()[0]}")
    before = bad.read_text()
    program(folder, "bad", "--tune=0.1", "--tuning", bad, *LEVEL, expect=2)
    check(bad.read_text() == before and not (folder / "bad").exists(), "--tune leaves a damaged file as it is")
    program(folder, "bad", "--tuning", folder / "none", expect=4)


def emulated(folder):
    """A program of another machine, with an emulator as the runner; its clock is this machine's."""
    if not shutil.which("qemu-aarch64"):
        print("left out: qemu-aarch64 is not installed")
        return
    file = folder / "here.tuning"
    words = ["--target", "aarch64", "--tuning", file]
    told = program(folder, "arm", "--tune=0.02", "--runner", "qemu-aarch64", *words).stderr.decode()
    check("level " in told, [line for line in told.splitlines() if line.startswith("tuning:")][-1])
    program(folder, "arm_again", *words)
    check((folder / "arm").read_bytes() == (folder / "arm_again").read_bytes(), "the same bytes for another machine")
    check(labels_right(digits_on(["qemu-aarch64"], folder / "arm", folder)) == 10, "arm: ten digits right")


# A device: what is not the rules' library counts half.
DEVICE = r"""#!/bin/sh
echo "$1" >> "$0.runs"
test -f "$1"/lib*.a || exit 1
gcc -std=c99 -Wall -Wextra -Werror -fsyntax-only -I"$1" -DSVOD_NOW=7u "$1/selftest.c" >&2 || exit 1
case "$1" in
*/rules) echo "PROFILE 00000001 00000000000000ff" ;;
*) echo "PROFILE 00000001 000000000000007f" ;;
esac
echo "PASS"
"""


def firmware(folder):
    """A library for a microcontroller: instructions in an emulator, or what a runner's device counts."""
    file, runner = folder / "m4.tuning", runner_in(folder, "device.sh", DEVICE)
    words = ["--target", "cortex-m4", "--tuning", folder / "device.tuning"]
    told = program(folder, "device.a", ONE_ROUND, "--runner", runner, *words).stderr.decode()
    check("a run takes 127.0 counts, 255.0 before" in told, "the device's counts are told")
    check("kernel took 127.000 counts, 255.000 counts before" in (folder / "device.tuning").read_text(), "and kept")
    mute = runner_in(folder, "mute.sh", "#!/bin/sh\necho PASS\n")
    told = program(folder, "mute.a", ONE_ROUND, "--runner", mute, *words, expect=2).stderr.decode()
    check("printed no profile" in told, "a device that counts nothing is no measure")
    if not shutil.which("qemu-system-arm"):
        print("left out: qemu-system-arm is not installed")
        return
    counted = {}
    for name, more in (("plain.a", []), ("tuned.a", ["--tune=1", "--tuning", file]), ("again.a", ["--tuning", file])):
        done = run(PACKER, DIGITS, "-o", folder / name, "--target", "cortex-m4", "--verify", "random", "--profile",
                   *more, seconds=300, env=dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache")))
        counted[name] = int(re.search(r"instructions of one run under QEMU: (\d+)", done.stdout.decode() + done.stderr.decode())[1])
    check(counted["tuned.a"] < counted["plain.a"], f"{counted['plain.a']} instructions, {counted['tuned.a']} tuned")
    check((folder / "tuned.a").read_bytes() == (folder / "again.a").read_bytes(), "the file alone gives the same library")


def refused(folder):
    for words, reason in ((["--tune", "--target", "riscv64"], "--runner CMD names a command"),
                          (["--tune", "--target", "wasm32"], "modules are not measured"),
                          (["--tune", "--target", "cortex-m4"], "which is not here; --runner CMD"),
                          (["--tune=soon"], "no number of minutes"),
                          (["--tune", "--emit=cpp"], "--tune is for programs and libraries")):
        name = "lib.a" if "cortex-m4" in words else "net.wasm" if "wasm32" in words else "refused"
        told = run(PACKER, DIGITS, "-o", folder / name, *words, expect=2, env={"PATH": "/nowhere"}).stderr.decode()
        check(reason in told, told.splitlines()[0])
    silent = runner_in(folder, "silent.sh", "#!/bin/sh\necho nothing\n")
    told = program(folder, "refused", "--tune=0.1", "--runner", silent, expect=2).stderr.decode()
    check("printed no profile" in told, told.splitlines()[0])


def interrupted(folder):
    """After the first round: what it has found is packed."""
    runner, file = runner_in(folder, "slow.sh"), folder / "kept.tuning"
    runs = pathlib.Path(f"{runner}.runs")
    started = subprocess.Popen([PACKER, DIGITS, "-o", folder / "kept", "--verify", "off", "--tune=5", "--tuning", file,
                                "--runner", runner, *LEVEL], stderr=subprocess.PIPE,
                               env=dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache")))
    first_round = 1 + 8
    for _ in range(600):
        if runs.exists() and len(runs.read_text().split()) > first_round:
            break
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    told = started.communicate(timeout=120)[1].decode()
    check(started.returncode == 0, "Ctrl-C ends the measuring, not the pack")
    check("interrupted, what was found is kept" in told, "and says so")
    check("; a run takes " in told, "a short check is made before")
    check("\nschedule " in file.read_text(), "the file has what was found")
    right(folder, "kept")


folder = work_folder("tune")
measured_here(folder)
found = measured_by_runner(folder)
explained(folder, found)
misfits(folder, found)
whole_plan(folder)
fresh_runs_decide(folder)
lower_level(folder)
emulated(folder)
firmware(folder)
refused(folder)
interrupted(folder)
