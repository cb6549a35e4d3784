// Codes a file on a model's page: uploads its rows, says how many labels will be sure, and offers the result.

import { call, get, prefix } from "./api.js";
import { acceptDrops, LARGE, sendInPieces, sendWhole } from "./pieces.js";
import { element, faults, number, percent, size } from "./words.js";

const form = document.getElementById("code");
const drop = form.querySelector("[data-drop]");
const { file, min_precision: precision, columns, encoding, decimal } = form.elements;
const said = form.querySelector("[data-said]");
const bar = form.querySelector("progress");
const wrong = form.querySelector("[data-faults]");
const rows = form.querySelector("[data-rows]");
const expected = form.querySelector("[data-expected]");
const button = form.querySelector("[data-code]");
const LOOK_MILLISECONDS = 500;
const LONGEST_NAME = 100;
// the temporary dataset with the rows of the chosen file, and what results are called after
let sent = null;
let stem = "";

const pause = () => new Promise((resolve) => { setTimeout(resolve, LOOK_MILLISECONDS); });
const request = () => ({ kind: "predict", model: form.dataset.model, ...JSON.parse(form.elements.version.value), dataset: sent.id, ...(precision.value ? { min_precision: Number(precision.value) / 100, sure_level: "leaves" } : {}) });

async function forget(keepalive = false) {
  const old = sent;
  sent = null;
  button.disabled = true;
  rows.replaceChildren();
  expected.textContent = "";
  if (old) await call("DELETE", `/datasets/${old.id}?force=true`, undefined, {}, keepalive).catch(() => {});
}

function progress(body) {
  return (bytes) => {
    bar.value = bytes / (body.size || 1);
    said.textContent = `${percent(bar.value, 0)} of ${size(body.size)} sent`;
  };
}

async function send(body) {
  const query = new URLSearchParams({ name: `coding-${crypto.randomUUID()}`, for_model: form.dataset.model });
  const ending = body.name.split(".").pop().toLowerCase();
  const format = JSON.parse(form.dataset.extensions)[ending];
  if (format) query.set("format", format);
  for (const option of [encoding, decimal]) {
    if (option.value && (!format || option.dataset.formats.split(" ").includes(format))) query.set(option.name, option.value);
  }
  for (const name of columns.value.split(",").map((each) => each.trim()).filter(Boolean)) query.append("text_columns", name);
  if (body.size < LARGE) return sendWhole(`/datasets?${query}`, body, progress(body));
  const pieces = await sendInPieces(body, progress(body));
  query.set("upload", pieces.id);
  const made = await call("POST", `/datasets?${query}`);
  pieces.done();
  return made;
}

// What the model reads of the first rows, as the service has understood the file.
async function show() {
  const found = await get(`/datasets/${sent.id}/rows?limit=3`);
  const cells = found.rows.map((row) => ({ ...(row.id === undefined || row.id === null ? {} : { id: row.id }), ...(row.record ?? {}), ...(row.text === undefined || row.text === null || Object.values(row.record ?? {}).some((value) => value && row.text.includes(value)) ? {} : { text: row.text }) }));
  const names = [...new Set(cells.flatMap((row) => Object.keys(row)))];
  if (!names.length) return;
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
  const body = cells.map((row) => element("tr", {}, ...names.map((name) => element("td", { class: "text" }, String(row[name] ?? "")))));
  rows.replaceChildren(element("table", {}, element("caption", {}, "What the model reads; other columns come back unchanged."), element("thead", {}, head), element("tbody", {}, ...body)));
}

// What the plan of a coding job says; an answer that comes after another file was chosen is dropped.
async function plan() {
  const [dataset, wanted, version] = [sent, precision.value, form.elements.version.value];
  precision.setCustomValidity(wanted && Number(wanted) < 1 ? "Enter a percentage, such as 95 for 0.95." : "");
  wrong.replaceChildren();
  expected.textContent = "";
  if (!form.reportValidity() || !dataset) return;
  try {
    const { n_rows: total, sure } = await call("POST", "/jobs/plan", request());
    if (dataset !== sent || wanted !== precision.value || version !== form.elements.version.value) return;
    if (!sure) expected.textContent = `${number(total)} rows.`;
    else if (sure.threshold === null || sure.threshold === undefined) expected.textContent = `${number(total)} rows. No label will be sure: on held-out rows no threshold reached this precision.`;
    else expected.textContent = `${number(total)} rows. About ${number(sure.n_answered)} (${percent(sure.answered ?? 0)}) will have a sure ${sure.counted === "nodes" ? "node" : "label"}; of the sure ${sure.counted} of held-out rows, ${percent(sure.precision ?? 0)} were right.`;
  } catch (error) {
    if (dataset !== sent || wanted !== precision.value || version !== form.elements.version.value) return;
    wrong.replaceChildren(faults(error));
  }
}

// The number of the newest choice: what an older one has uploaded is deleted, and its errors are not shown.
let choice = 0;

async function chosen() {
  choice += 1;
  const mine = choice;
  await forget();
  const [body] = file.files;
  if (!body || mine !== choice) return;
  wrong.replaceChildren();
  bar.hidden = false;
  bar.value = 0;
  let made = null;
  try {
    made = await send(body);
    if (mine === choice) {
      bar.removeAttribute("value");
      said.textContent = "Reading rows";
    }
    while (mine === choice && made.state === "importing") {
      await pause();
      made = await get(`/datasets/${made.id}`);
    }
    if (mine !== choice) return;
    if (made.state === "failed") throw Object.assign(new Error(made.error?.detail), { lines: (made.error?.errors ?? []).map((each) => each.detail) });
    sent = made;
    stem = body.name.replace(/\.[^.]*$/, "").slice(0, LONGEST_NAME);
    said.textContent = "";
    await show();
    await plan();
    if (mine === choice) button.disabled = false;
  } catch (error) {
    if (mine === choice) {
      said.textContent = "";
      wrong.replaceChildren(faults(error));
    }
  } finally {
    if (mine === choice) bar.hidden = true;
    if (made && made.id !== sent?.id) call("DELETE", `/datasets/${made.id}?force=true`).catch(() => {});
  }
}

async function ended(started) {
  let job = started;
  while (["queued", "running", "cancelling"].includes(job.state)) {
    if (job.progress) bar.value = job.progress.fraction;
    const kinds = job.queue?.running ?? [];
    if (job.kind === "predict") said.textContent = kinds.length ? `Queued at place ${job.queue.position}; running: ${kinds.join(", ")}` : "Coding";
    await pause();
    job = await get(`/jobs/${job.id}`);
  }
  if (job.state !== "succeeded") throw Object.assign(new Error(job.error?.detail ?? `The job was ${job.state}.`), { lines: (job.error?.errors ?? []).map((each) => each.detail) });
  return job;
}

// A queue of the rows without a sure label; queues are made of Parquet, which another job writes where the result has another format.
async function opened(job, asked) {
  const name = form.elements.review?.value.trim();
  if (!name) return null;
  const answered = asked.format === "parquet" ? job : await ended(await call("POST", "/jobs", { ...asked, alias: undefined, version: job.result.version, format: "parquet", bom: false }));
  return call("POST", "/reviews", { name, job: answered.id, sure_share: Number(form.elements.sure_share.value) / 100 });
}

// How many rows have a sure answer, by what its precision counts; of sets, also how many have sure labels alone.
function summary(sure, total) {
  const begin = `${number(sure.n_answered ?? sure.n_sure)} of ${number(total)} rows have a sure ${sure.counted === "nodes" ? "node" : "label"}`;
  if (sure.n_labels !== null && sure.n_labels !== undefined) return `${begin}; in ${number(sure.n_sure)} all labels are sure`;
  return sure.n_broader ? `${begin}; ${number(sure.n_broader)} more have a broader sure node only` : begin;
}

function result(job, review) {
  const { n_rows: total, sure, warning } = job.result;
  const link = element("a", { class: "button primary", href: `${prefix}/jobs/${job.id}/predictions${stem ? `?${new URLSearchParams({ name: stem })}` : ""}`, download: "" }, "Download");
  const text = sure ? `${summary(sure, total)}. ` : `${number(total)} rows are coded. `;
  const queue = review ? element("a", { class: "button", href: `/reviews/${encodeURIComponent(review.name)}` }, `Review ${number(review.n_rows)} ${review.n_rows === 1 ? "row" : "rows"}`) : null;
  return [text, warning ? `${warning}. ` : null, link, queue].filter(Boolean);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (!sent) return;
  button.disabled = true;
  wrong.replaceChildren();
  bar.hidden = false;
  said.textContent = "Coding";
  try {
    const format = form.elements.output.value;
    const asked = { ...request(), format, top_k: Number(form.elements.top_k.value), bom: format === "csv" };
    const job = await ended(await call("POST", "/jobs", asked));
    said.replaceChildren(...result(job, null));
    try {
      if (form.elements.review?.value.trim()) said.append(" Creating the review queue.");
      said.replaceChildren(...result(job, await opened(job, asked)));
    } catch (error) {  // the result is there all the same
      said.replaceChildren(...result(job, null));
      wrong.replaceChildren(faults(error));
    }
    const [kept] = [said.cloneNode(true)];
    await forget();
    said.replaceChildren(...kept.childNodes);
    file.value = "";
  } catch (error) {
    said.textContent = "";
    wrong.replaceChildren(faults(error));
    button.disabled = false;
  } finally {
    bar.hidden = true;
  }
});

file.addEventListener("change", chosen);
columns.addEventListener("change", chosen);
encoding.addEventListener("change", chosen);
decimal.addEventListener("change", chosen);
precision.addEventListener("change", plan);
form.elements.version.addEventListener("change", plan);
acceptDrops(drop, file, chosen);
// rows of a file that was chosen and not coded
addEventListener("pagehide", () => { if (!button.disabled) forget(true); });
