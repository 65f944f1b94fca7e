// Charts, drawn in the svg elements of the page.
const svgSpace = document.querySelector("svg").namespaceURI;
const draw = (name, attributes, ...children) => fill(document.createElementNS(svgSpace, name), attributes, children);

// A chart is as wide as its place, so that its text keeps its size.
function startChart(svg, height) {
  const width = Math.max(280, svg.parentElement.clientWidth);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  return width;
}

function showTip(mark, text) {
  const tip = byId("tip");
  tip.textContent = text;
  tip.hidden = false;
  const at = mark.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = Math.min(at.left + at.width / 2 + 12, innerWidth - size.width - 8);
  const top = at.top - size.height - 8;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${top < 8 ? at.bottom + 8 : top}px`;
}
const hideTip = () => { byId("tip").hidden = true; };

// Marks of a chart tell what they are when the pointer is on them, or by the keyboard:
// the chart is one stop of Tab, arrows go from mark to mark.
function explainMarks(marks) {
  marks.forEach(([mark, text], i) => {
    mark.classList.add("mark");
    mark.setAttribute("tabindex", i === 0 ? 0 : -1);
    mark.setAttribute("role", "img");
    mark.setAttribute("aria-label", text);
    mark.addEventListener("pointerenter", () => showTip(mark, text));
    mark.addEventListener("pointerleave", hideTip);
    mark.addEventListener("focus", () => showTip(mark, text));
    mark.addEventListener("blur", hideTip);
    mark.addEventListener("keydown", (event) => {
      const by = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
      if (event.key === "Escape") hideTip();
      if (!by) return;
      event.preventDefault();
      const next = marks[(i + by + marks.length) % marks.length][0];
      mark.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });
  });
}
