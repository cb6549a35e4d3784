// The reliability curve of an evaluation, and the form that adopts an edition of a vocabulary.

import { get } from "./api.js";
import { draw } from "./charts.js";
import { submitsJob } from "./jobform.js";

const adopting = document.getElementById("adopt");
if (adopting) {
  const { model, version } = adopting.dataset;
  submitsJob(adopting, () => ({ kind: "adopt", model, version: Number(version), hierarchy: adopting.elements.hierarchy.value }), "/jobs");
}

const place = document.getElementById("reliability");
if (place) {
  const { reliability } = await get(`/evaluations/${place.dataset.id}`);
  const bins = reliability.filter((bin) => bin.n_rows > 0);
  await draw(place, (colour) => ({
    traces: [
      { x: [0, 1], y: [0, 1], mode: "lines", line: { dash: "dot", color: colour("--muted"), width: 1 }, hoverinfo: "skip" },
      {
        x: bins.map((bin) => bin.confidence), y: bins.map((bin) => bin.accuracy), mode: "lines+markers", line: { color: colour("--accent") },
        marker: { size: bins.map((bin) => 6 + 14 * Math.sqrt(bin.n_rows / Math.max(...bins.map((each) => each.n_rows)))) },
        text: bins.map((bin) => `${bin.n_rows} rows`), hovertemplate: "predicted %{x:.1%}, right %{y:.1%}<br>%{text}<extra></extra>",
      },
    ],
    layout: { xaxis: { title: { text: "Predicted probability" }, range: [0, 1.02], tickformat: ".0%" }, yaxis: { title: { text: "Share correct" }, range: [0, 1.02], tickformat: ".0%" } },
  }));
}
