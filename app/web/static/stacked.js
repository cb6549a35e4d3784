// Tables with many columns: on a narrow screen the style sheet stacks the cells of a row, each with the name of its column.

const LEAST_COLUMNS = 4;
const ROLES = { THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };

// a row that is shown as a list would be none of a table to a screen reader, had it no role of its own
function tell(table) {
  table.setAttribute("role", "table");
  for (const each of table.querySelectorAll("thead, tbody, tr, td, th")) {
    each.setAttribute("role", ROLES[each.tagName] ?? (each.scope === "row" ? "rowheader" : "columnheader"));
  }
}

function name(table) {
  const names = [...table.tHead.rows[0].cells].map((each) => (each.querySelector(".visually-hidden") ? "" : each.textContent.trim()));
  const stacks = names.length >= LEAST_COLUMNS;
  table.classList.toggle("stacked", stacks);
  if (!stacks) return;
  tell(table);
  for (const row of table.tBodies[0].rows) {
    let column = 0;
    for (const cell of row.cells) {
      // a name stands above its row's list, a number beside the name of its column
      const heads = cell.scope === "row" && !cell.classList.contains("number");
      if (!heads && names[column] && cell.colSpan === 1) cell.dataset.head = names[column];
      column += cell.colSpan;
    }
  }
}

for (const table of document.querySelectorAll(".scroll:not(.matrix) > table:not(.lanes)")) {
  name(table);
  new MutationObserver(() => name(table)).observe(table, { childList: true, subtree: true });
}
