// The form for a tuning: methods and lines of values become a space, unless one is written out.

import { costsOf } from "./costs.js";
import { nameAfterDataset, submitsJob } from "./jobform.js";
import { number } from "./words.js";

const form = document.getElementById("tune");
const of = (name) => form.elements[name].value;

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function grid() {
  const lines = of("grid").split("\n").filter((line) => line.trim());
  return Object.fromEntries(lines.map((line) => {
    const [name, ...rest] = line.split("=");
    if (!rest.length) throw new Error(`“${line.trim()}” is not valid: expected name = value, value`);
    return [name.trim(), rest.join("=").split(",").map((part) => parsed(part.trim()))];
  }));
}

function space() {
  if (of("space").trim()) return JSON.parse(of("space"));
  return [...form.elements.solvers.selectedOptions].map((option) => ({ solver: option.value, grid: grid() }));
}

function recipes() {
  if (form.elements.dataset.selectedOptions[0].dataset.kind !== "text") return [];
  return [...form.querySelectorAll('[name="text"]:checked')].map((box) => JSON.parse(box.value));
}

function request() {
  const body = { kind: "tune", dataset: of("dataset"), model: of("model"), space: space() };
  for (const name of ["measure", "hierarchy", "unseen_labels"]) if (of(name)) body[name] = of(name);
  for (const field of form.querySelectorAll("[data-number]")) {
    if (field.value !== "") body[field.dataset.number] = Number(field.value);
  }
  if (of("costs").trim()) body.costs = costsOf(of("costs"));
  const texts = recipes();
  if (texts.length) body.texts = texts;
  return body;
}

function recount() {
  document.getElementById("recipes").hidden = form.elements.dataset.selectedOptions[0].dataset.kind !== "text";
  const said = document.getElementById("count");
  try {
    const body = request();
    const sizes = body.space.map((each) => Object.values(each.grid ?? {}).reduce((n, values) => n * values.length, 1));
    const every = sizes.reduce((a, b) => a + b, 0) * Math.max(1, body.texts?.length ?? 1);
    const drawn = body.draws !== undefined && (body.draws < every || body.space.some((each) => each.ranges));
    said.textContent = `${number(drawn ? body.draws : every)} trials.`;
  } catch (error) {
    said.textContent = error.message;
  }
}

nameAfterDataset(form);
form.addEventListener("input", recount);
submitsJob(form, request, "/tune");
recount();
