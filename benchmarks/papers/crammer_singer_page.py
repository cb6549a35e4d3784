"""The page of Crammer and Singer 2002."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.papers.page import Claim, Panel, claims, part, picture
from benchmarks.papers.store import Results
from docs_site.markdown import table

TITLE = "Crammer and Singer 2002: continuous output codes"
NORMS = ("l1", "l2", "linf")


def page(results: Results, pictures: Path) -> str:
    """The page below its title."""
    parts = [
        "[`continuous_code`](../methods/output_codes.md) designs codes, [`spoc`](../methods/kernel_machines.md) is the "
        "multi-class machine, [`crammer_singer`](../methods/relative_margins.md) its linear form. The paper measures "
        "only the time of its algorithm (Figure 5), and compares its programs by their sizes (Table 1). All sets "
        "here come with scikit-learn; the points of Figure 5 are generated as in the paper.",
        part(results, "designs", "Table 1: sizes of the programs", lambda: _table_1(results)),
        part(results, "figure 5", "Figure 5: time of the quadratic design", lambda: _figure_5(results, pictures)),
        part(
            results, "kernels", "Designs with kernels: comparison with an independent solver", lambda: _kernels(results)
        ),
        part(results, "designs", "Designs by norm, the whole code and column by column", lambda: _designs(results)),
        part(results, "programs", "Equation 13: a bounded norm, and a hard margin", lambda: _programs(results)),
        part(results, "codes", "Discrete codes designed for their machines", lambda: _codes(results)),
        part(results, "bounds", "Section 7: bounds", lambda: _bounds(results)),
        "## What agrees, and what does not",
        claims(_claims(results)),
    ]
    return "\n\n".join(parts)


def _sizes(results: Results, name: str) -> tuple[int, int, int]:
    m, k = (int(results.value("data", name, "", "", key)) for key in ("n_train", "n_classes"))
    return m, k, k


def _table_1(results: Results) -> str:
    rows: list[list[object]] = []
    for name in results.names("data", "set"):
        m, k, columns = _sizes(results, name)
        kl, km = k * columns, k * m
        primal = {"l1": (m + 2 * kl, km + 2 * kl), "l2": (m + kl, km), "linf": (m + kl + 1, km + 2 * kl)}
        dual = {"l1": (km + 2 * kl, m + 2 * kl), "l2": (km, m), "linf": (km + 2 * kl, m + kl + 1)}
        for norm in NORMS:
            row = [name, f"{m}, {k}, {columns}", norm, *(f"{a:,} / {b:,}" for a, b in (primal[norm], dual[norm]))]
            if norm == "l2":
                share = results.value("designs", name, norm, "", "nonzero_duals")
                row.append(f"{share * m * (k - 1):,.0f} non-zero dual variables")
            else:
                row.append(f"{results.value('designs', name, norm, '', 'largest program'):,.0f} constraints at most")
            rows.append(row)
    header = [
        "set",
        "m, k, l",
        "norm",
        "primal: variables / constraints",
        "dual: variables / constraints",
        "solved here",
    ]
    return (
        "The table has the paper's formulas at our sizes, and the size that we solve instead."
        f"\n\n{table(header, rows)}\n"
        "The linear programs are solved over growing sets of constraints, so even the largest program has only "
        "some of the km constraints. The quadratic program is never built; few of its km dual variables are "
        "nonzero."
    )


def _figure_5(results: Results, pictures: Path) -> str:
    solvers = results.names("figure 5", "method")
    sizes = results.names("figure 5", "setting")
    lines: dict[str, list[tuple[float, float]]] = {}
    rows = []
    for solver in solvers:
        seconds = {n: results.value("figure 5", "quadrants", solver, n, "seconds") for n in sizes}
        lines[solver] = [(float(n), value) for n, value in seconds.items() if value == value]
        rows.append([solver, *("" if value != value else f"{value:.2g}" for value in seconds.values())])
    panels = [Panel("four quarters of a square", "points", "processor seconds", lines, "linear", "log")]
    text = picture(pictures / "crammer_singer_figure_5.svg", panels, "Seconds of quadratic designs by points")
    return (
        f"{text}\n{table(['seconds at points', *sizes], rows)}\n"
        "The paper compares with Matlab's quadratic programming, which is not available here. We compare with "
        "other solvers, each with a suitable form of the program. All solvers have a target accuracy of 1e-6; "
        "ours is certified by its gap. The table has means over three samples. An empty cell means that the "
        "solver exceeded the time limit or ended without a solution, and was not tried at more points, or was not "
        "run yet. *Clarabel, primal* solves the primal program, which has 8 + m variables and exists only for the "
        "linear kernel."
    )


def _kernels(results: Results) -> str:
    rows = [
        [name, kernel, *(f"{results.value('kernels', name, kernel, '', key):.8g}" for key in ("ours", "theirs"))]
        + [f"{results.value('kernels', name, kernel, '', key):.1e}" for key in ("difference", "gap")]
        for name in results.names("kernels", "set")
        for kernel in results.names("kernels", "method")
    ]
    header = [
        "set",
        "kernel",
        "dual value, block steps",
        "dual value, Clarabel",
        "relative difference",
        "certified gap",
    ]
    return (
        "Equation 29 at beta = 1, solved by `spoc` and by an interior point solver of the whole program."
        f"\n\n{table(header, rows)}"
    )


def _designs(results: Results) -> str:
    rows = []
    for name in results.names("designs", "set"):
        for design in results.names("designs", "method"):
            numbers = [results.value("designs", name, design, "", key) for key in ("objective", "gap")]
            errors = [
                100 * results.value("designs", name, design, "", f"{part} error") for part in ("training", "test")
            ]
            gap = "" if numbers[1] != numbers[1] else f"{numbers[1]:.1e}"
            rows.append([name, design, f"{numbers[0]:.6g}", gap, *(f"{error:.1f}" for error in errors)])
    header = ["set", "design", "objective", "certified gap", "training error, %", "test error, %"]
    return (
        "For one-vs-rest machines with a constant feature, beta = 1. *column by column* adds the best column "
        "given the columns before it (equation 32); the resulting code is not an optimum. For l1 and l2, the norm "
        "of the whole code is the sum of the norms of its columns. For linf, the penalty of a new column is "
        "either the increase of the norm of the whole code (`column_norm: whole`, *column by column*) or the "
        "column's own norm, as in equation 32 (`column_norm: column`). The objective is that of the whole code in "
        f"both cases.\n\n{table(header, rows)}"
    )


def _programs(results: Results) -> str:
    rows = []
    for name in results.names("programs", "set"):
        for program in results.names("programs", "method"):
            keys = ("objective", "smallest margin")
            numbers = [f"{results.value('programs', name, program, '', key):.6g}" for key in keys]
            numbers[1:1] = [f"{results.value('programs', name, program, '', 'gap'):.1e}"]
            errors = [
                100 * results.value("programs", name, program, "", f"{part} error") for part in ("training", "test")
            ]
            rows.append([name, program, *numbers, *(f"{error:.1f}" for error in errors)])
    header = ["set", "program", "objective", "certified gap", "least margin", "training error, %", "test error, %"]
    return (
        "`program: norm` minimises the sum of losses over codes with a norm of at most `radius`. `program: hard` "
        "minimises the norm over codes without any loss. Both use the same machines as above. The objective of a "
        "hard margin with l2 is half the squared norm. A least margin of 1 means a sample without loss."
        f"\n\n{table(header, rows)}"
    )


def _codes(results: Results) -> str:
    rows = []
    for name in results.names("codes", "set"):
        for code in results.names("codes", "method"):
            columns, *errors = (
                results.value("codes", name, code, "", key) for key in ("columns", "training error", "test error")
            )
            rows.append([name, f"`{code}`", f"{columns:.0f}", *(f"{100 * error:.1f}" for error in errors)])
    header = ["set", "code", "columns", "training error, %", "test error, %"]
    return (
        "The table compares `output_code` with machines for a random code, and with a code of -1 and +1 that is "
        "designed for the predictions of those machines. The first column follows Theorem 1 (section 3). The "
        "paper has no algorithm for the later columns; we use a descent method of our own."
        f"\n\n{table(header, rows)}"
    )


def _bounds(results: Results) -> str:
    rows = []
    for name in results.names("bounds", "set"):
        keys = ("norm", "radius", "smallest_margin", "error_bound", "class_error_bound_least", "class_error_bound_most")
        rows.append([name, *(f"{results.value('bounds', name, 'spoc', '', key):.3g}" for key in keys)])
    header = ["set", "norm of M", "R", "least margin", "Corollary 2", "Corollary 3, least", "Corollary 3, most"]
    return (
        "The table has Corollaries 2 and 3 with delta = 0.05 for machines at C = 10,000 (nan: the sample is not "
        "separated). A bound on a probability above 1 is vacuous: with samples like these, the bounds only serve "
        "to compare machines.\n\n"
        f"{table(header, rows)}"
    )


def _largest_gap(results: Results, part: str, methods: Iterable[str]) -> float:
    return max(results.value(part, name, who, "", "gap") for name in results.names(part, "set") for who in methods)


def _claims(results: Results) -> list[Claim]:
    sizes = results.names("figure 5", "setting")
    last = sizes[-1] if sizes else ""
    ours = results.value("figure 5", "quadrants", "SPOC", last, "seconds")
    others = {
        solver: results.value("figure 5", "quadrants", solver, last, "seconds")
        for solver in results.names("figure 5", "method")
        if solver not in ("SPOC", "Clarabel, primal") and results.has("figure 5", "quadrants", solver, last, "seconds")
    }
    best = min((value for value in others.values() if value == value), default=float("nan"))
    primal = results.value("figure 5", "quadrants", "Clarabel, primal", last, "seconds")
    differences = [
        results.value("kernels", name, kernel, "", "difference")
        for name in results.names("kernels", "set")
        for kernel in results.names("kernels", "method")
    ]
    steps = [
        (results.value("designs", name, f"{norm}, column by column", "", "objective")
         / results.value("designs", name, norm, "", "objective"))
        for name in results.names("designs", "set") for norm in NORMS
    ]  # fmt: skip
    found = []
    if sizes:
        found.append(
            Claim(
                "The algorithm can be two orders of magnitude faster than a generic solver of the program",
                ours * 100 <= best,
                f"at {last} points {best / ours:.2g} times as fast as the fastest one of the dual program, and "
                f"{primal / ours:.2g} times as fast as that of the primal program",
                1e-6,
                "Figure 5 above; a guess: the paper's generic solver, which is not available here, was slower "
                "than these.",
            )
        )
    if differences:
        most = max(differences)
        gap = _largest_gap(results, "kernels", results.names("kernels", "method"))
        found.append(Claim("The solution of the program is exact", most < 1e-5, f"at most {most:.1e} apart", gap))
    if steps:
        found.append(
            Claim(
                "The whole code at once is never worse than column by column",
                min(steps) >= 1 - 1e-3,
                f"objectives {min(steps):.3f} to {max(steps):.3f} times that of the whole",
                _largest_gap(results, "designs", NORMS),
            )
        )
    return found
