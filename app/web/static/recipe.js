// The recipe of a training: its fields, and the features that it makes of one row of the dataset, after each change.

import { call } from "./api.js";
import { element, number } from "./words.js";

const SHOWN = 60;
const AGAIN_MILLISECONDS = 1000;
const card = document.getElementById("preview");
const said = card.querySelector("[data-said]");
const list = card.querySelector("ul");
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
      found[field.dataset[kind]] = field.value;
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

let asked = 0;
let waiting;
// Asks a moment after the last change; `request` is what would be sent to train.
export function preview(request) {
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const mine = ++asked;
    const { dataset, text, columns } = request();
    try {
      const found = await call("POST", `/datasets/${encodeURIComponent(dataset)}/preview`, { row: Number(row.value) || 0, ...(text ? { text } : {}), ...(columns ? { columns } : {}) });
      if (mine !== asked) return;
      said.textContent = described(found);
      list.replaceChildren(...found.features.slice(0, SHOWN).map(chip));
      list.dataset.row = found.row;
    } catch (error) {
      if (mine !== asked) return;
      if (error.status === 503) { // others preview rows just now
        waiting = setTimeout(() => preview(request), AGAIN_MILLISECONDS);
        return;
      }
      said.textContent = [error.message, ...(error.lines ?? [])].join(" ");
      list.replaceChildren();
    }
  }, 300);
}
