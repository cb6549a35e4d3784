// A label tree, whose nodes are fetched when they are unfolded, and found by their names.

import { get } from "./api.js";
import { element, faults, number } from "./words.js";

const card = document.getElementById("tree");
const roots = card.querySelector("[data-roots]");
const search = document.getElementById("search");
const said = card.querySelector("[data-said]");
const { id } = card.dataset;
const AT_ONCE = 200;
const MOST_FOUND = 100;
let asked = 0;

const children = (parent, offset) => get(`/hierarchies/${id}/nodes?parent=${encodeURIComponent(parent)}&offset=${offset}&limit=${AT_ONCE}`);

function item(node) {
  const name = element("span", { class: "name" }, node.name);
  if (!node.n_children) return element("li", {}, element("div", { class: "node leaf" }, name));
  const button = element("button", { class: "small", type: "button", "aria-expanded": "false", "aria-label": `Children of ${node.name}` }, "+");
  const made = element("li", {}, element("div", { class: "node" }, button, name, element("small", { class: "muted number" }, number(node.n_children))));
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
  const { nodes, n_nodes: n } = await get(`/hierarchies/${id}/nodes?search=${encodeURIComponent(text)}&limit=${MOST_FOUND}`);
  if (mine !== asked) return;
  said.textContent = n > nodes.length ? `${number(n)} found, the first ${nodes.length} shown` : `${number(n)} found`;
  roots.replaceChildren(...nodes.map((node) => {
    const made = item(node);
    if (node.parent !== null) made.querySelector(".node").append(element("small", { class: "muted" }, `in ${node.parent}`));
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
show();
