"""Pictures: each is a function that draws into a matplotlib figure, and :func:`render` makes an image of it."""

from collections.abc import Callable, Sequence
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from app.predictions.inspection import Code
from app.predictions.inspection_schemas import Drift
from solvers.output_codes import codes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Format = Literal["svg", "png"]
Draw = Callable[["Figure"], None]

MEDIA_TYPES: dict[Format, str] = {"svg": "image/svg+xml", "png": "image/png"}
MOST_CLASSES, MOST_COLUMNS, MOST_LABELS, LONGEST_LABEL, MOST_MOVED = 200, 400, 60, 24, 12
DOTS_PER_INCH = 110


def render(draw: Draw, format: Format) -> bytes:
    """The image that ``draw`` makes; the same bytes for the same drawing.

    Parameters
    ----------
    draw : callable
        Draws into the figure that it is given, and sets its size.
    format : {"svg", "png"}
    """
    # importing it takes half a second, which a service that never draws need not wait for
    import matplotlib
    from matplotlib.figure import Figure

    # ids in an SVG are random otherwise; the setting is the whole process's, and no other drawing wants another
    matplotlib.rcParams["svg.hashsalt"] = "polymargin"
    figure = Figure(dpi=DOTS_PER_INCH, layout="constrained")
    draw(figure)
    image = BytesIO()
    figure.savefig(image, format=format, metadata={"Date": None} if format == "svg" else None)
    return image.getvalue()


def shortened(label: str) -> str:
    """A label as it is written beside an axis, where there is room for 24 characters."""
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def code_heat_map(code: Code) -> Draw:
    """The code matrix, and the distances between its rows and between its columns; of a large code the beginning."""
    matrix = code.matrix[:MOST_CLASSES, :MOST_COLUMNS].astype(np.float64)
    labels = code.classes[:MOST_CLASSES]
    discrete = codes.is_discrete(code.matrix)
    rows = codes.row_distances(code.matrix[:MOST_CLASSES], discrete=discrete)
    columns = codes.column_distances(code.matrix[:, :MOST_COLUMNS], discrete=discrete)
    k, n_columns = code.matrix.shape
    shown = f"{k} classes, {n_columns} columns"
    if matrix.shape != code.matrix.shape:
        shown += f"; the first {matrix.shape[0]} and {matrix.shape[1]}"
    measure = "Hamming" if discrete else "Euclidean"

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(12.0, 6.5)
        figure.suptitle(f"Output code of {code.model}, version {code.version}: {shown}", parse_math=False)
        parts = figure.subplot_mosaic([["code", "rows"], ["code", "columns"]], width_ratios=[2, 1])
        largest = float(np.abs(matrix).max(initial=0.0)) or 1.0
        image = parts["code"].imshow(
            matrix, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest"
        )
        figure.colorbar(image, ax=parts["code"], shrink=0.6)
        parts["code"].set_xlabel("column")
        _name(parts["code"], labels)
        for name, title, distances in (("rows", "classes", rows), ("columns", "columns", columns)):
            image = parts[name].imshow(distances, cmap="viridis", interpolation="nearest")
            parts[name].set_title(f"{measure} distance between {title}")
            figure.colorbar(image, ax=parts[name])

    return draw


def drift_bars(drift: Drift) -> Draw:
    """Shares of scores by bin, and of the labels that have moved the most, expected and found."""

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(12.0, 5.0)
        reported = f"{drift.model}, version {drift.version}: {drift.n_answers} answers of {drift.days} days"
        figure.suptitle(f"Answers of {reported}, compared to {drift.n_expected} held-out rows", parse_math=False)
        left, right = figure.subplots(1, 2)
        left.set_title("scores" if drift.scores is None else f"scores: PSI {drift.scores.psi:.3f}")
        if drift.scores is not None:
            ends = ["", *(f"{edge:.3g}" for edge in drift.scores.edges), ""]
            names = [f"{begin} to {end}".strip() for begin, end in pairwise(ends)]
            _pairs(left, names, drift.scores.expected, drift.scores.found)
        moved = [] if drift.labels is None else drift.labels.moved[:MOST_MOVED]
        variation = "" if drift.labels is None else f": total variation {drift.labels.total_variation:.3f}"
        right.set_title(f"labels with the largest change{variation}")
        _pairs(right, [at.label for at in moved], [at.expected for at in moved], [at.found for at in moved])

    return draw


def _pairs(axes: "Axes", names: Sequence[str], expected: Sequence[float], found: Sequence[float]) -> None:
    """Two bars for each name."""
    places = np.arange(len(names))
    axes.barh(places - 0.2, expected, 0.38, label="held out")
    axes.barh(places + 0.2, found, 0.38, label="late")
    axes.invert_yaxis()
    axes.set_xlabel("share of the answers")
    axes.legend()
    _name(axes, names)


def _name(axes: "Axes", labels: Sequence[str]) -> None:
    """Label the rows where there is room for it."""
    if len(labels) > MOST_LABELS:
        axes.set_ylabel("class")
        return
    size: Any = max(4.0, min(10.0, 330.0 / max(1, len(labels))))
    # a label is not to be read as a formula
    axes.set_yticks(range(len(labels)), [shortened(at) for at in labels], fontsize=size, parse_math=False)
