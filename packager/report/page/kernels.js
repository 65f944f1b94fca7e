// The table of launches: sorted by its columns, searched by ONNX nodes, and each row
// opens to what --explain says.
const launches = pack.predicted[0].kernels.map((kernel, number) => ({
  number, kernel, at: pack.predicted.map((level) => level.kernels[number]),
}));
const shareOf = (launch, level) => level.total_us === 0 ? 0
  : level.kernels[launch.number].us * level.kernels[launch.number].calls / level.total_us;
const partsOf = (launch) => pack.explain.kernels.filter((kernel) => kernel.launch === launch.number);

const columns = [
  ["#", "", (l) => l.number, (l) => exact(l.number)],
  ["program", "text", (l) => Number(l.kernel.name.slice(1)), null],
  ["ONNX nodes", "nodes", (l) => nodesText(l.kernel.nodes), null],
  ["calls", "", (l) => l.kernel.calls, (l) => exact(l.kernel.calls)],
  ["flops", "", (l) => l.kernel.flops, (l) => exact(l.kernel.flops)],
  ["bytes", "", (l) => l.kernel.bytes, (l) => exact(l.kernel.bytes)],
  ...pack.predicted.map((level, i) =>
    [`us, ${level.level || pack.target}`, "", (l) => l.at[i].us, (l) => l.at[i].us.toFixed(3)]),
  ["share of run", "share-cell", (l) => shareOf(l, levelNow()), null],
];

function verdictText(verdict) {
  const times = verdict.evaluations === 1 ? "once" : `${rateText(verdict.evaluations)} times`;
  const gain = verdict.gain_us;
  return `computed where it is read, each element ${times}, it would ${gain < 0 ? "cost" : "save"} ` +
    `${timeText(Math.abs(gain))}${gain >= 0 && !verdict.open ? "; no kernel can" : ""}`;
}

function whyPart(part) {
  const lines = [`computes ${part.result}, layout ${part.layout}`, ...part.algorithms.map((a) => `algorithm: ${a}`),
    ...part.takes_in.map((v) => `takes in ${v.value} (${v.kind}): ` +
      `${v.gain_us < 0 ? "costs" : "saves"} ${timeText(Math.abs(v.gain_us))}`),
    `ends because its result ${part.ends.text}` +
      (part.ends.readers.length ? `; read by kernel ${part.ends.readers.join(", ")}` : "")];
  if (part.ends.otherwise) lines.push(`otherwise: ${verdictText(part.ends.otherwise)}`);
  return make("ul", {}, ...lines.map((line) => make("li", {}, line)));
}

function lostText(schedule, lost) {
  const more = lost.us - schedule.us;
  return `${schedule.part === undefined ? "" : `part ${schedule.part}: `}${Math.abs(more).toFixed(3)} us ` +
    `${more < 0 ? "less" : "more"} (${lost.by}): ${lost.differs.join("; ")}`;
}

// Schedules of a program stand at its first launch.
function schedulesOf(launch, level) {
  return level.kernels.find((kernel) => kernel.name === launch.kernel.name).schedules;
}

function why(launch) {
  const cell = make("td", {colspan: columns.length});
  for (const part of partsOf(launch))
    cell.append(make("h4", {}, `Kernel ${pack.explain.kernels.indexOf(part)}: ${nodesText(part.nodes)}`), whyPart(part));
  for (const level of pack.predicted) {
    const kernel = level.kernels[launch.number];
    const parts = Object.entries(kernel.parts).map(([part, us]) => `${part} ${us.toFixed(3)}`).join(", ");
    const lines = [`${kernel.us.toFixed(3)} us: ${parts}`];
    for (const schedule of schedulesOf(launch, level)) {
      if (schedule.by !== "rules") lines.push(`its schedule is by ${schedule.by}`);
      lines.push(...schedule.lost.map((lost) => `lost: ${lostText(schedule, lost)}`));
    }
    cell.append(make("h4", {}, `Predicted, ${level.level || pack.target} on ${level.machine}`),
      make("ul", {}, ...lines.map((line) => make("li", {}, line))));
  }
  return make("tr", {class: "why"}, cell);
}

function kernelRow(launch, largest) {
  const button = make("button", {type: "button", "aria-expanded": "false"}, launch.kernel.name);
  const contents = {
    "program": () => [button], "ONNX nodes": () => nodesIn(launch.kernel.nodes),
    "share of run": () => shareCell(shareOf(launch, levelNow()), largest),
  };
  const cells = columns.map(([name, kind, , text]) => [kind, ...text ? [text(launch)] : contents[name]()]);
  const made = row(cells);
  made.classList.add("kernel");
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) made.nextElementSibling.remove();
    else made.after(why(launch));
  });
  return made;
}

function showKernels() {
  const asked = byId("search").value.trim().toLowerCase();
  const found = launches.filter((l) => l.kernel.nodes.some((node) => node.toLowerCase().includes(asked)) || !asked);
  sortRows(found);
  const largest = Math.max(...launches.map((l) => shareOf(l, levelNow())));
  byId("kernels").replaceChildren(sortedHeads(showKernels), make("tbody", {}, ...found.map((l) => kernelRow(l, largest))));
  byId("found").textContent = `${exact(found.length)} of ${exact(launches.length)} kernels`;
  return new Set(found.map((l) => l.number));
}
