"""Pictures of the documentation, drawn from the data in ``data/``: ``python -m benchmarks.pictures [NAME ...]``.

A benchmark writes its curves there, at most 40 points each; drawing needs no benchmark to run. The colours are Okabe
and Ito's, which everyone can distinguish.
"""

import argparse
import csv
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

DATA = Path(__file__).parent / "data"
FOLDER = Path(__file__).parents[1] / "docs" / "methods" / "pictures"
MOST_POINTS, COLOURS, DOTS_PER_INCH = 40, 48, 110
HEADER = ["set", "panel", "curve", "x", "y"]
BLUE, VERMILION, GREEN, ORANGE, BLACK = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#000000"
STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
}
Look = dict[str, str]
REFERENCE_GAP = "gap of the reference"
CURVES: dict[str, Look] = {
    "Polymargin, float32": {"color": BLUE},
    "Polymargin, float64": {"color": BLUE, "linestyle": "--"},
    "LIBLINEAR": {"color": VERMILION, "marker": "s"},
    "LinearSVC": {"color": ORANGE, "marker": "^"},
    "certified gap, float64": {"color": BLACK, "linestyle": ":"},
}
BOOSTING: dict[str, Look] = {
    "CW": {"color": BLUE},
    "CW-1": {"color": BLUE, "linestyle": "--"},
    "MultiBoost": {"color": VERMILION},
    "AdaBoost.ECC": {"color": GREEN},
    "AdaBoost.MH": {"color": ORANGE},
    "AdaBoost.MO": {"color": BLACK, "linestyle": ":"},
}
SWEEPS: dict[str, Look] = {
    "FCD 1": {"color": BLUE, "linestyle": "--"},
    "FCD 2": {"color": BLUE},
    "FCD 5": {"color": GREEN},
    "FCD 20": {"color": ORANGE},
    "L-BFGS-B": {"color": VERMILION},
}
ALTERNATION: dict[str, Look] = {
    "block ascent": {"color": BLUE},
    "alternation, shrinking": {"color": VERMILION},
    "alternation": {"color": ORANGE, "linestyle": "--"},
}
SERVING: dict[str, Look] = {
    "service, p50": {"color": BLUE, "marker": "o"},
    "service, p99": {"color": BLUE, "linestyle": "--"},
    "parsing and scoring, p50": {"color": ORANGE, "marker": "s"},
    "parsing and scoring, p99": {"color": ORANGE, "linestyle": "--"},
}
SOAK: dict[str, Look] = {"p50": {"color": BLUE}, "p99": {"color": ORANGE}, "API": {"color": BLACK}}
LEAST_SHOWN = 1e-7


class Curve(NamedTuple):
    """One line of a picture: the data set, the panel (machine or quantity), whose it is, and its points (n, 2)."""

    set: str
    panel: str
    who: str
    points: list[tuple[float, float]]


def write(name: str, curves: Iterable[Curve]) -> None:
    """Put the curves of a picture into its file of data, and draw it; a trial leaves both as they are."""
    if "POLYMARGIN_BENCH_RESULTS" in os.environ:
        return
    DATA.mkdir(exist_ok=True)
    with (DATA / f"{name}.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(HEADER)
        for curve in curves:
            table.writerows([*curve[:3], f"{x:.4g}", f"{y:.4g}"] for x, y in thinned(curve.points))
    draw(name)


def read(name: str) -> list[Curve]:
    """The curves of a picture."""
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    with (DATA / f"{name}.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            points = found.setdefault((row["set"], row["panel"], row["curve"]), [])
            points.append((float(row["x"]), float(row["y"])))
    return [Curve(*key, points) for key, points in found.items()]


def thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most 40 of the points, the first and the last among them, evenly spaced."""
    if len(points) <= MOST_POINTS:
        return points
    return [points[at] for at in np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int)]


def draw(name: str) -> None:
    """Draw a picture from its data into the documentation."""
    mpl.use("agg")
    mpl.rcParams.update(STYLE)
    picture = PICTURES[name](read(name))
    FOLDER.mkdir(exist_ok=True)
    save(picture, FOLDER / f"{name}.png")


def save(picture: Figure, path: Path) -> None:
    """Write a picture with few colours, which keeps it small, and say how large it is."""
    picture.savefig(path, dpi=DOTS_PER_INCH, metadata={"Software": None})
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")


def _grid(
    curves: list[Curve],
    rows: list[str],
    columns: list[str],
    looks: dict[str, Look],
    size: tuple[float, float],
    *,
    sharex: bool | str = False,
    sharey: bool | str = False,
    across: bool = False,
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Panels of the curves with one legend below; rows are sets, or columns are (``across``)."""
    picture = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = picture.subplots(len(rows), len(columns), squeeze=False, sharex=sharex, sharey=sharey)
    panels = {(row, column): axes[i, j] for i, row in enumerate(rows) for j, column in enumerate(columns)}
    for curve in curves:
        if curve.who in looks:
            place = (curve.panel, curve.set) if across else (curve.set, curve.panel)
            panels[place].loglog(*zip(*curve.points, strict=True), label=curve.who, **looks[curve.who])
    named: dict[str, object] = {}
    for panel in axes.flat:
        named |= {str(label): line for line, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    shown = [who for who in looks if who in named]
    picture.legend([named[who] for who in shown], shown, loc="outside lower center", ncols=min(len(shown), 6))
    return picture, panels


def _sets(curves: list[Curve]) -> list[str]:
    return list(dict.fromkeys(curve.set for curve in curves))


def _panels(curves: list[Curve]) -> list[str]:
    return list(dict.fromkeys(curve.panel for curve in curves))


def _curves(curves: list[Curve]) -> Figure:
    """Relative suboptimality against processor seconds, a row a machine and a column a set."""
    machines, names = _panels(curves), _sets(curves)
    size = (2.5 * len(names) + 0.6, 2.0 * len(machines) + 0.8)
    picture, panels = _grid(curves, machines, names, CURVES, size, sharey=True, sharex="col", across=True)
    for curve in curves:
        if curve.who == REFERENCE_GAP:
            panel = panels[curve.panel, curve.set]
            panel.axhspan(LEAST_SHOWN, max(LEAST_SHOWN, curve.points[0][1]), color="#EEEEEE", linewidth=0)
            panel.set_ylim(LEAST_SHOWN, 1)
    for name in names:
        panels[machines[0], name].set_title(name)
        panels[machines[-1], name].set_xlabel("processor seconds")
    for machine in machines:
        panels[machine, names[0]].set_ylabel(machine)
    picture.supylabel("relative suboptimality", fontsize=9)
    return picture


def _by_set(looks: dict[str, Look], width: float, height: float) -> Callable[[list[Curve]], Figure]:
    """A row a set, a column a quantity, against iterations."""

    def draw_rows(curves: list[Curve]) -> Figure:
        names, quantities = _sets(curves), _panels(curves)
        size = (width, height * len(names) + 0.6)
        picture, panels = _grid(curves, names, quantities, looks, size)
        for (name, quantity), panel in panels.items():
            panel.set_ylabel(quantity)
            if quantity == quantities[0]:
                panel.set_title(name)
            if name == names[-1]:
                panel.set_xlabel("iterations")
        return picture

    return draw_rows


def _alternation(curves: list[Curve]) -> Figure:
    """Relative duality gap against epochs, a column a set."""
    panel_names, names = _panels(curves), _sets(curves)
    size = (2.8 * len(names), 3.0)
    picture, panels = _grid(curves, panel_names, names, ALTERNATION, size, sharey=True, across=True)
    for name in names:
        panels[panel_names[0], name].set(title=name, xlabel="epochs")
    panels[panel_names[0], names[0]].set_ylabel(panel_names[0])
    return picture


def _serving(curves: list[Curve]) -> Figure:
    """Milliseconds of an answer against requests a second."""
    picture, panels = _grid(curves, ["serving"], ["milliseconds"], SERVING, (5.0, 3.2))
    panels["serving", "milliseconds"].set(xlabel="requests a second", ylabel="milliseconds")
    return picture


def _soak(curves: list[Curve]) -> Figure:
    """Milliseconds of an answer, and the API's memory, against minutes."""
    picture, panels = _grid(curves, ["soak"], ["milliseconds", "megabytes"], SOAK, (7.0, 2.6))
    for (_, quantity), panel in panels.items():
        panel.set(xlabel="minutes", ylabel=quantity, xscale="linear")
    highest = max(y for curve in curves if curve.panel == "megabytes" for _, y in curve.points)
    panels["soak", "megabytes"].set(yscale="linear", ylim=(0.0, 1.1 * highest))
    return picture


PICTURES: dict[str, Callable[[list[Curve]], Figure]] = {
    "curves": _curves,
    "boosting": _by_set(BOOSTING, 9.0, 2.3),
    "boosting_sweeps": _by_set(SWEEPS, 6.5, 2.6),
    "lee_lin_wahba": _alternation,
    "serving": _serving,
    "soak": _soak,
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PICTURES)}; default: all")
    for name in arguments.parse_args().names or PICTURES:
        draw(name)


if __name__ == "__main__":
    main()
