// Speed over intensity: operations for each byte that a kernel reads or writes once, against
// the predicted operations per ns, below what the core can do out of each of its memories.
const roofNames = {first: "first cache", second: "second cache", last: "last cache", memory: "memory"};

const roofText = (memory) => `${roofNames[memory.name]}, ${rateText(memory.gb_per_s)} GB/s`;

function pointsOf(level) {
  return level.kernels.map((kernel, number) => ({kernel, number}))
    .filter(({kernel}) => kernel.flops > 0 && kernel.bytes > 0 && kernel.us > 0)
    .map(({kernel, number}) => ({
      kernel, number, x: kernel.flops / kernel.bytes, y: kernel.flops / kernel.us / 1000,
      share: kernel.us * kernel.calls / level.total_us,
    }));
}

// A logarithmic axis that holds all values with some room around them.
function logarithmic(values, from, to) {
  const low = Math.min(...values) / 1.5, high = Math.max(...values) * 1.5;
  const at = (value) => from + (to - from) * Math.log(value / low) / Math.log(high / low);
  const steps = high / low > 500 ? [1] : [1, 2, 5];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power)
    ticks.push(...steps.map((step) => step * 10 ** power).filter((tick) => tick >= low && tick <= high));
  return {at, ticks, low, high};
}

function drawAxes(svg, x, y, box) {
  for (const tick of x.ticks)
    svg.append(draw("line", {class: "axis", x1: x.at(tick), x2: x.at(tick), y1: box.top, y2: box.bottom}),
      draw("text", {x: x.at(tick), y: box.bottom + 16, "text-anchor": "middle"}, String(Number(tick.toPrecision(1)))));
  for (const tick of y.ticks)
    svg.append(draw("line", {class: "axis", x1: box.left, x2: box.right, y1: y.at(tick), y2: y.at(tick)}),
      draw("text", {x: box.left - 6, y: y.at(tick) + 4, "text-anchor": "end"}, String(Number(tick.toPrecision(1)))));
  svg.append(draw("text", {x: (box.left + box.right) / 2, y: box.bottom + 34, "text-anchor": "middle"}, "flops per byte"),
    draw("text", {x: box.left, y: box.top - 10}, "GFLOP/s"));
}

// From the left border up to where the core computes no faster.
function drawRoofs(svg, roofs, x, y, box) {
  const ridge = (memory) => roofs.gflops / memory.gb_per_s;
  const nearest = Math.min(...roofs.memories.map(ridge));
  const begin = Math.max(x.low, Math.min(nearest, x.high));
  svg.append(draw("line", {class: "roof", x1: x.at(begin), x2: box.right, y1: y.at(roofs.gflops), y2: y.at(roofs.gflops)}),
    draw("text", {class: "roof-name", x: box.right, y: y.at(roofs.gflops) - 6, "text-anchor": "end"},
      `${rateText(roofs.gflops)} GFLOP/s`));
  roofs.memories.forEach((memory, i, all) => {
    const left = Math.max(x.low, y.low / memory.gb_per_s), right = Math.min(ridge(memory), x.high);
    if (left >= right) return;
    svg.append(draw("line", {class: "roof", x1: x.at(left), y1: y.at(left * memory.gb_per_s), x2: x.at(right),
      y2: y.at(right * memory.gb_per_s)}));
    if (box.right - box.left < 500) return; // the words above the chart name them
    // A name stands on the side where the next roof is further away.
    const above = i === 0 ? Infinity : all[i - 1].gb_per_s / memory.gb_per_s;
    const below = i + 1 === all.length ? Infinity : memory.gb_per_s / all[i + 1].gb_per_s;
    const name = left * (right / left) ** 0.04;
    const slope = Math.atan2(y.at(right * memory.gb_per_s) - y.at(left * memory.gb_per_s), x.at(right) - x.at(left));
    const place = `translate(${x.at(name)} ${y.at(name * memory.gb_per_s) + (above < below ? 15 : -5)}) rotate(${slope * 180 / Math.PI})`;
    svg.append(draw("text", {class: "roof-name", transform: place}, roofText(memory)));
  });
}

function pointText({kernel, number, x, y, share}) {
  return `${nodesText(kernel.nodes)}\nkernel ${number}, ${kernel.name}: ${rateText(y)} GFLOP/s at ${rateText(x)} flops per byte\n` +
    `${timeText(kernel.us)} of one call, ${percent(share)} of the run`;
}

function showRoofline(found) {
  const level = levelNow(), svg = byId("roofline"), height = 420;
  const width = startChart(svg, height), points = pointsOf(level), roofs = level.roofs;
  byId("roofline-words").textContent = `Of ${level.level || pack.target} on ${level.machine}, by the costs that the compiler ` +
    `counts with. Roofs are of one core, from the left: ${roofs.memories.map(roofText).join("; ")}` +
    (level.threads > 1 ? `; times are of ${level.threads} threads` : "") +
    ". A kernel that leaves products with zeros out, as Winograd's transforms do, may stand above them. " +
    "A larger point takes more of the run; the pointer or the arrow keys name its ONNX nodes.";
  const without = level.kernels.length - points.length;
  byId("roofline-left-out").textContent = without === 0 ? ""
    : `Not drawn: ${exact(without)} kernels that only move values.`;
  const box = {left: 52, right: width - 16, top: 26, bottom: height - 44};
  const x = logarithmic([...points.map((p) => p.x), ...roofs.memories.map((m) => roofs.gflops / m.gb_per_s)], box.left, box.right);
  const y = logarithmic([...points.map((p) => p.y), roofs.gflops, roofs.gflops / 50], box.bottom, box.top);
  drawAxes(svg, x, y, box);
  drawRoofs(svg, roofs, x, y, box);
  // Large points first, so that small ones lie on them.
  const marks = points.sort((a, b) => b.share - a.share).map((point) => {
    const mark = draw("circle", {class: "point", cx: x.at(point.x), cy: y.at(point.y), r: 4 + 16 * Math.sqrt(point.share)});
    if (!found.has(point.number)) mark.classList.add("dim");
    svg.append(mark);
    return [mark, pointText(point)];
  });
  explainMarks(marks);
}
