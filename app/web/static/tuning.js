// The leaderboard of a tuning, its measure against time, and its settings side by side, as trials come to their ends.

import { get } from "./api.js";
import { draw, rangeOf } from "./charts.js";
import { badge, duration, element, gap, number } from "./words.js";

const page = document.getElementById("tuning");
const { id, final, measure } = page.dataset;
const LESS_IS_BETTER = ["log_loss", "tree_loss", "cost", "least_cost"];
const LOOK_MILLISECONDS = 2000;
const MOST_LINES = 150;
const byId = (name) => document.getElementById(name);
const over = ["succeeded", "failed", "cancelled"];

function put(name, text) {
  const place = page.querySelector(`[data-value="${name}"]`);
  if (place) place.textContent = text;
}

async function everything() {
  const found = [];
  let token = null;
  do {
    const answer = await get(`/jobs/${id}/trials?page_size=1000${token ? `&page_token=${encodeURIComponent(token)}` : ""}`);
    found.push(...answer.items);
    token = answer.next_page_token;
  } while (token);
  return found;
}

const MOST_TICKS = 8;

function written(value) {
  if (value === null) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function recipe(text) {
  if (!text) return null;
  const plain = { min_df: 2, max_df: 1, min_word_length: 2, ngram_max: 1, sublinear_tf: true, lowercase: true, weighting: "tfidf", bm25_k1: 1.2, bm25_b: 0.75 };
  const changed = Object.entries(text).filter(([name, value]) => value !== null && value !== plain[name] && !(Array.isArray(value) && !value.length));
  return changed.map(([name, value]) => `${name}=${written(value)}`).join(", ") || "words";
}

// the settings in which trials differ: method, recipe, and the parameters that vary
function settings(trials) {
  const names = [...new Set(trials.flatMap((trial) => Object.keys(trial.params)))];
  const all = [
    { name: "method", of: (trial) => trial.solver },
    { name: "text", of: (trial) => recipe(trial.text) },
    ...names.map((name) => ({ name, of: (trial) => trial.params[name] ?? null })),
  ];
  return all.filter((each) => new Set(trials.map((trial) => written(each.of(trial)))).size > 1);
}

function table(trials, varied) {
  const rounds = trials.some((trial) => trial.rung > 0);
  const columns = [
    ["#", (trial) => trial.rank ?? "–", true],
    ["trial", (trial) => element("a", { href: `/jobs/${trial.job}` }, String(trial.number)), true],
    ...(rounds ? [["round", (trial) => trial.rung + 1, true]] : []),
    ...varied.map((each) => [each.name.replaceAll("_", " "), (trial) => written(each.of(trial)), false]),
    [measure.replaceAll("_", " "), (trial) => number(trial.value), true],
    ["took", (trial) => duration(trial.seconds), true],
    ["epochs", (trial) => number(trial.epochs), true],
    ["gap", (trial) => gap(trial.gap), true],
    ["state", (trial) => state(trial), false],
  ];
  byId("leaderboard-head").replaceChildren(...columns.map(([name, , right]) => element("th", { scope: "col", class: right ? "number" : null }, name)));
  byId("leaderboard-body").replaceChildren(...trials.map((trial) => element(
    "tr", {}, ...columns.map(([, cell, right]) => {
      const made = cell(trial);
      return element("td", { class: right ? "number" : null }, made instanceof Node ? made : String(made));
    }),
  )));
}

function state(trial) {
  if (trial.error) {
    const faults_ = trial.error.errors.map((fault) => fault.detail).join("; ");
    return element("span", {}, badge(trial.state), ` ${trial.error.detail}${faults_ ? ` (${faults_})` : ""}`);
  }
  if (trial.stopped) return "stopped by the budget";
  return trial.state === "succeeded" ? "" : badge(trial.state);
}

const better = (a, b) => (LESS_IS_BETTER.includes(measure) ? a < b : a > b);

function overTime(trials) {
  const ended = trials.filter((trial) => trial.value !== null).sort((a, b) => a.finished_at.localeCompare(b.finished_at));
  const begun = trials.map((trial) => trial.started_at).filter(Boolean).sort()[0];
  const since = Number(page.dataset.started) * 1000 || Date.parse(begun);
  const at = ended.map((trial) => (Date.parse(trial.finished_at) - since) / 1000);
  const values = ended.map((trial) => trial.value);
  const best = [];
  ended.forEach((trial, place) => best.push(place && !better(trial.value, best[place - 1]) ? best[place - 1] : trial.value));
  return (colour) => ({
    traces: [
      { x: at, y: best, mode: "lines", line: { shape: "hv", color: colour("--good") }, hoverinfo: "skip" },
      {
        x: at, y: values, mode: "markers", marker: { size: 8, color: colour("--accent") },
        text: ended.map((trial) => `trial ${trial.number}, ${trial.solver}`), hovertemplate: "%{text}: %{y:.4f} after %{x:.1f} s<extra></extra>",
      },
    ],
    layout: { title: { text: measure.replaceAll("_", " ") }, xaxis: { title: { text: "Seconds since start" }, rangemode: "tozero" }, yaxis: { range: rangeOf(values) } },
  });
}

function ascending(a, b) {
  const least = (value) => (value === null ? -Infinity : value);
  const words = typeof a === "string" || typeof b === "string";
  return words ? written(b).localeCompare(written(a)) : least(a) - least(b);
}

// the axes of settings, each from 0 to 1: few values one above the other, many numbers by their order of magnitude
// where they are all above 0
function axis(each, trials) {
  const values = [...new Map(trials.map((trial) => [written(each.of(trial)), each.of(trial)])).values()];
  const numeric = values.every((value) => typeof value === "number");
  if (!numeric || (values.length <= MOST_TICKS && each.name !== measure)) {
    const order = values.sort(ascending).map(written);
    return { ticks: order, place: (trial) => (order.length > 1 ? order.indexOf(written(each.of(trial))) / (order.length - 1) : 0.5) };
  }
  const scale = values.every((value) => value > 0) ? Math.log : (value) => value;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return { ticks: [number(low, 3), number(high, 3)], place: (trial) => (scale(each.of(trial)) - scale(low)) / (scale(high) - scale(low) || 1) };
}

function sideBySide(trials, varied) {
  const shown = trials.filter((trial) => trial.rank !== null).slice(0, MOST_LINES);
  const dimensions = [...varied, { name: measure, of: (trial) => trial.value }];
  const axes = dimensions.map((each) => axis(each, shown));
  const x = dimensions.map((_, place) => place);
  return (colour) => ({
    traces: [...shown].reverse().map((trial) => ({
      x, y: axes.map((each) => each.place(trial)), mode: "lines", opacity: trial.rank === 1 ? 1 : 0.15 + 0.5 * (1 - trial.rank / shown.length),
      line: { color: colour(trial.rank === 1 ? "--good" : "--accent"), width: trial.rank === 1 ? 4 : 1.5 },
      text: dimensions.map((each) => `${each.name} ${written(each.of(trial))}`), hovertemplate: `trial ${trial.number}: %{text}<extra></extra>`,
    })),
    layout: {
      title: { text: "Settings" },
      xaxis: { tickvals: x, ticktext: dimensions.map((each) => each.name.replaceAll("_", " ")), range: [-0.45, x.length - 0.7], showgrid: true },
      yaxis: { visible: false, range: [-0.12, 1.12] },
      annotations: axes.flatMap((each, place) => each.ticks.slice(0, 12).map((tick, at, ticks) => ({
        x: place, y: ticks.length > 1 ? at / (ticks.length - 1) : 0.5, text: tick.length > 24 ? `${tick.slice(0, 23)}…` : tick, showarrow: false, yshift: 9, font: { size: 10 },
      }))),
    },
  });
}

async function show() {
  const [job, trials] = await Promise.all([get(`/jobs/${id}`), everything()]);
  const ended = trials.filter((trial) => over.includes(trial.state));
  const best = trials.find((trial) => trial.rank === 1);
  byId("state").replaceChildren(badge(job.state));
  if (job.started_at) page.dataset.started = Date.parse(job.started_at) / 1000;
  put("phase", job.progress?.phase ?? job.state);
  put("eta", duration(job.progress?.eta_seconds));
  put("done", `${number(ended.length)} of ${number(trials.length)}`);
  put("best", number(best?.value));
  if (byId("progress")) byId("progress").value = job.progress?.fraction ?? 0;
  const held = trials.find((trial) => trial.held_out)?.held_out;
  if (held) {
    const how = { validation: "the rows for validation", fraction: "a share of the training rows", folds: `each row once, in ${held.folds} folds` }[held.by];
    byId("held-out").textContent = `${number(held.n_held_out)} rows: ${how}`;
  }
  const varied = settings(trials);
  table(trials, varied);
  const measured = trials.filter((trial) => trial.value !== null);
  byId("charts").hidden = measured.length === 0;
  if (measured.length) {
    await draw(byId("time-chart"), overTime(trials));
    await draw(byId("settings-chart"), sideBySide(trials, varied));
  }
  return job;
}

async function follow() {
  if (document.visibilityState !== "hidden") {
    const job = await show();
    if (over.includes(job.state)) {
      location.reload();
      return;
    }
  }
  setTimeout(follow, LOOK_MILLISECONDS);
}

if (final === "yes") show();
else follow();
