// Reviews the rows of a queue, one at a time, by the keyboard or the mouse.

import { call, get } from "./api.js";
import { labelSearch } from "./labelsearch.js";
import { pathAbove, titled } from "./names.js";
import { element, faults, number, percent } from "./words.js";

const desk = document.getElementById("review");
const title = document.getElementById("row-title");
const empty = document.getElementById("row-empty");
const shown = document.getElementById("row");
const reading = document.getElementById("row-text");
const choices = document.getElementById("choices");
const comment = document.getElementById("comment");
const keys = document.getElementById("keys");
const said = desk.querySelector("[data-said]");
const wrong = desk.querySelector("[data-faults]");
const skip = desk.querySelector("[data-skip]");
const back = desk.querySelector("[data-undo]");
const queue = `/reviews/${desk.dataset.review}`;
const { state } = desk.dataset;
// rows have sets of labels: alternatives are switched on and off, and confirmed together
const deciding = desk.querySelector("[data-decide]");
const sets = deciding !== null;

const CLAIMED = 5;
const MINUTES = 15;
const MOST_KEYS = 9;
const KEYS_OFF = "review-keys-off";
// rows that wait here, the one that is shown, and what was decided, the last at the end
const waiting = [];
const decided = [];
let current = null;
let claiming = null;
let finished = false;
let counted = 0;

const ends = () => Date.now() + MINUTES * 60_000;
const language = `language=${encodeURIComponent(desk.dataset.language ?? navigator.language)}`;

const inWords = (labels) => labels.map((label) => known.get(label)?.name ?? label).join(", ") || "no label";

const release = (rows) => call("POST", `${queue}/release`, { rows: rows.map((row) => row.row) }, {}, true).catch(() => {});

// One claim at a time; its rows go behind those that wait. A skipped row comes back, and is left to others.
function claim() {
  claiming ??= (async () => {
    try {
      const { rows } = await call("POST", `${queue}/claim`, { count: CLAIMED, minutes: MINUTES, state });
      const seen = new Set(decided.map((each) => each.row.row));
      const fresh = rows.filter((row) => !seen.has(row.row));
      if (fresh.length < rows.length) release(rows.filter((row) => seen.has(row.row)));
      waiting.push(...fresh.map((row) => ({ ...row, until: ends() })));
      finished = fresh.length === 0;
      describe(fresh).catch(() => {});
      refresh();
    } finally {
      claiming = null;
    }
  })();
  return claiming;
}

// Names and paths of the alternatives; rows are shown without them until they are known.
const known = new Map();

async function describe(rows) {
  const labels = [...new Set(rows.flatMap((row) => (row.choices ?? row.alternatives).map((each) => each.label)))].filter((label) => !known.has(label)).slice(0, 100);
  if (!labels.length) return;
  const { labels: found } = await get(`${queue}/labels?limit=${labels.length}&${language}&${labels.map((label) => `label=${encodeURIComponent(label)}`).join("&")}`);
  found.forEach((each) => known.set(each.label, each));
  // the buttons remain, and with them the focus and a click that has begun
  for (const button of choices.querySelectorAll("button")) {
    const facts = known.get(button.value);
    const name = button.querySelector(".label");
    const fresh = element("span", {}, ...named(button.value, facts?.name, facts?.path));
    if (facts && fresh.innerHTML !== name.innerHTML) name.replaceChildren(...fresh.childNodes);
  }
}

// The name of a label, its code, and the path that leads to it.
const named = (label, name, path) => [...titled(label, name), pathAbove(label, name, path) ? element("small", {}, pathAbove(label, name, path)) : null];

// The progress as the service shows it now.
async function refresh() {
  try {
    const answer = await fetch(location.href);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("progress");
    const old = document.getElementById("progress");
    if (answer.ok && fresh && !old.contains(document.activeElement)) old.replaceWith(fresh);
  } catch { /* it stays as it was */ }
}

function offer(row) {
  const listed = sets ? row.choices : row.alternatives.slice(0, MOST_KEYS);
  const buttons = listed.map((each, at) => {
    const facts = known.get(each.label);
    const probable = typeof each.probability === "number" ? element("small", { class: "probability" }, percent(each.probability)) : null;
    const key = at < MOST_KEYS ? element("kbd", {}, String(at + 1)) : null;
    const shortcut = at < MOST_KEYS ? at + 1 : null;
    const name = element("span", { class: "label" }, ...named(each.label, facts?.name ?? each.name, facts?.path));
    const button = element("button", { type: "button", value: each.label, "aria-keyshortcuts": shortcut, "aria-pressed": sets ? String(each.on) : null }, key, name, probable);
    button.addEventListener("click", (event) => {
      pick(row, at);
      if (sets && event.detail) reading.focus({ preventScroll: true });  // after a click Enter confirms, after Tab it switches
    });
    return element("li", {}, button);
  });
  choices.replaceChildren(...buttons);
  if (sets) count();
}

const chosen = (row) => row.choices.filter((each) => each.on).map((each) => each.label);
const decideSet = () => decide(chosen(current), current.choices.some((each) => each.on && each.fresh));

function count() {
  const n = chosen(current).length;
  deciding.querySelector("[data-count]").textContent = n ? `${number(n)} ${n === 1 ? "label" : "labels"}` : "no label";
}

// One alternative decides the row; of a set it is switched on or off.
function pick(row, at) {
  if (!sets) {
    decide([row.alternatives[at].label]);
    return;
  }
  const each = row.choices[at];
  each.on = !each.on;
  choices.children[at].firstElementChild.setAttribute("aria-pressed", String(each.on));
  count();
  said.textContent = `${known.get(each.label)?.name ?? each.name ?? each.label}: ${each.on ? "on" : "off"}.`;
}

// A label that was searched for joins the set.
function add(label, facts) {
  if (current === null) return;
  const old = current.choices.find((each) => each.label === label);
  if (facts) known.set(label, facts);
  if (old) old.on = true;
  else current.choices.push({ label, name: facts?.name ?? null, on: true, fresh: !facts });
  offer(current);
  said.textContent = `${facts?.name ?? label}: on.`;
  search.clear();
  reading.focus({ preventScroll: true });
}

function show(row) {
  current = row;
  shown.hidden = row === null;
  empty.hidden = row !== null;
  back.disabled = decided.length === 0;
  if (row === null) {
    title.textContent = "Row";
    empty.textContent = finished ? "No more rows to decide here." : "Loading rows.";
    return;
  }
  title.textContent = `Row ${number(row.row)}${row.id && row.id !== row.text ? `, ${row.id}` : ""}`;
  const record = Object.entries(row.record ?? {}).filter(([, value]) => value !== null && value !== row.text);
  const cells = record.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]);
  const others = row.opinions.filter((each) => each.labels).map((each) => element("li", {}, element("strong", {}, each.person), " ", inWords(each.labels), each.comment ? `: ${each.comment}` : ""));
  reading.replaceChildren(...(row.text ? [element("p", { class: "row-text" }, row.text)] : []), ...(cells.length ? [element("dl", { class: "facts" }, ...cells)] : []), ...(others.length ? [element("h3", {}, "Opinions"), element("ul", {}, ...others)] : []));
  if (sets) row.choices ??= row.alternatives.map((each) => ({ label: each.label, name: each.name, probability: each.probability, on: each.predicted }));
  offer(row);
  comment.value = row.comment ?? "";
  search.clear();
  reading.focus({ preventScroll: reading.getBoundingClientRect().top >= 0 });
}

// Shows the next row, and claims more before the last one is shown.
async function advance() {
  while (waiting.length && waiting[0].until < Date.now()) waiting.shift();
  show(waiting.shift() ?? null);
  if (finished || waiting.length > 1) return;
  try {
    await claim();
  } catch (error) {
    fail(error);
    return;
  }
  if (current === null) show(waiting.shift() ?? null);
}

function fail(error) {
  wrong.replaceChildren(faults(error));
}

// A fresh label is one that was chosen although the model does not know it. The next row is shown at once; a decision that the service refuses is reported, and its row is left to others.
function decide(labels, fresh = false) {
  if (current === null) return;
  const row = current;
  const body = { ...(labels === null ? { skip: true } : { labels }), ...(fresh ? { new_labels: true } : {}), ...(comment.value.trim() ? { comment: comment.value.trim() } : {}) };
  const sent = call("PUT", `${queue}/decisions/${row.row}`, body, { "If-Match": `"${row.revision}"` }, true);
  const entry = { row, comment: body.comment, sent };
  decided.push(entry);
  wrong.replaceChildren();
  counted += 1;
  said.textContent = `Row ${number(row.row)}: ${labels === null ? "skipped" : inWords(labels)}. ${number(counted)} in this session.`;
  sent.then(() => {
    if (finished && !waiting.length) refresh();
  }, (error) => {
    decided.splice(decided.indexOf(entry), 1);
    counted -= 1;
    back.disabled = decided.length === 0;
    if (error.status === undefined) waiting.unshift({ ...row, comment: body.comment });  // the service was not reached
    if (current === null) advance();
    fail(Object.assign(error, { message: `Row ${row.row} is not decided: ${error.message}` }));
  });
  advance();
}

async function undo() {
  const last = decided.pop();
  if (last === undefined) return;
  back.disabled = decided.length === 0;
  wrong.replaceChildren();
  try {
    await last.sent;
    const row = await call("DELETE", `${queue}/decisions/${last.row.row}?minutes=${MINUTES}`);
    counted -= 1;
    if (current !== null) waiting.unshift({ ...current, comment: comment.value });
    show({ ...row, choices: last.row.choices, comment: last.comment, until: ends() });
    said.textContent = `The decision of row ${number(row.row)} is withdrawn.`;
    refresh();
  } catch (error) {
    fail(error);
  }
}

const search = labelSearch({ queue, language, choose: sets ? add : (label, facts) => decide([label], !facts), leave: () => reading.focus() });

const COMMANDS = { s: () => decide(null), u: undo, c: () => comment.focus(), "/": search.focus };

document.addEventListener("keydown", (event) => {
  if (!keys.checked || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.matches("input:not([type=checkbox]), textarea, select") || document.querySelector("dialog[open]")) return;
  if (COMMANDS[event.key]) {
    event.preventDefault();
    if (!event.repeat && (current !== null || event.key === "u")) COMMANDS[event.key]();
  } else if (current !== null && /^[1-9]$/.test(event.key)) {
    const at = Number(event.key) - 1;
    if (at < choices.children.length && !event.repeat) pick(current, at);
  } else if (sets && current !== null && event.key === "Enter") {
    if (event.repeat || event.target.closest("button, a, input, summary")) return;
    event.preventDefault();
    decideSet();
  } else if (current !== null && /^\p{L}$/u.test(event.key)) search.focus();  // which gets the letter
});

comment.addEventListener("keydown", (event) => {
  if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
  event.preventDefault();
  reading.focus();
});
deciding?.addEventListener("click", () => { if (current !== null) decideSet(); });
skip.addEventListener("click", () => decide(null));
back.addEventListener("click", undo);

keys.checked = localStorage.getItem(KEYS_OFF) === null;
keys.addEventListener("change", () => {
  if (keys.checked) localStorage.removeItem(KEYS_OFF);
  else localStorage.setItem(KEYS_OFF, "1");
});

// who leaves gives the rows back
addEventListener("pagehide", () => {
  const rows = [current, ...waiting].filter(Boolean);
  if (rows.length) release(rows);
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

advance();
