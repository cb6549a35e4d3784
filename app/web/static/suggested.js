// The rows that a job suggests to label, and the review queue in which people label them.

import { call, get } from "./api.js";
import { titled } from "./names.js";
import { element, faults, number, percent } from "./words.js";

const card = document.getElementById("suggested");
const said = card.querySelector("[data-said]");
const form = card.querySelector("form");
const AT_ONCE = 20;
const SHOWN_LABELS = 3;
const WHY = { few_rows: "few training rows", least_sure: "not sure" };
let offset = 0;

function likely(each) {
  const some = each.alternatives.slice(0, SHOWN_LABELS);
  const lines = some.map(({ label, name, probability }) => element("div", {}, ...titled(label, name), Number.isFinite(probability) ? element("span", { class: "muted" }, ` ${percent(probability)}`) : null));
  return each.labels.length ? [...lines, element("div", { class: "muted small" }, `labelled ${each.labels.join(", ")}`)] : lines;
}

function content(each) {
  if (each.record) return Object.entries(each.record).map(([name, value]) => `${name}: ${value ?? "–"}`).join(", ");
  return each.text ?? (each.features ?? []).map(([index, value]) => `${index}:${number(value)}`).join(" ");
}

async function load() {
  try {
    const found = await get(`/jobs/${card.dataset.job}/suggested-rows?offset=${offset}&limit=${AT_ONCE}`);
    card.querySelector("tbody").replaceChildren(...found.rows.map((each) => element("tr", {},
      element("td", { class: "number" }, number(each.row)), element("td", {}, WHY[each.reason]), element("td", { class: "name" }, ...likely(each)),
      element("td", { class: "text" }, element("div", { class: "clip" }, content(each))))));
    const [before, next] = card.querySelectorAll("[data-move]");
    before.disabled = offset === 0;
    next.disabled = offset + found.rows.length >= found.n_rows;
    said.textContent = `${number(offset + 1)} to ${number(offset + found.rows.length)} of ${number(found.n_rows)} rows of ${found.dataset}, chosen by ${found.model} ${found.version}.`;
  } catch (error) {
    said.replaceChildren(faults(error));
  }
}

card.querySelectorAll("[data-move]").forEach((button) => button.addEventListener("click", () => {
  offset = Math.max(0, offset + Number(button.dataset.move) * AT_ONCE);
  load();
}));

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const place = card.querySelector("[data-faults]");
  place.replaceChildren();
  try {
    const made = await call("POST", "/reviews", { name: form.elements.queue.value, job: card.dataset.job });
    location.assign(`/reviews/${encodeURIComponent(made.name)}`);
  } catch (error) {
    place.replaceChildren(faults(error));
  }
});
load();
