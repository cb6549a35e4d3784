// Appends the rows of a file to a dataset, and goes to the job that does it.

import { sendWhole } from "./pieces.js";
import { faults, percent, size } from "./words.js";

const form = document.getElementById("append");
const said = form.querySelector("[data-said]");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [body] = form.elements.rows.files;
  const button = form.querySelector("button");
  const wrong = form.querySelector("[data-faults]");
  const query = new URLSearchParams();
  if (form.elements.part?.value) query.set("part", form.elements.part.value);
  const format = JSON.parse(form.dataset.extensions)[body.name.split(".").pop().toLowerCase()];
  if (format) query.set("format", format);
  button.disabled = true;
  wrong.replaceChildren();
  try {
    const job = await sendWhole(`/datasets/${form.dataset.dataset}/rows?${query}`, body, (sent) => {
      said.textContent = `${percent(sent / (body.size || 1), 0)} of ${size(body.size)} sent`;
    });
    location.assign(`/jobs/${job.id}`);
  } catch (error) {
    said.textContent = "";
    wrong.replaceChildren(faults(error));
    button.disabled = false;
  }
});
