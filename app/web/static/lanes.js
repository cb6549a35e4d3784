// The shards of a job as lanes: how long each has waited for the others, and what it has sent.

import { duration, element, percent, size } from "./words.js";

// Sums over all steps, by shard; methods that exchange nothing, and jobs without shards, have none.
function lanesOf(steps) {
  const lanes = new Map();
  for (const step of steps) {
    for (const [name, value] of Object.entries(step.measures ?? {})) {
      const found = /^shard_(\d+)_(wait_seconds|bytes)$/.exec(name);
      if (found) {
        const lane = lanes.get(Number(found[1])) ?? { wait_seconds: 0, bytes: 0 };
        lane[found[2]] += value;
        lanes.set(Number(found[1]), lane);
      }
    }
  }
  return [...lanes].sort(([a], [b]) => a - b);
}

function row([rank, lane], seconds, most) {
  const waited = Math.min(1, lane.wait_seconds / (seconds || 1));
  const bars = [element("span", { class: "lane" }, element("span", { class: "busy" }), element("span", { class: "waits" })), element("span", { class: "bar" })];
  bars[0].style.setProperty("--share", waited.toFixed(4));
  bars[1].style.setProperty("--share", (lane.bytes / (most || 1)).toFixed(4));
  return element("tr", {}, element("th", { scope: "row", class: "nowrap" }, `Shard ${rank}`),
    element("td", {}, bars[0]), element("td", { class: "number nowrap" }, `${duration(lane.wait_seconds)} (${percent(waited, 0)})`),
    element("td", {}, bars[1]), element("td", { class: "number nowrap" }, size(lane.bytes)));
}

// Fills the table in ``card``, which is hidden where there is nothing to show.
export function showLanes(card, steps) {
  const lanes = lanesOf(steps);
  card.hidden = lanes.length === 0;
  if (!lanes.length) return;
  const seconds = steps.at(-1).seconds;
  const most = Math.max(...lanes.map(([, lane]) => lane.bytes));
  card.querySelector("tbody").replaceChildren(...lanes.map((lane) => row(lane, seconds, most)));
}
