// A field that finds labels by words of their names while a person types: arrow keys and Enter choose one.

import { get } from "./api.js";
import { pathAbove, titled } from "./names.js";
import { element, faults, number } from "./words.js";

const MOST = 12;

// `choose` gets the label, and what is known of it; `leave` puts the focus back.
export function labelSearch({ queue, language, choose, leave }) {
  const input = document.getElementById("label-search");
  const list = document.getElementById("found-labels");
  const count = document.getElementById("found-count");
  let options = [];
  let active = -1;
  // the newest search; Enter waits for it
  let pending = Promise.resolve();
  let newest = 0;

  function mark(at) {
    active = at;
    options.forEach(({ item }, place) => item.setAttribute("aria-selected", String(place === at)));
    if (at < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", options[at].item.id);
      options[at].item.scrollIntoView({ block: "nearest" });
    }
  }

  function show(found) {
    options = found;
    list.replaceChildren(...found.map(({ item }) => item));
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
    mark(found.length && found[0].facts ? 0 : -1);
  }

  function option(at, label, children, facts = null) {
    const item = element("li", { id: `found-${at}`, role: "option", "aria-selected": "false" }, ...children);
    item.addEventListener("mousedown", (event) => event.preventDefault());  // the field keeps the focus
    item.addEventListener("click", () => choose(label, facts));
    return { label, item, facts };
  }

  async function look() {
    newest += 1;
    const mine = newest;
    const text = input.value.trim();
    if (!text) {
      clear(false);
      return;
    }
    try {
      const { labels, n_labels: total } = await get(`${queue}/labels?limit=${MOST}&${language}&search=${encodeURIComponent(text)}`);
      if (mine !== newest) return;
      const above = ({ label, name, path }) => (pathAbove(label, name, path) ? element("small", { class: "path" }, pathAbove(label, name, path)) : null);
      const found = labels.map((each, at) => option(at, each.label, [...titled(each.label, each.name), above(each)], each));
      if (!labels.some((each) => each.label === text)) found.push(option(labels.length, text, [element("span", { class: "muted" }, "New label "), element("strong", {}, text)]));
      show(found);
      count.textContent = total > labels.length ? `${number(labels.length)} of ${number(total)} labels` : total ? `${number(total)} ${total === 1 ? "label" : "labels"}` : "No label matches.";
    } catch (error) {
      if (mine !== newest) return;
      // without the model's labels, what is typed can be a label all the same
      show([option(0, text, [element("span", { class: "muted" }, "New label "), element("strong", {}, text)])]);
      count.replaceChildren(faults(error));
    }
  }

  function clear(all = true) {
    newest += 1;
    if (all) input.value = "";
    show([]);
    count.textContent = "";
  }

  input.addEventListener("input", () => { pending = look(); });
  input.addEventListener("keydown", async (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (options.length) mark((active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1) + options.length) % options.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      await pending;
      if (active >= 0) choose(options[active].label, options[active].facts);
    } else if (event.key === "Escape") {
      event.preventDefault();
      clear();
      leave();
    }
  });

  return { clear, focus: () => input.focus() };
}
