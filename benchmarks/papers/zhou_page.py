"""The page of Zhou et al. 2011."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.papers.page import Claim, Panel, claims, order, part, picture
from benchmarks.papers.store import Results
from docs_site.markdown import table

TITLE = "Zhou, Xiao and Wu 2011: orthogonal transfer"
METHODS = ("FLATMULT", "HIERMULT", "TRANSFER", "TREELOSS", "ORTHOGNL")
SIGNIFICANCE = 0.01
# points of the 0/1 loss
BY_FAR = 10.0
# of the paper: nodes, leaves, all documents, those for training; Tables 1 and 5
SIZES = {
    "CCAT": (31, 26, 209_133, 5_810), "MCAT": (9, 7, 189_211, 5_438), "ECAT": (23, 18, 71_356, 2_196),
    "CCAT.Hierarchical": (16, 12, 138_125, 3_676), "MCAT.Hierarchical": (7, 5, 123_343, 3_682),
    "ECAT.Hierarchical": (18, 13, 57_582, 1_734),
}  # fmt: skip
# Tables 2 to 4 and 6 to 8: 0/1 loss and tree loss in percent, with deviations
TABLES = {
    "CCAT": [(26.93, 0.28, 37.46, 0.47), (26.19, 0.28, 35.80, 0.45), (26.21, 0.26, 35.60, 0.42),
             (37.57, 0.35, 50.45, 0.49), (23.62, 0.43, 33.12, 0.58)],
    "MCAT": [(7.03, 0.20, 8.96, 0.27), (7.36, 0.21, 9.32, 0.27), (8.20, 0.22, 10.72, 0.31),
             (26.16, 0.34, 34.28, 0.45), (6.57, 0.19, 8.74, 0.27)],
    "ECAT": [(16.36, 0.30, 23.71, 0.40), (15.99, 0.31, 22.77, 0.40), (17.04, 0.36, 24.33, 0.48),
             (26.71, 0.51, 36.49, 0.74), (16.18, 0.31, 24.21, 0.45)],
    "CCAT.Hierarchical": [(21.39, 0.29, 32.66, 0.56), (21.41, 0.29, 32.23, 0.53), (21.91, 0.31, 33.45, 0.56),
                          (26.32, 0.39, 40.95, 0.66), (17.46, 0.74, 28.97, 0.95)],
    "MCAT.Hierarchical": [(5.23, 0.21, 5.90, 0.23), (4.84, 0.20, 5.41, 0.21), (4.70, 0.20, 5.27, 0.22),
                          (13.34, 0.71, 16.31, 1.00), (3.00, 0.14, 3.56, 0.15)],
    "ECAT.Hierarchical": [(13.57, 0.26, 20.76, 0.39), (13.57, 0.27, 20.53, 0.40), (13.67, 0.28, 20.88, 0.41),
                          (17.13, 0.37, 26.20, 0.63), (12.47, 0.30, 20.89, 0.57)],
}  # fmt: skip


def page(results: Results, pictures: Path) -> str:
    """The page below its title."""
    parts = [
        "ORTHOGNL is [`orthogonal_transfer`](../methods/orthogonal_transfer.md) with alpha = 1 as in the paper. "
        "If K makes the objective nonconvex, we raise its diagonal (`repair: raise`); the paper did not need "
        "this. "
        "The others are `flat_multiclass`, `hierarchical_multiclass`, `transfer` and `tree_loss`. The paper's C is the "
        "number of examples times ours. All are trained to a certified gap of 0.01; the paper gives no accuracy.",
        "## Tables 1 and 5: data",
        _sizes(results),
        "## Tables 2 to 4 and 6 to 8: C = 1",
        "The paper:",
        _theirs(),
        "Here:",
        _ours(results, "1"),
        "The paper's micro F1 is 100 minus the 0/1 loss, so the tables omit it. Bold marks the best method, and "
        f"those that a paired two-sided t-test over the splits does not distinguish from it at {SIGNIFICANCE}. "
        f"Here, *by far* means {BY_FAR:g} points.",
        "## Other C",
        _ours(results, "10"),
        _ours(results, "100"),
        part(results, "averaging", "The bounds of dual averaging", lambda: _averaging(results, pictures)),
        "## What agrees, and what does not",
        claims(_claims(results)),
    ]
    return "\n\n".join(parts)


def _sizes(results: Results) -> str:
    rows: list[list[object]] = [[name, *(f"{number:,}" for number in sizes)] for name, sizes in SIZES.items()]
    for name in results.names("data", "set"):
        keys = ("nodes", "leaves", "total", "train")
        rows.append([f"here: {name}", *(f"{results.value('data', name, '', '', key):,.0f}" for key in keys)])
    return (
        f"{table(['set', 'nodes', 'leaves', 'rows', 'training rows'], rows)}\n"
        "RCV1 is not available. 20news has messages by newsgroup, imclef07a has radiographs with 80 features, "
        "and docstrings has docstrings of Python packages by module. *branching* omits the first-level nodes with a "
        "single leaf below them, like the paper's hierarchical subset; for docstrings that is the whole set. Up "
        "to 2,000 other rows are used for testing."
    )


def _theirs() -> str:
    rows = []
    for measure, at in (("0/1 loss, %", 0), ("tree loss, %", 2)):
        for name, values in TABLES.items():
            rows.append([name, measure, *(f"{row[at]:.2f} ± {row[at + 1]:.2f}" for row in values)])
    return table(["set", "measure", *METHODS], rows)


def _ours(results: Results, C: str) -> str:
    if not any(results.has("t-test", name, METHODS[0], C, "p of error") for name in results.names("t-test", "set")):
        return f"C = {C} (paper's): not run yet on two splits by all methods."
    rows, most = [], 0
    for key, title in (("error", "0/1 loss, %"), ("tree_loss", "tree loss, %")):
        for name in results.names("tables", "set"):
            if not results.has("t-test", name, METHODS[0], C, f"p of {key}"):
                continue
            row = [name, title]
            for who in METHODS:
                cell = results.cell("tables", name, who, C, key)
                fine = results.value("t-test", name, who, C, f"p of {key}") >= SIGNIFICANCE
                row.append(f"**{cell}**" if fine else cell)
            rows.append(row)
            counts = [each.repetitions for each in results.cells if each[:4] == ("tables", name, who, C)]
            most = max([most, *counts])
    return f"C = {C} (paper's), up to {most} random splits:\n\n{table(['set', 'measure', *METHODS], rows)}"


def _averaging(results: Results, pictures: Path) -> str:
    names = results.names("averaging", "set")
    panels, said = [], []
    for name in names:
        lines = {
            bound: results.curve("averaging", name, "dual averaging", "", bound)
            for bound in ("upper bound", "lower bound")
        }
        last = max((x for x, _ in lines["upper bound"]), default=1.0)
        upper, lower = (
            results.value("averaging", name, "dual averaging", "", f"last {side}") for side in ("upper", "lower")
        )
        optimum = results.value("averaging", name, "ascent", "", "primal")
        rows = results.value("averaging data", name, "", "", "rows")
        said.append(
            f"On {rows:.0f} rows of {name} the bounds are {upper:.6g} and {lower:.6g} after {last:,.0f} iterations, a "
            f"relative distance of {(upper - lower) / upper:.2g}."
        )
        drawn = {bound: [(x, y) for x, y in points if y > 0] for bound, points in lines.items()}
        if optimum == optimum:
            drawn["optimum"] = [(1.0, optimum), (last, optimum)]
            epochs = results.value("averaging", name, "ascent", "", "epochs")
            said[-1] += (
                f" The upper one is {(upper - optimum) / optimum:.1e} above the optimum {optimum:.6g}, which the "
                f"ascent on the dual certifies to 1e-5 after {epochs:.0f} epochs."
            )
        panels.append(Panel(name, "iterations", "objective", drawn, "log"))
    return (
        picture(pictures / "zhou_bounds.svg", panels, "Bounds of dual averaging by iteration")
        + f"\nThe figure shows the paper's Algorithm 1 (`algorithm: rda`). {' '.join(said)} "
        "Lower bounds below 0 are not drawn."
    )


def _claims(results: Results) -> list[Claim]:
    found = []
    for name in results.names("t-test", "set"):
        for key, title in (("error", "0/1 loss"), ("tree_loss", "tree loss")):
            means = {who: results.value("tables", name, who, "1", key) for who in METHODS}
            best = results.value("t-test", name, "ORTHOGNL", "1", f"p of {key}") >= SIGNIFICANCE
            found.append(
                Claim(
                    f"ORTHOGNL is the best, or as good as the best by the t-test ({title}, {name})", best,
                    order(means), _largest_gap(results, [name], ["1"]), _why(name),
                )
            )  # fmt: skip
    names = results.names("t-test", "set")
    if not names:
        return found
    for name in names:
        means = {who: results.value("tables", name, who, "1", "error") for who in METHODS}
        ahead = means["TREELOSS"] - max(means[who] for who in METHODS if who != "TREELOSS")
        p = results.value("t-test", name, "TREELOSS", "1", "p of error")
        found.append(
            Claim(
                f"TREELOSS is by far the worst (0/1 loss, {name})", ahead >= BY_FAR and p < SIGNIFICANCE,
                f"{order(means)}; TREELOSS against the best: p = {p:.2g}", _largest_gap(results, [name], ["1"]),
                "at C = 1 the t-test does not distinguish it from the best; a guess: the paper stopped all methods by "
                "the bounds of one algorithm.",
            )
        )  # fmt: skip
    change = {who: max(_changes(results, who), default=float("nan")) for who in METHODS}
    found.append(
        Claim(
            "C from 1 to 100 makes no significant difference", max(change.values()) < 1.0,
            f"largest change of the 0/1 loss, points: {order(change)}",
            _largest_gap(results, results.names("tables", "set"), ["1", "10", "100"]),
            "the tables with C = 10 and 100; a guess: at C = 1 the machines are close to class means.",
        )
    )  # fmt: skip
    return found


def _largest_gap(results: Results, names: Iterable[str], settings: Sequence[str]) -> float:
    """Of the means over the splits, of all methods."""
    gaps = [results.value("tables", name, who, C, "gap") for name in names for who in METHODS for C in settings]
    return max((gap for gap in gaps if gap == gap), default=float("nan"))


def _changes(results: Results, who: str) -> list[float]:
    """By how many points the 0/1 loss differs from that at C = 1."""
    return [
        abs(results.value("tables", name, who, C, "error") - results.value("tables", name, who, "1", "error"))
        for name in results.names("tables", "set")
        for C in ("10", "100")
        if results.has("tables", name, who, C, "error")
    ]


def _why(name: str) -> str:
    kind = "images with dense features" if name.startswith("imclef") else "other texts than RCV1"
    return (
        f"a guess: {kind}, and 500 training rows instead of the paper's thousands; no run separates these "
        "causes. The "
        "order differs from C to C: see the tables with C = 10 and 100."
    )
