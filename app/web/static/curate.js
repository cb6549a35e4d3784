// Starts the jobs that find wrong labels of a dataset, or choose rows to label next.

import { submitsJob } from "./jobform.js";

function request(form) {
  const { kind, dataset } = form.dataset;
  const { model, budget } = form.elements;
  if (kind === "suggest_rows") return { kind, dataset, model: model.value, budget: Number(budget.value) };
  return model.value ? { kind, model: model.value } : { kind, dataset };
}

document.querySelectorAll("#curate form").forEach((form) => submitsJob(form, () => request(form), "/jobs"));
