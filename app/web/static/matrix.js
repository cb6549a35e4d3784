// The confusion matrix of an evaluation: a window of the classes that are confused, sorted, moved, and drawn around one.

import { get } from "./api.js";
import { namesOf, shortId } from "./names.js";
import { element, faults, number } from "./words.js";

// as many as an evaluation keeps of a level, now and in earlier versions
const KEPT = [100, 1000];
const card = document.getElementById("matrix");
const table = card.querySelector("table");
const said = card.querySelector("[data-said]");
const form = card.querySelector("form");
const named = { pairs: [], labels: new Map(), names: new Map() };
let offset = 0;
let around = null;

const key = (true_, predicted) => JSON.stringify([true_, predicted]);

// Classes whose pairs are the most frequent come first, the two of a pair side by side.
function byPairs(pairs) {
  return [...new Set(pairs.flatMap((pair) => [pair.true, pair.predicted]))];
}

function byErrors(pairs) {
  const errors = new Map();
  for (const pair of pairs) {
    for (const label of [pair.true, pair.predicted]) errors.set(label, (errors.get(label) ?? 0) + pair.n_rows);
  }
  return byPairs(pairs).sort((a, b) => errors.get(b) - errors.get(a));
}

const orders = { pairs: byPairs, errors: byErrors, name: (pairs) => byPairs(pairs).sort((a, b) => called(a).localeCompare(called(b))) };

function classes() {
  const near = around === null ? named.pairs : named.pairs.filter((pair) => pair.true === around || pair.predicted === around);
  return orders[form.elements.order.value](near);
}

const called = (label) => named.names.get(label) ?? label;

function heading(label, scope) {
  const button = element("button", { type: "button", class: "link", value: label, title: called(label) === label ? label : `${called(label)}, ${label}`, "aria-pressed": String(label === around) }, called(label) === label && label.includes("://") ? shortId(label) : called(label));
  button.addEventListener("click", () => {
    around = label === around ? null : label;
    offset = 0;
    show();
    // the pressed button was replaced by a new one, perhaps in another place
    [...table.querySelectorAll(`th[scope="${scope}"] button`)].find((each) => each.value === label)?.focus();
  });
  return element("th", { scope }, button);
}

function cell(true_, predicted, counts) {
  const { support, right } = named.labels.get(true_);
  const n = true_ === predicted ? right : counts.get(key(true_, predicted));
  if (!n) return element("td");
  const made = element("td", { class: true_ === predicted ? "number right" : "number wrong", title: `${called(true_)}, predicted as ${called(predicted)}: ${number(n)} of ${number(support)} rows` }, number(n));
  made.style.setProperty("--share", Math.sqrt(Math.min(1, n / support)).toFixed(3));
  return made;
}

function show() {
  const all = classes();
  const n = Number(form.elements.size.value);
  const shown = all.slice(offset, offset + n);
  const counts = new Map(named.pairs.map((pair) => [key(pair.true, pair.predicted), pair.n_rows]));
  const corner = element("th", { scope: "col" }, "True class (rows), predicted class (columns)");
  table.tHead.replaceChildren(element("tr", {}, corner, ...shown.map((label) => heading(label, "col"))));
  table.tBodies[0].replaceChildren(...shown.map((label) => element("tr", {}, heading(label, "row"), ...shown.map((other) => cell(label, other, counts)))));
  const [before, next] = card.querySelectorAll("[data-move]");
  before.disabled = offset === 0;
  next.disabled = offset + n >= all.length;
  const parts = all.length ? [`Classes ${number(offset + 1)} to ${number(offset + shown.length)} of ${number(all.length)} confused classes${around === null ? "" : ` with ${called(around)}`}.`] : ["No confused classes."];
  if (KEPT.includes(named.pairs.length)) {
    const least = named.pairs.at(-1).n_rows;
    parts.push(`The ${number(named.pairs.length)} most frequent pairs are shown. An empty cell may hide ${least === 1 ? "a row" : `up to ${number(least)} rows`}.`);
  }
  said.textContent = parts.join(" ");
  card.querySelector("[data-whole]").hidden = around === null;
  table.dataset.classes = String(shown.length);
}

async function load() {
  try {
    const found = await get(`/evaluations/${card.dataset.id}/confusions?limit=1000&level=${form.elements.level.value}`);
    named.pairs = found.pairs;
    named.labels = new Map(found.labels.map((each) => [each.label, each]));
    named.names = namesOf(found.labels);
    around = null;
    offset = 0;
    show();
  } catch (error) {
    said.replaceChildren(faults(error));
  }
}

form.addEventListener("submit", (event) => event.preventDefault());
form.elements.level.addEventListener("change", load);
for (const name of ["order", "size"]) {
  form.elements[name].addEventListener("change", () => {
    offset = 0;
    show();
  });
}
card.querySelectorAll("[data-move]").forEach((button) => button.addEventListener("click", () => {
  offset = Math.max(0, offset + Number(button.dataset.move) * Number(form.elements.size.value));
  show();
}));
card.querySelector("[data-whole]").addEventListener("click", () => {
  around = null;
  offset = 0;
  show();
});
load();
