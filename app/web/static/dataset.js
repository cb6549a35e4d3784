// A dataset: the page comes anew when its import is over; the histogram of its classes.

import { get, prefix } from "./api.js";
import { draw } from "./charts.js";

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
  const { classes, n_test: nTest } = await get(histogram.dataset.path);
  // names may be anything: they are shown as text, as Plotly takes some markup in labels
  const plain = (label) => label.replaceAll("&", "&amp;").replaceAll("<", "&lt;").slice(0, 60);
  await draw(histogram, () => ({
    traces: [
      { type: "bar", name: "train", x: classes.map((_, i) => i + 1), y: classes.map((each) => each.train), text: classes.map((each) => plain(each.label)), textposition: "none", hovertemplate: "%{text}: %{y}<extra></extra>" },
      ...(nTest ? [{ type: "bar", name: "test", x: classes.map((_, i) => i + 1), y: classes.map((each) => each.test), text: classes.map((each) => plain(each.label)), textposition: "none", hovertemplate: "%{text}: %{y} to test<extra></extra>" }] : []),
    ],
    layout: {
      barmode: "stack", bargap: classes.length > 60 ? 0 : 0.2, showlegend: nTest > 0,
      xaxis: { title: { text: "Class, the largest first" }, tickformat: "d" }, yaxis: { title: { text: "Rows" } },
    },
  }));
}
