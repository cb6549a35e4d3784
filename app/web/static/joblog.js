// The log of a job: what its workers, and sweeps, have noted of it.

import { get } from "./api.js";
import { element } from "./words.js";

const place = document.getElementById("joblog");
const { id, final } = document.getElementById("job").dataset;
const EVERY = 2000;
let last = "";

function row(line) {
  const fields = Object.entries(line.fields).map(([name, value]) => `${name}=${value}`).join(" ");
  const kind = { warning: "cancelling", error: "failed" }[line.level];
  return element("tr", {},
    element("td", { class: "nowrap" }, element("time", { datetime: line.at }, line.at.slice(11, 19))),
    element("td", { class: "number" }, String(line.attempt)),
    element("td", {}, kind ? element("span", { class: `badge ${kind}` }, line.level) : line.level),
    element("td", {}, line.event.replaceAll("_", " ")),
    element("td", { class: "mono small name" }, fields));
}

async function look() {
  if (document.visibilityState === "visible" && place.closest("details").open) {
    try {
      const { lines } = await get(`/jobs/${id}/log?limit=1000${last ? `&after=${last}` : ""}`);
      last = lines.at(-1)?.id ?? last;
      place.append(...lines.map(row));
      if (final === "yes") return;
    } catch {
      // the next look may find the service again
    }
  }
  setTimeout(look, EVERY);
}

if (place.closest("details").open) look();
else place.closest("details").addEventListener("toggle", look, { once: true });
