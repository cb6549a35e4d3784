// A job as it goes on: its events move the curves, the trials, the figures and the log.

import { get, prefix } from "./api.js";
import { draw, rangeOf } from "./charts.js";
import { showLanes } from "./lanes.js";
import { renew } from "./live.js";
import { badge, duration, element, gap, number, percent } from "./words.js";

const page = document.getElementById("job");
const { id, final, kind } = page.dataset;
const steps = [];
const trials = [];
const LONGEST_LOG = 500;
const AGAIN_MILLISECONDS = 2000;
// counted from 0 in the steps, and from 1 for people
const COUNTED = ["trial", "member"];
let best = null;
let drawing = false;
let stale = false;

const byId = (name) => document.getElementById(name);

function put(name, text) {
  const place = page.querySelector(`[data-value="${name}"]`);
  if (place) place.textContent = text;
}

async function show(job) {
  if (page.dataset.state === "queued" && job.state !== "queued") {
    page.dataset.state = job.state;
    await renew();
  }
  const progress = job.progress ?? {};
  byId("state").replaceChildren(badge(job.state));
  put("phase", progress.phase ?? job.state);
  put("fraction", percent(progress.fraction ?? 0, 0));
  put("eta", duration(progress.eta_seconds));
  put("gap", gap(progress.gap));
  put("epoch", number(progress.epoch));
  put("setting", progress.setting ?? "");
  if (byId("progress")) byId("progress").value = progress.fraction ?? 0;
}

function take(step) {
  steps.push(step);
  if (step.measures?.trial !== undefined && Object.keys(step.measures).length > 1) trials.push({ setting: step.setting, measures: step.measures });
  const measures = Object.entries(step.measures ?? {}).map(([name, value]) => `${name.replaceAll("_", " ")} ${number(COUNTED.includes(name) ? value + 1 : value)}`).join(", ");
  const cells = [step.number, step.seconds.toFixed(2), step.epoch, number(step.primal, 6), number(step.dual, 6), gap(step.gap)];
  const log = byId("log");
  log?.prepend(element(
    "tr", {}, ...cells.map((cell) => element("td", { class: "number" }, String(cell))), element("td", {}, measures),
  ));
  if (log?.childElementCount > LONGEST_LOG) log.lastElementChild.remove();
}

function line(name, of, axis) {
  const shown = steps.filter((step) => of(step) !== null);
  return { name, x: shown.map((step) => step[axis]), y: shown.map(of), mode: shown.length > 60 ? "lines" : "lines+markers", hovertemplate: "%{y:.6g}<extra>" + name + "</extra>" };
}

async function curves() {
  const axis = byId("axis").value;
  const xaxis = { title: { text: axis === "seconds" ? "Training time (s)" : "Epoch" } };
  const measured = steps.filter((step) => step.gap !== null);
  // a search of models has a gap at its end alone, which is no curve
  const curved = measured.length > (trials.length ? 1 : 0);
  byId("curves").hidden = !curved;
  if (!curved) return;
  await draw(byId("gap-chart"), () => ({
    traces: [line("gap", (step) => (step.gap > 0 ? step.gap : null), axis)],
    layout: { title: { text: "Relative gap" }, xaxis, yaxis: { type: "log", exponentformat: "power", nticks: 6 } },
  }));
  await draw(byId("bounds-chart"), () => ({
    traces: [line("objective", (step) => step.primal, axis), line("dual", (step) => step.dual, axis)],
    layout: { title: { text: "" }, showlegend: true, xaxis, yaxis: {} },
  }));
}

async function table() {
  byId("trials").hidden = trials.length === 0;
  if (!trials.length) return;
  const names = Object.keys(trials[0].measures);
  best = ["accuracy", "micro_f1"].find((name) => names.includes(name)) ?? names[1];
  const heads = names.map((name) => element("th", { scope: "col", class: "number" }, name.replaceAll("_", " ")));
  // steps that were written by a version before do not name what was tried
  const named = trials.some(({ setting }) => setting);
  if (named) heads.splice(1, 0, element("th", { scope: "col" }, "tried"));
  byId("trials-head").replaceChildren(...heads);
  const values = trials.map(({ measures }) => measures[best]);
  const top = Math.max(...values);
  byId("trials-body").replaceChildren(...trials.map(({ setting, measures }) => {
    const marked = (text) => (measures[best] === top ? element("strong", {}, text) : text);
    const cells = names.map((name) => {
      const value = measures[name];
      return element("td", { class: "number" }, marked(name === "trial" ? String(value + 1) : name === "seconds" ? duration(value) : number(value)));
    });
    if (named) cells.splice(1, 0, element("td", {}, marked(setting ?? "")));
    return element("tr", {}, ...cells);
  }));
  await draw(byId("trials-chart"), (colour) => ({
    traces: [{
      x: trials.map(({ measures }) => measures.trial + 1), y: values, mode: "markers", text: trials.map(({ setting }) => setting ?? ""),
      marker: { size: 10, color: values.map((value) => colour(value === top ? "--good" : "--accent")) },
      hovertemplate: "trial %{x}: %{y:.4f}<br>%{text}<extra></extra>",
    }],
    layout: { title: { text: `${best.replaceAll("_", " ")} on held-out rows` }, xaxis: { title: { text: "Trial" }, tickformat: "d", dtick: trials.length < 10 ? 1 : undefined }, yaxis: { range: rangeOf(values) } },
  }));
}

// several steps come at once: drawn once they are all there
function redraw() {
  stale = true;
  if (kind !== "train" || drawing) return;
  drawing = true;
  requestAnimationFrame(async () => {
    while (stale) {
      stale = false;
      await curves();
      await table();
      showLanes(document.getElementById("lanes"), steps);
    }
    drawing = false;
  });
}

function follow() {
  let events = null;
  const begin = () => {
    const last = steps.at(-1)?.number;
    events = new EventSource(`${prefix}/jobs/${id}/events`);
    events.addEventListener("open", () => { byId("offline").hidden = true; });
    events.addEventListener("error", () => {
      byId("offline").hidden = false;
      // the browser itself tries again, except after an answer that is no stream, such as a proxy's
      if (events?.readyState !== EventSource.CLOSED) return;
      events = null;
      setTimeout(async () => {
        await get(`/jobs/${id}`).catch(() => null);  // after the end of the session, this leads to the sign-in
        if (events === null && document.visibilityState === "visible") begin();
      }, AGAIN_MILLISECONDS);
    });
    events.addEventListener("step", (event) => {
      const step = JSON.parse(event.data);
      if (step.number <= (steps.at(-1)?.number ?? last ?? -1)) return;
      take(step);
      redraw();
    });
    events.addEventListener("state", (event) => {
      const job = JSON.parse(event.data);
      show(job);
      if (["succeeded", "failed", "cancelled"].includes(job.state)) {
        events.close();
        location.reload();
      }
    });
  };
  // a browser has six connections to a host: a page that nobody sees gives its own back
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") {
      events?.close();
      events = null;
    } else if (events === null) begin();
  });
  begin();
}

async function past() {
  for (;;) {
    const found = await get(`/jobs/${id}/steps?limit=10000&after=${steps.at(-1)?.number ?? -1}`);
    found.steps.forEach(take);
    if (found.steps.length < 10000) break;
  }
  redraw();
}

byId("axis")?.addEventListener("change", redraw);
if (final === "yes") past();
else follow();
