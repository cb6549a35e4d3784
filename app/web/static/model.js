// A new alias of a model.

import { call } from "./api.js";
import { faults } from "./words.js";

const form = document.getElementById("new-alias");
form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const alias = form.querySelector("#alias").value;
  const version = Number(form.querySelector("#alias-version").value);
  try {
    await call("PUT", `/models/${form.dataset.model}/aliases/${encodeURIComponent(alias)}`, { version });
    location.reload();
  } catch (error) {
    form.querySelector("[data-said]").replaceChildren(faults(error));
  }
});
