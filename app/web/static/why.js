// Why a label was predicted: the text with supporting and opposing words marked, and their contributions as numbers.

import { element, number } from "./words.js";

const STRENGTHS = 4;

// What each character brings: a term's part is shared among its places, as terms may overlap.
function byCharacter(characters, terms) {
  const brought = new Float64Array(characters.length);
  const names = characters.map(() => new Set());
  for (const term of terms) {
    for (const [from, to] of term.spans ?? []) {
      for (let at = from; at < Math.min(to, characters.length); at += 1) {
        brought[at] += term.part / term.spans.length;
        names[at].add(term);
      }
    }
  }
  return { brought, names };
}

function mark(text, part, most, terms) {
  if (part === 0) return document.createTextNode(text);
  const strength = Math.max(1, Math.ceil((STRENGTHS * Math.abs(part)) / most));
  const title = [...terms].map((term) => `${term.feature}: ${signed(term.part)}`).join("\n");
  return element("mark", { class: `${part > 0 ? "lifts" : "lowers"} strength-${strength}`, title }, text);
}

function signed(value) {
  return `${value < 0 ? "−" : "+"}${number(Math.abs(value), 3)}`;
}

// Offsets count characters of Unicode, of which the browser's strings may have two for one.
function marked(text, terms) {
  const characters = Array.from(text);
  const { brought, names } = byCharacter(characters, terms);
  const most = Math.max(...brought.map(Math.abs));
  const parts = [];
  let begin = 0;
  for (let at = 1; at <= characters.length; at += 1) {
    if (at < characters.length && brought[at] === brought[begin]) continue;
    parts.push(mark(characters.slice(begin, at).join(""), brought[begin], most, names[begin]));
    begin = at;
  }
  return element("p", { class: "marked" }, ...parts);
}

function row(name, part, most, muted = false) {
  const bar = element("span", { class: `bar ${part < 0 ? "lowers" : "lifts"}` });
  bar.style.setProperty("--share", (Math.abs(part) / (most || 1)).toFixed(3));
  return element("tr", {}, element("th", { scope: "row", class: muted ? "name muted" : "name" }, name), element("td", {}, bar), element("td", { class: "number" }, signed(part)));
}

function table(step, terms, called) {
  const most = Math.max(...terms.map((term) => Math.abs(term.part)), Math.abs(step.rest), Math.abs(step.intercept));
  const rows = terms.map((term) => row(String(term.feature), term.part, most));
  if (step.rest !== 0) rows.push(row("all other features", step.rest, most, true));
  if (step.intercept !== 0) rows.push(row("intercept", step.intercept, most, true));
  // a label of a set has no rival: what its parts add up to is its score
  const total = step.rival === null ? `Score of ${called(step.label)}` : `Margin of ${called(step.label)} over ${called(step.rival)}`;
  const head = element("tr", {}, element("th", { scope: "col" }, "Feature"), element("th", { scope: "col" }, element("span", { class: "visually-hidden" }, "As a bar")), element("th", { scope: "col", class: "number" }, "Contribution"));
  return element("details", {}, element("summary", {}, `${total}: ${number(step.lead, 3)}`),
    element("div", { class: "scroll" }, element("table", { class: "parts" }, element("thead", {}, head), element("tbody", {}, ...rows))));
}

// The elements that show it, of an explanation as the API has it; `text` is null where no text was asked about, and
// `called` gives the name of a label.
export function why(explanation, text, called = (label) => label) {
  const steps = explanation.map((step) => {
    const terms = [...step.lifted_by, ...step.lowered_by];
    const rival = step.rival === null ? "" : ` rather than ${called(step.rival)}`;
    const of = explanation.length > 1 ? element("h4", {}, `${called(step.label)}${rival}`) : element("p", {}, `Why ${called(step.label)}${rival}:`);
    return element("div", { class: "step" }, of, text === null ? null : marked(text, terms), table(step, terms, called));
  });
  const key = text === null ? null : element("p", { class: "muted small" }, element("mark", { class: "lifts strength-3" }, "supports the label"), " ", element("mark", { class: "lowers strength-3" }, "opposes the label"));
  return element("section", { class: "why" }, element("h3", {}, "Why"), ...steps, key);
}
