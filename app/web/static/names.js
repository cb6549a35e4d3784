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

// What labels are called, of those that have names.
export function namesOf(labels) {
  const named = labels.filter((each) => each.names && Object.keys(each.names).length);
  return new Map(named.map(({ label, names }) => [label, inBrowsers(names) ?? names.en ?? Object.values(names)[0]]));
}

// A label's name for people, with its id beside it.
export function titled(label, names) {
  return names.has(label) && names.get(label) !== label ? [names.get(label), element("small", { class: "muted" }, ` ${label}`)] : [label];
}
