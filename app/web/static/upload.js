// Uploads one file with progress; errors found by the service, also in rows, are shown in the form.

import { call, get, Refusal } from "./api.js";
import { Columns } from "./columns.js";
import { acceptDrops, LARGE, sendInPieces, sendWhole } from "./pieces.js";
import { tarOf } from "./tar.js";
import { element, faults, percent, size } from "./words.js";

const form = document.getElementById("upload");
const drop = form.querySelector("[data-drop]");
const file = form.elements.file;
const said = form.querySelector("[data-said]");
const bar = form.querySelector("progress");
const EXTENSIONS = JSON.parse(form.dataset.extensions);
const PACKED = /\.(gz|bz2|xz|zst)$/i;
const LOOK_MILLISECONDS = 500;
const infer = form.elements.infer_columns;
// files that go with the rows: their labels, and the names of these
const others = [...form.querySelectorAll("input[type=file][data-folder]")];
// what was sent from this form and has faults in its rows: the next upload takes its place
let refused = null;

// what a format cannot have is not asked; columns are inferred from their values if it has any
function offer() {
  const { value } = form.elements.format;
  for (const each of form.querySelectorAll("[data-formats]")) {
    each.hidden = value !== "" && !each.dataset.formats.split(" ").includes(value);
    for (const field of each.querySelectorAll("[name]")) field.disabled = each.hidden;
  }
  if (infer) infer.checked = value !== "" && !infer.disabled;
}
form.elements.format.addEventListener("change", offer);
form.elements.format.addEventListener("proposed", offer);
if (!infer) offer();
const columns = infer ? new Columns(form, document.getElementById("columns"), () => infer.checked || form.elements.format.value === "") : null;

// The beginning of a file's text; null where it is packed in a way that a browser cannot unpack.
async function beginning(one) {
  const head = one.slice(0, 1 << 20);
  if (!PACKED.test(one.name)) return head.text();
  if (!/\.gz$/i.test(one.name)) return null;
  const reader = head.stream().pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    while (!text.includes("\n") && text.length < 1 << 20) {
      const { done, value } = await reader.read();
      if (done) break;
      text += value;
    }
  } catch {
    // a damaged file, which the service reports; or the end of the slice
  }
  reader.cancel().catch(() => {});
  return text;
}

// corpora of Annif's end in .tsv, too, and have no header: their first line has subjects
async function formatOfTsv(one) {
  const text = await beginning(one);
  if (text === null) return ""; // the service decides by the content
  return text.split("\n", 1)[0].includes("\t<") ? "annif" : EXTENSIONS.tsv;
}

// exports of annotation tools and JSON-LD end in .csv and .json as well: the service looks at their keys
async function formatOfTable(one, format) {
  const text = await beginning(one);
  return text === null || /annotation_id|"(annotation|responses"|[Cc]omments"|@context"|@graph"|@id")/.test(text.slice(0, 1 << 18)) ? "" : format;
}

function propose(format) {
  if (format !== undefined && [...form.elements.format.options].some((option) => option.value === format)) form.elements.format.value = format;
  offer();
}

// the name that the chosen file suggests; it follows the file until the user types another
let suggested = "";

// Rows whose labels are in another file are sent with it in one archive, whose format is known.
function isTogether() {
  return others.some(({ files }) => files.length);
}

function together() {
  const { format } = form.elements;
  const had = format.disabled;
  format.disabled = isTogether();
  if (format.disabled) {
    propose("archive");
    columns?.choose(null);
  } else if (had) {
    propose("");
    chosen();
  }
}

for (const each of others) each.addEventListener("change", together);

async function chosen() {
  const [one] = file.files;
  if (!one) return;
  const name = one.name.replace(PACKED, "");
  const [stem, ending] = [name.replace(/\.[^.]*$/, ""), name.split(".").pop().toLowerCase()];
  if (["", suggested].includes(form.elements.name.value)) {
    suggested = stem.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(0, 128);
    form.elements.name.value = suggested;
  }
  if (isTogether()) {
    said.textContent = size(one.size);
    return;
  }
  let format = EXTENSIONS[ending];
  propose(format);
  if (infer && format === "tsv") format = await formatOfTsv(one);
  else if (infer && ["csv", "jsonl"].includes(format)) format = await formatOfTable(one, format);
  if (format !== EXTENSIONS[ending]) propose(format);
  columns?.choose(one);
  said.textContent = size(one.size);
}

file.addEventListener("change", chosen);
acceptDrops(drop, file, chosen);

function progress(body) {
  return (sent) => {
    bar.value = sent / (body.size || 1);
    said.textContent = `${percent(bar.value, 0)} of ${size(body.size)} sent`;
  };
}

// Datasets may come in pieces; what else is uploaded is never so large.
async function send(query, body) {
  const { path } = form.dataset;
  if (path !== "/datasets" || body.size < LARGE) return sendWhole(`${path}?${query}`, body, progress(body));
  const sent = await sendInPieces(body, progress(body));
  query.set("upload", sent.id);
  const made = await call("POST", `${path}?${query}`);
  sent.done();
  return made;
}

// The rows of a dataset are read after its file has come; of others nothing is left to do.
async function read(made) {
  bar.removeAttribute("value");
  said.replaceChildren("Importing rows: ", element("a", { href: form.dataset.after + encodeURIComponent(made.name) }, made.name));
  let found = made;
  while (found.state === "importing") {
    await new Promise((resolve) => { setTimeout(resolve, LOOK_MILLISECONDS); });
    found = await get(`${form.dataset.path}/${made.id}`);
  }
  if (found.state !== "failed") return;
  refused = found;
  throw new Refusal(found.error ?? { detail: "The import did not finish." });
}

async function replaceRefused() {
  if (!refused) return;
  const { id } = refused;
  refused = null;
  try {
    await call("DELETE", `${form.dataset.path}/${id}`);
  } catch (error) {
    if (error.status !== 404) throw error;
  }
}

function report(error) {
  const box = faults(error);
  if (refused) {
    const page = element("a", { href: form.dataset.after + encodeURIComponent(refused.name) }, "the dataset's page");
    box.append(element("p", {}, "Fix the file or these settings, then upload it again to replace this one. The errors remain on ", page, " until then."));
  }
  return box;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  await columns?.pending;
  button.disabled = false;
  // the proposal may ask for the label column
  if (!form.reportValidity()) return;
  button.disabled = true;
  let [body] = file.files;
  const query = new URLSearchParams();
  if (isTogether()) {
    body = tarOf({ features: body, ...Object.fromEntries(others.filter(({ files }) => files.length).map((each) => [each.dataset.folder, each.files[0]])) });
    query.set("format", form.elements.format.value);
  }
  for (const each of form.elements) {
    const left = each.name === "file" || each.disabled || (each.type === "checkbox" && !each.checked);
    if (!each.name || left || !each.value) continue;
    const lines = each.dataset.lines === undefined ? [each.value] : each.value.split("\n").map((line) => line.trim()).filter(Boolean);
    for (const line of lines) query.append(each.name, line);
  }
  bar.value = 0;
  bar.hidden = false;
  form.querySelector("[data-faults]").replaceChildren();
  try {
    await replaceRefused();
    const made = await send(query, body);
    if (made.state === "importing") await read(made);
    location.assign(form.dataset.after + encodeURIComponent(made.name));
  } catch (error) {
    form.querySelector("[data-faults]").replaceChildren(report(error));
    // show the fields that may fix it
    for (const each of form.querySelectorAll("details")) each.open = true;
    bar.hidden = true;
    said.textContent = "";
    button.disabled = false;
  }
});
