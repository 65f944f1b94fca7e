// The model's operators, and the kernels that became of them, as a drawing that is moved and
// zoomed. Boxes of one launch have one colour.
const rowHeight = 48, boxHeight = 32, letter = 6.6, mostLetters = 26;

const launchesOf = new Map(); // of an ONNX node by its name
pack.predicted[0].kernels.forEach((kernel, launch) => kernel.nodes.forEach((node) => {
  if (!launchesOf.has(node)) launchesOf.set(node, []);
  launchesOf.get(node).push(launch);
}));

const cutText = (text) => text.length <= mostLetters ? text : `${text.slice(0, mostLetters / 2 - 1)}…${text.slice(-mostLetters / 2)}`;
const widthOf = ({lines: [op, name]}) => 18 + letter * Math.max(1.12 * op.length, name.length);

function operatorItem(node) {
  const launches = launchesOf.get(node.name) || [];
  const programs = launches.map((launch) => `${pack.predicted[0].kernels[launch].name} (launch ${launch})`).join(", ");
  const short = node.name.split("/").filter((part) => part && part !== node.op).pop() || node.name;
  return {launches, names: [node.name], lines: [cutText(node.op), cutText(short)],
    tip: `${node.op} ${node.name}\n${programs ? `computed in ${programs}` : "nothing of it is left to run"}`};
}

// {items, reads}: inputs, then operators in an order in which each reads earlier ones, then
// outputs.
function operatorGraph() {
  const {inputs, nodes, outputs} = pack.onnx;
  const given = new Set(pack.entries.flatMap((entry) => entry.inputs.map((input) => input.name)));
  const port = (name, kind) => ({port: true, launches: [], names: [name], lines: [kind, cutText(name)], tip: `${kind} ${name}`});
  const items = [], reads = [], at = new Map();
  inputs.forEach((name, i) => {
    if (!given.has(name)) return; // a weight that may be given
    at.set(-1 - i, items.length);
    items.push(port(name, "input"));
    reads.push([]);
  });
  const add = (item, makers) => {
    reads.push(makers.filter((maker) => at.has(maker)).map((maker) => at.get(maker)));
    return items.push(item) - 1;
  };
  nodes.forEach((node, i) => at.set(i, add(operatorItem(node), node.inputs)));
  outputs.forEach((output) => add(port(output.name, "output"), [output.of]));
  return {items, reads};
}

function kernelGraph() {
  const items = pack.explain.kernels.map((kernel, i) => ({launches: kernel.launch === undefined ? [] : [kernel.launch],
    names: kernel.nodes, lines: [`kernel ${i}`, cutText(nodesText(kernel.nodes.map((name) => name.split("/").pop())))],
    tip: `kernel ${i}${kernel.launch === undefined ? "" : ` of launch ${kernel.launch}`}: ${nodesText(kernel.nodes)}\n` +
      `${kernel.result}\nends because its result ${kernel.ends.text}`}));
  const reads = items.map(() => []);
  pack.explain.kernels.forEach((kernel, from) => kernel.ends.readers.forEach((to) => {
    if (to > from) reads[to].push(from);
  }));
  return {items, reads};
}

function arrowPath(points) {
  const first = points[0], last = points.at(-1);
  let path = `M${first.x.toFixed(1)} ${(first.y + boxHeight / 2).toFixed(1)}`;
  let before = {x: first.x, y: first.y + boxHeight / 2};
  points.slice(1).forEach((point, i) => {
    const end = {x: point.x, y: i + 2 === points.length ? last.y - boxHeight / 2 : point.y};
    const middle = ((before.y + end.y) / 2).toFixed(1);
    path += ` C${before.x.toFixed(1)} ${middle} ${end.x.toFixed(1)} ${middle} ${end.x.toFixed(1)} ${end.y.toFixed(1)}`;
    before = end;
  });
  return path;
}

const view = {x: 0, y: 0, scale: 1, width: 0, height: 0, drawn: null, group: null};

// What is seen stays within what is drawn.
function moveView(x, y, scale = view.scale) {
  view.scale = Math.min(3, Math.max(0.02, scale));
  const room = (seen, drawn) => Math.max(0, drawn - seen / view.scale);
  const within = (place, seen, drawn) => drawn * view.scale <= seen ? -(seen / view.scale - drawn) / 2
    : Math.min(Math.max(0, place), room(seen, drawn));
  view.x = within(x, view.width, view.drawn.width);
  view.y = Math.min(Math.max(0, y), room(view.height, view.drawn.height));
  view.group.setAttribute("transform", `scale(${view.scale}) translate(${-view.x} ${-view.y})`);
}

// About a place of the chart, which stays where it is.
function zoomView(factor, x = view.width / 2, y = view.height / 2) {
  const scale = Math.min(3, Math.max(0.02, view.scale * factor));
  moveView(view.x + x / view.scale - x / scale, view.y + y / view.scale - y / scale, scale);
}
const fitView = () => moveView(0, 0, Math.min(1, view.width / view.drawn.width, view.height / view.drawn.height));

let boxes = []; // [mark, item] of what is drawn

function markFound() {
  const asked = byId("search").value.trim().toLowerCase();
  const found = ({names}) => !asked || names.some((name) => name.toLowerCase().includes(asked));
  for (const [box, item] of boxes) box.setAttribute("class", found(item) ? "boxed" : "boxed dim");
  const first = boxes.find(([, item]) => found(item));
  if (asked && first) moveView(first[1].at.x - view.width / view.scale / 2, first[1].at.y - view.height / view.scale / 2);
  byId("graph-found").textContent = `${exact(boxes.filter(([, item]) => found(item)).length)} of ${exact(boxes.length)} boxes`;
}

function showGraph() {
  const svg = byId("graph"), height = 560;
  view.width = startChart(svg, height);
  view.height = height;
  const {items, reads} = byId("graph-of").value === "kernels" ? kernelGraph() : operatorGraph();
  const drawn = layered(reads, items.map(widthOf), rowHeight, 14);
  view.drawn = drawn;
  const all = view.group = draw("g", {});
  for (const {points} of drawn.arrows) all.append(draw("path", {class: "arrow", d: arrowPath(points)}));
  boxes = items.map((item, i) => {
    const {x, y} = item.at = drawn.nodes[i], width = widthOf(item);
    const kind = item.port ? "port" : item.launches.length ? `launch-${item.launches[0] % 4}` : "folded";
    const mark = draw("rect", {class: `box ${kind}`, x: x - width / 2, y: y - boxHeight / 2, width, height: boxHeight,
      rx: item.port ? boxHeight / 2 : 5});
    const lines = item.lines.map((line, n) => draw("text", {class: n === 0 ? "op" : "name", x, y: y - 3 + 13 * n,
      "text-anchor": "middle"}, line));
    const box = draw("g", {class: "boxed"}, mark, ...lines);
    all.append(box);
    item.mark = mark;
    return [box, item];
  });
  svg.append(all);
  explainMarks(boxes.map(([, item]) => [item.mark, item.tip]));
  // A box that has the focus is seen.
  for (const [, item] of boxes)
    item.mark.addEventListener("focus", () => {
      moveView(item.at.x - view.width / view.scale / 2, item.at.y - view.height / view.scale / 2);
      showTip(item.mark, item.tip);
    });
  moveView(0, 0, Math.min(1, Math.max(0.45, view.width / drawn.width)));
  if (items.length) moveView(items[0].at.x - view.width / view.scale / 2, 0);
  markFound();
}

function startGraph() {
  const svg = byId("graph");
  let held = null;
  svg.addEventListener("pointerdown", (event) => {
    held = {x: event.clientX, y: event.clientY, viewX: view.x, viewY: view.y};
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (held) moveView(held.viewX - (event.clientX - held.x) / view.scale, held.viewY - (event.clientY - held.y) / view.scale);
  });
  for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => { held = null; });
  // The wheel alone moves the page, as everywhere on it.
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const place = svg.getBoundingClientRect();
    zoomView(Math.exp(-event.deltaY / 300), event.clientX - place.left, event.clientY - place.top);
  }, {passive: false});
  byId("graph-in").addEventListener("click", () => zoomView(1.4));
  byId("graph-out").addEventListener("click", () => zoomView(1 / 1.4));
  byId("graph-fit").addEventListener("click", fitView);
  byId("graph-of").addEventListener("change", showGraph);
  byId("search").addEventListener("input", markFound);
}
