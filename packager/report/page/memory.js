// What the arena holds over the steps of a run.
const slotText = (slot) => `${nodesText(slot.nodes)}\n${exact(slot.bytes)} bytes at ${exact(slot.offset)}, ` +
  `steps ${slot.first} to ${slot.last}`;

// `below`: of the texts under the chart.
function memoryBox(width, height, below) {
  return {left: 68, right: width - 16, top: 22, bottom: height - below};
}

// Steps from left to right; bytes from the bottom up.
function memoryScales(box, most) {
  const steps = pack.memory.moments.length;
  return {x: (step) => box.left + (box.right - box.left) * step / Math.max(1, steps),
    y: (bytes) => box.bottom - (box.bottom - box.top) * bytes / Math.max(1, most)};
}

function drawFrame(svg, box, scales, most, title) {
  for (let i = 0; i <= 4; ++i) {
    const bytes = most * i / 4;
    svg.append(draw("line", {class: "axis", x1: box.left, x2: box.right, y1: scales.y(bytes), y2: scales.y(bytes)}),
      draw("text", {x: box.left - 6, y: scales.y(bytes) + 4, "text-anchor": "end"}, sizeText(bytes)));
  }
  const steps = pack.memory.moments.length;
  svg.append(draw("text", {x: box.left, y: box.top - 8}, title),
    draw("text", {x: box.left, y: box.bottom + 18}, "step 0"),
    draw("text", {x: box.right, y: box.bottom + 18, "text-anchor": "end"}, `step ${exact(Math.max(0, steps - 1))}`));
}

function drawLive() {
  const svg = byId("live"), height = 210, width = startChart(svg, height), box = memoryBox(width, height, 48);
  const most = Math.max(pack.bytes.temporaries, ...pack.memory.moments.map((m) => m.live));
  const scales = memoryScales(box, most);
  drawFrame(svg, box, scales, most, "bytes alive");
  const corners = pack.memory.moments.flatMap((moment, i) =>
    [`${scales.x(i)},${scales.y(moment.live)}`, `${scales.x(i + 1)},${scales.y(moment.live)}`]);
  if (corners.length)
    svg.append(draw("polygon", {class: "live", points: `${box.left},${box.bottom} ${corners.join(" ")} ${box.right},${box.bottom}`}));
  const {temporaries, arena_lower_bound: bound} = pack.bytes;
  for (const [kind, bytes] of [["roof", temporaries], ["bound", bound]])
    svg.append(draw("line", {class: kind, x1: box.left, x2: box.right, y1: scales.y(bytes), y2: scales.y(bytes)}));
  svg.append(draw("text", {class: "bound-name", x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle"},
    `takes ${sizeText(temporaries)}, lower bound ${sizeText(bound)}`));
}

function drawArena() {
  const svg = byId("arena"), height = 320, width = startChart(svg, height), box = memoryBox(width, height, 30);
  const scales = memoryScales(box, pack.bytes.temporaries), peak = new Set(pack.memory.peak);
  drawFrame(svg, box, scales, pack.bytes.temporaries, "tensors in the arena, by offset");
  explainMarks(pack.memory.slots.filter((slot) => slot.bytes > 0).map((slot) => {
    const left = scales.x(slot.first), top = scales.y(slot.offset + slot.bytes);
    const mark = draw("rect", {class: peak.has(slot.slot) ? "slot at-peak" : "slot", x: left, y: top,
      width: Math.max(1, scales.x(slot.last + 1) - left), height: Math.max(1, scales.y(slot.offset) - top)});
    svg.append(mark);
    return [mark, slotText(slot)];
  }));
}

function showPeak() {
  const slots = pack.memory.peak.map((id) => pack.memory.slots.find((slot) => slot.slot === id)).filter(Boolean);
  slots.sort((a, b) => b.bytes - a.bytes);
  byId("peak").replaceChildren(
    heads([["text", "written by"], ["", "bytes"], ["", "offset"], ["", "first step"], ["", "last step"]]),
    make("tbody", {}, ...slots.map((slot) => row([["nodes", ...nodesIn(slot.nodes)], ["", exact(slot.bytes)],
      ["", exact(slot.offset)], ["", exact(slot.first)], ["", exact(slot.last)]]))));
}

function showMemory() {
  const bytes = pack.bytes;
  byId("memory-words").textContent = `The arena takes ${exact(bytes.arena)} bytes: ${exact(bytes.temporaries)} of temporaries ` +
    `(no placement of these steps needs less than ${exact(bytes.arena_lower_bound)}), ${exact(bytes.scratch)} of scratch, ` +
    `${exact(bytes.tables)} of tables. Kernels that one launch runs are steps of their own here.`;
  drawLive();
  drawArena();
}
