// The largest errors of a version, or the labels that a job has found to be probably wrong: each row with a field for the correct label,
// or to be deleted; all changes are sent together.

import { call, get } from "./api.js";
import { named, namesBelow, titled } from "./names.js";
import { element, faults, number, percent } from "./words.js";

const card = document.getElementById("mistakes");
const list = card.querySelector("ol");
const said = card.querySelector("[data-said]");
const send = card.querySelector("[data-send]");
const { source } = card.dataset;
const edits = card.dataset.edits !== undefined;
const AT_ONCE = 10;
const changed = new Map();
let dataset = null;
let version = null;
let offset = 0;

// what labels are called
let names = new Map();
const joined = (labels) => element("strong", {}, ...(labels.length ? labels.flatMap((label, at) => [at ? ", " : "", ...titled(label, names.get(label))]) : ["none"]));

// What both sources say in the same words.
function read(found) {
  if (found.mistakes) {
    const why = found.dataset === null ? "The dataset was deleted." : "No errors, or the evaluation was made by an earlier release.";
    return { ...found, rows: found.mistakes, n_rows: found.n_mistakes, about: "Often the label is wrong, not the prediction.", none: why };
  }
  const about = `Models judged ${number(found.n_judged)} labels without learning from them; by the threshold of each label, about ${number(found.n_confident)} are wrong.`;
  const rows = found.rows.map((each) => ({
    ...each, labels: [each.label], answered: [each.suggested], probability_of_true: each.probability_of_label, corrected: each.corrected === null ? null : [each.corrected],
  }));
  return { ...found, rows, about, none: "No label is probably wrong." };
}

function sure(each) {
  if (Number.isFinite(each.probability)) return `${percent(each.probability)}, against ${percent(each.probability_of_true)} of its label`;
  return Number.isFinite(each.lead) ? `by a lead of ${number(each.lead, 3)}` : "";
}

// Why the answer is more likely than the label: similar rows and their labels, and the terms that support the answer.
function evidence(each) {
  const near = (each.nearest ?? []).map((row) => `${row.label} (row ${number(row.row)}, ${percent(row.similarity, 0)} similar)`).join(", ");
  const terms = (each.terms ?? []).map((term) => term.feature).join(", ");
  return [near && `Most similar rows: ${near}.`, terms && `Supported by: ${terms}.`].filter(Boolean).map((text) => element("p", { class: "muted small" }, text));
}

function shown(each) {
  if (each.record) return element("p", { class: "clip small" }, Object.entries(each.record).map(([name, value]) => `${name}: ${value ?? "–"}`).join(", "));
  if (each.text !== null) return element("p", { class: "clip text" }, each.text);
  return element("p", { class: "clip mono small" }, each.features.map(([index, value]) => `${index}:${number(value)}`).join(" "));
}

const rows = (n) => (n === 1 ? "row" : `${number(n)} rows`);
// how many of the changes delete a row, and how many give it other labels
function counts() {
  const deleted = [...changed.values()].filter((change) => change.delete).length;
  return { deleted, corrected: changed.size - deleted };
}

function changes() {
  const { deleted, corrected } = counts();
  send.disabled = changed.size === 0;
  send.textContent = [corrected || !deleted ? `Correct ${rows(corrected || 1)}` : "", deleted ? `${corrected ? "delete" : "Delete"} ${rows(deleted)}` : ""].filter(Boolean).join(", ");
}

function note(each, labels) {
  const now = each.corrected ?? each.labels;
  if (labels.length === now.length && labels.every((label) => now.includes(label))) changed.delete(each.row);
  else changed.set(each.row, { row: each.row, version, labels, before: now });
  changes();
}

function field(each) {
  const now = each.corrected ?? each.labels;
  const name = `mistake-${each.row}`;
  const sets = each.labels.length !== 1 || each.answered.length !== 1;
  const input = sets ? element("textarea", { id: name, class: "low" }) : element("input", { id: name, autocomplete: "off" });
  input.value = (changed.get(each.row)?.labels ?? now).join("\n");
  const take = () => note(each, sets ? input.value.split("\n").map((label) => label.trim()).filter(Boolean) : [input.value.trim()].filter(Boolean));
  input.addEventListener("input", take);
  const answered = element("button", { type: "button", class: "small" }, each.suggested === undefined ? "Prediction is correct" : "Suggestion is correct");
  answered.addEventListener("click", () => {
    input.value = each.answered.join("\n");
    input.dispatchEvent(new Event("input"));
  });
  const remove = element("button", { type: "button", class: "small", "aria-pressed": Boolean(changed.get(each.row)?.delete) }, "Delete");
  const pressed = (on) => {
    remove.setAttribute("aria-pressed", on);
    input.disabled = on;
    answered.disabled = on;
  };
  pressed(remove.getAttribute("aria-pressed") === "true");
  remove.addEventListener("click", () => {
    const on = remove.getAttribute("aria-pressed") !== "true";
    pressed(on);
    if (!on) take();
    else {
      changed.set(each.row, { row: each.row, version, delete: true, before: now });
      changes();
    }
  });
  return element("div", { class: "right" }, element("div", { class: "field" }, element("label", { for: name }, sets ? "Labels, one per line" : "Label"), input, namesBelow(input, names)), answered, remove);
}

function item(each) {
  const summary = element("p", { class: "small" }, element("span", { class: "muted" }, `Row ${number(each.row)}: labelled `), joined(each.labels),
    each.corrected ? element("span", { class: "badge good" }, "corrected: ", joined(each.corrected)) : null,
    each.deleted ? element("span", { class: "badge" }, "deleted") : null,
    element("span", { class: "muted" }, each.suggested === undefined ? ", answered " : ", suggested "), joined(each.answered), element("span", { class: "muted" }, ` ${sure(each)}`));
  return element("li", {}, element("div", {}, summary, shown(each), ...evidence(each)), edits && !each.deleted ? field(each) : null);
}

async function load() {
  try {
    const found = read(await get(`${source}?offset=${offset}&limit=${AT_ONCE}`));
    ({ dataset, dataset_version: version } = found);
    names = new Map(Object.entries(found.names ?? {}).map(([label, each]) => [label, named(each)]));
    list.replaceChildren(...found.rows.map(item));
    list.start = offset + 1;
    const [before, next] = card.querySelectorAll("[data-move]");
    before.disabled = offset === 0;
    next.disabled = offset + found.rows.length >= found.n_rows;
    said.textContent = found.rows.length ? `${number(offset + 1)} to ${number(offset + found.rows.length)} of ${number(found.n_rows)}. ${found.about}` : found.none;
    card.querySelector("nav").hidden = found.rows.length === 0;
  } catch (error) {
    said.replaceChildren(faults(error));
  }
}

card.querySelectorAll("[data-move]").forEach((button) => button.addEventListener("click", () => {
  offset = Math.max(0, offset + Number(button.dataset.move) * AT_ONCE);
  load();
}));

// the job makes the dataset's next version; then the training form is ready with it
async function finished(job) {
  for (;;) {
    const { state, error } = await get(`/jobs/${job}`);
    if (state === "succeeded") return;
    if (["failed", "cancelled"].includes(state)) throw new Error(error?.detail ?? `The job is ${state}.`);
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
}

send?.addEventListener("click", async () => {
  send.disabled = true;
  const result = card.querySelector("[data-result]");
  result.replaceChildren(element("p", { class: "muted" }, "Creating the next dataset version."));
  try {
    const job = await call("POST", `/datasets/${encodeURIComponent(dataset)}/corrections`, { corrections: [...changed.values()] });
    await finished(job.id);
    const { deleted, corrected } = counts();
    changed.clear();
    changes();
    const made = [corrected ? `${number(corrected)} corrected` : "", deleted ? `${number(deleted)} deleted` : ""].filter(Boolean).join(", ");
    result.replaceChildren(element("p", { class: "notice good" }, `Rows of the new dataset version: ${made}. `, element("a", { href: card.dataset.retrain }, "Train again")));
    await load();
  } catch (error) {
    result.replaceChildren(faults(error));
    send.disabled = false;
  }
});
load();
