// Tables with many columns: on a narrow screen the style sheet stacks the cells of a row, each with the name of its column.

const LEAST_COLUMNS = 4;
const ROLES = { THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };

function role(each) {
  each.setAttribute("role", ROLES[each.tagName] ?? (each.scope === "row" ? "rowheader" : "columnheader"));
}

// a row that is shown as a list would be none of a table to a screen reader, had it no role of its own
function stack(row, names) {
  role(row);
  let column = 0;
  for (const cell of row.cells) {
    role(cell);
    // a name is above its row's list, a number beside the name of its column
    const heads = cell.scope === "row" && !cell.classList.contains("number");
    if (!heads && names[column] && cell.colSpan === 1) cell.dataset.head = names[column];
    column += cell.colSpan;
  }
}

function name(table) {
  const heads = [...table.tHead.rows[0].cells];
  const names = heads.map((each) => (each.querySelector(".visually-hidden") ? "" : each.textContent.trim()));
  table.classList.toggle("stacked", names.length >= LEAST_COLUMNS);
  if (names.length < LEAST_COLUMNS) return [];
  table.setAttribute("role", "table");
  [table.tHead, table.tHead.rows[0], table.tBodies[0], ...heads].forEach(role);
  return names;
}

for (const table of document.querySelectorAll(".scroll:not(.matrix) > table:not(.lanes)")) {
  let names = name(table);
  const all = () => { if (names.length) for (const row of table.tBodies[0].rows) stack(row, names); };
  all();
  new MutationObserver(() => {
    names = name(table);
    all();
  }).observe(table.tHead, { childList: true, subtree: true });
  // of a log to which rows come by the hundred each second only these are looked at
  new MutationObserver((changes) => {
    if (!names.length) return;
    for (const { addedNodes } of changes) for (const row of addedNodes) if (row.isConnected && row.tagName === "TR") stack(row, names);
  }).observe(table.tBodies[0], { childList: true });
}
