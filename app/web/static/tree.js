// A label tree, whose nodes are fetched when they are unfolded, and found by their names; with rows, or with F1 as a colour.

import { get } from "./api.js";
import { inBrowsers, named, shortId } from "./names.js";
import { element, faults, number, percent } from "./words.js";

const card = document.getElementById("tree");
const roots = card.querySelector("[data-roots]");
const search = document.getElementById("search");
const said = card.querySelector("[data-said]");
const { id, evaluation } = card.dataset;
const language = document.getElementById("language");
const counted = document.getElementById("counted");
if (language) {
  const tags = Object.fromEntries([...language.options].map(({ value }) => [value, value]));
  language.value = inBrowsers(tags) ?? tags.en ?? language.value;
}
const measured = new Map();
const AT_ONCE = 200;
const MOST_FOUND = 100;
let asked = 0;

const rows = () => (counted?.value ? `&dataset=${encodeURIComponent(counted.value)}` : "");
const children = (parent, offset) => get(`/hierarchies/${id}/nodes?parent=${encodeURIComponent(parent)}&offset=${offset}&limit=${AT_ONCE}${rows()}`);

// What is said of a node: its name in the language that was chosen, rows, and how well it is distinguished from others.
function facts(node) {
  const parts = [];
  const called = node.names[language?.value] ?? named(node.names);
  if (called && called !== node.name && !node.notation) parts.push(element("small", { class: "muted" }, shortId(node.name)));
  if (node.deprecated) parts.push(element("span", { class: "badge cancelling" }, node.replaced_by.length ? `use ${node.replaced_by.join(", ")}` : "deprecated"));
  if (node.n_rows !== null) parts.push(element("small", { class: "muted number" }, `${number(node.n_rows)} rows`));
  const found = measured.get(node.name);
  if (found) {
    const chip = element("span", { class: "chip number", title: `precision ${percent(found.precision)}, recall ${percent(found.recall)}, ${number(found.support)} rows` }, `F1 ${percent(found.f1, 0)}`);
    chip.style.setProperty("--share", found.f1.toFixed(3));
    parts.push(chip);
  }
  return { called: called ?? node.name, parts };
}

function item(node) {
  const { called, parts } = facts(node);
  const notation = node.notation && node.notation !== called ? [element("small", { class: "muted mono" }, node.notation), " "] : [];
  const name = element("span", { class: "name" }, ...notation, called);
  const said = (...more) => element("span", { class: "said" }, ...[name, ...more, ...parts].flatMap((part) => [part, " "]));
  if (!node.n_children) return element("li", {}, element("div", { class: "node leaf" }, said()));
  const button = element("button", { class: "small", type: "button", "aria-expanded": "false", "aria-label": `Children of ${called}` }, "+");
  const made = element("li", {}, element("div", { class: "node" }, button, said(element("small", { class: "muted number", title: "Children" }, `(${number(node.n_children)})`))));
  button.addEventListener("click", () => fold(button, made, node.name));
  return made;
}

async function fold(button, place, name) {
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  button.textContent = open ? "+" : "−";
  const inner = place.querySelector(":scope > ul");
  if (open) inner.hidden = true;
  else if (inner) inner.hidden = false;
  else {
    const list = element("ul");
    place.append(list);
    await more(list, name, 0);
  }
}

async function more(list, parent, offset) {
  const { nodes, n_nodes: n } = await children(parent, offset);
  list.append(...nodes.map(item));
  const shown = offset + nodes.length;
  if (shown >= n) return;
  const button = element("button", { class: "small", type: "button" }, `${number(n - shown)} more`);
  const place = element("li", {}, button);
  button.addEventListener("click", () => { place.remove(); more(list, parent, shown); });
  list.append(place);
}

async function find(text) {
  const mine = ++asked;
  const { nodes, n_nodes: n } = await get(`/hierarchies/${id}/nodes?search=${encodeURIComponent(text)}&limit=${MOST_FOUND}${rows()}`);
  if (mine !== asked) return;
  said.textContent = n > nodes.length ? `${number(n)} found, the first ${nodes.length} shown` : `${number(n)} found`;
  roots.replaceChildren(...nodes.map((node) => {
    const made = item(node);
    if (node.parent !== null) made.querySelector(".said").append(element("small", { class: "muted" }, `in ${node.parent}`));
    return made;
  }));
}

async function show() {
  roots.setAttribute("aria-busy", "true");
  try {
    if (search.value) await find(search.value);
    else {
      asked += 1;
      said.textContent = "";
      roots.replaceChildren();
      await more(roots, "root", 0);
    }
  } catch (error) {
    roots.replaceChildren(element("li", {}, faults(error)));
  }
  roots.removeAttribute("aria-busy");
}

let waiting;
search.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(show, 200);
});
search.form.addEventListener("submit", (event) => event.preventDefault());
for (const select of [language, counted]) select?.addEventListener("change", show);

// all labels of the evaluation, a thousand at a time
async function measure() {
  for (let offset = 0; ; offset += 1000) {
    const { labels } = await get(`/evaluations/${evaluation}/labels?limit=1000&offset=${offset}&order=label`);
    for (const each of labels) measured.set(each.label, each);
    if (labels.length < 1000) return;
  }
}

if (evaluation) await measure();
show();
