"""Pictures: each is a function that draws into a matplotlib figure, and :func:`render` makes an image of it."""

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from app.services.codes import Code
from solvers.output_codes import codes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Format = Literal["svg", "png"]
Draw = Callable[["Figure"], None]

MEDIA_TYPES: dict[Format, str] = {"svg": "image/svg+xml", "png": "image/png"}
MOST_CLASSES, MOST_COLUMNS, MOST_LABELS, LONGEST_LABEL = 200, 400, 60, 24
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


def _name(axes: "Axes", labels: Sequence[str]) -> None:
    """Label the rows where there is room for it."""
    if len(labels) > MOST_LABELS:
        axes.set_ylabel("class")
        return
    short = [label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…" for label in labels]
    size: Any = max(4.0, min(10.0, 330.0 / max(1, len(labels))))
    # a label is not to be read as a formula
    axes.set_yticks(range(len(labels)), short, fontsize=size, parse_math=False)
