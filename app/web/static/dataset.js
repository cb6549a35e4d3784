// A dataset: reloads the page when the import ends, and draws the histogram of classes.

import { get, prefix } from "./api.js";
import { draw } from "./charts.js";
import { drawSpreads } from "./spread.js";
import { number } from "./words.js";

const importing = document.getElementById("importing");
if (importing?.dataset.job) {
  const events = new EventSource(`${prefix}/jobs/${importing.dataset.job}/events`);
  events.addEventListener("state", (event) => {
    const job = JSON.parse(event.data);
    if (job.progress) importing.querySelector("progress").value = job.progress.fraction;
    if (!["queued", "running", "cancelling"].includes(job.state)) {
      events.close();
      location.reload();
    }
  });
}

const histogram = document.getElementById("histogram");
if (histogram) {
  const statistics = await get(histogram.dataset.path);
  const { classes } = statistics;
  const parts = [["train", ""], ["test", " to test"], ["validation", " for validation"]].filter(([part], at) => !at || classes.some((each) => each[part]));
  // names may be anything: they are shown as text, as Plotly takes some markup in labels
  const plain = (label) => label.replaceAll("&", "&amp;").replaceAll("<", "&lt;").slice(0, 60);
  await draw(histogram, () => ({
    traces: parts.map(([part, said]) => ({ type: "bar", name: part, x: classes.map((_, i) => i + 1), y: classes.map((each) => each[part]), text: classes.map((each) => plain(each.label)), textposition: "none", hovertemplate: `%{text}: %{y}${said}<extra></extra>` })),
    layout: {
      barmode: "stack", bargap: classes.length > 60 ? 0 : 0.2, showlegend: parts.length > 1,
      xaxis: classes.length > 12 ? { title: { text: `Class, largest first${classes.length < statistics.n_classes ? ` (${number(classes.length)} of ${number(statistics.n_classes)})` : ""}` }, tickformat: "d" } : { tickvals: classes.map((_, i) => i + 1), ticktext: classes.map((each) => plain(each.label).slice(0, 20)) }, yaxis: { title: { text: "Rows" } },
    },
  }));
  await drawSpreads(statistics);
}
