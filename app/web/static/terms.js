// The features with the largest and smallest weights of a class, selected in the table or by name.

import { get } from "./api.js";
import { element, faults, number } from "./words.js";

const card = document.getElementById("terms");
const field = card.querySelector("input");
const said = card.querySelector("[data-said]");
let asked = 0;
// the choices of the field have the names of labels
const called = (label) => [...card.querySelectorAll("option")].find((each) => each.value === label)?.label || label;

function side(title, terms, most, kind) {
  const rows = terms.map((term) => {
    const bar = element("span", { class: `bar ${kind}` });
    bar.style.setProperty("--share", (Math.abs(term.weight) / (most || 1)).toFixed(3));
    return element("tr", {}, element("th", { scope: "row", class: "name" }, String(term.feature)), element("td", {}, bar), element("td", { class: "number" }, number(term.weight, 3)));
  });
  const head = element("tr", {}, element("th", { scope: "col" }, title), element("th", { scope: "col" }, element("span", { class: "visually-hidden" }, "As a bar")), element("th", { scope: "col", class: "number" }, "Weight"));
  return element("div", { class: "scroll" }, element("table", { class: "parts" }, element("thead", {}, head), element("tbody", {}, ...rows)));
}

async function show(label) {
  const mine = ++asked;
  try {
    const found = await get(`${card.dataset.path}?label=${encodeURIComponent(label)}`);
    if (mine !== asked) return;
    const most = Math.max(...[...found.lifting, ...found.lowering].map((term) => Math.abs(term.weight)));
    said.replaceChildren(element("div", { class: "grid" }, side(`For ${called(label)}`, found.lifting, most, "lifts"), side(`Against ${called(label)}`, found.lowering, most, "lowers")));
  } catch (error) {
    if (mine === asked) said.replaceChildren(faults(error));
  }
}

card.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  show(field.value);
});
document.getElementById("labels")?.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-label]");
  if (!button) return;
  field.value = button.dataset.label;
  show(field.value);
  card.scrollIntoView({ block: "nearest" });
  card.focus();
});
if (field.value) show(field.value);
