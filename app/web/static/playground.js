// A model's answer to a text of one's own: labels with their probabilities, and the path along a label tree.

import { call, get } from "./api.js";
import { element, faults, number, percent } from "./words.js";

const form = document.getElementById("ask");
const answer = document.getElementById("answer");

function instance() {
  const text = form.elements.instance.value;
  return form.elements.kind.value === "text" ? { text } : JSON.parse(text);
}

function bars(top) {
  const sure = top.every((each) => each.probability !== null);
  return element("ol", { class: "answers" }, ...top.map((each) => element("li", {},
    element("span", { class: "name" }, each.label),
    element("span", { class: "number" }, sure ? percent(each.probability) : `score ${number(each.score)}`),
    sure ? element("progress", { max: "1", value: String(each.probability), "aria-label": `Probability of ${each.label}` }) : null)));
}

function steps(path) {
  return element("div", {}, element("h3", {}, "Path"), element("ol", { class: "path" }, ...path.map((step) => element("li", { title: step.margin === null ? "the only child" : `margin ${number(step.margin)}` }, step.label))));
}

function show(found) {
  const [one] = found.predictions;
  const parts = [element("h2", {}, one.subtree ? "Labels" : one.label)];
  if (one.subtree) parts.push(element("ul", { class: "path" }, ...one.subtree.map((node) => element("li", {}, node.label))));
  if (found.sure_from) {
    parts.push(element("p", { class: one.sure ? "notice good" : "notice warn" }, one.sure ? `Sure enough: ${one.sure.label}, ${percent(one.sure.probability)}` : `Nothing is as sure as ${percent(found.sure_from.threshold)}.`));
  }
  parts.push(bars(one.top));
  if (one.path) parts.push(steps(one.path));
  parts.push(element("p", { class: "muted small" }, `Version ${found.version} of ${found.model}`));
  answer.replaceChildren(...parts);
  localStorage.setItem("tour", "done");
}

async function ask() {
  try {
    const [name, version] = [form.elements.model.value, form.elements.version.value];
    const body = { instances: [instance()], top_k: 5 };
    if (form.elements.threshold.value) body.threshold = Number(form.elements.threshold.value);
    show(await call("POST", `/models/${encodeURIComponent(name)}/predict${version}`, body));
  } catch (error) {
    const refusal = error instanceof SyntaxError ? new Error("That is no JSON.") : error;
    answer.replaceChildren(faults(refusal));
  }
}

async function example(dataset) {
  const { n_rows: n } = await get(`/datasets/${dataset}/rows?limit=1`);
  const { rows: [row] } = await get(`/datasets/${dataset}/rows?limit=1&offset=${Math.floor(Math.random() * n)}`);
  const features = { indices: (row.features ?? []).map(([index]) => index), values: (row.features ?? []).map(([, value]) => value) };
  form.elements.instance.value = row.text ?? JSON.stringify(features);
  form.elements.kind.value = row.text === null ? "json" : "text";
  answer.replaceChildren(element("p", { class: "muted" }, `Row ${number(row.row)} of the dataset; its label is ${row.label ?? (row.labels ?? []).join(", ")}.`));
}

form.querySelector("[data-example]")?.addEventListener("click", (event) => example(event.target.dataset.example));
form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
form.elements.model.addEventListener("change", () => location.assign(`/playground?model=${encodeURIComponent(form.elements.model.value)}`));
