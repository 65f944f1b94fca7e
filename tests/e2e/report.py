#!/usr/bin/env python3
"""--report: one page that holds what --json says, loads nothing, shows hostile names as text, and appears whole or not at all.
The verb report compares two packs in the same manner."""
import html.parser
import json
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import onnx_writer as onnx
from packing import BUILD, DIGITS, LEVEL, PACKER, SOURCE, check, run, work_folder

ENV = dict(os.environ, SVOD_CACHE_DIR=str(BUILD / "e2e" / "cache"))
HOSTILE = "</script><img src=x onerror=alert(1)>"


def packer(folder, *words, code=0):
    return run(PACKER, *words, expect=code, cwd=folder, env=ENV, seconds=300)


def embedded(page, name="pack"):
    begin = f'<script type="application/json" id="{name}">'
    at = page.index(begin) + len(begin)
    return page[at:page.index("</script>", at)]


class Elements(html.parser.HTMLParser):
    """Names and attributes of a page's elements, and the text that is seen."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text, self.last = [], "", ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.last = tag

    def handle_endtag(self, tag):
        self.last = ""

    def handle_data(self, data):
        if self.last not in ("script", "style"):
            self.text += data

    def count(self, tag, name=""):
        return sum(t == tag and name in (a.get("class") or "").split() + [""] for t, a in self.found)


def pack_page(folder, model, *words):
    done = packer(folder, model, "-o", "infer", "--report", "page.html", "--json",
                  *(words or ["--verify", "off"]))
    page = (folder / "page.html").read_text()
    said = json.loads(done.stdout)
    check(json.loads(embedded(page)) == said, f"{model.name}: the page holds what --json says")
    check("<" not in embedded(page), "and nothing in it ends its element")
    return page, said


def loads_nothing(page):
    check(not re.search("https?://", page), "the page has no address of another place")
    linked = [(tag, a) for tag, a in Elements(page).found if tag == "link" or {"src", "href", "srcset"} & set(a)]
    check(not linked and "@import" not in page and "url(" not in page, f"and loads nothing {linked or ''}")
    check("default-src 'none'" in page, "which it forbids, too")
    check(len(page) < 2 << 20, f"{len(page)} bytes")


def covered(slots, moment):
    """Bytes of the arena below slots that are alive, each up to its next multiple of 64."""
    end = total = 0
    for slot in sorted((s for s in slots if s["first"] <= moment <= s["last"]), key=lambda s: s["offset"]):
        last = slot["offset"] + (slot["bytes"] + 63) // 64 * 64
        total += max(0, last - max(end, slot["offset"]))
        end = max(end, last)
    return total


def facts(said):
    """What the page draws is in --json and fits the rest of it."""
    memory, size = said["memory"], said["bytes"]
    slots, moments = memory["slots"], memory["moments"]
    check(all(m["live"] == covered(slots, i) for i, m in enumerate(moments)), "bytes alive are those below the slots")
    check(max(m["live"] for m in moments) == size["arena_lower_bound"], "their most is the lower bound")
    check(all(s["offset"] + s["bytes"] <= size["temporaries"] and s["nodes"] for s in slots), "slots lie in the arena")
    check(memory["peak"] and set(memory["peak"]) <= {s["slot"] for s in slots}, f"slots of the peak: {memory['peak']}")
    check({m["launch"] for m in moments if "launch" in m} == set(range(said["kernels"])), "each launch has its moments")
    weights = said["weights"]
    check(all(w["nodes"] and w["offset"] + w["bytes"] <= size["weights"] for w in weights), "weights have ONNX nodes")
    for level in said["predicted"]:
        kernels, roofs = level["kernels"], level["roofs"]
        check(len(kernels) == said["kernels"] and all(k["bytes"] > 0 for k in kernels), f"{level['level']}: kernels")
        check(roofs["gflops"] > 0 and [m["name"] for m in roofs["memories"]][-1] == "memory", "with roofs above them")
    check(sum(k["flops"] * k["calls"] for k in said["predicted"][0]["kernels"]) // 2 == said["macs"], "flops are twice the MACs")


def graph(said):
    """The model's own graph, and how much of it there is to draw."""
    nodes, given = said["onnx"]["nodes"], [i["name"] for i in said["entries"][0]["inputs"]]
    check(len(nodes) == said["model"]["nodes"], f"{len(nodes)} nodes of the file")
    check(all(-len(said["onnx"]["inputs"]) <= maker < i for i, node in enumerate(nodes) for maker in node["inputs"]),
          "each reads what comes before it")
    names = {node["name"] for node in nodes}
    used = {name for kernel in said["predicted"][0]["kernels"] for name in kernel["nodes"]}
    check(used <= names, f"kernels' nodes are among them: {sorted(used - names)}")
    return len(nodes) + len(set(given) & set(said["onnx"]["inputs"])) + len(said["onnx"]["outputs"])


def hostile_model():
    nodes = [onnx.node("MatMul", ["x", "w"], ["a"], HOSTILE), onnx.node("Relu", ["a"], ["y"], "<!--")]
    return onnx.model(nodes, [onnx.value("x", [4, 8])], [onnx.value("y", [4, 8])], [onnx.random_tensor("w", [8, 8], 1)])


def failures(folder):
    before = sorted(folder.iterdir())
    for code, words in ((4, [DIGITS, "-o", "x", "--report", "no/such/folder/page.html"]), (4, [DIGITS, "-o", "x", "--report", "."]),
                        (8, [DIGITS, "-o", "x", "--report", "page.html", "--max-ram", "1K"]),
                        (0, [DIGITS, "-o", "x", "--report", "page.html", "--dry-run"]),
                        (2, [DIGITS, "--emit=plan", "--report", "page.html"]), (1, [__file__, "-o", "x", "--report", "page.html"])):
        packer(folder, *words, code=code)
        check(sorted(folder.iterdir()) == before, f"exit {code} leaves nothing: {' '.join(map(str, words[1:]))}")
    model = folder / "model.onnx"
    model.write_bytes(DIGITS.read_bytes())
    packer(folder, model, "-o", "x", "--report", model, code=4)
    check(model.read_bytes() == DIGITS.read_bytes() and not (folder / "x").exists(), "the model is not written over")


def other_outputs(folder):
    """A page of what runs elsewhere."""
    for output, target in (("x.a", "cortex-m4"), ("x.wasm", "wasm32"), ("x.a", "aarch64")):
        packer(folder, DIGITS, "-o", output, "--target", target, "--report", f"{target}.html", "--verify", "off")
        said = json.loads(embedded((folder / f"{target}.html").read_text()))
        check(said["target"] == target and said["predicted"][0]["kernels"], f"{target}: a page of its own")


def comparison(folder):
    """The page of the verb report, and how many rows of kernels it has."""
    hostile = folder / "hostile.onnx"
    hostile.write_bytes(hostile_model())
    for name, model, words in (("a", DIGITS, []), ("b", DIGITS, ["-Os", "--target", "x86-64-v4"]), ("c", hostile, [])):
        packer(folder, model, "-o", "x", "--verify", "off", f"--json={name}.json", *words)
    for one, other in (("a", "b"), ("b", "c")):
        packer(folder, "report", f"{one}.json", f"{other}.json", "-o", f"{one}{other}.html")
        page = (folder / f"{one}{other}.html").read_text()
        for part, name in (("before", one), ("after", other)):
            check(json.loads(embedded(page, part)) == json.loads((folder / f"{name}.json").read_text()), f"{part} is {name}.json")
        loads_nothing(page)
        check(HOSTILE not in page, "names end nothing")
    before = sorted(folder.iterdir())
    (folder / "half.json").write_text((folder / "a.json").read_text()[:-40])
    (folder / "other.json").write_text('{"verb": "ops", "exit": 0}')
    for code, words in ((2, ["a.json", "b.json"]), (2, ["a.json", "-o", "x.html"]), (2, ["a.json", "half.json", "-o", "x.html"]),
                        (2, ["other.json", "a.json", "-o", "x.html"]), (4, ["a.json", "none.json", "-o", "x.html"]),
                        (4, ["a.json", "b.json", "-o", "no/folder/x.html"]), (2, ["a.json", "b.json", "c.json", "-o", "x.html"])):
        packer(folder, "report", *words, code=code)
        check(len(list(folder.iterdir())) == len(before) + 2, f"exit {code} writes nothing: report {' '.join(words)}")
    a, b = (json.loads((folder / f"{name}.json").read_text()) for name in "ab")
    return folder / "ab.html", len({tuple(kernel["nodes"]) for pack in (a, b) for level in pack["predicted"][-1:]
                                    for kernel in level["kernels"]})


def script_results(page, *words):
    """What the page's scripts make of it, on a stand-in for a browser; None without node."""
    if not shutil.which("node"):
        print("skipped: the page's scripts, since node is not installed")
        return None
    return json.loads(run("node", SOURCE / "tests/support/open_page.mjs", page, *words).stdout)


def profiles(folder):
    """The page about what a program measured."""
    hostile = folder / "hostile.onnx"
    hostile.write_bytes(hostile_model())
    for name, model in (("digits", DIGITS), ("hostile", hostile)):
        packer(folder, model, "-o", name, *LEVEL, "--verify", "off")
        (folder / f"{name}.json").write_bytes(run(folder / name, "--profile=json", "--min-time", "0.01").stdout)
        packer(folder, "report", f"{name}.json", "-o", f"{name}.html")
        page, said = (folder / f"{name}.html").read_text(), json.loads((folder / f"{name}.json").read_text())
        check(json.loads(embedded(page, "profile")) == said, f"{name}: the page holds what --profile=json says")
        machine = json.loads(embedded(page, "machine"))
        check(machine["roofs"]["gflops"] > 0 and machine["machine"], "and the machine of its CPU level")
        loads_nothing(page)
        check("<" not in embedded(page, "profile") and HOSTILE not in page, "names end nothing")
        did = script_results(folder / f"{name}.html")
        if did:
            check(did["rows"] == len(said["kernels"]), f"a row for each of {len(said['kernels'])} steps")
            check(did["points"] == sum(k["flops"] > 0 for k in said["kernels"]), "and a point for those that compute")
            check("img" not in did["elements"], f"no name became an element: {did['elements']}")
            check(all(k["name"] in did["text"] for k in said["kernels"]), "by their names")
    did = script_results(folder / "digits.html", "SOFTMAX")
    check(not did or did["rows"] == 1, "the search finds the kernel of a node")
    other = json.loads((folder / "digits.json").read_text())
    for change in ({"level": "any"}, {"level": 7}, {"kernels": []}, {"total_us": 0}):
        (folder / "other.json").write_text(json.dumps(other | change))
        packer(folder, "report", "other.json", "-o", "other.html")
        did = script_results(folder / "other.html")
        check(not did or did["title"].startswith("Profile"), f"a profile with {change} has a page, too")
        if "level" in change:
            check(embedded((folder / "other.html").read_text(), "machine") == "null", "of no machine")
        (folder / "other.html").unlink()
    (folder / "other.json").write_bytes((folder / "digits.json").read_bytes()[:-4])
    for words in (["other.json"], ["none.json"], []):
        packer(folder, "report", *words, "-o", "other.html", code=4 if words == ["none.json"] else 2)
        check(not (folder / "other.html").exists(), f"nothing is written: report {' '.join(words)}")
    told = run(folder / "digits", "--profile=html", expect=2).stderr.decode()
    check("svod-pack report" in told, told)


def opened(browser, folder, page):
    """(elements, what the console was told) of a page that is opened."""
    done = run(browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}",
               "--enable-logging=stderr", "--dump-dom", page.as_uri(), cwd=folder)
    told = [line for line in done.stderr.decode(errors="replace").splitlines() if ":CONSOLE" in line]
    return Elements(done.stdout.decode()), told


# What a user does; what came of it is the page's title.
USE = """<script>
{
  const rows = () => [...document.querySelectorAll("tr.kernel")], press = (element) => element.click();
  const heads = () => [...document.querySelectorAll("#kernels th button")];
  press(heads()[5]);
  const bytes = rows().map((row) => Number(row.cells[5].textContent.replaceAll(",", "")));
  press(rows()[0].querySelector("button"));
  const opened = document.querySelectorAll("tr.why").length;
  document.querySelector("circle.point").focus();
  const tip = !document.getElementById("tip").hidden;
  const search = document.getElementById("search");
  search.value = "RELU2";
  search.dispatchEvent(new Event("input"));
  const boxes = () => document.querySelectorAll("#graph .boxed").length, dim = () => document.querySelectorAll("#graph .dim").length;
  const operators = boxes(), unmarked = dim(), transform = document.querySelector("#graph g").getAttribute("transform");
  press(document.getElementById("graph-fit"));
  press(document.getElementById("graph-in"));
  const zoomed = document.querySelector("#graph g").getAttribute("transform") !== transform;
  const shown = document.getElementById("graph-of");
  shown.value = "kernels";
  shown.dispatchEvent(new Event("change"));
  document.title = JSON.stringify({bytes, opened, tip, found: rows().length, operators, unmarked, zoomed, kernels: boxes()});
}
</script></body>"""


def used(browser, folder, page):
    """Sorting, opening a row, the keyboard in a chart, the search; by a script of the test's, which the page would forbid."""
    text = re.sub("<meta http-equiv[^>]*>", "", page.read_text()).replace("</body>", USE)
    (folder / "used.html").write_text(text)
    dom, told = opened(browser, folder, folder / "used.html")
    check(not told, f"no error in the console {told or ''}")
    did = json.loads(re.search(r'\{"bytes".*?\}', dom.text)[0])
    check(did["bytes"] == sorted(did["bytes"], reverse=True), f"sorted by bytes: {did['bytes']}")
    check(did["opened"] == 1 and did["tip"], "a row opens, a point that has the focus tells its nodes")
    check(did["found"] == 1, "the search finds the kernel of a node")
    said = json.loads(embedded(page.read_text()))
    check(did["operators"] - did["unmarked"] == 1, f"and marks its box of {did['operators']}")
    check(did["zoomed"] and did["kernels"] == len(said["explain"]["kernels"]), "the graph is zoomed, and shows kernels")


def in_browser(folder, pages, compared):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        print("skipped: the page in a browser, since chromium is not installed")
        return
    broken = folder / "broken.html"
    broken.write_text("<script>no_such_function()</script>")
    check(opened(browser, folder, broken)[1], "an error of a page is seen")
    for path, said in pages:
        dom, told = opened(browser, folder, path)
        check(not told, f"{path.parent.name}: no error in the console {told or ''}")
        check(dom.count("tr", "kernel") == said["kernels"], f"a row for each of {said['kernels']} kernels")
        check(dom.count("circle", "point") > 0 and dom.count("rect", "slot") == len(said["memory"]["slots"]), "and charts")
        tensors = said.get("accuracy", {}).get("tensors", [])
        check(dom.count("circle", "error") == len(tensors) == dom.count("circle", "alone"), f"{len(tensors)} tensors' errors")
        check(("Not measured" in dom.text) != bool(tensors), "or why there are none")
        check(dom.count("rect", "box") == graph(said), "the graph's operators, inputs and outputs are boxes")
        check(dom.count("path", "arrow") >= len(said["onnx"]["nodes"]), "with arrows between them")
        check(dom.count("img") == 0, "no name became an element")
        nodes = {node for kernel in said["predicted"][0]["kernels"] for node in kernel["nodes"]}
        check(all(node in dom.text for node in nodes), f"names are there as text: {sorted(nodes)[:2]}")
    used(browser, folder, pages[0][0])
    path, rows = compared
    for page in (path, path.with_name("bc.html")):
        dom, told = opened(browser, folder, page)
        check(not told and dom.count("img") == 0, f"{page.name}: no error in the console {told or ''}")
        if page == path:
            check(dom.count("tr", "kernel") == rows, f"a row for {rows} groups of ONNX nodes")


def main():
    digits, hostile = work_folder("report_digits"), work_folder("report_hostile")
    page, said = pack_page(digits, DIGITS)
    loads_nothing(page)
    facts(said)
    model = hostile / "hostile.onnx"
    model.write_bytes(hostile_model())
    hostile_page, hostile_said = pack_page(hostile, model)
    names = {name for kernel in hostile_said["predicted"][0]["kernels"] for name in kernel["nodes"]}
    check(HOSTILE in names and HOSTILE not in hostile_page, "a hostile name is in the JSON and not in the page's text")
    for path, of in ((digits, said), (hostile, hostile_said)):
        boxes, did = graph(of), script_results(path / "page.html")
        check(not did or did["boxes"] == boxes, f"{boxes} boxes are drawn")
    measured = work_folder("report_measured")
    measured_said = pack_page(measured, DIGITS, "--verify", SOURCE / "models" / "test_data_set_0", "--bisect")[1]
    check(measured_said["accuracy"]["tensors"], "with --bisect it says how far each tensor is from double precision")
    failures(work_folder("report_failures"))
    other_outputs(work_folder("report_others"))
    profiles(work_folder("report_profiles"))
    in_browser(work_folder("report_browser"), [(digits / "page.html", said), (hostile / "page.html", hostile_said),
                                                  (measured / "page.html", measured_said)],
               comparison(work_folder("report_comparison")))


if __name__ == "__main__":
    sys.exit(main())
