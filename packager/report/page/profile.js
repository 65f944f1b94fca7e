// What a program measured of its kernels. Roofs are those of the machine that its CPU level
// stands for, where the packer knows one.
const profile = embedded("profile"), machine = embedded("machine");
const steps = profile.kernels.map((kernel, number) => ({
  number, kernel, share: profile.total_us > 0 ? kernel.us / profile.total_us : 0,
  speed: kernel.us > 0 ? kernel.flops / kernel.us / 1000 : 0, rate: kernel.us > 0 ? kernel.bytes / kernel.us / 1000 : 0,
}));

const columns = [
  ["#", "", (s) => s.number, (s) => exact(s.number)],
  ["kernel", "text", (s) => s.number, (s) => s.kernel.name],
  ["ONNX nodes", "nodes", (s) => s.kernel.nodes, null],
  ["calls", "", (s) => s.kernel.calls, (s) => exact(s.kernel.calls)],
  [profile.unit, "", (s) => s.kernel.us, (s) => s.kernel.us.toFixed(3)],
  ["share of run", "share-cell", (s) => s.share, null],
  ["flops", "", (s) => s.kernel.flops, (s) => exact(s.kernel.flops)],
  ["GFLOP/s", "", (s) => s.speed, (s) => rateText(s.speed)],
  ["bytes", "", (s) => s.kernel.bytes, (s) => exact(s.kernel.bytes)],
  ["GB/s", "", (s) => s.rate, (s) => rateText(s.rate)],
];

function stepRow(step, largest) {
  const contents = {"ONNX nodes": () => nodesIn([step.kernel.nodes]), "share of run": () => shareCell(step.share, largest)};
  const made = row(columns.map(([name, kind, , text]) => [kind, ...text ? [text(step)] : contents[name]()]));
  made.classList.add("kernel");
  return made;
}

function showSteps() {
  const asked = byId("search").value.trim().toLowerCase();
  const found = steps.filter((step) => step.kernel.nodes.toLowerCase().includes(asked));
  sortRows(found);
  const largest = Math.max(...steps.map((step) => step.share));
  byId("kernels").replaceChildren(sortedHeads(show), make("tbody", {}, ...found.map((step) => stepRow(step, largest))));
  byId("found").textContent = `${exact(found.length)} of ${exact(steps.length)} steps`;
  return new Set(found.map((step) => step.number));
}

function showPoints(found) {
  const svg = byId("roofline"), height = 420, width = startChart(svg, height);
  const points = steps.filter((step) => step.kernel.flops > 0 && step.kernel.bytes > 0 && step.speed > 0)
    .map((step) => ({...step, x: step.kernel.flops / step.kernel.bytes}));
  byId("roofline-words").textContent = machine ? `Roofs are of one core of ${machine.machine}, which the CPU level ` +
    `${profile.level} stands for; this machine may be another one. From the left: ${machine.roofs.memories.map(roofText).join("; ")}. ` +
    "A larger point takes more of the run; the pointer or the arrow keys name its ONNX nodes."
    : "A larger point takes more of the run; the pointer or the arrow keys name its ONNX nodes.";
  byId("roofline-left-out").textContent = points.length === steps.length ? ""
    : `Not drawn: ${exact(steps.length - points.length)} steps that only move values.`;
  const roofs = machine ? machine.roofs : null;
  const xs = points.map((p) => p.x), ys = points.map((p) => p.speed);
  if (roofs) {
    xs.push(...roofs.memories.map((memory) => roofs.gflops / memory.gb_per_s));
    ys.push(roofs.gflops, roofs.gflops / 50);
  }
  if (xs.length === 0) return;
  const box = {left: 52, right: width - 16, top: 26, bottom: height - 44};
  const x = logarithmic(xs, box.left, box.right), y = logarithmic(ys, box.bottom, box.top);
  drawAxes(svg, x, y, box);
  if (roofs) drawRoofs(svg, roofs, x, y, box);
  explainMarks(points.sort((a, b) => b.share - a.share).map((point) => {
    const mark = draw("circle", {class: "point", cx: x.at(point.x), cy: y.at(point.speed), r: 4 + 16 * Math.sqrt(point.share)});
    if (!found.has(point.number)) mark.classList.add("dim");
    svg.append(mark);
    return [mark, `${point.kernel.nodes}\n${point.kernel.name}: ${rateText(point.speed)} GFLOP/s at ${rateText(point.x)} flops ` +
      `per byte\n${point.kernel.us.toFixed(3)} ${profile.unit}, ${percent(point.share)} of the run`];
  }));
}

function show() {
  showPoints(showSteps());
}

document.title = "Profile - svod-pack report";
byId("name").textContent = "Profile of a packed program";
byId("file").textContent = `CPU level ${profile.level}, threads: ${profile.threads}, the fastest of ${exact(profile.runs || 1)} runs`;
const flops = profile.kernels.reduce((sum, kernel) => sum + kernel.flops, 0);
byId("tiles").replaceChildren(...[
  ["run", profile.unit === "us" ? timeText(profile.total_us) : `${exact(profile.total_us)} ${profile.unit}`],
  ["steps", exact(steps.length)], ["flops", countText(flops)],
  ["GFLOP/s", rateText(profile.total_us > 0 ? flops / profile.total_us / 1000 : 0)],
].map(([name, text]) => make("li", {}, make("span", {}, name), make("b", {}, text))));
show();
byId("search").addEventListener("input", show);
addEventListener("resize", show);
