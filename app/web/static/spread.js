// How the rows of a dataset are spread: a bar for each interval.

import { draw } from "./charts.js";

const KEYS = { lengths: "length_counts", labels: "label_counts", features: "feature_counts" };

function interval(first, end) {
  return end - first === 1 ? first.toLocaleString("en") : `${first.toLocaleString("en")}–${(end - 1).toLocaleString("en")}`;
}

export async function drawSpreads(statistics) {
  for (const target of document.querySelectorAll("#spread [data-of]")) {
    const { edges, counts } = statistics[KEYS[target.dataset.of]];
    const x = edges.slice(0, -1).map((first, at) => interval(first, edges[at + 1]));
    await draw(target, () => ({
      traces: Object.entries(counts).map(([name, y]) => ({ type: "bar", name, x, y, hovertemplate: `%{x}: %{y} (${name})<extra></extra>` })),
      layout: {
        barmode: "stack", bargap: 0.08, showlegend: Object.keys(counts).length > 1,
        xaxis: { type: "category", title: { text: target.dataset.x }, nticks: 10, tickangle: x.length > 8 ? -40 : 0 },
        yaxis: { title: { text: target.dataset.y } },
      },
    }));
  }
}
