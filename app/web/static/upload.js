// One file to the service, with its progress; the faults that the service finds are told below the form.

import { prefix, Refusal, token } from "./api.js";
import { faults, percent, size } from "./words.js";

const form = document.getElementById("upload");
const drop = form.querySelector("[data-drop]");
const file = form.elements.file;
const said = form.querySelector("[data-said]");
const bar = form.querySelector("progress");
const FORMATS = { csv: "csv", tsv: "csv", jsonl: "jsonl", ndjson: "jsonl", json: "json", svm: "svmlight", svmlight: "svmlight", libsvm: "svmlight", txt: null };

function chosen() {
  const [one] = file.files;
  if (!one) return;
  const [stem, ending] = [one.name.replace(/\.[^.]*$/, ""), one.name.split(".").pop().toLowerCase()];
  if (!form.elements.name.value) form.elements.name.value = stem.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(0, 128);
  const format = FORMATS[ending];
  if (format && [...form.elements.format.options].some((option) => option.value === format)) form.elements.format.value = format;
  said.textContent = size(one.size);
}

file.addEventListener("change", chosen);
for (const kind of ["dragover", "dragenter"]) {
  drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  if (!event.dataTransfer.files.length) return;
  file.files = event.dataTransfer.files;
  chosen();
});

function send(query, body) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${prefix}${form.dataset.path}?${query}`);
    request.setRequestHeader("X-CSRF-Token", token());
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.addEventListener("progress", (event) => {
      bar.value = event.loaded / (event.total || 1);
      said.textContent = `${percent(bar.value, 0)} of ${size(body.size)} sent`;
    });
    request.addEventListener("error", () => reject(new Refusal({ detail: "The connection broke off; nothing was kept. Try again." })));
    request.addEventListener("load", () => {
      let answer = {};
      try { answer = JSON.parse(request.responseText); } catch { /* told below */ }
      if (request.status < 300) resolve(answer);
      else reject(new Refusal(answer));
    });
    request.send(body);
  });
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [body] = file.files;
  const query = new URLSearchParams();
  for (const element of form.elements) {
    if (element.name && element.name !== "file" && element.value) query.set(element.name, element.value);
  }
  const button = form.querySelector("button");
  button.disabled = true;
  bar.hidden = false;
  form.querySelector("[data-faults]").replaceChildren();
  try {
    const made = await send(query, body);
    location.assign(form.dataset.after + encodeURIComponent(made.name));
  } catch (error) {
    form.querySelector("[data-faults]").replaceChildren(faults(error));
    bar.hidden = true;
    said.textContent = "";
    button.disabled = false;
  }
});
