// A small curve of a job's gap, on a logarithmic scale, in an SVG whose path it sets.

export function spark(svg, curve) {
  const points = curve.filter((point) => point.gap > 0);
  const path = svg.querySelector("path");
  svg.dataset.points = points.length;
  if (points.length < 2) {
    path.setAttribute("d", "");
    return;
  }
  const xs = points.map((point) => point.seconds);
  const ys = points.map((point) => Math.log10(point.gap));
  const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const at = (i) => {
    const x = 100 * (xs[i] - left) / (right - left || 1);
    const y = 28 - 26 * (ys[i] - low) / (high - low || 1);
    return `${x.toFixed(2)} ${y.toFixed(2)}`;
  };
  path.setAttribute("d", `M${points.map((_, i) => at(i)).join("L")}`);
}
