// Precision against coverage of a version, of sets of labels against recall, with the threshold as a slider.

import { get } from "./api.js";
import { draw } from "./charts.js";
import { element, faults, number, percent } from "./words.js";

const card = document.getElementById("thresholds");
const slider = card.querySelector("input");
const said = card.querySelector("[data-said]");
const link = card.querySelector("[data-try]");
const address = link.href;
const covered = (at) => at.recall ?? at.answered;
const f1 = (at) => (2 * at.precision * at.recall) / (at.precision + at.recall || 1);

function facts(at) {
  const values = [["Threshold", number(at.threshold, 3)], ["Coverage", percent(at.answered)], ["Precision", percent(at.precision)], ["Lower bound, 95\u202f%", percent(at.lower_bound)]];
  if (at.recall !== null) values.push(["Recall", percent(at.recall)]);
  else if (at.depth !== 1) values.push(["Mean depth in the tree", number(at.depth, 3)]);
  return values.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", { class: "number" }, value)));
}

function show(points) {
  const at = points[Number(slider.value)];
  said.replaceChildren(...facts(at));
  const word = at.recall === null ? "answered" : "found";
  const values = `${number(at.threshold, 3)}: ${percent(covered(at))} ${word}, ${percent(at.precision)} right`;
  slider.setAttribute("aria-valuetext", values);
  link.href = `${address}&threshold=${(Math.floor(1e6 * at.threshold) / 1e6).toFixed(6)}`;
  // a line of one point cannot be seen
  const mode = points.length > 1 ? "lines" : "markers";
  const lowest = 0.98 * Math.min(...points.map((each) => each.precision));
  return draw(card.querySelector(".chart"), (colour) => ({
    traces: [
      { name: "right", x: points.map(covered), y: points.map((each) => each.precision), text: points.map((each) => number(each.threshold, 3)), mode, hovertemplate: `from %{text} on: %{x:.1%} ${word}, %{y:.1%} right<extra></extra>` },
      { name: "95\u202f% bound", x: points.map(covered), y: points.map((each) => each.lower_bound), mode, line: { dash: "dot", color: colour("--muted") }, hoverinfo: "skip" },
      { x: [covered(at)], y: [at.precision], mode: "markers", marker: { size: 13, color: colour("--accent") }, hoverinfo: "skip", showlegend: false },
    ],
    layout: { showlegend: true, xaxis: { title: { text: at.recall === null ? "Coverage" : "Recall" }, tickformat: ".0%", range: [0, 1.02] }, yaxis: { title: { text: "Right" }, tickformat: lowest > 0.95 ? ".1%" : ".0%", range: [lowest, 1 + (1 - lowest) / 20] } },
  }));
}

try {
  const { points } = await get(card.dataset.path);
  if (points.length) {
    slider.max = String(points.length - 1);
    // where nothing else is asked for: the least threshold whose answers are surely right in 95 % of cases, if there is one;
    // otherwise that of the best F1 of sets, or of all answers
    const sure = points.findIndex((point) => point.lower_bound >= 0.95);
    const best = points[0].recall === null ? 0 : points.reduce((found, point, at) => (f1(point) > f1(points[found]) ? at : found), 0);
    slider.value = String(sure >= 0 ? sure : best);
    slider.disabled = points.length === 1;
    slider.addEventListener("input", () => show(points));
    await show(points);
  } else said.replaceChildren(element("p", { class: "muted" }, "No rows were held out."));
} catch (error) {
  said.replaceChildren(faults(error));
}
