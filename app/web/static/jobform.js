// What the forms that submit a job have in common.

import { call } from "./api.js";
import { element, faults } from "./words.js";

// The model has the name of its dataset until the user types another.
export function nameAfterDataset(form) {
  let named = form.elements.model.value;
  form.elements.dataset.addEventListener("change", () => {
    if (form.elements.model.value === named) form.elements.model.value = form.elements.dataset.value;
    named = form.elements.dataset.value;
  });
}

// Submits what `request` makes of the form (or a promise of it), and goes to the job's page below `pages`; faults are shown in the form.
export function submitsJob(form, request, pages) {
  const [place] = form.querySelectorAll("[data-faults]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = event.submitter;
    button.disabled = true;
    place.replaceChildren();
    try {
      const job = await call("POST", "/jobs", await request());
      location.assign(`${pages}/${job.id}`);
    } catch (error) {
      place.replaceChildren(error.lines ? faults(error) : element("div", { class: "notice bad", role: "alert" }, error.message));
      button.disabled = false;
    }
  });
}
