// Runs the scripts of a page of ours on as much of a browser's document as they use, and
// prints what came of it as JSON: {title, text, rows, points, boxes, elements}.
//     node open_page.mjs PAGE.html [SEARCH]
import {readFileSync} from "node:fs";

const page = readFileSync(process.argv[2], "utf8");
const scripts = [...page.matchAll(/<script>([^]*?)<\/script>/g)].map((match) => match[1]);

class Element {
  constructor(name) {
    this.name = name;
    this.children = [];
    this.attributes = {};
    this.style = {};
    this.listeners = {};
    this.classList = {add: (word) => { this.attributes.class = `${this.attributes.class || ""} ${word}`; }};
    this.clientWidth = 900;
    this.value = "";
    this.namespaceURI = "http://www.w3.org/2000/svg";
  }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  addEventListener(kind, listener) { (this.listeners[kind] ||= []).push(listener); }
  get parentElement() { return this; }
  get textContent() { return this.children.map((child) => child instanceof Element ? child.textContent : String(child)).join(" "); }
  set textContent(text) { this.children = [text]; }
  all() { return [this, ...this.children.filter((child) => child instanceof Element).flatMap((child) => child.all())]; }
}

const byId = new Map();
for (const [, attributes] of page.matchAll(/<\w+([^>]*\bid="[^>]*)>/g)) {
  const id = /\bid="([^"]*)"/.exec(attributes)[1], element = new Element(id);
  const data = new RegExp(`<script type="application/json" id="${id}">([^]*?)</script>`).exec(page);
  if (data) element.textContent = data[1];
  byId.set(id, element);
}
globalThis.document = {
  title: "",
  getElementById: (id) => byId.get(id),
  createElement: (name) => new Element(name),
  createElementNS: (space, name) => new Element(name),
  querySelector: (name) => new Element(name),
};
globalThis.innerWidth = 1000;
globalThis.addEventListener = () => {};
for (const script of scripts) (0, eval)(script);
if (process.argv[3] !== undefined) {
  byId.get("search").value = process.argv[3];
  for (const listener of byId.get("search").listeners.input) listener();
}
const elements = [...byId.values()].filter((element) => !["profile", "machine", "pack"].includes(element.name))
  .flatMap((element) => element.all());
const ofClass = (word) => elements.filter((element) => (element.attributes.class || "").split(" ").includes(word)).length;
console.log(JSON.stringify({
  title: document.title, text: [...byId.values()].map((element) => element.textContent).join("\n"),
  rows: ofClass("kernel"), points: ofClass("point"), boxes: ofClass("box"), elements: [...new Set(elements.map((element) => element.name))],
}));
