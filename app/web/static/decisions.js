// Sends an edited file of decisions back, and lists the lines or tasks that were not understood.

import { sendWhole } from "./pieces.js";
import { element, faults, number, percent, size } from "./words.js";

const form = document.getElementById("import-decisions");
const said = form.querySelector("[data-said]");
const wrong = form.querySelector("[data-faults]");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [body] = form.elements.file.files;
  const button = form.querySelector("button");
  button.disabled = true;
  wrong.replaceChildren();
  try {
    const query = form.elements.new_labels.checked ? "?new_labels=true" : "";
    const found = await sendWhole(`/reviews/${form.dataset.review}/decisions${query}`, body, (sent) => {
      said.textContent = `${percent(sent / (body.size || 1), 0)} of ${size(body.size)} sent`;
    });
    said.textContent = `${number(found.n_decided)} decided, ${number(found.n_unchanged)} unchanged, ${number(found.n_empty)} without a decision, ${number(found.n_problems)} not understood.`;
    if (!found.problems.length) return;
    const head = element("tr", {}, ...["Line or task", "Row", "Problem"].map((name) => element("th", { scope: "col" }, name)));
    const lines = found.problems.map((each) => element("tr", {}, element("td", { class: "number" }, String(each.line)), element("td", { class: "number" }, each.row === null ? "–" : String(each.row)), element("td", { class: "text" }, each.detail)));
    wrong.replaceChildren(element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...lines))));
  } catch (error) {
    said.textContent = "";
    wrong.replaceChildren(faults(error));
  } finally {
    button.disabled = false;
  }
});
