#!/usr/bin/env python3
"""The plan cache: hits for the same graph whatever its names, and for other weights of which all is true that the plan
took for granted; never for another graph, never for a damaged entry.

Every packed file is compared with one that was packed without a cache. `--long` kills a hundred packs and flips a bit in a
hundred entries instead of a few, draws weights for all kinds of models, has fast forms of convolutions and all CPU levels.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import random_tensor, small_cnn, small_mlp
from weighted_models import MODELS, Weights
from packing import LEAST_LEVEL, LONG, PACKER, check, pack, run, work_folder

ROUNDS = 100 if LONG else 3


def renamed(plain):
    return f"other/{plain}.7" if plain else plain


# What packs say. Convolutions as they are written compile in a third of the time; their fast forms are for --long.
ACCURACY, OTHER_ACCURACY, OTHER_TARGET = ("fast", "exact", "x86-64-v3") if LONG else ("exact", "fast", "x86-64")
WORDS = (*(() if LONG else LEAST_LEVEL), "--accuracy", ACCURACY)


def words_of(options):
    """Those words for which the options have no other."""
    return [word for at in range(0, len(WORDS), 2) if WORDS[at] not in options for word in WORDS[at:at + 2]]


def cached(folder, model, output, *options):
    """Packs with the folder's cache; what --json says of it."""
    summary = output.with_suffix(".json")
    environment = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"))
    pack(model, output, f"--json={summary}", *words_of(options), *options, env=environment)
    return json.loads(summary.read_text())["cache"]


def plain(model, output, *options):
    """The bytes of a pack without a cache."""
    pack(model, output, "--no-cache", *words_of(options), *options)
    return output.read_bytes()


def cache(folder, *words, expect=0):
    return run(PACKER, "cache", *words, "--cache-dir", folder / "cache", expect=expect).stdout.decode()


def hits(folder):
    model, other = folder / "cnn.onnx", folder / "renamed.onnx"
    model.write_bytes(small_cnn())
    other.write_bytes(small_cnn(renamed, "another", "someone else"))
    first, second = cached(folder, model, folder / "first"), cached(folder, model, folder / "second")
    check(first["plan"] == "miss" and first["kernels_compiled"] > 0, f"the first pack: {first}")
    check(second["plan"] == "hit" and second["kernels_compiled"] == 0, f"the second one: {second}")
    want = plain(model, folder / "cold")
    check((folder / "first").read_bytes() == want, "the first pack has the bytes of one without a cache")
    check((folder / "second").read_bytes() == want, "and so has the second one")
    names = cached(folder, other, folder / "renamed")
    check(names["plan"] == "hit" and names["kernels_compiled"] == 0, f"other names: {names}")
    check((folder / "renamed").read_bytes() == plain(other, folder / "renamed_cold"),
          "with other names the bytes are those of a pack without a cache, too")
    info = run(folder / "renamed", "--info").stdout.decode()
    check("other/first.7" in info and "other/x.7" in info, "and the program says the new names")
    library = cached(folder, model, folder / "libcnn.a")
    check(library["plan"] == "hit", f"a library has the same plan: {library}")
    check((folder / "libcnn.a").read_bytes() == plain(model, folder / "libcold.a"),
          "and the bytes of one without a cache")


def misses(folder):
    """A change that matters to the plan is another plan, and another key."""
    model = folder / "cnn.onnx"
    for options in (["--accuracy", OTHER_ACCURACY], ["--target", OTHER_TARGET], ["--search-budget", "0"], ["-Os"]):
        what = cached(folder, model, folder / "changed", *options)
        check(what["plan"] == "miss", f"{' '.join(options)}: {what}")
    for options in (["--print-after", "plan"], ["--schedule", "none.txt"]):
        (folder / "none.txt").write_text("\n")
        if options[0] == "--schedule":
            options[1] = folder / "none.txt"
        what = cached(folder, model, folder / "asked", *options)
        check(what["plan"] == "off", f"{options[0]} asks the passes: {what}")


def other_weights(folder):
    """Every kind of model with weights that differ a little, and with some of which a fact is not true."""
    for name in MODELS if LONG else ("quantised",):
        build = MODELS[name]
        first, other, same = (folder / f"{name}_{which}.onnx" for which in ("first", "other", "equal"))
        first.write_bytes(build(Weights()))
        other.write_bytes(build(Weights(noise=0.01)))
        same.write_bytes(build(Weights(equal=True)))
        cached(folder, first, folder / "first")
        what = cached(folder, other, folder / "other")
        check(what["plan"] == "hit" and what["kernels_compiled"] == 0, f"{name} with other weights: {what}")
        check((folder / "other").read_bytes() == plain(other, folder / "other_cold"), "its bytes are those of a cold pack")
        what = cached(folder, same, folder / "equal")
        check(what["plan"] == "miss", f"{name} with weights that are one number: {what}")
        check((folder / "equal").read_bytes() == plain(same, folder / "equal_cold"), "its bytes are right, too")


def sets(folder):
    model, several = folder / "mlp.onnx", ["--entry", "one:a=4x24,b=4x16", "--entry", "two:a=8x24,b=8x16"]
    model.write_bytes(small_mlp())
    cached(folder, model, folder / "sets", *several)
    what = cached(folder, model, folder / "again", *several)
    check(what["plan"] == "hit", f"several sets of shapes: {what}")
    check((folder / "again").read_bytes() == plain(model, folder / "sets_cold", *several), "with equal bytes")


def entries(folder, kinds=("plan", "obj", "program")):
    return sorted(p for kind in kinds for p in (folder / "cache" / kind).glob("*/*"))


def damage(folder, rng):
    """One bit of each entry in turn: never a wrong result."""
    model, want = folder / "cnn.onnx", (folder / "cold").read_bytes()
    for round in range(ROUNDS):
        files = entries(folder, [("plan",), ("program",), ("plan", "obj", "program")][round % 3])
        file = rng.choice(files)
        raw = bytearray(file.read_bytes())
        at = rng.randrange(8 * len(raw))
        raw[at // 8] ^= 1 << at % 8
        file.write_bytes(raw)
        told = cache(folder, "verify", "--dry-run", expect=4)
        check("1 of them damaged" in told, f"bit {at} of {file.parent.parent.name}: verify tells it")
        cached(folder, model, folder / "damaged")
        check((folder / "damaged").read_bytes() == want, "and a pack gives the right bytes")
        if file.exists() and file.read_bytes() == raw:
            file.unlink()  # of another pack: nobody asked for it
    cache(folder, "clear")
    cached(folder, model, folder / "damaged")
    file = entries(folder, ("plan",))[0]
    file.write_bytes(file.read_bytes()[:-1])
    check(cached(folder, model, folder / "damaged")["plan"] == "miss", "a plan that is cut is a miss")
    file.write_bytes(file.read_bytes() + b"x")
    told = cache(folder, "verify", expect=4)
    check("removed" in told and not file.exists(), f"verify removes what is damaged: {told.strip()}")
    check("none is damaged" in cache(folder, "verify"), "and then finds nothing")


def at_once(folder):
    """Eight packs of one model: one of them plans."""
    cache(folder, "clear")
    model, want = folder / "cnn.onnx", (folder / "cold").read_bytes()
    environment = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"))
    started = [subprocess.Popen([PACKER, model, "-o", folder / f"at_once{i}", "--verify", "off", "-q", *WORDS,
                                 f"--json={folder / f'at_once{i}.json'}"], env=environment) for i in range(8)]
    check([p.wait(300) for p in started] == [0] * 8, "eight packs at once all end well")
    check(all((folder / f"at_once{i}").read_bytes() == want for i in range(8)), "with the same bytes")
    states = [json.loads((folder / f"at_once{i}.json").read_text())["cache"]["plan"] for i in range(8)]
    check(sorted(states) == ["hit"] * 7 + ["miss"], f"and one of them has planned: {states}")


def killed(folder, rng):
    """kill -9 at any moment leaves no lock that holds, and no entry that is wrong."""
    model, want = folder / "cnn.onnx", (folder / "cold").read_bytes()
    environment = dict(os.environ, SVOD_CACHE_DIR=str(folder / "cache"))
    cache(folder, "clear")
    start = time.monotonic()
    cached(folder, model, folder / "timed")
    whole = time.monotonic() - start
    for _ in range(ROUNDS):
        cache(folder, "clear")
        process = subprocess.Popen([PACKER, model, "-o", folder / "killed", "--verify", "off", "-q", *WORDS],
                                   env=environment)
        time.sleep(rng.uniform(0, whole))
        process.send_signal(signal.SIGKILL)
        process.wait()
        start = time.monotonic()
        cached(folder, model, folder / "after")
        took = time.monotonic() - start
        check((folder / "after").read_bytes() == want and took < 10 * whole + 10,
              f"after a kill a pack is right, in {took:.1f} s of {whole:.1f}")
        cache(folder, "verify")


def stats(folder):
    told = json.loads(run(PACKER, "cache", "stats", "--json", "--cache-dir", folder / "cache").stdout)
    files = [p for kind in ("plan", "obj", "program") for p in (folder / "cache" / kind).glob("*/*")]
    check(told["entries"] == len(files) and told["bytes"] == sum(p.stat().st_size for p in files),
          f"stats count what is there: {told['entries']} entries")
    check(told["plans"]["entries"] == len(entries(folder, ("plan",))) > 0, "and the plans among them")


def main():
    folder, rng = work_folder("plan_cache"), random.Random(9)
    hits(folder)
    misses(folder)
    other_weights(folder)
    sets(folder)
    stats(folder)
    damage(folder, rng)
    at_once(folder)
    killed(folder, rng)


if __name__ == "__main__":
    sys.exit(main())
