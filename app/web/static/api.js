// API calls of the signed-in session; an error response becomes an exception with the service's message.

export const prefix = "/api/v1";

export class Refusal extends Error {
  constructor(document) {
    const detail = document.detail ?? "The service sent an unexpected response.";
    super(document.code === "internal" && document.request_id ? `${detail} (request id ${document.request_id})` : detail);
    this.errors = document.errors ?? [];
    this.status = document.status;
  }

  get lines() {
    return this.errors.map((item) => {
      const where = [item.row === undefined ? null : `line ${item.row}`, item.column, placeOf(item.pointer)].filter(Boolean);
      return where.length ? `${where.join(", ")}: ${item.detail}` : item.detail;
    });
  }
}

// A JSON pointer as people write places: /params/C is params.C, and /texts/0 is texts[0].
function placeOf(pointer) {
  const names = (pointer ?? "").split("/").slice(1).map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  const path = names[0] === "query" ? names.slice(1) : names;
  return path.map((name, at) => (at && /^\d+$/.test(name) ? `[${name}]` : at ? `.${name}` : name)).join("");
}

export function token() {
  return document.querySelector('meta[name="csrf-token"]')?.content ?? "";
}

// With `keepalive` the browser sends the request even if the page is left meanwhile.
export async function call(method, path, body, headers = {}, keepalive = false) {
  const init = { method, keepalive, headers: { "X-CSRF-Token": token(), ...headers } };
  if (body !== undefined) {
    init.headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(prefix + path, init);
  } catch {
    throw new Refusal({ detail: "Cannot reach the service." });
  }
  if (answer.status === 401) {
    location.assign(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
  }
  const text = await answer.text();
  let document_ = null;
  try {
    document_ = text ? JSON.parse(text) : null;
  } catch {
    throw new Refusal({ detail: text.slice(0, 200) });
  }
  if (!answer.ok) throw new Refusal(document_ ?? { detail: answer.statusText });
  return document_;
}

export const get = (path) => call("GET", path);
