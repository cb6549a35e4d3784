"""Pictures of the documentation: SVG with the same bytes for the same numbers, in colours that all can tell apart."""

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1] / "docs" / "methods" / "pictures"
# Okabe and Ito's palette
BLUE, VERMILION, GREEN, ORANGE, BLACK = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#000000"
STYLE = {
    "svg.hashsalt": "polymargin",
    "svg.fonttype": "none",
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


def figure(width: float, height: float) -> Figure:
    """An empty figure, inches."""
    mpl.use("svg")
    mpl.rcParams.update(STYLE)
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def save(picture: Figure, name: str) -> None:
    """Write ``name``.svg into the documentation."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.svg"
    picture.savefig(path, metadata={"Date": None})
    # a hundredth of a point is finer than any screen
    text = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", path.read_text())
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n")
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")
