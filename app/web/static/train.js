// The form for a training job. The solver's JSON schema becomes fields; what is left as it is stays out of the request.

import { call, get } from "./api.js";
import { element, faults } from "./words.js";

const form = document.getElementById("train");
const place = document.getElementById("params");
const about = document.getElementById("about-solver");
const [fault] = form.querySelectorAll("[data-faults]");

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
  const more = { id, "data-param": name, "data-type": schema.type, "aria-describedby": hint };
  const preset = schema.default;
  if (schema.enum || schema.type === "boolean") {
    const values = schema.enum ?? [true, false];
    const made = element("select", more, ...(preset === null || preset === undefined ? [element("option", { value: "" }, "by default")] : []),
      ...values.map((value) => element("option", { value: JSON.stringify(value), selected: value === preset }, String(value))));
    made.dataset.type = "choice";
    return made;
  }
  const placeholder = preset === null || preset === undefined ? "by default" : typeof preset === "object" ? JSON.stringify(preset) : String(preset);
  const numeric = schema.type === "number" || schema.type === "integer";
  return element("input", { ...more, placeholder, inputmode: numeric ? "decimal" : null, spellcheck: "false", autocomplete: "off" });
}

function fields(solver) {
  const properties = Object.entries(solver.params_schema.properties ?? {});
  const labels = properties.map(([name, given]) => {
    const schema = kind(given);
    return element("div", { class: "field" },
      element("label", { for: `param-${name}` }, name.replaceAll("_", " ")),
      input(name, schema),
      element("small", { id: `param-${name}-hint` }, (schema.description ?? "") + bounds(schema)));
  });
  place.replaceChildren(...labels);
  about.replaceChildren(element("p", {}, element("strong", {}, solver.title)), element("pre", {}, solver.summary), element("p", { class: "muted small" }, solver.paper));
}

function value(field) {
  if (field.dataset.type === "choice") return JSON.parse(field.value);
  if (field.dataset.type === "number" || field.dataset.type === "integer") {
    const found = Number(field.value);
    return Number.isNaN(found) ? field.value : found;
  }
  if (field.dataset.type === "string") return field.value;
  try {
    return JSON.parse(field.value);
  } catch {
    return field.value;
  }
}

function request() {
  const of = (name) => form.elements[name].value;
  const params = {};
  for (const field of place.querySelectorAll("[data-param]")) {
    const preset = field.querySelector("option[selected]")?.value;
    if (field.value !== "" && field.value !== preset) params[field.dataset.param] = value(field);
  }
  const body = { kind: "train", dataset: of("dataset"), model: of("model"), solver: of("solver"), params };
  if (of("hierarchy")) body.hierarchy = of("hierarchy");
  for (const [name, preset] of [["seed", "0"], ["threads", "1"], ["test_fraction", "0.2"]]) {
    if (of(name) !== "" && of(name) !== preset) body[name] = Number(of(name));
  }
  const text = {};
  for (const field of form.querySelectorAll("[data-text]")) {
    const preset = field.querySelector("option[selected]")?.value ?? field.dataset.preset;
    if (field.value !== "" && field.value !== preset) text[field.dataset.text] = JSON.parse(field.value);
  }
  if (Object.keys(text).length) body.text = text;
  return body;
}

let named = form.elements.model.value;
form.elements.dataset.addEventListener("change", () => {
  if (form.elements.model.value === named) form.elements.model.value = form.elements.dataset.value;
  named = form.elements.dataset.value;
});

async function choose() {
  fields(await get(`/solvers/${form.elements.solver.value}`));
}

form.elements.solver.addEventListener("change", choose);
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button.primary");
  button.disabled = true;
  fault.replaceChildren();
  try {
    const job = await call("POST", "/jobs", request());
    location.assign(`/jobs/${job.id}`);
  } catch (error) {
    fault.replaceChildren(faults(error));
    button.disabled = false;
  }
});
choose();
