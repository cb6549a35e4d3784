// Uploads a large file in pieces; after an interruption the upload continues from the last received piece.

import { call, get, prefix, Refusal, token } from "./api.js";

export const LARGE = 8 << 20;
const PIECE = 4 << 20;
const TRIES = 6;

const wait = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

// A file dropped on an area is chosen in its input.
export function acceptDrops(area, input, chosen) {
  for (const kind of ["dragover", "dragenter"]) area.addEventListener(kind, (event) => { event.preventDefault(); area.classList.add("over"); });
  for (const kind of ["dragleave", "drop"]) area.addEventListener(kind, () => area.classList.remove("over"));
  area.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    chosen();
  });
}

// One request whose progress can be seen; `null` where the connection broke.
function send(method, path, body, headers, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, prefix + path);
    for (const [name, value] of Object.entries({ "X-CSRF-Token": token(), "Content-Type": "application/octet-stream", ...headers })) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => progress(event.loaded));
    request.addEventListener("error", () => resolve(null));
    request.addEventListener("load", () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* reported below */ }
      if (request.status < 300) resolve(answer);
      else reject(new Refusal(answer));
    });
    request.send(body);
  });
}

// The whole file as the body of one request.
export async function sendWhole(path, file, progress) {
  const answer = await send("POST", path, file, {}, progress);
  if (answer === null) throw new Refusal({ detail: "The connection was interrupted and nothing was stored. Try again." });
  return answer;
}

async function begun(key, file) {
  const id = localStorage.getItem(key);
  if (id !== null) {
    try {
      const found = await get(`/uploads/${id}`);
      if (found.size_bytes === file.size) return found;
    } catch (error) {
      if (error.status !== 404) throw error;
    }
  }
  const made = await call("POST", "/uploads", { size_bytes: file.size });
  localStorage.setItem(key, made.id);
  return made;
}

// The id of an upload that has all of the file.
export async function sendInPieces(file, progress) {
  const key = `upload ${file.name} ${file.size} ${file.lastModified}`;
  const { id, max_piece_bytes: most, offset: had } = await begun(key, file);
  let offset = had;
  for (let broken = 0; offset < file.size;) {
    const from = offset;
    const answer = await send("PATCH", `/uploads/${id}`, file.slice(from, from + Math.min(PIECE, most)), { "Upload-Offset": String(from) }, (n) => progress(from + n));
    if (answer !== null) {
      offset = answer.offset;
      broken = 0;
      continue;
    }
    broken += 1;
    if (broken === TRIES) throw new Refusal({ detail: "The connection was interrupted. The received part is stored; press Upload to continue." });
    await wait(500 * 2 ** broken);
    try {
      ({ offset } = await get(`/uploads/${id}`));
    } catch {
      // it is asked for again with the next piece
    }
  }
  return { id, done: () => localStorage.removeItem(key) };
}
