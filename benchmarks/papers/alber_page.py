"""The page of Alber et al. 2017."""

from collections.abc import Iterable
from pathlib import Path

from benchmarks.papers.page import CERTIFIED, NOT_MEASURED, Claim, Panel, claims, order, part, picture
from benchmarks.papers.store import Results
from docs_site.markdown import table

TITLE = "Alber, Zimmert, Dogan and Kloft 2017: distributed multi-class machines"
SHOWN = {
    "error": "Table 3: error, %",
    "nonzero_weights": "Table 3: non-zeros of W, %",
    "micro_f1": "Table 4: micro F1, %",
    "macro_f1": "Table 4: macro F1, %",
}
# of Table 1
MOST_ROWS = 120
SHORT = {"weston_watkins": "WW", "lee_lin_wahba": "LLW", "crammer_singer": "CS", "one_vs_rest": "OVR"}


def page(results: Results, pictures: Path) -> str:
    """The page below its title."""
    parts = [
        "WW is [`weston_watkins`](../methods/relative_margins.md), CS `crammer_singer`, OVR `one_vs_rest` and LLW "
        "[`lee_lin_wahba`](../methods/absolute_margins.md). The LSHTC collections are not available; the three "
        "sets of texts below replace them. We had the text of the paper without the numbers of its tables and "
        "figures, so we compare our numbers with the statements in its text.",
        _data(results),
        part(results, "table 1", "Table 1: comparison with an exact solver", lambda: _table_1(results)),
        part(results, "figure 2", "Figure 2: speed-up", lambda: _figure_2(results, pictures)),
        part(results, "tables", "Figure 3: time against C", lambda: _figure_3(results, pictures)),
        part(results, "tables", "Tables 3 to 5: error, sparsity and F1 against C", lambda: _all_tables(results)),
        "## What agrees, and what does not",
        claims(_claims(results)),
    ]
    return "\n\n".join(parts)


def _data(results: Results) -> str:
    keys = ("n_train", "n_test", "n_features", "n_classes")
    rows = [
        [name, *(f"{results.value('data', name, '', '', key):,.0f}" for key in keys)]
        for name in results.names("data", "set")
    ]
    return table(["set", "train", "test", "features", "classes"], rows)


def _table_1(results: Results) -> str:
    rows = []
    for name in results.names("table 1", "set"):
        for machine in results.names("table 1", "method"):
            for C in results.names("table 1", "setting"):
                numbers = {key: results.value("table 1", name, machine, C, key) for key in (
                    "ours", "theirs", "difference", "our error", "their error", "nonzero_duals")}  # fmt: skip
                row = [name, SHORT[machine], C, f"{numbers['ours']:.8g}", f"{numbers['theirs']:.8g}"]
                row += [f"{numbers['difference']:.1e}", f"{numbers['our error']:.2f}", f"{numbers['their error']:.2f}"]
                rows.append([*row, f"{numbers['nonzero_duals']:.1f}"])
    header = ["set", "machine", "C", "objective here", "exact", "difference", "error here, %", "exact, %", "dual, %"]
    return (
        "The paper compares with Shark. We compare with Clarabel's interior point method, called through CVXPY, "
        f"on the whole primal program. Each set has at most {MOST_ROWS} training rows, and each number is from a "
        f"single run. Our solver trains to a gap of 1e-6.\n\n{table(header, rows)}"
    )


def _figure_2(results: Results, pictures: Path) -> str:
    where = results.names("figure 2", "set")
    panels, rows = [], []
    for name in where:
        lines = {}
        for machine in results.names("figure 2", "method"):
            for kind in results.names("figure 2", "setting"):
                curve = results.curve("figure 2", name, machine, kind, "speed-up")
                if kind.startswith("shards") and curve:
                    lines[f"{SHORT[machine]}, {kind.removeprefix('shards, ')}"] = curve
        if not lines:
            continue
        top = max(x for points in lines.values() for x, _ in points)
        panels.append(
            Panel(name, "shards", "times as fast", {"linear": [(1.0, 1.0), (top, top)], **lines}, "log", "log")
        )
    for name in where:
        for machine in results.names("figure 2", "method"):
            keys = ("times", "least", "most")
            numbers = [results.value("figure 2", name, machine, "processes", key) for key in keys]
            if numbers[0] == numbers[0]:
                rows.append([name, SHORT[machine], "two processes", *(f"{number:.2f}" for number in numbers)])
    header = ["set", "machine", "", "times as fast", "least", "most"]
    return (
        picture(pictures / "alber_figure_2.svg", panels, "Speed-up by shards, modelled")
        + "\nThe figure shows a forecast (`solvers/linear/sharded/linear_shards.py`), not a run of shards. It "
        "assumes one thread per shard, one epoch, and 10 Gbit/s and half a millisecond per round, as between the "
        "paper's machines. The sizes of LSHTC-2011's classes are assumed to be inversely proportional to their "
        "ranks. *tournament* (for WW) and *mean* (for LLW) are the paper's exchanges; *scores* and *sums* are "
        "ours. Epochs of different exchanges make different progress: LLW takes 57 epochs with *mean* and 7 with "
        "*sums* (20news, "
        "C = 1, gap 0.01, `python -m benchmarks.bench_shards --parts alternation --sizes 2`). "
        f"The vertical axis is a model, not a measurement.\n\n{table(header, rows)}\n"
        "The paper's WW-MC trains on 16 cores of one machine. We have no counterpart: without class shards, "
        "`weston_watkins` and `lee_lin_wahba` train on one thread, whatever the value of `threads`.\n\n"
        "The table has wall-clock times: medians of alternating pairs on two cores that other programs used, "
        "too, so less than two cores were free. *two processes* are two class shards that exchange *scores* or "
        "*sums* over a Redis on the same machine. The table compares one epoch with an epoch of the method "
        "without shards. With few classes, the exchange takes longer than the computation that it saves; the plan "
        "of a job predicts this."
    )


def _figure_3(results: Results, pictures: Path) -> str:
    panels = []
    for name in results.names("tables", "set"):
        lines = {
            SHORT.get(machine, machine): [
                (float(C), seconds)
                for C in results.names("tables", "setting")
                if (seconds := results.value("tables", name, machine, C, "seconds")) == seconds and seconds > 0
            ]
            for machine in results.names("tables", "method")
        }
        panels.append(Panel(name, "C", "processor seconds", lines, "log", "log"))
    return picture(pictures / "alber_figure_3.svg", panels, "Processor seconds by C") + (
        "\nTraining to a certified gap of 0.01, on one thread. If a training stopped at the limit of 3 s, the "
        "table shows its gap. LIBLINEAR stops by its own default rule; if it took longer than the limit, there is "
        "no point. Each point is a single run."
    )


def _all_tables(results: Results) -> str:
    said = (
        "Each number is from a single run. Every row has one label, so micro F1 is 100 minus the error; the "
        "paper prints it, too. The rows of gaps show the models that stopped before a gap of 0.01. Their numbers "
        "are not those of the optimum, and no verdict below depends on them."
    )
    return "\n\n".join([said, *(_tables(results, name) for name in results.names("tables", "set"))])


def _tables(results: Results, name: str) -> str:
    Cs = sorted(results.names("tables", "setting"), key=float)
    rows = []
    for key, title in SHOWN.items():
        for machine in results.names("tables", "method"):
            cells = [results.value("tables", name, machine, C, key) for C in Cs]
            if any(cell == cell for cell in cells):
                rows.append([title, SHORT.get(machine, machine), *("" if c != c else f"{c:.2f}" for c in cells)])
    for machine in results.names("tables", "method"):
        gaps = [results.value("tables", name, machine, C, "gap") for C in Cs]
        if any(gap > 0.0101 for gap in gaps):
            shown = ("" if gap != gap or gap <= 0.0101 else f"{100 * gap:.2g}" for gap in gaps)
            rows.append(["gap, % (where above 1)", SHORT.get(machine, machine), *shown])
    return f"{name}:\n\n{table(['', 'C =', *Cs], rows)}"


def _speed_up_claim(results: Results) -> list[Claim]:
    """What was measured beside the paper's speed-up, which is for many more classes."""
    times = {
        f"{SHORT[machine]} ({name})": results.value("figure 2", name, machine, "processes", "times")
        for name in results.names("figure 2", "set")
        for machine in results.names("figure 2", "method")
    }
    times = {what: value for what, value in times.items() if value == value}
    if not times:
        return []
    why = (
        "Figure 2 above: the sets that we could run have few classes and little computation between two "
        "exchanges; the figure has the forecast at the paper's sizes."
    )
    says = "Two cores, each with a class shard, are faster than one"
    return [Claim(says, min(times.values()) > 1, f"times as fast: {order(times)}", "time of an epoch", why)]


def _claims(results: Results) -> list[Claim]:
    def at(name: str, machine: str, key: str) -> dict[str, float]:
        found = {C: results.value("tables", name, machine, C, key) for C in results.names("tables", "setting")}
        return {C: value for C, value in found.items() if value == value}

    def certified(name: str, machine: str, key: str) -> dict[str, float]:
        gaps = at(name, machine, "gap")
        return {C: value for C, value in at(name, machine, key).items() if gaps.get(C, 0.0) <= CERTIFIED}

    def largest_gap(name: str, machines: Iterable[str], settings: Iterable[str]) -> float:
        gaps = [results.value("tables", name, machine, C, "gap") for machine in machines for C in settings]
        return max((gap for gap in gaps if gap == gap), default=float("nan"))

    differences = [
        results.value("table 1", name, machine, C, "difference")
        for name in results.names("table 1", "set")
        for machine in results.names("table 1", "method")
        for C in results.names("table 1", "setting")
    ]
    found = []
    if differences:
        most = max(differences)
        found.append(Claim("The solvers are exact", most < 1e-4, f"largest relative difference {most:.1e}", 1e-6))
    found += _speed_up_claim(results)
    Cs = results.names("tables", "setting")
    for name in results.names("tables", "set"):
        # said only of sets that every machine has been trained on at every C
        usual = [C for C in Cs if float(C) < 1e6]
        if len(usual) < 3 or not all(results.has("tables", name, m, C, "error") for m in SHORT for C in usual):
            continue
        errors_of = {m: certified(name, m, "error") for m in SHORT}
        least = {SHORT[m]: min(errors.values(), default=float("nan")) for m, errors in errors_of.items()}
        gap = max(largest_gap(name, [m], errors) for m, errors in errors_of.items())
        found.append(
            Claim(
                f"WW and CS have smaller errors than OVR ({name})", max(least["WW"], least["CS"]) < least["OVR"],
                f"least error over the C with a gap of 0.01, %: {order(least)}", gap,
                "a guess: 20news has many rows per class, the others have few.",
            )
        )  # fmt: skip
        sparse = {SHORT[m]: at(name, m, "nonzero_weights").get("1", float("nan")) for m in SHORT}
        found.append(
            Claim(
                f"WW has the sparsest W, LLW is never sparse ({name})",
                sparse["WW"] <= min(sparse["CS"], sparse["OVR"]) and sparse["LLW"] == max(sparse.values()),
                f"non-zeros at C = 1, %: {order(sparse)}", largest_gap(name, SHORT, ["1"]),
                "the rows of non-zeros above differ little; no run explains the order.",
            )
        )  # fmt: skip
        errors = at(name, "lee_lin_wahba", "error")
        best = min(errors, key=lambda C: errors[C], default="nan")
        found.append(
            Claim(
                f"LLW is best where it is hardly constrained ({name})", float(best) >= 100,
                f"least error {errors.get(best, float('nan')):.2f} % at C = {best}, "
                f"{errors.get('1', float('nan')):.2f} % at C = 1",
                largest_gap(name, ["lee_lin_wahba"], errors),
                "the rows of LLW above; a row with a gap stopped before the optimum.",
            )
        )  # fmt: skip
        times = at(name, "weston_watkins", "seconds")
        others = at(name, "LIBLINEAR -s 4", "seconds")
        common = sorted(set(times) & set(others), key=float)
        if common:
            ratios = [others[C] / times[C] for C in common if times[C] > 0]
            found.append(
                Claim(
                    f"WW is faster than LIBLINEAR's CS at every C ({name})", min(ratios) > 1,
                    f"{min(ratios):.2g} to {max(ratios):.3g} times as fast, one thread each (the paper has 16 to 1)",
                    f"WW {largest_gap(name, ['weston_watkins'], common):.2g}, LIBLINEAR {NOT_MEASURED}",
                )
            )  # fmt: skip
    return found
