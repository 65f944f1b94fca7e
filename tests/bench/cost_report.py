"""How well predicted times rank measured ones: Spearman's correlation over all pairs, within each kernel's schedules,
and the pairs that are misjudged most. Fits columns of the machine's row.
"""
import collections
import json
import math
import pathlib
import statistics
import subprocess

# A kernel's schedules are ranked where it has so many, and where the slowest takes so much longer than the fastest:
# below that the differences are the measurement's own.
FEWEST_SCHEDULES = 5
LEAST_SPREAD = 1.10


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    out = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in range(at, end + 1):
            out[order[i]] = (at + end) / 2
        at = end + 1
    return out


def spearman(a, b):
    x, y = ranks(a), ranks(b)
    mx, my = statistics.mean(x), statistics.mean(y)
    over = sum((i - mx) * (j - my) for i, j in zip(x, y))
    under = math.sqrt(sum((i - mx) ** 2 for i in x) * sum((j - my) ** 2 for j in y))
    return over / under if under > 0 else 0.0


def kernel_digests(path):
    """{name: digest}"""
    out, name = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("kernel "):
            name = line.split()[1]
        elif line.startswith("schedule ") and name not in out:
            out[name] = line.split()[1]
    return out


class Pairs:
    """Measured (kernel, schedule) pairs with what the tool predicts for them."""

    def __init__(self, folder, tool):
        rows = json.loads((folder / "times.json").read_text())
        files, self.measured, self.kernel_of, self.code = [], {}, {}, {}
        for program in sorted({row["program"] for row in rows}):
            sizes = json.loads((folder / f"{program}.json").read_text())["bytes"]
            text = folder / f"{program}.txt"
            files.append(f"{text}={sizes['weights'] + sizes['arena']}")
            for name, digest in kernel_digests(text).items():
                self.kernel_of[str(text), name] = (program.rsplit("-", 1)[0], digest)
            for name, code in json.loads((folder / f"{program}.code").read_text()).items():
                self.code[str(text), *name.split()] = code
        for row in rows:
            self.measured[str(folder / f"{row['program']}.txt"), row["kernel"], row["level"]] = row["us"]
        self.tool = subprocess.Popen([str(tool), *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def predict(self, columns=None, parts=False):
        """{pair: us}, and with parts {pair: text}."""
        words = [f"{name}={value}" for name, value in (columns or {}).items()]
        self.tool.stdin.write(" ".join(words + ["parts"] * parts) + "\n")
        self.tool.stdin.flush()
        out, texts = {}, {}
        for line in self.tool.stdout:
            if line == "end\n":
                break
            field = line.rstrip("\n").split(" ", 4)
            key = tuple(field[:3])
            if key in self.measured:
                out[key], texts[key] = float(field[3]), field[4] if parts else ""
        return (out, texts) if parts else out

    def by_kernel(self, keys):
        groups = collections.defaultdict(dict)
        for key in keys:
            # Schedules that make the same text are one, timed several times.
            groups[self.kernel_of[key[:2]], key[2]].setdefault(self.code[key], []).append(key)
        return groups

    def within(self, predicted, level):
        """[(correlation, spread, kernel)] of the kernels of one level."""
        out = []
        for (kernel, of_level), schedules in self.by_kernel(predicted).items():
            if of_level != level or len(schedules) < FEWEST_SCHEDULES:
                continue
            times = [min(self.measured[k] for k in keys) for keys in schedules.values()]
            guesses = [predicted[keys[0]] for keys in schedules.values()]
            out.append((spearman(times, guesses), max(times) / min(times), kernel, len(times)))
        return out

    def distinct(self, predicted, level):
        """One key for each schedule of each kernel."""
        return [min(keys, key=self.measured.__getitem__) for (_, of_level), schedules in self.by_kernel(predicted).items()
                if of_level == level for keys in schedules.values()]

    def levels(self, predicted):
        return sorted({key[2] for key in predicted})

    def report(self, worst=12):
        predicted, parts = self.predict(parts=True)
        lines = ["| level | pairs | Spearman | kernels ranked | within a kernel, median | kernels of small spread | "
                 "error, median | schedule chosen, time of the best |", "|---|---|---|---|---|---|---|---|"]
        for level in self.levels(predicted):
            keys = self.distinct(predicted, level)
            over_all = spearman([self.measured[k] for k in keys], [predicted[k] for k in keys])
            inside = self.within(predicted, level)
            wide = [row for row in inside if row[1] >= LEAST_SPREAD]
            error = statistics.median(abs(math.log(predicted[k] / self.measured[k])) for k in keys)
            lines.append(f"| {level} | {len(keys)} | {over_all:.3f} | {len(wide)} | "
                         f"{statistics.median(row[0] for row in wide):.3f} | {len(inside) - len(wide)} | "
                         f"{100 * (math.exp(error) - 1):.0f} % | {self.chosen(predicted, level):.3f} |")
        lines += ["", "misjudged most: measured / predicted us"]
        miss = {k: math.log(self.measured[k] / predicted[k]) for k in predicted}
        for key in sorted(miss, key=lambda k: -abs(miss[k]))[:worst]:
            lines.append(f"  {pathlib.Path(key[0]).stem} {key[1]} {key[2]}: {self.measured[key]:.2f} / {parts[key]}")
        lines += ["", "kernels ranked worst: correlation, slowest over fastest"]
        for level in self.levels(predicted):
            wide = sorted(row for row in self.within(predicted, level) if row[1] >= LEAST_SPREAD)
            for correlation, spread, kernel, count in wide[:worst // 2]:
                names = [k[1] for k in predicted if self.kernel_of[k[:2]] == kernel and k[0].endswith(f"{kernel[0]}-0.txt")]
                lines.append(f"  {level} {kernel[0]} {names[0] if names else kernel[1][:8]}: {correlation:.2f}, {spread:.2f}, "
                             f"{count} schedules")
        return lines

    def chosen(self, predicted, level):
        """Geometric mean over kernels: the fastest schedule's time over that of the one predicted to be fastest."""
        logs = []
        for (_, of_level), schedules in self.by_kernel(predicted).items():
            if of_level != level or len(schedules) < 2:
                continue
            times = {keys[0]: min(self.measured[k] for k in keys) for keys in schedules.values()}
            logs.append(math.log(min(times.values()) / times[min(times, key=predicted.__getitem__)]))
        return math.exp(statistics.mean(logs))

    def loss(self, columns):
        """What fit() makes small: errors of time, and ranks within kernels that are wrong."""
        predicted = self.predict(columns)
        errors = [abs(math.log(self.measured[k] / predicted[k])) for k in predicted]
        inside = [row[0] for level in self.levels(predicted) for row in self.within(predicted, level)
                  if row[1] >= LEAST_SPREAD]
        return statistics.mean(errors) + 1 - statistics.mean(inside)

    def fit(self, names, starts=None):
        """Each column in turn by factors that shrink, while that helps."""
        values = {}
        for word in names:
            name, _, start = word.partition("=")
            values[name] = float(start or 1)
        best = self.loss(values)
        for factor in (2.0, 1.4, 1.15, 1.05):
            improved = True
            while improved:
                improved = False
                for name in values:
                    for scale in (factor, 1 / factor):
                        trial = {**values, name: values[name] * scale}
                        loss = self.loss(trial)
                        if loss < best - 1e-4:
                            best, values, improved = loss, trial, True
        print(" ".join(f"{name}={value:.3g}" for name, value in values.items()), f"loss {best:.4f}")
