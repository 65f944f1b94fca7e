// How far each stored tensor is from the same one in double precision: what roundings have
// added up to there, and what its own kernel does by itself.
const errorText = (error) => error === 0 ? "0" : error.toExponential(1);

// Errors of 0, which a logarithm has no place for, lie at the lower border.
function drawErrors(tensors) {
  const svg = byId("accuracy"), height = 300, width = startChart(svg, height);
  const box = {left: 62, right: width - 16, top: 26, bottom: height - 30};
  const errors = tensors.flatMap((t) => [t.error, t.alone]).filter((error) => error > 0);
  const y = logarithmic(errors.length ? errors : [1e-7], box.bottom, box.top);
  const x = (i) => box.left + (box.right - box.left) * (i + 0.5) / tensors.length;
  const place = (error) => error > 0 ? y.at(error) : box.bottom;
  for (const tick of y.ticks)
    svg.append(draw("line", {class: "axis", x1: box.left, x2: box.right, y1: y.at(tick), y2: y.at(tick)}),
      draw("text", {x: box.left - 6, y: y.at(tick) + 4, "text-anchor": "end"}, errorText(tick)));
  svg.append(draw("text", {x: box.left, y: box.top - 10}, "error"),
    draw("text", {x: box.right, y: box.bottom + 18, "text-anchor": "end"}, "tensors, as they are stored"));
  tensors.forEach((t, i) => svg.append(draw("circle", {class: "alone", cx: x(i), cy: place(t.alone), r: 3})));
  explainMarks(tensors.map((t, i) => {
    const mark = draw("circle", {class: "error", cx: x(i), cy: place(t.error), r: 4});
    svg.append(mark);
    return [mark, `${nodesText(t.nodes)}\n${t.type} of ${t.kernel}\n${errorText(t.error)} from double precision, ` +
      `${errorText(t.alone)} by its kernel alone`];
  }));
}

function showErrors(tensors) {
  const shown = 20, largest = [...tensors].sort((a, b) => b.error - a.error).slice(0, shown);
  byId("errors-title").textContent = tensors.length > shown ? `The ${shown} largest errors of ${exact(tensors.length)}` : "Errors";
  byId("errors").replaceChildren(
    heads([["text", "ONNX nodes"], ["text", "type"], ["text", "kernel"], ["", "error"], ["", "by its kernel alone"]]),
    make("tbody", {}, ...largest.map((t) => row([["nodes", ...nodesIn(t.nodes)], ["text", t.type], ["text", t.kernel],
      ["", errorText(t.error)], ["", errorText(t.alone)]]))));
}

function showAccuracy() {
  const tensors = pack.accuracy ? pack.accuracy.tensors : [];
  byId("accuracy-words").textContent = !pack.accuracy
    ? "Not measured: a pack with --bisect compares every stored tensor with a run in double precision."
    : `Each stored tensor of floats beside ${pack.accuracy.reference}: |found - wanted| / |wanted| by Euclidean norms. ` +
      "Filled: with the errors of all kernels before it; hollow: what its own kernel makes of its inputs, " +
      "beside the evaluator in the model's types.";
  for (const id of ["accuracy-chart", "errors-title", "errors-table"]) byId(id).hidden = tensors.length === 0;
  if (tensors.length === 0) return;
  drawErrors(tensors);
  showErrors(tensors);
}
