// The costs of wrong answers as a form has them: the word tree, JSON, or lines of label, answer and cost.

export const COSTS_HINT = "tree, or one line per mistake: label, answer, cost. Three columns can be pasted from a spreadsheet.";

// What the API takes. Cells are separated by tabs, as spreadsheets copy them, or by commas.
export function costsOf(text) {
  const given = text.trim();
  if (given === "tree" || given.startsWith("{")) return given === "tree" ? given : JSON.parse(given);
  const costs = Object.create(null);  // labels may have the names of properties
  for (const [at, line] of given.split("\n").entries()) {
    const cells = line.split(line.includes("\t") ? "\t" : ",").map((cell) => cell.trim());
    if (!line.trim() || (at === 0 && cells[2]?.toLowerCase() === "cost")) continue;
    const cost = Number(cells[2]);
    if (cells.length !== 3 || cells[2] === "" || Number.isNaN(cost)) throw new Error(`Costs, line ${at + 1}: expected label, answer, cost; got “${line.trim()}”`);
    if (costs[cells[0]]?.[cells[1]] !== undefined) throw new Error(`Costs, line ${at + 1}: the cost of ${cells[1]} for ${cells[0]} is given twice`);
    (costs[cells[0]] ??= Object.create(null))[cells[1]] = cost;
  }
  return costs;
}
