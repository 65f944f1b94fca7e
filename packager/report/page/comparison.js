// What changed from one pack to another one. Both may be of different models or targets:
// what only one of them has says so.
const before = embedded("before"), after = embedded("after");

// "+12 (+3.4 %)", of numbers where less is better.
function changeCell(a, b, text) {
  if (a === undefined || b === undefined) return ["", "only in one"];
  if (a === b) return ["", "same"];
  const share = a === 0 ? "" : ` (${b > a ? "+" : "-"}${percent(Math.abs(b - a) / a)})`;
  return [b > a ? "more" : "less", `${b > a ? "+" : "-"}${text(Math.abs(b - a))}${share}`];
}

function numberRow(name, a, b, text) {
  const shown = (number) => number === undefined ? "-" : text(number);
  return row([["nodes", ...nodesIn([name])], ["", shown(a)], ["", shown(b)], changeCell(a, b, text)]);
}

const numberHeads = (what) => heads([["text", what], ["", "before"], ["", "after"], ["", "change"]]);
const levelOf = (pack, name) => pack.predicted.find((level) => level.level === name);
const levelNames = [...new Set([...before.predicted, ...after.predicted].map((level) => level.level))];

function showTotals() {
  const rows = levelNames.map((name) => numberRow(`predicted us${name ? `, ${name}` : ""}`,
    levelOf(before, name)?.total_us, levelOf(after, name)?.total_us, (us) => us.toFixed(3)));
  for (const key of ["kernels", "programs", "steps", "macs"]) rows.push(numberRow(key, before[key], after[key], exact));
  for (const key of new Set([...Object.keys(before.bytes), ...Object.keys(after.bytes)]))
    rows.push(numberRow(`bytes of ${key.replaceAll("_", " ")}`, before.bytes[key], after.bytes[key], exact));
  byId("totals").replaceChildren(numberHeads("number"), make("tbody", {}, ...rows));
}

// Time of a run by ONNX nodes.
function timesOf(level) {
  const times = new Map();
  for (const kernel of level ? level.kernels : []) {
    const nodes = nodesText(kernel.nodes);
    times.set(nodes, (times.get(nodes) || 0) + kernel.us * kernel.calls);
  }
  return times;
}

function showKernels() {
  const name = levelNames[Number(byId("level").value)], asked = byId("search").value.trim().toLowerCase();
  const a = timesOf(levelOf(before, name)), b = timesOf(levelOf(after, name));
  const all = [...new Set([...a.keys(), ...b.keys()])];
  const found = all.filter((nodes) => nodes.toLowerCase().includes(asked));
  const change = (nodes) => Math.abs((a.get(nodes) || 0) - (b.get(nodes) || 0));
  found.sort((one, other) => change(other) - change(one));
  const rows = found.map((nodes) => numberRow(nodes, a.get(nodes), b.get(nodes), (us) => us.toFixed(3)));
  rows.forEach((made) => made.classList.add("kernel"));
  byId("kernels").replaceChildren(heads([["text", "ONNX nodes"], ["", "us before"], ["", "us after"], ["", "change"]]),
    make("tbody", {}, ...rows));
  byId("found").textContent = `${exact(found.length)} of ${exact(all.length)} rows`;
}

function showStages() {
  const stages = new Set([...Object.keys(before.time_ms), ...Object.keys(after.time_ms)]);
  byId("stages").replaceChildren(numberHeads("stage, ms"), make("tbody", {}, ...[...stages].map((stage) =>
    numberRow(stage, before.time_ms[stage], after.time_ms[stage], (ms) => ms.toFixed(1)))));
}

function showFacts() {
  byId("name").textContent = nameOf(before) === nameOf(after) ? nameOf(before) : `${nameOf(before)} and ${nameOf(after)}`;
  byId("file").textContent = before.digest === after.digest ? "Both packs have one plan." : "The plans differ.";
  document.title = `${byId("name").textContent} - svod-pack comparison`;
  const facts = [["model", (pack) => pack.file], ["SHA-256 of the model", (pack) => pack.model.sha256],
    ["digest of the plan", (pack) => pack.digest], ["target", (pack) => pack.target],
    ["CPU levels", (pack) => pack.isa.join(", ")], ["svod-pack", (pack) => pack.tools["svod-pack"]],
    ["command", commandText]];
  byId("facts").replaceChildren(heads([["text", ""], ["text", "before"], ["text", "after"]]),
    make("tbody", {}, ...facts.map(([what, of]) => row([["text", what], ["fact", of(before)], ["fact", of(after)]]))));
}

levelNames.forEach((name, i) => byId("level").append(make("option", {value: i}, name || before.target)));
byId("level").value = levelNames.length - 1;
showFacts();
showTotals();
showKernels();
showStages();
byId("level").addEventListener("change", showKernels);
byId("search").addEventListener("input", showKernels);
