"""Pictures of how a dataset's rows are spread: lengths, sets of labels, features, and what parts have in common."""

from typing import TYPE_CHECKING, Literal

import numpy as np

from app.datasets.statistics_schemas import DatasetStatistics, Histogram
from app.errors import Conflict
from app.figures.charts import titled
from app.figures.images import Draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Spread = Literal["lengths", "labels", "features", "overlap"]
_LENGTHS = {"text": "bytes of a text", "sparse": "features of a row", "table": "bytes and features of a row"}
_MOST_TICKS = 16
_LACKING = {"lengths": "nothing was counted", "labels": "each row has one", "features": "texts have them in a training"}


def spread(name: str, kind: str | None, statistics: DatasetStatistics, of: Spread) -> Draw:
    """What ``of`` names, of the dataset ``name``.

    Raises
    ------
    Conflict
        The dataset has no such thing, or was imported by a version that did not count it.
    """
    if of == "overlap":
        return _overlap(name, statistics)
    for found, title, histogram, x, y in spreads(kind, statistics):
        if found == of:
            return _bars(f"{name}: {title.lower()}", histogram, x, y)
    raise Conflict(f"the {of} of this dataset are not recorded: {_LACKING[of]}, or an earlier version imported it")


def spreads(kind: str | None, statistics: DatasetStatistics) -> list[tuple[Spread, str, Histogram, str, str]]:
    """The histograms of a dataset: name, title, numbers, and what is along and up."""
    counted: list[tuple[Spread, str, Histogram | None, str, str]] = [
        ("lengths", "Lengths", statistics.length_counts, _LENGTHS[kind or "sparse"], "rows"),
        (
            "labels",
            "Labels of a row",
            statistics.label_counts if statistics.n_classes else None,
            "labels of a row",
            "rows",
        ),
        ("features", "Sparsity", statistics.feature_counts, "rows in which a feature is not zero", "features"),
    ]
    return [(of, title, histogram, x, y) for of, title, histogram, x, y in counted if histogram is not None]


def overlaps(statistics: DatasetStatistics) -> list[tuple[str, int, int]]:
    """Of all rows, and of the parts beside training: what they are, how many repeat others, and how many do not."""
    found = statistics.repetitions
    if found is None:
        return []
    parts = [
        ("rows that repeat an earlier one", found.duplicates, statistics.n_rows),
        ("test rows that are in training, too", found.test_in_train, statistics.n_test),
        ("validation rows that are in training, too", found.validation_in_train, statistics.n_validation),
    ]
    return [(name, repeated, n - repeated) for name, repeated, n in parts if n]


def intervals(histogram: Histogram) -> list[str]:
    """What the intervals of a histogram are called."""
    pairs = zip(histogram.edges, (edge - 1 for edge in histogram.edges[1:]), strict=False)
    return [f"{first:,}" if first == last else f"{first:,}–{last:,}" for first, last in pairs]


def _bars(name: str, histogram: Histogram, x: str, y: str) -> Draw:
    names = intervals(histogram)

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(9.0, 4.2)
        axes = figure.subplots()
        places, bottom = np.arange(len(names)), np.zeros(len(names))
        for part, counts in histogram.counts.items():
            axes.bar(places, counts, bottom=bottom, width=0.9, label=part)
            bottom += counts
        step = -(-len(names) // _MOST_TICKS)
        axes.set_xticks(places[::step], names[::step], rotation=45, ha="right", fontsize=8)
        titled(axes, name, x, y)
        if len(histogram.counts) > 1:
            axes.legend()

    return draw


def _overlap(name: str, statistics: DatasetStatistics) -> Draw:
    found = overlaps(statistics)

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(9.0, 2.4)
        axes = figure.subplots()
        shares = [100.0 * repeated / (repeated + own) for _, repeated, own in found]
        bars = axes.barh(range(len(found)), shares, color="tab:orange")
        axes.bar_label(bars, [f"{repeated:,} of {repeated + own:,}" for _, repeated, own in found], padding=4)
        axes.set_yticks(range(len(found)), [label for label, *_ in found])
        axes.invert_yaxis()
        axes.set_xlim(0, 115)
        axes.set_xticks(range(0, 101, 20))
        titled(axes, name, "% of the rows", "")

    return draw
