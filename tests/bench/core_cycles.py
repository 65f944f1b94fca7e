#!/usr/bin/env python3
"""Clocks of a packed model's largest kernels on cores that are not here, against each core's peak and against what our
cost model predicts.

    tests/bench/core_cycles.py model.onnx --target aarch64
    tests/bench/core_cycles.py model.onnx --target aarch64 --cores neoverse-n1 --loops k5     # clocks of k5's loops
    tests/bench/core_cycles.py model.onnx --target aarch64 --variants 6 --keep FOLDER         # other schedules too

The program runs once under QEMU, which counts how often each instruction is executed. Consecutive instructions of one
count are a piece; LLVM's scheduling model of the core says how many clocks a round of each piece takes when it follows
itself, with all data in the first cache. A kernel's clocks are the sum of rounds times clocks. Its share of the peak is
the time that its multiply-adds alone would take in that model, over that.
"""
import argparse
import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import cost_pairs
import cost_report
import emulated
import instructions
import schedule_variants
from packing import BUILD, need, run
from scheduling_model import CORES, MCA, PRODUCTS, Model, assembly, row_of

# Pieces are looked at from the most executed on, until they hold this share of a kernel's instructions.
COVERED = 0.995
# Our cost without what the scheduling models do not know: launches, memory, caches.
NO_MEMORY = "launch_ns=0 memory_seen=0 memory_bytes_per_ns=1e9 caches_seen=0 streams_seen=0 unfetched_seen=0"

# `lines`: assembly, executed `rounds` times, from the address `begin` on.
Piece = collections.namedtuple("Piece", "begin rounds lines")


def functions_of(program, counts, triple):
    """{kernel and level: [(address, count, text)]} of executed instructions."""
    own, out, current = emulated.owners(program), collections.defaultdict(list), ""
    # An ELF file of a Cortex-M7 does not say enough for its floats to be read.
    core = ["--mcpu=" + row_of(CORES, triple)[-1]] if triple.startswith("thumb") else []
    text = run(emulated.OBJDUMP, "-d", "--no-show-raw-insn", *core, program, seconds=600).stdout.decode(errors="replace")
    for line in text.splitlines():
        if label := re.match(r"([0-9a-f]+) <(.*)>:$", line):
            current = own.get(int(label.group(1), 16), label.group(2))
        elif there := re.match(r"\s*([0-9a-f]+):\s+(.*)$", line):
            at = int(there.group(1), 16)
            if counts.get(at) and re.match(r"k\d+_", current):
                out[current].append((at, counts[at], there.group(2)))
    return out


def pieces_of(body):
    """Splits where the count changes, and around each loop."""
    ends, starts = set(), set()
    addresses = {at for at, _, _ in body}
    for at, _, text in body:
        to = re.search(r"(?:0x)?([0-9a-f]+) <", text)
        if re.match(r"(b|c[bs]|t[bn]|le|j|wls|dls)", text) and to:
            place = int(to.group(1), 16)
            if place in addresses and place <= at:
                starts.add(place)
                ends.add(at)
    out, last = [], None
    for at, count, text in body:
        if not out or count != out[-1].rounds or at in starts or last in ends:
            out.append(Piece(at, count, []))
        out[-1].lines.append(text)
        last = at
    return out


class Kernel:
    """What one kernel executes in a run."""

    def __init__(self, name, body, triple):
        self.name, self.level = name.split("_", 1)
        pieces = sorted(pieces_of(body), key=lambda p: -p.rounds * len(p.lines))
        self.instructions = sum(count for _, count, _ in body)
        self.pieces, seen = [], 0
        for piece in pieces:
            if seen >= COVERED * self.instructions:
                break
            self.pieces.append(piece._replace(lines=[assembly(line) for line in piece.lines]))
            seen += piece.rounds * len(piece.lines)
        self.covered = seen / self.instructions
        self.products = collections.Counter()
        for _, count, text in body:
            for product in row_of(PRODUCTS, triple):
                if re.match(product.pattern, text):
                    self.products[product] += count
                    break
        self.multiply_adds = sum(product.count * n for product, n in self.products.items())
        self.clocks, self.peak_clocks, self.by_piece = {}, {}, {}

    def price(self, model):
        each = model.clocks([piece.lines for piece in self.pieces])
        self.by_piece[model.core] = each
        total = sum(clocks * piece.rounds for clocks, piece in zip(each, self.pieces))
        self.clocks[model.core] = total / self.covered
        self.peak_clocks[model.core] = sum(n * model.clocks_each(product) for product, n in self.products.items())

    def share(self, core):
        return self.peak_clocks[core] / self.clocks[core]


def largest(kernels, count):
    return sorted(kernels, key=lambda k: -k.multiply_adds)[:count]


def measure(model, target, options, folder):
    """The model's kernels as a run executes them."""
    folder.mkdir(parents=True, exist_ok=True)
    program, counts = instructions.measure(model, target, options, folder)
    triple = target.row.triple
    return [Kernel(name, body, triple) for name, body in functions_of(program, counts, triple).items()]


class Costs:
    """Predictions of our cost model for the kernels of texts that --emit=schedule printed, for all their launches in a run."""

    def __init__(self, target, texts, launches):
        self.target, self.launches = target, launches
        self.tool = subprocess.Popen([str(BUILD / "tests" / "kernel_costs"), *(f"{text}=0" for text in texts)],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def predict(self, core):
        """{(text, kernel, level): us} on the core's own row of the machine table, or on the level's where it has none."""
        row = f"machine={core}" if core in machine_rows() else ""
        self.tool.stdin.write(f"target={self.target} {row} {NO_MEMORY}\n")
        self.tool.stdin.flush()
        out = {}
        for line in self.tool.stdout:
            if line == "end\n":
                break
            text, kernel, level, us = line.split()
            out[text, kernel, level] = float(us) * self.launches.get(kernel, 1)
        return out


def machine_rows():
    return set(re.findall(r'^MACHINE\("(.*?)"', (cost_pairs.ROOT / "compiler/support/machine.def").read_text(), re.M))


def schedules_of(model, target, options, path):
    done = run(BUILD / "svod-pack", model, "--target", target.alias, "--emit=schedule", "-q", *options, "-o", path, seconds=600)
    assert path.exists(), done.stderr
    return path


def launches_of(model, target, options, folder):
    """{kernel: launches in a run}."""
    done = run(BUILD / "svod-pack", model, "--target", target.alias, "--emit=fused", "--explain", "--json", *options,
               "-o", folder / "fused.txt", seconds=600)
    weakest = json.loads(done.stdout)["predicted"][0]
    out = collections.Counter()
    for kernel in weakest["kernels"]:
        out[kernel["name"]] += kernel["calls"]
    return out


def table(kernels, core, costs):
    """Lines of one core's table: its kernels, then their sum."""
    lines = [f"{core}", f"{'kernel':>12} {'million':>9} {'clocks':>10} {'per clock':>9} {'of peak':>7}  {'our cost':>10}"]
    for kernel in kernels:
        cost = costs.get((kernel.name, kernel.level))
        lines.append(f"{kernel.name + ' ' + kernel.level:>12} {kernel.multiply_adds / 1e6:9.2f} {kernel.clocks[core]:10.0f} "
                     f"{kernel.multiply_adds / kernel.clocks[core]:9.2f} {100 * kernel.share(core):5.1f} %  "
                     + (f"{cost:7.1f} us" if cost else "         -"))
    clocks, peak = (sum(of(k) for k in kernels) for of in (lambda k: k.clocks[core], lambda k: k.peak_clocks[core]))
    done = sum(k.multiply_adds for k in kernels)
    known = [(k.clocks[core], costs[k.name, k.level]) for k in kernels if (k.name, k.level) in costs]
    rank = f"{cost_report.spearman(*zip(*known)):.3f}" if len(known) > 2 else "-"
    lines.append(f"{'sum':>12} {done / 1e6:9.2f} {clocks:10.0f} {done / clocks:9.2f} {100 * peak / clocks:5.1f} %  "
                 f"rank correlation {rank}")
    return lines


def loops(kernel, core):
    """The pieces of a kernel that take most, with their code."""
    order = sorted(range(len(kernel.pieces)), key=lambda i: -kernel.by_piece[core][i] * kernel.pieces[i].rounds)
    for i in order[:3]:
        piece, clocks = kernel.pieces[i], kernel.by_piece[core][i]
        yield (f"{core} {kernel.name} at {piece.begin:x}: {piece.rounds} rounds of {len(piece.lines)} instructions, "
               f"{clocks:.2f} clocks each, {100 * clocks * piece.rounds / kernel.clocks[core]:.0f} % of the kernel")
        yield from (f"    {line}" for line in piece.lines)


def compare_variants(asked, target, options, cores, launches, folder):
    """Lines: how our cost ranks other schedules of each kernel, against the scheduling models."""
    texts, found = [], {}
    kernels = schedule_variants.read(schedules_of(asked.model, target, options, folder / "plain.txt").read_text())
    digests = {k.name: k.digest for k in kernels}
    for seed in range(asked.variants):
        program = folder / f"variant-{seed}"
        cost_pairs.pack_variant(asked.model, kernels, seed, program, target.alias, "obj")
        text = pathlib.Path(f"{program}.txt")
        texts.append(text)
        mine = largest(measure(asked.model, target, [*options, "--schedule", program.with_suffix(".schedules")],
                               folder / f"run-{seed}"), asked.kernels)
        for core in cores:
            for kernel in mine:
                kernel.price(Model(target.row.triple, core))
        found[text] = mine
    costs = Costs(target.alias, texts, launches)
    for core in cores:
        predicted = costs.predict(core)
        groups = collections.defaultdict(set)
        for text, mine in found.items():
            for kernel in mine:
                key = (str(text), kernel.name, kernel.level)
                if key in predicted:
                    groups[digests[kernel.name], kernel.level].add((kernel.clocks[core], predicted[key]))
        pairs = [pair for group in groups.values() for pair in group]
        wide = [g for g in groups.values() if len(g) >= cost_report.FEWEST_SCHEDULES
                and max(p[0] for p in g) >= cost_report.LEAST_SPREAD * min(p[0] for p in g)]
        inside = [cost_report.spearman(*zip(*sorted(group))) for group in wide]
        chosen = [min(p[0] for p in g) / min(g, key=lambda p: p[1])[0] for g in wide]
        yield (f"{core}: {len(pairs)} schedules, rank correlation {cost_report.spearman(*zip(*pairs)):.3f}; "
               f"within {len(wide)} kernels, median {statistics.median(inside) if inside else 0:.3f}; the best schedule's clocks over "
               f"the chosen one's {statistics.geometric_mean(chosen) if chosen else 1:.3f}")


def main():
    own, options = sys.argv[1:], []
    if "--" in own:
        own, options = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--target", default="aarch64")
    parser.add_argument("--cores", help="names as llvm-mca -mcpu takes them, with commas between")
    parser.add_argument("--kernels", type=int, default=10, help="the so many with most multiply-adds")
    parser.add_argument("--loops", metavar="KERNEL", help="the code of this kernel's dearest pieces")
    parser.add_argument("--variants", type=int, default=0, help="other schedules of all kernels to compare")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for programs, counts and texts")
    asked = parser.parse_args(own)
    target = instructions.Asked(asked.target, "")
    need(MCA, emulated.CLANG, emulated.LLD, emulated.OBJDUMP, target.row.emulator[0], "gcc")
    cores = asked.cores.split(",") if asked.cores else row_of(CORES, target.row.triple)
    with tempfile.TemporaryDirectory(prefix="svod-cycles-") as made:
        folder = (asked.keep or pathlib.Path(made)).resolve()
        kernels = largest(measure(asked.model, target, options, folder), asked.kernels)
        text = schedules_of(asked.model, target, options, folder / "schedules.txt")
        launches = launches_of(asked.model, target, options, folder)
        costs = Costs(target.alias, [text], launches)
        for core in cores:
            model = Model(target.row.triple, core)
            for kernel in kernels:
                kernel.price(model)
            predicted = {key[1:]: us for key, us in costs.predict(core).items()}
            print("\n".join(table(kernels, core, predicted)), flush=True)
            for kernel in kernels:
                if kernel.name == asked.loops:
                    print("\n".join(loops(kernel, core)))
        if asked.variants:
            print("\n".join(compare_variants(asked, target, options, cores, launches, folder)))


if __name__ == "__main__":
    sys.exit(main())
