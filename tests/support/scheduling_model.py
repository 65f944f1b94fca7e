"""Clocks of straight pieces of machine code on cores that are not here, by LLVM's scheduling models (llvm-mca).

A model knows ports, latencies and the window that a core looks ahead in. It takes every load from the first cache and
every branch as foreseen.
"""
import collections
import json
import re
import subprocess

from packing import need

MCA = "llvm-mca-19"
# Rounds of a piece that are let pass before its clocks count, so that the window has filled, and rounds that count.
WARM_ROUNDS, COUNTED_ROUNDS = 16, 32
# As many sums as hide the latency of a multiply-add on every core.
INDEPENDENT_SUMS = 16

# Beginning of a triple: an instruction that multiplies and adds, how many of a lane each, and one whose sum is register {d}.
Product = collections.namedtuple("Product", "pattern count sample")
PRODUCTS = {
    "aarch64": [Product(r"fml[as]\s+v\d+\.4s", 4, "fmla v{d}.4s, v30.4s, v31.s[0]"),
                Product(r"fml[as]\s+v\d+\.2s", 2, "fmla v{d}.2s, v30.2s, v31.s[0]"),
                Product(r"fmadd\s+s", 1, "fmadd s{d}, s30, s31, s{d}"),
                Product(r"[su]dot\s+v\d+\.4s", 16, "sdot v{d}.4s, v30.16b, v31.4b[0]"),
                Product(r"[su]mmla\s", 32, "smmla v{d}.4s, v30.16b, v31.16b"),
                Product(r"[su]ml(al|sl)2?\s+v\d+\.4s", 4, "smlal v{d}.4s, v30.4h, v31.4h"),
                Product(r"[su]m(ul|la)l2?\s+v\d+\.8h", 8, "smlal v{d}.8h, v30.8b, v31.8b")],
    "thumb": [Product(r"vfma(\.f32)?\s+s|vfma\.f32\s+s", 1, "vfma.f32 s{d}, s30, s31"),
              Product(r"vfma\.f32\s+q", 4, "vfma.f32 q{q}, q6, q7"),
              Product(r"smla[dx]\s", 2, "smlad r{r}, r8, r9, r{r}"),
              Product(r"(mla|smlabb|smlabt|smlatb|smlatt)\s", 1, "mla r{r}, r8, r9, r{r}")],
    "riscv": [Product(r"fmadd\.s\s", 1, "fmadd.s f{d}, f30, f31, f{d}"),
              Product(r"mulw?\s", 1, "mul x{x}, x30, x31")],
}
# Beginning of a triple: the cores that are asked about.
CORES = {"aarch64": ["cortex-a53", "cortex-a55", "cortex-a76", "neoverse-n1", "neoverse-n2"],
         "thumbv7em": ["cortex-m4", "cortex-m7"], "thumbv8m.main": ["cortex-m33"], "thumbv8.1m": ["cortex-m55"],
         "riscv64": ["sifive-u74"], "riscv32": ["sifive-e31"]}


def row_of(table, triple):
    found = next((row for begin, row in table.items() if triple.startswith(begin)), None)
    if found is None:
        raise SystemExit(f"no scheduling models for {triple}")
    return found


def assembly(text):
    """What llvm-objdump printed, as an assembler reads it: places in the program become a name."""
    text = re.sub(r"\s*(//|@|#\s).*$", "", text)
    text = re.sub(r"(0x)?[0-9a-f]+ <[^>]*>", "target", text)
    return re.sub(r"^(adrp?\s+\w+, ).*", r"\1target", text)


class Model:
    """One core's scheduling model."""

    def __init__(self, triple, core):
        need(MCA)
        self.triple, self.core = triple, core
        self.rates = {}

    def totals(self, pieces, rounds):
        text = "".join(f"# LLVM-MCA-BEGIN p{i}\n" + "\n".join(piece) + "\n# LLVM-MCA-END\n"
                       for i, piece in enumerate(pieces))
        words = [MCA, f"-mtriple={self.triple}", f"-mcpu={self.core}", "-mattr=" + self.attributes(), "-json",
                 f"-iterations={rounds}", "-skip-unsupported-instructions=any"]
        done = subprocess.run(words, input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {done.stderr[-2000:]}")
        found = {region["Name"]: region["SummaryView"]["TotalCycles"] for region in json.loads(done.stdout)["CodeRegions"]}
        return [found.get(f"p{i}", 0) for i in range(len(pieces))]

    def attributes(self):
        """What the levels may use beyond the core's own instructions, so that all code can be read."""
        return {"aarch64": "+v8.2a,+dotprod,+i8mm"}.get(self.triple.split("-")[0], "")

    def clocks(self, pieces):
        """Clocks of one round of each piece, each one repeated behind itself: lists of lines of assembly."""
        if not pieces:
            return []
        early = self.totals(pieces, WARM_ROUNDS)
        late = self.totals(pieces, WARM_ROUNDS + COUNTED_ROUNDS)
        return [(b - a) / COUNTED_ROUNDS for a, b in zip(early, late)]

    def clocks_each(self, product):
        """Clocks of one such instruction among independent ones: the core's peak."""
        if product not in self.rates:
            lines = [product.sample.format(d=i, q=i % 6, r=i % 8, x=5 + i) for i in range(INDEPENDENT_SUMS)]
            self.rates[product] = self.clocks([lines])[0] / INDEPENDENT_SUMS
        return self.rates[product]
