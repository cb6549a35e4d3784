// Numbers and times in words, as the pages' templates write them; and elements made of text, never of HTML.

const thin = "\u202f";

export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en").replaceAll(",", thin);
  if (Math.abs(value) >= 10 ** (digits - 1) && Math.abs(value) < 1e15) {
    return Math.round(value).toLocaleString("en").replaceAll(",", thin);
  }
  return Number(value).toPrecision(digits);
}

// a relative duality gap, as app.plurals.gap_text writes it
export function gap(value) {
  if (value === null || value === undefined) return "–";
  return value === 0 ? "0" : value.toExponential(1).replace(/(?<=e[+-])(?=\d$)/, "0");
}

export function percent(value, digits = 1) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}${thin}%`;
}

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${bytes.toFixed(unit === 0 || bytes >= 100 ? 0 : 1)}${thin}${units[unit]}`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 1) return `${Math.round(1000 * seconds)}${thin}ms`;
  if (seconds < 60) return `${seconds.toFixed(1)}${thin}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}${thin}min ${Math.floor(seconds % 60)}${thin}s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}${thin}h ${Math.floor((seconds % 3600) / 60)}${thin}min`;
  return `${number(Math.floor(seconds / 86400))}${thin}d ${Math.floor((seconds % 86400) / 3600)}${thin}h`;
}

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function badge(state) {
  return element("span", { class: `badge ${state}` }, state);
}

export function faults(refusal) {
  const box = element("div", { class: "notice bad", role: "alert" }, refusal.message);
  if (refusal.lines?.length) box.append(element("ul", {}, ...refusal.lines.map((line) => element("li", {}, line))));
  return box;
}
