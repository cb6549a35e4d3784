// Shows a table's columns before the upload, with a proposed role for each; the roles fill the form's fields.

import { prefix, Refusal, token } from "./api.js";
import { element, number } from "./words.js";

const SAMPLE = 256 << 10;
// formats of which the service needs the whole file
const WHOLE = { parquet: 4 << 20, arrow: 4 << 20, xlsx: 4 << 20, ods: 4 << 20 };
const TABLES = ["", "csv", "tsv", "jsonl", ...Object.keys(WHOLE)];
const ROLES = { label: "label", indicator: "a label, 0 or 1", text: "text", number: "number", category: "category", id: "id", weight: "weight", split: "split", ignored: "left out" };
// of these a table has one column at most
const SINGLE = ["label", "id", "weight"];
const LISTS = { indicator: "label_columns", text: "text_columns", number: "number_columns", category: "category_columns", ignored: "ignore_columns" };
const NAMED = { label: ["label_column", "label"], id: ["id_column", "id"], weight: ["weight_column", ""] };
const READING = ["format", "encoding", "delimiter", "decimal", "quotes", "sheet", "missing_values"];
const WRITTEN = [...Object.values(LISTS), ...Object.values(NAMED).map(([field]) => field), "unlabelled", "label_separator", "label_lists", "missing", "missing_values", "decimal"];
const NO_LABELS = "\0";
const INDICATORS = "\0indicators";

async function asked(query, body) {
  const headers = { "X-CSRF-Token": token(), "Content-Type": "application/octet-stream" };
  const answer = await fetch(`${prefix}/datasets/columns?${query}`, { method: "POST", headers, body });
  const document_ = await answer.json();
  if (!answer.ok) throw new Refusal(document_);
  return document_;
}

// `form` has the fields, `box` is where the columns are shown; `infers` says whether the person wants a proposal.
export class Columns {
  constructor(form, box, infers) {
    Object.assign(this, { form, box, infers, file: null, found: null, turn: 0, byHand: new Set(), own: new Set(), chosen: new Map(), pending: Promise.resolve() });
    form.addEventListener("change", ({ target }) => {
      if (box.contains(target)) return;
      if (WRITTEN.includes(target.name)) {
        this.byHand.add(target.name);
        this.own.delete(target.name);
      }
      if ([...READING, ...WRITTEN, "infer_columns"].includes(target.name)) this.look();
    });
  }

  choose(file) {
    this.file = file;
    this.chosen.clear();
    this.look();
  }

  // Asks for a proposal with what the form says by now; an older answer is not shown.
  look() {
    this.turn += 1;
    this.pending = this.looked(this.turn);
  }

  async looked(turn) {
    this.clear();
    const { file, form } = this;
    const { value: format } = form.elements.format;
    if (!file || !this.infers() || !TABLES.includes(format)) return;
    if (file.size > (WHOLE[format] ?? Infinity)) {
      this.say(`Columns are shown for files of this format up to ${WHOLE[format] >> 20} MiB. The types of columns are inferred during the import.`);
      return;
    }
    const query = new URLSearchParams({ file: file.name.slice(-255) });
    for (const name of new Set([...READING, ...this.byHand])) {
      const field = form.elements[name];
      if (!field || field.disabled || !field.value) continue;
      for (const value of this.lines(field)) query.append(name, value);
    }
    let found;
    try {
      found = await asked(query, file.slice(0, WHOLE[format] ?? SAMPLE));
    } catch (error) {
      const detail = error.lines?.[0] ?? error.message;
      if (turn === this.turn) this.say(`The columns cannot be shown: ${detail}.`);
      return;
    }
    if (turn === this.turn) this.show(found);
  }

  lines(field) {
    return field.dataset.lines === undefined ? [field.value] : field.value.split("\n").map((line) => line.trim()).filter(Boolean);
  }

  clear() {
    for (const name of this.own) this.form.elements[name].value = "";
    this.own.clear();
    this.found = null;
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  say(text) {
    this.box.replaceChildren(element("p", { class: "small muted", role: "status" }, text));
    this.box.hidden = false;
  }

  show(found) {
    const { box } = this;
    this.found = found;
    this.roles = new Map(found.columns.map((column) => [column.name, column.role]));
    this.selects = new Map();
    this.labels = null;
    this.isWide = found.n_columns > found.columns.length;
    box.hidden = false;
    box.replaceChildren(element("h3", {}, "Columns"));
    if (found.doubt !== null) box.append(this.question());
    const rows = found.n_rows === 1 ? "the first row" : `the first ${number(found.n_rows)} rows`;
    box.append(element("p", { class: "small muted" }, this.isWide
      ? `The table has ${number(found.n_columns)} columns. The roles of the first ${number(found.columns.length)} are proposed from ${rows}; those that you do not change are inferred again during the import.`
      : `The roles are proposed from ${rows}. Change any that are wrong.`), this.table());
    if (this.form.elements.format.value === "") {
      this.form.elements.format.value = found.format;
      this.form.elements.format.dispatchEvent(new CustomEvent("proposed"));
    }
    for (const [name, role] of [...this.chosen]) if (this.roles.has(name)) this.assign(name, role);
    this.write();
  }

  question() {
    const { found } = this;
    const names = found.columns.map(({ name }) => element("option", { value: name, selected: name === found.label_column }, name));
    const indicators = found.columns.filter(({ role }) => role === "indicator").map(({ name }) => name);
    if (indicators.length) names.unshift(element("option", { value: INDICATORS, selected: true }, "Each column of 0 and 1 is a label"));
    const select = element("select", { id: "label-of-columns", required: true }, element("option", { value: "" }, "Choose a column"), ...names, element("option", { value: NO_LABELS }, "None: the file has no labels"));
    select.addEventListener("change", () => {
      const { value } = select;
      if (value !== INDICATORS) this.free("indicator");
      if (["", NO_LABELS, INDICATORS].includes(value)) this.free("label");
      else this.assign(value, "label");
      if (value === INDICATORS) for (const name of indicators) this.put(name, "indicator");
      this.write();
    });
    this.labels = select;
    return element("div", { class: "notice field" }, element("label", { for: select.id }, `${found.doubt} Which column has the labels?`), select);
  }

  table() {
    const { columns } = this.found;
    const n = Math.max(...columns.map(({ values }) => values.length));
    const cells = (make) => columns.map((column) => make(column));
    const head = element("thead", {},
      element("tr", {}, ...cells(({ name }) => element("th", { scope: "col" }, name))),
      element("tr", {}, ...cells((column) => element("td", {}, this.select(column), element("small", { class: "muted" }, column.reason)))));
    const body = element("tbody", {}, ...Array.from({ length: n }, (_, at) => element("tr", {}, ...cells(({ values }) => element("td", { title: values[at] ?? "" }, values[at] ?? "")))));
    return element("div", { class: "scroll" }, element("table", { class: "columns" }, head, body));
  }

  select({ name, role }) {
    const offered = Object.entries(ROLES).filter(([each]) => each !== "split" || name === "split");
    const select = element("select", { "aria-label": `Role of ${name}` }, ...offered.map(([value, text]) => element("option", { value, selected: value === role }, text)));
    this.selects.set(name, select);
    select.addEventListener("change", () => {
      this.assign(name, select.value);
      this.write();
    });
    return select;
  }

  // The column that has a role becomes what its values say.
  free(role) {
    for (const { name, type } of this.found.columns) {
      if (this.roles.get(name) === role) this.put(name, ["text", "number", "category"].includes(type) ? type : "ignored");
    }
  }

  assign(name, role) {
    const wasLabel = this.roles.get(name) === "label";
    if (SINGLE.includes(role)) this.free(role);
    this.put(name, role);
    this.chosen.set(name, role);
    if (this.labels && (wasLabel || role === "label")) this.labels.value = role === "label" ? name : "";
  }

  put(name, role) {
    this.roles.set(name, role);
    this.selects.get(name).value = role;
    this.chosen.delete(name);
  }

  // The form's fields say what the roles are.
  write() {
    const { found, roles } = this;
    const of = (role) => [...roles].filter(([, each]) => each === role).map(([name]) => name);
    for (const [role, [field, usual]] of Object.entries(NAMED)) {
      const [name] = of(role);
      this.set(field, name === undefined || name === usual ? "" : name);
    }
    const proposed = new Map(found.columns.map((column) => [column.name, column.role]));
    for (const [role, field] of Object.entries(LISTS)) {
      // a request has no room for the names of thousands of columns
      this.set(field, of(role).filter((name) => !this.isWide || proposed.get(name) !== role).join("\n"));
    }
    const [label] = of("label");
    for (const field of ["label_separator", "label_lists"]) {
      this.set(field, label !== undefined && label === found.label_column ? found.options[field] ?? "" : "");
    }
    this.set("unlabelled", this.labels?.value === NO_LABELS ? "true" : "");
    if (found.options.decimal) this.set("decimal", found.options.decimal);
    if (found.options.missing_values) this.set("missing_values", found.options.missing_values.join("\n"));
    const missing = found.columns.some(({ name, n_missing: n }) => n > 0 && ["number", "category"].includes(roles.get(name)));
    this.set("missing", missing ? "keep" : "");
  }

  set(name, value) {
    const field = this.form.elements[name];
    const given = ["missing", "missing_values", "decimal", "unlabelled", "label_columns", "label_separator", "label_lists"].includes(name) && this.byHand.has(name);
    if (!field || given) return;
    field.value = value;
    if (!this.byHand.has(name)) this.own.add(name);
  }
}
