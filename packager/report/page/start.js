// What depends on the level or the search is shown again when they change, charts also
// when their place has another width.
function show() {
  showTiles();
  showRoofline(showKernels());
}

pack.predicted.forEach((level, i) => byId("level").append(make("option", {value: i}, level.level || pack.target)));
byId("level").value = pack.predicted.length - 1;
showFacts();
showStages();
show();
startGraph();
showGraph();
showMemory();
showPeak();
showAccuracy();
showParts();
showWeights();
byId("level").addEventListener("change", show);
byId("search").addEventListener("input", show);
let widthBefore = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === widthBefore) return;
  widthBefore = innerWidth;
  show();
  showGraph();
  showMemory();
  showAccuracy();
});
