// The differences between two editions of a vocabulary, by label.

import { get } from "./api.js";
import { named, titled } from "./names.js";
import { element, faults, number } from "./words.js";

const card = document.getElementById("changes");
const form = card.querySelector("form");
const said = card.querySelector("[data-said]");
const AT_ONCE = 100;

const called = (names) => named(names ?? {}) ?? "";

const above = (parent, others) => [parent ?? "the root", ...others].join(", ");

function words(each) {
  const [now, before] = [above(each.parent, each.other_parents), above(each.parent_before, each.other_parents_before)];
  if (each.change === "moved") return `from ${before} to ${now}`;
  if (each.change === "renamed") return `${called(each.names_before)} → ${called(each.names)}`;
  const by = each.replaced_by.length ? `, replaced by ${each.replaced_by.join(", ")}` : "";
  if (each.change === "deprecated") return by.replace(", ", "");
  return `below ${each.change === "went" ? before : now}${by}`;
}

function row(each) {
  return element("tr", {}, element("td", {}, each.change), element("th", { scope: "row", class: "name" }, ...titled(each.label, called(each.names))), element("td", { class: "name" }, words(each)));
}

async function show(offset, body) {
  const kind = form.querySelector("#change").value;
  const query = `since=${encodeURIComponent(form.querySelector("#since").value)}${kind ? `&change=${kind}` : ""}`;
  const found = await get(`${card.dataset.path}?${query}&offset=${offset}&limit=${AT_ONCE}`);
  body.append(...found.changes.map(row));
  const total = kind ? (found.counts[kind] ?? 0) : Object.values(found.counts).reduce((sum, n) => sum + n, 0);
  return { found, left: total - offset - found.changes.length };
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = element("tbody");
  try {
    const { found, left } = await show(0, body);
    const counts = Object.entries(found.counts).filter(([, n]) => n).map(([kind, n]) => `${number(n)} ${kind}`);
    const head = element("tr", {}, ...["Change", "Label", "Details"].map((name) => element("th", { scope: "col" }, name)));
    const more = element("button", { type: "button", class: "small", hidden: left <= 0 }, `${number(left)} more`);
    let shown = AT_ONCE;
    more.addEventListener("click", async () => {
      const next = await show(shown, body);
      shown += AT_ONCE;
      more.hidden = next.left <= 0;
      more.textContent = `${number(next.left)} more`;
    });
    said.replaceChildren(element("p", {}, counts.length ? `${counts.join(", ")}; ${number(found.n_same)} labels are unchanged.` : "No differences."),
      ...(found.changes.length ? [element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), body)), more] : []));
  } catch (error) {
    said.replaceChildren(faults(error));
  }
});
