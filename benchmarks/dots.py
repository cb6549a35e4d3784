"""Small pictures of the results: one dot for each row of a table, by one column's value."""

from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from benchmarks.pictures import BLACK, BLUE, GREEN, ORANGE, STYLE, VERMILION, save
from benchmarks.questions import Dots
from benchmarks.tables import FOLDER, Table

PICTURES = FOLDER / "results" / "pictures"
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, BLACK, "#56B4E9", "#CC79A7", "#999999")
MARKERS = "osD^vPX*<>ph"
ROW_INCHES, REST_INCHES, WIDTH_INCHES = 0.24, 0.9, 6.2


def points(dots: Dots, tables: Iterable[Table]) -> list[tuple[str, str, float]]:
    """Row, series and value of each dot; cells that are no numbers have none."""
    found = []
    for table in tables:
        if not table.title.startswith(dots.titles):
            continue
        x = table.column(dots.x)
        rest = table.title[len(dots.titles) :].strip(": ")

        def cell(row: tuple[str, ...], name: str, table: Table = table, rest: str = rest) -> str:
            return row[table.column(name)] if name else rest

        for row in table.rows:
            series = cell(row, dots.series)
            try:
                value = float(row[x].rstrip("%").replace(",", ""))
            except ValueError:
                continue
            if not dots.only or series in dots.only:
                found.append((cell(row, dots.rows), series, value))
    return found


def draw(dots: Dots, tables: Iterable[Table], folder: Path = PICTURES) -> Path:
    """Draw a picture into a folder, and return its path."""
    mpl.use("agg")
    mpl.rcParams.update(STYLE)
    found = points(dots, tables)
    rows = list(dict.fromkeys(row for row, _, _ in found))
    series = list(dict.fromkeys(name for _, name, _ in found))
    size = (WIDTH_INCHES, ROW_INCHES * len(rows) + REST_INCHES + 0.16 * len(series) / 3)
    picture = Figure(figsize=size, layout="constrained", facecolor="white")
    axes = picture.subplots()
    for number, name in enumerate(series):
        places = [(value, rows.index(row)) for row, who, value in found if who == name]
        look = {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}
        axes.plot(*zip(*places, strict=True), linestyle="", label=name, **look)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel(dots.label)
    if dots.log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=8))
    if dots.line is not None:
        axes.axvline(dots.line, color=BLACK, linewidth=0.8)
    if len(series) > 1:
        picture.legend(loc="outside lower center", ncols=3)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{dots.name}.png"
    save(picture, path)
    return path
