// A new alias of a model, and what people say about it.

import { call } from "./api.js";
import { confirmed } from "./page.js";
import { faults } from "./words.js";

const form = document.getElementById("new-alias");
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const alias = form.querySelector("#alias").value;
  const version = Number(form.querySelector("#alias-version").value);
  const { unconverged } = form.querySelector("#alias-version").selectedOptions[0].dataset;
  if (unconverged && !(await confirmed(`Version ${version} has not converged: ${unconverged} Set ${alias} to it?`))) return;
  try {
    await call("PUT", `/models/${form.dataset.model}/aliases/${encodeURIComponent(alias)}`, { version });
    location.reload();
  } catch (error) {
    form.querySelector("[data-said]").replaceChildren(faults(error));
  }
});

const about = document.getElementById("describe");
about?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(about));
  given.languages = given.languages.split(",").map((tag) => tag.trim()).filter(Boolean);
  try {
    await call("PATCH", `/models/${about.dataset.model}`, given);
    location.reload();
  } catch (error) {
    about.querySelector("[data-said]").replaceChildren(faults(error));
  }
});
