// What was packed, for what, and how long that took.
const pack = embedded("pack");
const levelNow = () => pack.predicted[Number(byId("level").value)];

function showTiles() {
  const level = levelNow();
  const tiles = [
    ["predicted run", timeText(level.total_us)],
    ["kernels", exact(pack.kernels)],
    ["multiply-adds", countText(pack.macs)],
    ["arena", sizeText(pack.bytes.arena)],
    ["weights", sizeText(pack.bytes.weights)],
    ["code and stub", sizeText(pack.bytes.code + pack.bytes.stub)],
  ];
  byId("tiles").replaceChildren(...tiles.map(([name, text]) =>
    make("li", {}, make("span", {}, name), make("b", {}, text))));
}

function showFacts() {
  const name = nameOf(pack);
  document.title = `${name} - svod-pack report`;
  byId("name").textContent = name;
  byId("file").textContent = pack.file;
  const ports = (tensors) => tensors.map((t) => `${t.name} ${t.dtype}[${t.shape.join(",")}]`).join("; ");
  const facts = [
    ["target", pack.target], ["CPU levels", pack.isa.join(", ")],
    ["inputs", ports(pack.entries[0].inputs)], ["outputs", ports(pack.entries[0].outputs)],
    ["ONNX nodes, opset", `${exact(pack.model.nodes)}, ${pack.model.opset}`],
    ["digest of the plan", pack.digest, "code"], ["SHA-256 of the model", pack.model.sha256, "code"],
    ["svod-pack", pack.tools["svod-pack"]],
    ["command", commandText(pack), "code"],
    ["kernels", `${exact(pack.cache.kernels_compiled)} compiled, ${exact(pack.cache.kernels_reused)} from the cache`],
  ];
  if (pack.verify) facts.push(["verified", pack.verify.passed ? "passed" : "did not pass"]);
  for (const [what, text, kind] of facts)
    byId("facts").append(make("dt", {}, what), make("dd", kind ? {class: kind} : {}, text));
  for (const said of pack.diagnostics)
    byId("said").append(make("li", {}, `${said.severity} ${said.code}: ${said.name ? said.name + ": " : ""}${said.text}`));
}

function showStages() {
  const stages = Object.entries(pack.time_ms).filter(([stage]) => stage !== "total");
  const most = Math.max(...stages.map(([, ms]) => ms));
  for (const [stage, ms] of [...stages, ["total", pack.time_ms.total]]) {
    const place = make("div", {});
    if (stage !== "total") {
      const bar = make("div", {class: "bar"});
      bar.style.width = `${100 * ms / most}%`;
      place.append(bar);
    }
    byId("stages").append(make("span", {}, stage), place, make("span", {class: "number"}, `${ms.toFixed(1)} ms`));
  }
}
