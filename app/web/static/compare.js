// Evaluates two versions on the same rows, waits, and shows the comparison.

import { call, get } from "./api.js";
import { faults } from "./words.js";

const POLL_MS = 1000;
const FINAL = ["succeeded", "failed", "cancelled"];
const place = document.getElementById("evaluate-both");
const said = place?.querySelector("[data-said]");

async function ended(id) {
  for (;;) {
    const job = await get(`/jobs/${id}`);
    if (FINAL.includes(job.state)) return job;
    await new Promise((done) => setTimeout(done, POLL_MS));
  }
}

place?.querySelector("button")?.addEventListener("click", async (event) => {
  const button = event.currentTarget;
  button.disabled = true;
  try {
    const { jobs } = await call("POST", place.dataset.path, { a: place.dataset.a, b: place.dataset.b });
    said.textContent = "Evaluating both versions…";
    const done = await Promise.all(jobs.map((job) => ended(job.id)));
    const failed = done.find((job) => job.state !== "succeeded");
    if (failed) throw new Error(failed.error?.detail ?? `Job ${failed.id} was ${failed.state}.`);
    location.reload();
  } catch (error) {
    said.replaceChildren(faults(error));
    button.disabled = false;
  }
});
