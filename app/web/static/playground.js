// A model's prediction for an instance: labels with probabilities, the path in the hierarchy, and the explanation.

import { call, get } from "./api.js";
import { correction } from "./correct.js";
import { namesOf, ownStep, titled } from "./names.js";
import { stay } from "./page.js";
import { why } from "./why.js";
import { element, faults, number, percent } from "./words.js";

const MOST_TERMS = 12;

const form = document.getElementById("ask");
const answer = document.getElementById("answer");

function instance() {
  const text = form.elements.instance.value;
  return form.elements.kind.value === "text" ? { text } : JSON.parse(text);
}

function bars(top, names) {
  const sure = top.every((each) => Number.isFinite(each.probability));
  return element("ol", { class: "answers" }, ...top.map((each) => element("li", {},
    element("span", { class: "name" }, ...titled(each.label, names.get(each.label))),
    element("span", { class: "number" }, sure ? percent(each.probability) : `score ${number(each.score)}`),
    sure ? element("progress", { max: "1", value: String(each.probability), "aria-label": `Probability of ${each.label}` }) : null)));
}

function steps(path, called) {
  return element("div", {}, element("h3", {}, "Path"), element("ol", { class: "path" }, ...path.map((step, at) => element("li", { title: step.margin === null ? "the only child" : `margin ${number(step.margin)}` }, ownStep(called(step.label), at ? called(path[at - 1].label) : "")))));
}

// a blank text has no features; of another, where the answer is explained, no part is named then
function countsForNothing(one, asked) {
  if (asked.text !== undefined && !asked.text.trim()) return true;
  return one.explanation?.length > 0 && one.explanation.every((step) => !step.lifted_by.length && !step.lowered_by.length && !step.rest);
}

function show(found, asked) {
  const [one] = found.predictions;
  const names = namesOf([...one.top, ...(one.subtree ?? []), ...(one.sure_labels ?? [])]);
  const called = (label) => names.get(label) ?? label;
  const parts = [element("h2", {}, one.subtree ? "Labels" : called(one.label))];
  if (one.subtree && !one.subtree.length) parts.push(element("p", { class: "notice" }, "No label: none is more probable than not. The candidates below are not in the set."));
  else if (one.subtree) parts.push(element("ul", { class: "path" }, ...one.subtree.map((node) => element("li", { title: node.label }, called(node.label)))));
  if (found.sure_from) {
    const sure = one.sure_labels ?? (one.sure ? [one.sure] : []);
    const none = found.sure_from.threshold === null ? "No threshold reached that precision." : `No label reaches probability ${percent(found.sure_from.threshold)}.`;
    parts.push(element("p", { class: sure.length ? "notice good" : "notice warn" }, sure.length ? `Above the threshold: ${sure.map((each) => `${called(each.label)}, ${percent(each.probability)}`).join("; ")}` : none));
  }
  if (one.known_terms === 0 && asked.text?.trim()) parts.push(element("p", { class: "notice warn" }, "The model knows no word of this text. The prediction is that of an empty text."));
  else if (one.known_terms === 0 && asked.record && Object.values(asked.record).every((value) => typeof value === "string" || value === null)) parts.push(element("p", { class: "notice warn" }, "The model knows no word of this record's text. The prediction is that of an empty text."));
  else if (one.known_terms === 0 && asked.record) parts.push(element("p", { class: "notice warn" }, "The model knows no word of this record's text. The prediction is based on the other columns."));
  else if (countsForNothing(one, asked)) parts.push(element("p", { class: "notice warn" }, "The model knows no feature of this instance. The prediction is that of an empty row."));
  if (one.unknown) parts.push(element("p", { class: "notice warn" }, `No training row has: ${one.unknown.join(", ")}.`));
  if (one.unseen_language) parts.push(element("p", { class: "notice warn" }, `The language of the text is ${one.unseen_language}; hardly any training text was in it.`));
  const untrained = (one.labels ?? []).filter((each) => each.seen === false);
  if (untrained.length) parts.push(element("p", { class: "muted small" }, `No training row has: ${untrained.map((each) => called(each.label)).join(", ")}.`));
  parts.push(bars(one.top, names));
  if (one.path) parts.push(steps(one.path, called));
  if (one.explanation?.length) parts.push(why(one.explanation, asked.text ?? null, called));
  if (answer.dataset.corrects !== undefined) parts.push(correction(found, 0, asked, names));
  parts.push(element("p", { class: "muted small" }, `Version ${found.version} of ${found.model}${one.text_language ? `; language of the text: ${one.text_language}` : ""}`));
  answer.replaceChildren(...parts);
  localStorage.setItem("tour", "done");
}

async function ask() {
  try {
    const [name, version] = [form.elements.model.value, form.elements.version.value];
    const asked = instance();
    const body = { instances: [asked], top_k: 5, ...(asked.text || asked.record ? { text_language: "auto" } : {}) };
    if (form.elements.explain.checked) body.explain = MOST_TERMS;
    if (form.elements.threshold.value) body.threshold = Number(form.elements.threshold.value);
    show(await call("POST", `/models/${encodeURIComponent(name)}/predict${version}`, body), asked);
  } catch (error) {
    const shown = form.elements.instance.placeholder;
    const hint = shown.startsWith("{") ? ` Expected, for example, ${shown}. “Use a row of the dataset” shows a full instance.` : "";
    const refusal = error instanceof SyntaxError ? new Error(`Invalid JSON.${hint}`) : error;
    answer.replaceChildren(faults(refusal));
  }
}

async function example(dataset) {
  const { n_rows: n } = await get(`/datasets/${dataset}/rows?limit=1`);
  const { rows: [row] } = await get(`/datasets/${dataset}/rows?limit=1&whole=true&offset=${Math.floor(Math.random() * n)}`);
  const features = { indices: (row.features ?? []).map(([index]) => index), values: (row.features ?? []).map(([, value]) => value) };
  const { instance: reads } = await get(`/models/${encodeURIComponent(form.elements.model.value)}/inputs${form.elements.version.value}`);
  const isText = reads === "text";
  let note = "";
  if (!isText && row.record !== null && row.text !== null) {
    const { columns } = await get(`/datasets/${dataset}/statistics?limit=1`);
    const texts = columns.filter((each) => each.role === "text").map((each) => each.name);
    // several were kept as one text, which a model reads as it reads them
    if (!texts.some((name) => name in row.record)) {
      row.record = { [texts[0]]: row.text, ...row.record };
      note = ` ${texts[0]} contains all texts of the row, one per line, as models read them.`;
    }
  }
  form.elements.instance.value = isText ? row.text : JSON.stringify(row.record === null ? features : { record: row.record });
  form.elements.kind.value = isText ? "text" : "json";
  answer.replaceChildren(element("p", { class: "muted" }, `Row ${number(row.row)} of the dataset; its label is ${row.label ?? (row.labels ?? []).join(", ")}.${note}`));
}

form.querySelector("[data-example]")?.addEventListener("click", (event) => {
  example(event.target.dataset.example).catch((refusal) => answer.replaceChildren(faults(refusal)));
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
form.elements.model.addEventListener("change", () => {
  stay(form.elements.model);
  location.assign(`/playground?model=${encodeURIComponent(form.elements.model.value)}`);
});
