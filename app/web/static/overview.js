// The overview, kept up to date while it is visible: one call of the API every other second.

import { get, prefix } from "./api.js";
import { showLanes } from "./lanes.js";
import { renew } from "./live.js";
import { spark } from "./spark.js";
import { badge, duration, element, gap, number, percent } from "./words.js";

const running = () => document.getElementById("running");
const queues = document.getElementById("queues");
const EVERY = 2000;
const MOST_STEPS = 1000;

function note({ job }) {
  const progress = job.progress;
  if (!progress) return "starting";
  const parts = [progress.phase, percent(progress.fraction, 0)];
  if (progress.gap !== null) parts.push(`gap ${gap(progress.gap)}`);
  if (progress.eta_seconds !== null) parts.push(`${duration(progress.eta_seconds)} left`);
  return parts.join(" · ");
}

function show(status) {
  const shown = new Set([...running().querySelectorAll("[data-job]")].map((card) => card.dataset.job));
  const now = new Set(status.running.map(({ job }) => job.id));
  // another set of jobs: the server renders the page again
  if (shown.size !== now.size || [...now].some((id) => !shown.has(id))) return false;
  for (const each of status.running) {
    const card = running().querySelector(`[data-job="${each.job.id}"]`);
    spark(card.querySelector("[data-spark]"), each.curve);
    card.querySelector("progress").value = each.job.progress?.fraction ?? 0;
    card.querySelector("[data-note]").textContent = note(each);
    card.querySelector(".badge").replaceWith(badge(each.job.state));
  }
  queues.replaceChildren(...status.queues.map((queue) => element(
    "tr", {},
    element("th", { scope: "row", class: "name" }, queue.name),
    ...[queue.processes, queue.busy, queue.waiting].map((n) => element("td", { class: "number" }, String(n))),
  )));
  return true;
}

// the steps of jobs in class shards, by job; each look asks for the next ones only
const steps = new Map();

async function lanes() {
  for (const place of running().querySelectorAll("[data-lanes]")) {
    const { job } = place.closest("[data-job]").dataset;
    const known = steps.get(job) ?? [];
    const found = await get(`/jobs/${job}/steps?limit=${MOST_STEPS}&after=${known.at(-1)?.number ?? -1}`);
    steps.set(job, [...known, ...found.steps]);
    showLanes(place, steps.get(job));
  }
}

const tour = document.getElementById("tour");
if (tour && localStorage.getItem("tour") !== "done") tour.hidden = false;
document.getElementById("end-tour")?.addEventListener("click", () => {
  localStorage.setItem("tour", "done");
  tour.hidden = true;
});
const { importing } = tour?.dataset ?? {};
if (importing) {
  const events = new EventSource(`${prefix}/jobs/${importing}/events`);
  events.addEventListener("state", (event) => {
    if (["queued", "running", "cancelling"].includes(JSON.parse(event.data).state)) return;
    events.close();
    location.reload();
  });
}

async function look() {
  if (document.visibilityState === "visible") {
    try {
      if (!show(await get("/status"))) await renew();
      await lanes();
    } catch {
      // the next look may find the service again
    }
  }
  setTimeout(look, EVERY);
}

look();
