// Plotly, fetched when a page first draws, in the page's own colours.

let loading;

// The page's policy takes no styles in attributes; the same by script is allowed. And it takes no style elements: Plotly
// makes one for maps, which nothing here draws, and it becomes an element without any effect.
function obeyThePolicy() {
  const { setAttribute } = Element.prototype;
  Element.prototype.setAttribute = function set(name, value) {
    if (name === "style") this.style.cssText = value;
    else setAttribute.call(this, name, value);
  };
  const create = document.createElement;
  document.createElement = (name, ...more) => create.call(document, name === "style" ? "template" : name, ...more);
  return () => { delete document.createElement; };
}

function plotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const done = obeyThePolicy();
    script.src = new URL("plotly.min.js", import.meta.url);
    script.onload = () => {
      done();
      resolve(window.Plotly);
    };
    script.onerror = () => reject(new Error("Cannot load the charts."));
    document.head.append(script);
  });
  return loading;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function layout(given) {
  const axis = { gridcolor: colour("--line"), zeroline: false, automargin: true, fixedrange: true, linecolor: colour("--line") };
  const small = matchMedia("(max-width: 40rem)").matches;
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--muted"), family: "inherit", size: small ? 11 : 12 },
    margin: { l: 8, r: 8, t: 28, b: 8 },
    hovermode: "closest",
    showlegend: false,
    // at the top of the chart, whatever its height
    legend: { orientation: "h", yref: "container", yanchor: "top", y: 1, x: 0 },
    colorway: [colour("--accent"), colour("--good"), colour("--warn"), colour("--bad")],
    ...given,
    title: given.title ? { font: { size: 13 }, x: 0, xanchor: "left", ...given.title } : undefined,
    xaxis: { ...axis, ...given.xaxis },
    yaxis: { ...axis, ...given.yaxis },
  };
}

// The range of an axis of values that are all alike, which would have no height otherwise; else the chart's own choice.
export function rangeOf(values) {
  return new Set(values).size === 1 ? [values[0] - 0.05, values[0] + 0.05] : undefined;
}

const drawn = new Map();

// Draws or redraws; `make` gives the traces and the layout, and is asked again when the colours change.
export async function draw(target, make) {
  drawn.set(target, make);
  const Plotly = await plotly();
  const { traces, ...rest } = make(colour);
  await Plotly.react(target, traces, layout(rest.layout ?? {}), { displayModeBar: false, responsive: true });
  target.dataset.points = Math.max(0, ...traces.map((trace) => trace.x?.length ?? trace.y?.length ?? 0));
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const [target, make] of drawn) draw(target, make);
});
