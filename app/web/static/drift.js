// The scores and labels of a version's recent predictions beside those of held-out rows.

import { get } from "./api.js";
import { draw } from "./charts.js";
import { namesOf, titled } from "./names.js";
import { element, faults, number, percent } from "./words.js";

const card = document.getElementById("drift");
const said = card.querySelector("[data-said]");
const MOST_MOVED = 8;

function fact(name, value) {
  return element("div", {}, element("dt", {}, name), element("dd", { class: "number" }, value));
}

function bins(edges) {
  return [...edges.map((edge) => `to ${number(edge, 3)}`), edges.length ? `from ${number(edges[edges.length - 1], 3)}` : "all"];
}

function moved(labels) {
  const body = card.querySelector("tbody");
  const names = namesOf(labels);
  body.replaceChildren(...labels.slice(0, MOST_MOVED).map((at) => element("tr", {}, element("th", { scope: "row", class: "name" }, ...titled(at.label, names.get(at.label))), element("td", { class: "number" }, percent(at.expected)), element("td", { class: "number" }, percent(at.found)))));
  body.closest(".scroll").hidden = labels.length === 0;
}

async function show({ days, n_answers, n_expected, too_few, scores, labels }) {
  const facts = [fact(`Predictions in ${days} days`, number(n_answers)), fact("Held out", number(n_expected))];
  if (too_few) facts.push(element("div", {}, element("dt", {}, "Drift"), element("dd", {}, "not measured", element("small", {}, too_few))));
  if (scores) facts.push(fact("Scores: population stability index (expected by chance)", `${number(scores.psi, 3)} (${number(scores.psi_by_chance, 3)})`));
  if (labels) facts.push(fact("Labels: total variation (expected by chance)", `${percent(labels.total_variation)} (${percent(labels.total_variation_by_chance)})`));
  said.replaceChildren(...facts);
  if (labels) moved(labels.moved);
  if (!scores) return;
  const names = bins(scores.edges);
  card.querySelector("figure").hidden = false;
  await draw(card.querySelector(".chart"), (colour) => ({
    traces: [
      { name: "held out", type: "bar", x: names, y: scores.expected, marker: { color: colour("--line") }, hovertemplate: "%{x}: %{y:.1%}<extra>held out</extra>" },
      { name: "recent", type: "bar", x: names, y: scores.found, marker: { color: colour("--accent") }, hovertemplate: "%{x}: %{y:.1%}<extra>recent</extra>" },
    ],
    layout: { showlegend: true, barmode: "group", xaxis: { type: "category", title: { text: "Score" } }, yaxis: { title: { text: "Share of predictions" }, tickformat: ".0%" } },
  }));
}

try {
  await show(await get(card.dataset.path));
} catch (error) {
  said.replaceChildren(faults(error));
}
