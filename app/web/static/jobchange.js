// Changes the priority and the tags of a job in place.

import { call } from "./api.js";
import { say } from "./page.js";

const form = document.getElementById("tags");
const { id } = document.getElementById("job").dataset;

async function change(body) {
  try {
    await call("PATCH", `/jobs/${id}`, body);
    location.reload();
  } catch (error) {
    say([error.message, ...(error.lines ?? [])].join(" "));
  }
}

document.getElementById("priority")?.addEventListener("change", (event) => change({ priority: event.target.value }));
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  change({ tags: { [form.elements.tag.value]: form.elements.value.value } });
});
document.querySelectorAll("[data-untag]").forEach((button) => button.addEventListener("click", () => change({ tags: { [button.dataset.untag]: null } })));
