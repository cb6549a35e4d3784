"""Pieces of the papers' pages: tables, findings beside claims, small pictures."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.papers.store import Results
from benchmarks.pictures import BLACK, BLUE, GREEN, ORANGE, STYLE, VERMILION
from docs_site.markdown import table

COLOURS = [BLUE, VERMILION, GREEN, ORANGE, BLACK, "#CC79A7", "#56B4E9"]
DASHES = ["-", "--", ":"]
PANELS_A_ROW = 3
_LONG = re.compile(r"(\d\.\d\d)\d+")
Lines = Mapping[str, Sequence[tuple[float, float]]]


# a model is certified where its relative gap, as tables print it, is at most this
CERTIFIED = 0.0101
NOT_MEASURED = "not measured"


class Claim(NamedTuple):
    """What the paper says, whether our runs say it too, by which numbers, and why not where they do not.

    Parameters
    ----------
    says : str
    holds : bool
    found : str
    gap : float or str
        The largest relative gap of the models that the verdict compares, above `CERTIFIED` none is given. A text has
        the gap of each method, where the verdict is not about optima. None is given if one is `NOT_MEASURED`.
    why : str, optional
    """

    says: str
    holds: bool
    found: str
    gap: float | str
    why: str = ""

    @property
    def verdict(self) -> str:
        """``open`` where a model that is compared is not certified."""
        if NOT_MEASURED in self.gap if isinstance(self.gap, str) else not self.gap <= CERTIFIED:
            return "open"
        return "yes" if self.holds else "no"


class Panel(NamedTuple):
    """One panel of a picture, its lines by name."""

    title: str
    across: str
    up: str
    lines: Lines
    scale: str = "linear"
    scale_up: str = "linear"


def part(results: Results, name: str, title: str, make: Callable[[], str]) -> str:
    """A section on a part of the paper, which may have no runs yet."""
    return f"## {title}\n\n{make() if results.names(name, 'method') else 'Not run yet.'}"


def claims(found: Sequence[Claim]) -> str:
    """What agrees and what does not, as a table, and the reasons below it."""
    rows = [
        [claim.says, claim.verdict, claim.gap if isinstance(claim.gap, str) else f"{claim.gap:.2g}", claim.found]
        for claim in found
    ]
    claims_of: dict[str, list[str]] = {}
    for claim in found:
        if claim.why and claim.verdict == "no":
            claims_of.setdefault(claim.why, []).append(f"*{claim.says}*")
    reasons = [f"- {'; '.join(says)}: {why}" for why, says in claims_of.items()]
    text = table(["the paper", "here, too?", "largest gap", "our runs"], rows)
    text += "\n*Largest gap*: the largest relative gap of the models that a row compares."
    if any(claim.verdict == "open" for claim in found):
        text += (
            " *Open*: a model that the row compares stopped at a gap above 0.01, or its gap was not measured. Its "
            "numbers need not be those of the optimum, so there is no verdict."
        )
    text += "\n"
    return text + ("\nReasons for disagreement:\n\n" + "\n".join(reasons) + "\n" if reasons else "")


def picture(path: Path, panels: Sequence[Panel], title: str) -> str:
    """Draw a picture as SVG; the Markdown that shows it from a page in the folder above."""
    mpl.use("agg")
    looks: dict[str, dict[str, Any]] = {}
    for panel in panels:
        for name in panel.lines:
            at = len(looks)
            looks.setdefault(name, {"color": COLOURS[at % len(COLOURS)], "ls": DASHES[at // len(COLOURS) % 3]})
    with mpl.rc_context(STYLE | {"svg.fonttype": "none", "svg.hashsalt": "papers", "path.simplify": True}):
        columns = min(PANELS_A_ROW, len(panels))
        n_rows = -(-len(panels) // columns)
        drawn = Figure(figsize=(3.0 * columns + 0.4, 2.4 * n_rows + 0.5), layout="constrained", facecolor="white")
        axes = drawn.subplots(n_rows, columns, squeeze=False)
        named: dict[str, Any] = {}
        for axis, panel in zip(axes.flat, panels, strict=False):
            for name, points in panel.lines.items():
                if points:
                    few = {"marker": "o"} if len(points) <= 12 else {}
                    named[name] = axis.plot(*zip(*points, strict=True), **looks[name], **few)[0]
            axis.set(title=panel.title, xlabel=panel.across, ylabel=panel.up)
            axis.set_xscale(panel.scale)
            axis.set_yscale(panel.scale_up)
            axis.minorticks_off()
        for axis in list(axes.flat)[len(panels) :]:
            axis.set_visible(False)
        drawn.legend(list(named.values()), list(named), loc="outside lower center", ncols=min(4, max(1, len(named))))
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.savefig(path, metadata={"Date": None, "Creator": None})
    # a hundredth of a point is finer than any screen
    lines = (_LONG.sub(r"\1", line.rstrip()) for line in path.read_text().splitlines())
    path.write_text("\n".join(lines) + "\n")
    return f"![{title}](pictures/{path.name})\n"


def order(values: Mapping[str, float]) -> str:
    """Names from the least value to the largest, each with its value."""
    return ", ".join(f"{name} {value:.4g}" for name, value in sorted(values.items(), key=lambda item: item[1]))
