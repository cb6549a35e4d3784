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

function facts(at) {
  const told = [["Threshold", number(at.threshold, 3)], ["Answered", percent(at.answered)], ["Right", percent(at.precision)], ["At least, with 95\u202f% confidence", percent(at.lower_bound)]];
  if (at.recall !== null) told.push(["Found of the labels", percent(at.recall)]);
  else if (at.depth !== 1) told.push(["Mean level in the tree", number(at.depth, 3)]);
  return told.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", { class: "number" }, value)));
}

function show(points) {
  const at = points[Number(slider.value)];
  said.replaceChildren(...facts(at));
  const word = at.recall === null ? "answered" : "found";
  const told = `${number(at.threshold, 3)}: ${percent(covered(at))} ${word}, ${percent(at.precision)} right`;
  slider.setAttribute("aria-valuetext", told);
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
    layout: { showlegend: true, xaxis: { title: { text: at.recall === null ? "Answered" : "Found" }, tickformat: ".0%", range: [0, 1.02] }, yaxis: { title: { text: "Right" }, tickformat: lowest > 0.95 ? ".1%" : ".0%", range: [lowest, 1 + (1 - lowest) / 20] } },
  }));
}

try {
  const { points } = await get(card.dataset.path);
  if (points.length) {
    slider.max = String(points.length - 1);
    // where nothing else is asked for: the least threshold whose answers are surely right in 95 % of cases, if there is one
    const sure = points.findIndex((point) => point.lower_bound >= 0.95);
    slider.value = String(Math.max(0, sure));
    slider.disabled = points.length === 1;
    slider.addEventListener("input", () => show(points));
    await show(points);
  } else said.replaceChildren(element("p", { class: "muted" }, "No row was held out."));
} catch (error) {
  said.replaceChildren(faults(error));
}
