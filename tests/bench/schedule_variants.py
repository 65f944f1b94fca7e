"""Other schedules of a packed model's kernels, made from what --emit=schedule prints, for --schedule to take.

Each is drawn from the fields of KernelSchedule: the order of loops, the register tile, how many sums, what is
written out, what is fetched ahead. Lanes, dots and what the packer proved stay as they are.
"""
import random
import re

COUNTS = (1, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16)
# Of the tile, in vectors of the text; one of 16 floats is four registers of 128 bits.
MOST_POINTS = {"v2": 8, "v3": 12, "v4": 28}


class Kernel:
    """A kernel and its schedule: lines of both, as printed."""

    def __init__(self, name, lines):
        at = next(i for i, line in enumerate(lines) if line.startswith("schedule "))
        self.name, self.kernel, self.schedule = name, lines[:at], lines[at + 1:]
        self.digest = lines[at].split()[1]
        axes = next((line for line in self.kernel if line.startswith("  axes")), "")
        self.extents = {a: int(n) for a, n in re.findall(r"(i\d+):(\d+)", axes)}
        self.joined = any(line.startswith("  part ") for line in self.kernel)
        self.in_parts = "    in parts" in self.schedule

    def words(self, head):
        return next((line.split() for line in self.schedule if line.startswith(f"    {head}")), None)


def read(text):
    """The kernels of a text by their order; those that are several joined ones have no schedule to vary."""
    kernels, lines = [], text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("kernel ")] + [len(lines)]
    for begin, end in zip(starts, starts[1:]):
        kernels.append(Kernel(lines[begin].split()[1], lines[begin + 1:end]))
    return kernels


def shuffled(draw, axes):
    axes = list(axes)
    draw.shuffle(axes)
    return axes


def other_order(draw, kernel, head, lane, keep):
    """The loops of a line in another order: one loop moves. Its lane axis is no loop."""
    words = kernel.words(head)
    if words is None or draw.random() < keep:
        return words
    loops = [a for a in words[1:] if a != lane and kernel.extents.get(a, 1) > 1]
    if len(loops) < 2:
        return words
    moved = draw.choice(loops)
    rest = [a for a in words[1:] if a != moved]
    rest.insert(draw.randrange(len(rest) + 1), moved)
    return [head, *rest]


def other_tile(draw, kernel, level, lane):
    outer = [a for a in kernel.words("outer")[1:] if a != lane and kernel.extents.get(a, 1) > 1]
    limits = {}
    for line in kernel.schedule:
        words = line.split()
        if words[:1] == ["chunk"] and kernel.in_parts:
            limits[words[1]] = int(words[3])
    tile, points = [], 1
    for axis in draw.sample(outer, min(len(outer), draw.choice((0, 1, 1, 2, 2)))):
        most = min(limits.get(axis, kernel.extents[axis]), MOST_POINTS.get(level, 28) // points)
        count = draw.choice([c for c in COUNTS if c <= most] or [1])
        if count > 1:
            tile.append(f"{axis}:{count}")
            points *= count
    return tile


def level_lines(draw, kernel, level, lines, lane):
    """The lines of one level, changed."""
    takes_tile = not any(re.match(r"  s\d+ = (scatter|sort)", line) for line in kernel.kernel)
    tile = next((line for line in lines if line.startswith("    tile")), None)
    out = []
    if takes_tile and draw.random() < 0.75:
        made = other_tile(draw, kernel, level, lane)
        tile = f"    tile {' '.join(made)}" if made else None
    if tile:
        out.append(tile)
    for line in lines:
        if line.startswith("    tile"):
            continue
        words = line.split()
        if words[1:2] == ["unroll"] and "off" not in words and draw.random() < 0.35:
            whole = draw.choice((0, 32, 128))
            line = f"    {words[0]} unroll {whole} {min(whole, 32)} 16 by {draw.choice((1, 2, 4, 8))}"
        elif words[1:2] == ["sums"] and draw.random() < 0.4:
            line = f"    {words[0]} sums {draw.choice((1, 2, 4, 8))} rounds {words[4]}"
        elif words[1:2] in (["fetch"], ["shortest"], ["columns"]) or words[:1] == ["looped"]:
            if draw.random() < 0.4:
                continue
        out.append(line)
    return out


def vary(kernel, seed, fetches=True):
    """The lines of another schedule of this kernel; its own for seed 0. `fetches`: what the packer fetches ahead may
    stay; with some tiles and orders it would fetch other panels, and refuses these."""
    if seed == 0 or kernel.joined:
        return kernel.schedule
    draw = random.Random(f"{kernel.digest} {seed}")
    lane = (kernel.words("lane") or [None, None])[1]
    out, level, pending = [], None, []

    def flush():
        if level is not None:
            out.extend(level_lines(draw, kernel, level, pending, lane))
        pending.clear()

    for line in kernel.schedule:
        words = line.split()
        if line.startswith("  level "):
            flush()
            level = words[1]
            out.append(line)
        elif level is not None:
            pending.append(line)
        elif words[:1] == ["outer"] and not kernel.in_parts:
            out.append("    " + " ".join(other_order(draw, kernel, "outer", lane, 0.6)))
        elif re.fullmatch(r"s\d+", words[0] if words else "") and reorders(kernel, words[0]):
            out.append("    " + " ".join(other_order(draw, kernel, words[0], lane, 0.6)))
        else:
            out.append(line)
    flush()
    return out if fetches else [line for line in out if " fetch " not in line]


def reorders(kernel, stage):
    """Whether the loops of a stage may change places: of a sum or a greatest."""
    line = next(line for line in kernel.kernel if line.startswith(f"  {stage} = "))
    return " reduce " in line and " arg" not in line


def text_of(kernel, lines):
    return "\n".join([f"schedule {kernel.digest}", *lines]) + "\n"
