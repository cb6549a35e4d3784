// The names that a vocabulary gives to labels, in a language of the browser where there is one.

import { element } from "./words.js";

// by RFC 4647: a tag is shortened from its end, and where that finds nothing a variety of the language will do
export function inBrowsers(names) {
  const tags = Object.keys(names).sort();
  for (const language of navigator.languages) {
    for (let subtags = language.toLowerCase().split("-"); subtags.length; subtags.pop()) {
      const shortened = subtags.join("-");
      if (shortened in names) return names[shortened];
    }
    const variety = tags.find((tag) => tag.startsWith(`${language.toLowerCase()}-`));
    if (variety) return names[variety];
  }
  return undefined;
}

// The name in a language of the browser, else the English one, else the first.
export const named = (names) => inBrowsers(names) ?? names.en ?? Object.values(names)[0];

// What labels are called, of those that have names.
export function namesOf(labels) {
  const known = labels.filter((each) => each.names && Object.keys(each.names).length);
  return new Map(known.map(({ label, names }) => [label, named(names)]));
}

// An id in the room that there is: where it is too long, its beginning is cut.
export const shortId = (id) => element("span", { class: "id", title: id }, element("span", {}, element("bdi", {}, id)));

// A label as people read it: its name, then its id, small; the macro `titled` of parts.html writes the same. Without a name, the label.
export function titled(label, name) {
  return name && name !== label ? [name, " ", element("small", { class: "muted" }, shortId(label))] : [label];
}

// A step of a path in a label tree, without the text of the step above if it begins with that: of "a > b", below "a", only "b".
export function ownStep(step, above) {
  const rest = above && step.startsWith(above) ? step.slice(above.length) : "";
  const [between] = rest.match(/^\s*(?:>|\/|::|\||›)\s*(?=\S)/) ?? [""];
  return between ? rest.slice(between.length) : step;
}

// The path above a label as people read it; empty where the label is called by its whole path.
export function pathAbove(label, name, path) {
  const above = path ?? [];
  if (!name && ownStep(label, above.at(-1)) !== label) return "";
  return above.map((step, at) => ownStep(step, above[at - 1])).join(" › ");
}

// Below a field of labels, one per line: the names of those in it.
export function namesBelow(field, names) {
  const said = element("small", { role: "status" });
  const show = () => { said.textContent = field.value.split("\n").map((line) => names.get(line.trim())).filter(Boolean).join(", "); };
  field.addEventListener("input", show);
  show();
  return said;
}
