// Calls of the API by the session that has signed in; a refusal is an error with the service's own words.

export const prefix = "/api/v1";

export class Refusal extends Error {
  constructor(document) {
    super(document.detail ?? "The service did not answer as it should.");
    this.errors = document.errors ?? [];
    this.status = document.status;
  }

  get lines() {
    return this.errors.map((item) => {
      const where = [item.row === undefined ? null : `line ${item.row}`, item.column, item.pointer].filter(Boolean);
      return where.length ? `${where.join(", ")}: ${item.detail}` : item.detail;
    });
  }
}

export function token() {
  return document.querySelector('meta[name="csrf-token"]')?.content ?? "";
}

export async function call(method, path, body, headers = {}) {
  const init = { method, headers: { "X-CSRF-Token": token(), ...headers } };
  if (body !== undefined) {
    init.headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(prefix + path, init);
  } catch {
    throw new Refusal({ detail: "The service cannot be reached." });
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
