// Submits the correct labels of a prediction as feedback, from which dataset rows are made.

import { call } from "./api.js";
import { namesBelow } from "./names.js";
import { element, faults } from "./words.js";

// A form for the correct labels of one prediction, one per line where the model predicts sets.
export function correction(found, place, instance, names) {
  const one = found.predictions[place];
  const sets = one.subtree !== null && one.subtree !== undefined;
  const offered = element("datalist", { id: "right-labels" }, ...one.top.map((each) => element("option", { value: each.label }, names.get(each.label) ?? "")));
  const field = sets ? element("textarea", { id: "right", required: true }, one.subtree.map((node) => node.label).join("\n")) : element("input", { id: "right", required: true, list: "right-labels", value: one.label, autocomplete: "off" });
  const said = element("div", { role: "status" });
  const form = element("form", { class: "row", id: "correct" },
    element("div", { class: "field" }, element("label", { for: "right" }, sets ? "Correct labels, one per line" : "Correct label"), field, offered, namesBelow(field, names)),
    element("button", { class: "small" }, "Submit correction"), said);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const labels = field.value.split("\n").map((label) => label.trim()).filter(Boolean);
    try {
      await call("POST", `/models/${encodeURIComponent(found.model)}/feedback`, { instance, labels: sets ? labels : labels.slice(0, 1), version: found.version, answer: `${found.id}/${place}` });
      said.replaceChildren(element("p", { class: "notice good" }, "Stored. ", element("a", { href: `/models/${encodeURIComponent(found.model)}#feedback` }, "Add feedback to the dataset")));
    } catch (error) {
      said.replaceChildren(faults(error));
    }
  });
  return form;
}
