// What the packed file consists of.
function showParts() {
  const parts = [["weights", pack.bytes.weights], ["code of kernels", pack.bytes.code], ["stub", pack.bytes.stub],
    ["image (tables)", pack.bytes.image]];
  const all = parts.reduce((sum, [, bytes]) => sum + bytes, 0);
  parts.forEach(([name, bytes], i) => {
    if (bytes === 0) return;
    const bar = make("div", {class: `part-${i}`});
    bar.style.flexGrow = bytes / all;
    byId("parts").append(bar);
    byId("parts-legend").append(make("li", {}, make("i", {class: `part-${i}`}),
      `${name}: ${exact(bytes)} bytes, ${percent(bytes / all)}`));
  });
}

function showWeights() {
  const shown = 20, weights = [...pack.weights].sort((a, b) => b.bytes - a.bytes);
  byId("weights-title").textContent = weights.length > shown
    ? `The ${shown} largest of ${exact(weights.length)} weights, as packed` : "Weights, as packed";
  byId("weights").replaceChildren(
    heads([["text", "ONNX nodes"], ["text", "type"], ["", "bytes"], ["", "share of weights"]]),
    make("tbody", {}, ...weights.slice(0, shown).map((weight) => {
      const share = (bytes) => bytes / pack.bytes.weights;
      return row([["nodes", ...nodesIn(weight.nodes)], ["text", `${weight.dtype}[${weight.shape.join(",")}]`],
        ["", exact(weight.bytes)], ["", ...shareCell(share(weight.bytes), share(weights[0].bytes))]]);
    })));
}
