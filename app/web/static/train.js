// The form for a training job. The solver's JSON schema becomes fields; unchanged fields are not sent.

import { call, get } from "./api.js";
import { COSTS_HINT, costsOf } from "./costs.js";
import { nameAfterDataset, submitsJob } from "./jobform.js";
import { preview, recipe } from "./recipe.js";
import { duration, element, number, size } from "./words.js";

const form = document.getElementById("train");
const place = document.getElementById("params");
const about = document.getElementById("about-solver");
const estimate = document.getElementById("estimate");
// a field of the form is called dataset, and hides what forms have under that name
const again = JSON.parse(form.getAttribute("data-again") ?? "null");
// what people try first of numbers that go by powers of ten
const TRIED = { C: ["0.01", "0.1", "1", "10", "100"], tol: ["0.1", "0.01", "0.001", "0.0001"] };

function bounds(schema) {
  const least = schema.minimum ?? schema.exclusiveMinimum;
  const most = schema.maximum ?? schema.exclusiveMaximum;
  if (least === undefined && most === undefined) return "";
  if (most === undefined || most >= 1e9) return ` ${schema.exclusiveMinimum === undefined ? "From" : "Above"} ${least}.`;
  if (least === undefined) return ` Up to ${most}.`;
  return ` ${least} to ${most}.`;
}

// the one kind of value beside null that a field takes, else null: then it is written as JSON
function kind(schema) {
  const kinds = (schema.anyOf ?? [schema]).filter((each) => each.type !== "null");
  return kinds.length === 1 ? { ...schema, ...kinds[0], description: schema.description } : { ...schema, type: "json" };
}

function input(name, schema) {
  const id = `param-${name}`;
  const hint = `${id}-hint`;
  if (name === "costs") return element("textarea", { id, "data-param": name, "data-type": "costs", "aria-describedby": hint, rows: "2", spellcheck: "false", placeholder: COSTS_HINT });
  const more = { id, "data-param": name, "data-type": schema.type, "aria-describedby": hint };
  const preset = schema.default;
  if (schema.enum || schema.type === "boolean") {
    const values = schema.enum ?? [true, false];
    const made = element("select", more, ...(preset === null || preset === undefined ? [element("option", { value: "" }, "default")] : []),
      ...values.map((value) => element("option", { value: JSON.stringify(value), selected: value === preset }, String(value))));
    made.dataset.type = "choice";
    return made;
  }
  const placeholder = preset === null || preset === undefined ? "default" : typeof preset === "object" ? JSON.stringify(preset) : String(preset);
  if (schema.type !== "number" && schema.type !== "integer") return element("input", { ...more, placeholder, spellcheck: "false", autocomplete: "off" });
  const [min, max] = [schema.minimum ?? schema.exclusiveMinimum, schema.maximum ?? schema.exclusiveMaximum];
  const list = TRIED[name] ? `${id}-tried` : null;
  return element("input", { ...more, placeholder, type: "number", step: schema.type === "integer" ? "1" : "any", min, max: max >= 1e9 ? null : max, list, autocomplete: "off" });
}

// between these a line may break; none of them is first, or behind another operator, where it is a sign
const breaks = (node, before) => node.localName === "mspace" || (node.localName === "mo" && "+−=".includes(node.textContent) && before && (before.localName !== "mo" || ")|‖".includes(before.textContent)));

// browsers do not break a formula into lines, but they do between several
function formula(solver) {
  if (!solver.mathml) return null;
  const math = document.importNode(new DOMParser().parseFromString(solver.mathml, "application/xml").documentElement, true);
  const pieces = [[]];
  for (const node of [...math.firstElementChild.childNodes]) {
    if (breaks(node, pieces.at(-1).at(-1))) {
      pieces.push([]);
      if (node.localName === "mo") node.setAttribute("form", "infix");
    }
    pieces.at(-1).push(node);
  }
  const lines = pieces.filter((each) => each.length).map((nodes) => {
    const piece = document.createElementNS(math.namespaceURI, "math");
    piece.setAttribute("displaystyle", "true");
    piece.append(...nodes);
    return piece;
  });
  return element("p", { class: "formula", role: "group", "aria-label": "Objective" }, element("span", { class: "muted" }, "minimise "), ...lines);
}

// the parameters' fields that do not have their defaults
const changed = () => [...place.querySelectorAll("[data-param]")].filter((field) => field.value !== "" && field.value !== field.querySelector("option[selected]")?.value);

function fields(solver) {
  const properties = Object.entries(solver.params_schema.properties ?? {});
  const labels = properties.map(([name, given]) => {
    const schema = kind(given);
    return element("div", { class: "field" },
      element("label", { for: `param-${name}` }, name.replaceAll("_", " ")),
      input(name, schema),
      TRIED[name] ? element("datalist", { id: `param-${name}-tried` }, ...TRIED[name].map((each) => element("option", { value: each }))) : null,
      element("small", { id: `param-${name}-hint` }, (schema.description ?? "") + bounds(schema)));
  });
  const [typed, focused] = [changed(), document.activeElement?.id];
  place.replaceChildren(...labels);
  // what was typed for another method, perhaps while this one's fields were on their way, holds for this one too
  for (const field of typed) {
    const same = document.getElementById(field.id);
    if (same?.dataset.type === field.dataset.type && same.matches("select") === field.matches("select") && (!same.matches("select") || [...same.options].some((option) => option.value === field.value))) same.value = field.value;
  }
  if (focused?.startsWith("param-")) document.getElementById(focused)?.focus();
  // paragraphs wrap as the page is wide; what is indented is a formula, and keeps its lines
  const paragraphs = solver.summary.split("\n\n").map((each) => element(each.startsWith(" ") ? "pre" : "p", {}, each));
  const text = element("details", {}, element("summary", {}, "Summary"), ...paragraphs);
  about.replaceChildren(...[element("p", {}, element("strong", {}, solver.title)), formula(solver), text, element("p", { class: "muted small" }, solver.paper)].filter(Boolean));
}

function value(field) {
  if (field.dataset.type === "choice") return JSON.parse(field.value);
  if (field.dataset.type === "number" || field.dataset.type === "integer") {
    const found = Number(field.value);
    return Number.isNaN(found) ? field.value : found;
  }
  if (field.dataset.type === "string") return field.value;
  if (field.dataset.type === "costs") return costsOf(field.value);
  try {
    return JSON.parse(field.value);
  } catch {
    return field.value;
  }
}

const part = (kind) => form.querySelector(`[data-recipe="${kind}"]`);

// texts alone have no columns, and numbers no texts: such a recipe is refused
function fit() {
  const { kind } = form.elements.dataset.selectedOptions[0].dataset;
  part("text").hidden = kind === "sparse";
  part("columns").hidden = kind === "text";
}

// The dataset with the recipe of its features, which do not depend on the parameters of a method.
function features() {
  const body = { dataset: form.elements.dataset.value };
  for (const kind of ["text", "columns"].filter((each) => !part(each).hidden)) {
    // parts of a recipe that the form has no field for stay as they were
    const kept = Object.entries(again?.[kind] ?? {}).filter(([name]) => !form.querySelector(`[data-${kind}="${name}"]`));
    const said = { ...recipe(form, kind), ...Object.fromEntries(kept) };
    if (Object.keys(said).length) body[kind] = said;
  }
  return body;
}

function request() {
  const of = (name) => form.elements[name].value;
  const params = {};
  for (const field of changed()) params[field.dataset.param] = value(field);
  const body = { kind: "train", model: of("model"), solver: of("solver"), params, ...features() };
  if (of("hierarchy")) body.hierarchy = of("hierarchy");
  for (const [name, preset] of [["seed", "0"], ["threads", "1"], ["test_fraction", "0.2"]]) {
    if (of(name) !== "" && of(name) !== preset) body[name] = Number(of(name));
  }
  if (of("every_c") !== "") body.every_c = { ...again?.every_c, eps: Number(of("every_c")) };
  if (form.elements.warm_start?.checked) body.warm_start = form.elements.warm_start.value;
  if (form.elements.keep_duals.checked) body.keep_duals = true;
  return body;
}

function set(field, value_) {
  const text = field.dataset.type === "choice" || typeof value_ === "object" ? JSON.stringify(value_) : String(value_);
  if (field.matches("select") && ![...field.options].some((option) => option.value === text)) field.append(element("option", {}, text));
  field.value = text;
}

// As a version was trained.
function fill() {
  for (const name of ["hierarchy", "seed", "threads", "test_fraction"]) if (again[name] !== undefined) set(form.elements[name], again[name]);
  for (const [name, given] of Object.entries(again.params ?? {})) {
    const field = document.getElementById(`param-${name}`);
    if (field) set(field, given);
  }
  for (const kind of ["text", "columns"]) {
    for (const field of form.querySelectorAll(`[data-${kind}]`)) {
      const given = again[kind]?.[field.dataset[kind]];
      if (given !== undefined && given !== null) set(field, given);
    }
  }
  form.elements.keep_duals.checked = again.keep_duals === true;
  if (again.every_c !== undefined) set(form.elements.every_c, again.every_c.eps);
}

function described(plan) {
  const parts = [];
  if (plan.memory_bytes !== null) parts.push(`about ${size(plan.memory_bytes)} of memory`);
  if (plan.earlier !== null) {
    const { n_jobs: n, seconds } = plan.earlier;
    const span = n === 1 ? duration(seconds.most) : `${duration(seconds.least)} to ${duration(seconds.most)}`;
    parts.push(`${span}, from the last ${n === 1 ? "training" : `${number(n)} trainings`} of this dataset with this method`);
  }
  const sentences = parts.length ? [`Estimated: ${parts.join("; ")}.`] : [];
  if (plan.earlier === null) sentences.push("No time estimate: this method has not been trained on this dataset yet.");
  return sentences.join(" ");
}

let asked = 0;
let waiting;
// What the job will take, and what is wrong with it, before it is queued.
function plan() {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const wrong = form.querySelector("input:invalid");
    if (wrong) {
      asked += 1;
      estimate.textContent = wrong.validity.valueMissing ? "" : `${wrong.labels[0].textContent}: ${wrong.title || wrong.validationMessage}.`;
      return;
    }
    const mine = ++asked;
    try {
      const found = await call("POST", "/jobs/plan", request());
      if (mine === asked) estimate.textContent = described(found);
    } catch (error) {
      if (mine === asked) estimate.textContent = [error.message, ...(error.lines ?? [])].join(" ");
    }
  }, 300);
}
form.addEventListener("change", plan);
form.elements.model.addEventListener("input", plan);
const editor = document.getElementById("recipe");
editor.addEventListener("input", () => preview(features));
// the preview is computed only while it is visible
editor.closest("details").addEventListener("toggle", () => preview(features));
form.elements.dataset.addEventListener("change", () => {
  fit();
  preview(features);
});
fit();

nameAfterDataset(form);

let choices = 0;
async function choose() {
  const mine = ++choices;
  const solver = await get(`/solvers/${form.elements.solver.value}`);
  if (mine !== choices) return chosen; // another was chosen meanwhile
  fields(solver);
  if (again && form.elements.solver.value === again.solver) fill();
  plan();
}

if (again?.solver) form.elements.solver.value = again.solver;
// a form that is sent before it has its parameters waits for them
let chosen = choose();
form.elements.solver.addEventListener("change", () => {
  chosen = choose();
});
submitsJob(form, () => chosen.then(request), "/jobs");
