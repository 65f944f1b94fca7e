"use strict";
// What a page is made of. All text of a model goes through append(), which makes text of
// it and nothing else.
const byId = (id) => document.getElementById(id);
const embedded = (id) => JSON.parse(byId(id).textContent);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const make = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);

function row(cells) {
  return make("tr", {}, ...cells.map(([kind, ...content]) => make("td", kind ? {class: kind} : {}, ...content)));
}
const heads = (names) => make("thead", {}, make("tr", {}, ...names.map(([kind, name]) =>
  make("th", kind ? {class: kind, scope: "col"} : {scope: "col"}, name))));

// Names that may be broken before each slash, since exporters write paths.
function nodesIn(nodes) {
  return nodesText(nodes).split("/").flatMap((part, i) => i === 0 ? [part] : [make("wbr", {}), `/${part}`]);
}

// A bar beside a share, against the largest one of its column.
function shareCell(share, largest) {
  const bar = make("span", {class: "share"});
  bar.style.width = `${Math.round(60 * share / (largest || 1))}px`;
  return [bar, percent(share)];
}
