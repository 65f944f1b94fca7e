#!/usr/bin/env python3
"""cache merge: caches and tuning files of several machines in one; tune --shard: what several machines find together is
what one finds alone."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import small_cnn, small_mlp
from packing import DIGITS, PACKER, check, run, work_folder

LEVEL = ["--target", "x86-64-v3"]
# What a kernel takes is decided by its name and its schedule's program, so that every machine measures the same: the
# rules' program counts 100 for each kernel, any other 10.
RUNNER = r"""#!/bin/sh
case "$1" in
*/rules) count=100 ;;
*) count=10 ;;
esac
"$1" --profile=json --min-time 0.01 | sed 's/us": [0-9.]*/us": '$count'/'
"""


def pack(model, output, folder, *options):
    summary = output.with_suffix(".json")
    run(PACKER, model, "-o", output, "--verify", "off", "-q", "--cache-dir", folder, f"--json={summary}", *options,
        seconds=300)
    return json.loads(summary.read_text())["cache"], output.read_bytes()


def merge(cache, *words, expect=0):
    done = run(PACKER, "cache", "merge", *words, "--cache-dir", cache, expect=expect)
    return done.stdout.decode() + done.stderr.decode()


def files_of(cache):
    return {str(p.relative_to(cache)): p for kind in ("obj", "plan", "program") for p in (cache / kind).glob("*/*")}


def caches(folder):
    one, two, all_of_them = folder / "one", folder / "two", folder / "all"
    models = folder / "cnn.onnx", folder / "mlp.onnx"
    models[0].write_bytes(small_cnn())
    models[1].write_bytes(small_mlp())
    _, first = pack(models[0], folder / "first", one)
    _, second = pack(models[1], folder / "second", two)
    names = set(files_of(one)) | set(files_of(two))
    told = merge(all_of_them, one, two, "--dry-run")
    check(f"{len(names)} entries" in told and "would be added" in told and not files_of(all_of_them), told.strip())
    told = merge(all_of_them, one, two)
    check(set(files_of(all_of_them)) == names, told.strip())
    for model, want in zip(models, (first, second)):
        facts, got = pack(model, folder / "again", all_of_them)
        check(facts["plan"] == "hit" and facts["kernels_compiled"] == 0 and got == want, f"{model.name}: {facts}")
    told = merge(all_of_them, one)
    check(told.startswith("0 entries, 0 bytes added") and f"{len(files_of(one))} were there" in told, told.strip())
    broken = next(iter(files_of(one).values()))
    broken.write_bytes(broken.read_bytes()[:-1])
    told = merge(folder / "half", one)
    check("has 1 damaged entries, which are left out" in told and len(files_of(folder / "half")) == len(files_of(one)) - 1,
          told.splitlines()[0])
    told = json.loads(run(PACKER, "cache", "merge", two, "--json", "--cache-dir", folder / "half").stdout)
    check(told["action"] == "merge" and told["entries"] > 0, f"--json: {told['entries']} entries")


def refused(folder):
    check("are missing" in merge(folder / "x", expect=2), "nothing to merge")
    check("nowhere cannot be opened" in merge(folder / "x", folder / "nowhere", expect=4), "a folder that is not there")
    file = folder / "a.tuning"
    file.write_text("svod-pack tuning 1\nend\n")
    check("--tuning FILE says which one" in merge(folder / "x", file, expect=2), "a tuning file needs --tuning")
    damaged = folder / "damaged.tuning"
    damaged.write_text("svod-pack tuning 1\n")
    told = merge(folder / "x", file, damaged, "--tuning", folder / "new.tuning", expect=2)
    check("damaged.tuning:1" in told and not (folder / "new.tuning").exists(), told.splitlines()[0])
    (folder / "empty").mkdir()
    check("has no entries of a cache" in merge(folder / "x", folder / "empty"), "an empty folder is a note")
    told = run(PACKER, "cache", "stats", "more", expect=2).stderr.decode()
    check("unexpected argument 'more'" in told, told.splitlines()[0])


def tune(folder, file, *options, expect=0, runner=None):
    words = ["--runner", runner] if runner else []
    return run(PACKER, "tune", folder / "cnn.onnx", "--tuning", folder / file, "--cache-dir", folder / "tune", *LEVEL, *words, *options,
               expect=expect, seconds=300)


def schedules(file):
    """(machine, kernel) -> schedule, without the times."""
    out, machine, kernel = {}, "", ""
    for line in file.read_text().splitlines():
        if line.startswith("machine "):
            machine = line
        elif line.startswith("schedule "):
            kernel = line
        elif line.startswith("  "):
            out[machine, kernel] = out.get((machine, kernel), "") + line + "\n"
    return out


def shards(folder):
    runner = folder / "runner.sh"
    runner.write_text(RUNNER)
    runner.chmod(0o755)
    # One round: of each program one new schedule, which wins everywhere.
    told = tune(folder, "alone.tuning", "--tune=0.001", runner=runner).stderr.decode()
    check(re.search(r"tuning: \d+ schedules in 1 rounds", told), told.splitlines()[-1])
    shares = [folder / f"share{i}.tuning" for i in (1, 2, 3)]
    for i, share in enumerate(shares):
        tune(folder, share.name, "--tune=0.001", "--shard", f"{i + 1}/3", runner=runner)
    alone = schedules(folder / "alone.tuning")
    found = [schedules(share) for share in shares]
    check(len(alone) > 2 and sum(map(len, found)) == len(alone), f"{[len(f) for f in found]} of {len(alone)} kernels")
    check(all(len(f) < len(alone) for f in found), "each share is a part")
    merge(folder / "tune", *shares, "--tuning", folder / "merged.tuning")
    check(schedules(folder / "merged.tuning") == alone, "merged they are what one machine finds")
    merge(folder / "tune", *reversed(shares), "--tuning", folder / "other_order.tuning")
    check((folder / "other_order.tuning").read_bytes() == (folder / "merged.tuning").read_bytes(), "in any order")
    packed = [pack(folder / "cnn.onnx", folder / name, folder / "tune", "--tuning", folder / f"{name}.tuning", *LEVEL)[1]
              for name in ("alone", "merged")]
    check(packed[0] == packed[1], "and packs with them have the same bytes")
    run(PACKER, folder / "cnn.onnx", "-o", folder / "right", "--verify", "random", "--tuning", folder / "merged.tuning",
        "--cache-dir", folder / "tune", *LEVEL)
    before = (folder / "merged.tuning").read_bytes()
    merge(folder / "tune", shares[0], "--tuning", folder / "merged.tuning")
    check((folder / "merged.tuning").read_bytes() == before, "merging again changes nothing")
    # Of two findings the one that gained more stays.
    text = shares[0].read_text()
    better = re.sub(r"kernel took [0-9.]+ us", "kernel took 1.000 us", text)
    check(better != text, "a share with better times")
    (folder / "better.tuning").write_text(better)
    merge(folder / "tune", shares[0], folder / "better.tuning", "--tuning", folder / "both.tuning")
    check((folder / "both.tuning").read_text() == better, "of two findings the better one stays")
    many = tune(folder, "nothing.tuning", "--tune=0.001", "--shard", "40/40", runner=runner)
    check("0 schedules in 0 rounds" in many.stderr.decode(), "a share without a kernel is an empty file")
    merge(folder / "tune", folder / "nothing.tuning", "--tuning", folder / "merged.tuning")
    check((folder / "merged.tuning").read_bytes() == before, "that merges like any other")


def tune_refused(folder):
    for words, reason in ((["--shard", "0/4"], "is no share"), (["--shard", "5/4"], "is no share"),
                          (["--shard", "4"], "is not I/N"), (["--shard", "a/b"], "is not I/N"),
                          (["-o", folder / "x"], "packs nothing")):
        told = tune(folder, "refused.tuning", *words, expect=2).stderr.decode()
        check(reason in told and not (folder / "refused.tuning").exists(), told.splitlines()[0])
    told = run(PACKER, "tune", DIGITS, expect=2).stderr.decode()
    check("(--tuning FILE)" in told, told.splitlines()[0])
    told = run(PACKER, DIGITS, "-o", folder / "x", "--shard", "1/2", expect=2).stderr.decode()
    check("'--shard' is no option of pack" in told, told.splitlines()[0])


folder = work_folder("cache_merge")
caches(folder)
refused(folder)
shards(folder)
tune_refused(folder)
