// The recipe of a training: its fields, and the features that it makes of one row of the dataset, after each change.

import { call } from "./api.js";
import { element, number } from "./words.js";

const SHOWN = 60;
const AGAIN_MILLISECONDS = 1000;
const card = document.getElementById("preview");
const said = card.querySelector("[data-said]");
const list = card.querySelector("ul");
const cleaning = card.querySelector("[data-cleaning]");
const row = document.getElementById("preview-row");

// What fields of a kind, text or columns, say beside what holds anyway.
export function recipe(form, kind) {
  const found = {};
  for (const field of form.querySelectorAll(`[data-${kind}]`)) {
    const preset = field.querySelector("option[selected]")?.value ?? field.dataset.preset;
    if (field.value === "" || field.value === preset) continue;
    try {
      found[field.dataset[kind]] = JSON.parse(field.value);
    } catch {
      found[field.dataset[kind]] = "list" in field.dataset ? field.value.split(",").map((each) => each.trim()).filter(Boolean) : field.value;
    }
  }
  return found;
}

function chip({ feature, value }) {
  return element("li", {}, element("span", { class: "mono" }, String(feature)), " ", element("span", { class: "number muted" }, number(value, 3)));
}

function described(found) {
  const rest = Math.max(0, found.n_values - SHOWN);
  return `${number(found.n_values)} of ${number(found.n_features)} features are not zero${rest ? `; the largest ${SHOWN} are shown` : ""}. Fitted on ${number(found.n_fitted)} training rows; training on all rows may give more features.`;
}

// What cleaning changes in the sample, and a part of the row before and after it.
function cleaned({ n_texts, n_changed, characters_before, characters_after, changes, before, after }) {
  const counts = Object.entries(changes).map(([kind, n]) => `${kind}: ${number(n)}`).join(", ");
  const of = `Cleaning changes ${number(n_changed)} of ${number(n_texts)} sampled texts, from ${number(characters_before)} to ${number(characters_after)} characters`;
  const shown = before === null ? [element("p", { class: "muted small" }, "The text of this row is unchanged.")]
    : [element("h4", {}, "Before cleaning"), element("p", { class: "marked" }, before), element("h4", {}, "After cleaning"), element("p", { class: "marked" }, after)];
  return [element("p", { class: "muted small" }, counts ? `${of} (${counts}).` : `${of}.`), ...shown];
}

let asked = 0;
let waiting;
// Asks a moment after the last change; `features` gives the dataset and the recipe that would be sent to train.
export function preview(features) {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const mine = ++asked;
    const { dataset, text, columns } = features();
    try {
      const found = await call("POST", `/datasets/${encodeURIComponent(dataset)}/preview`, { row: Number(row.value) || 0, ...(text ? { text } : {}), ...(columns ? { columns } : {}) });
      if (mine !== asked) return;
      said.textContent = described(found);
      list.replaceChildren(...found.features.slice(0, SHOWN).map(chip));
      list.dataset.row = found.row;
      cleaning.replaceChildren(...(found.cleaning ? cleaned(found.cleaning) : []));
    } catch (error) {
      if (mine !== asked) return;
      if (error.status === 503) { // others preview rows just now
        waiting = setTimeout(() => preview(features), AGAIN_MILLISECONDS);
        return;
      }
      said.textContent = [error.message, ...(error.lines ?? [])].join(" ");
      list.replaceChildren();
      cleaning.replaceChildren();
    }
  }, 300);
}
