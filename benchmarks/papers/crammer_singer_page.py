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
        "one thing only, the time of its algorithm (Figure 5); its programs are compared by their sizes (Table 1). "
        "All sets here come with scikit-learn; points of Figure 5 are generated as in the paper.",
        part(results, "designs", "Table 1: sizes of the programs", lambda: _table_1(results)),
        part(results, "figure 5", "Figure 5: time of the quadratic design", lambda: _figure_5(results, pictures)),
        part(results, "kernels", "Designs with kernels, beside an independent solver", lambda: _kernels(results)),
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
        f"The paper's formulas at our sizes, and what is solved in their place.\n\n{table(header, rows)}\n"
        "The linear programs are solved over growing sets of constraints, so that the largest one has a part of the "
        "km; the quadratic one is never written down, and of its km dual variables few are not zero."
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
        "The paper compares with the quadratic programs of Matlab, which cannot be had; these are others, each in a "
        "form that suits it. All are asked for an accuracy of 1e-6; ours is certified by its gap. Means over three "
        "samples. Empty: above the limit of seconds or ended without a solution, "
        "and not tried at more points, or not run yet. "
        "*Clarabel, primal* is given the primal program, which has 8 + m variables and is at hand for the linear "
        "kernel alone."
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
        f"Equation 29 at beta = 1, `spoc` and an interior point solver of the whole program.\n\n{table(header, rows)}"
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
        "For one-vs-rest machines with a constant feature, beta = 1. Column by column every column is the best one "
        "beside those before it (equation 32), and the whole no optimum. For l1 and l2 the norm of the whole code is "
        "the sum of those of its columns; for linf the penalty of a new column may be what the norm of the whole code "
        "grows by (`column_norm: whole`, *column by column*) or its own norm as equation 32 has it (`column_norm: "
        f"column`); the objective is that of the whole code in both.\n\n{table(header, rows)}"
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
        "`program: norm` has the least sum of losses among codes of a norm of at most `radius`, `program: hard` the "
        "least norm without any loss; for the same machines as above. The objective of a hard margin with l2 is "
        f"half the squared norm. A least margin of 1 is a sample without loss.\n\n{table(header, rows)}"
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
        "`output_code` with machines for a random code, and with a code of -1 and +1 designed for the answers "
        f"of those machines: the first column by Theorem 1 (section 3), each later one by a descent of our own, "
        "for which the paper has no algorithm."
        f"\n\n{table(header, rows)}"
    )


def _bounds(results: Results) -> str:
    rows = []
    for name in results.names("bounds", "set"):
        keys = ("norm", "radius", "smallest_margin", "error_bound", "class_error_bound_least", "class_error_bound_most")
        rows.append([name, *(f"{results.value('bounds', name, 'spoc', '', key):.3g}" for key in keys)])
    header = ["set", "norm of M", "R", "least margin", "Corollary 2", "Corollary 3, least", "Corollary 3, most"]
    return (
        "Corollaries 2 and 3 with delta = 0.05 for machines at C = 10,000 (nan: the sample is not separated). Bounds "
        f"on a probability above 1 say nothing: with samples like these they serve to compare machines.\n\n"
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
                "Figure 5 above; a guess: the paper's generic solver, which cannot be had, was slower than these.",
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
