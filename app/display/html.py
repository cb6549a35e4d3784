"""Cards as HTML for notebooks: escaped, without scripts, links or requests; colours follow the notebook's theme."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

_CELL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 420, 150, 52, 22, 8, 12
_MOST_POINTS = 400
_MOST_CELL = 300


class Table(NamedTuple):
    """A table of a card."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    more: str = ""


class Card(NamedTuple):
    """What an answer shows: ``title`` and ``brief`` in its ``repr``, everything in HTML.

    ``curve`` is a sequence of (seconds, relative gap).
    """

    title: str
    brief: Sequence[str] = ()
    facts: Sequence[tuple[str, object]] = ()
    tables: Sequence[Table] = ()
    curve: Sequence[tuple[float, float]] = ()
    notes: Sequence[str] = ()


def html(kind: str, card: Card) -> str:
    """A card as one ``div``.

    Parameters
    ----------
    kind : str
        Name of the answer's class.
    """
    head = f"<strong>{escape(kind)}</strong> {escape(card.title)}"
    if card.brief:
        head += f" <span>({escape(', '.join(card.brief))})</span>"
    facts = [(name, value) for name, value in card.facts if value is not None]
    parts = [f"<div>{head}</div>", *(f"<div><em>{escape(note)}</em></div>" for note in card.notes)]
    if facts:
        parts.append(_table(Table((), facts)))
    parts += [_table(table) for table in card.tables if table.rows]
    drawn = curve(card.curve)
    return f'<div class="polymargin">{"".join(parts)}{drawn}</div>'


def text_of(value: object) -> str:
    """A value as people write it: numbers with four digits or with commas, lists with commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(text_of, value))
    text = str(value)
    return text if len(text) <= _MOST_CELL else f"{text[:_MOST_CELL]}..."


def curve(points: Sequence[tuple[float, float]]) -> str:
    """The relative gap against seconds as an inline SVG, the gap on a logarithmic axis; empty for under two points."""
    measured = [(seconds, math.log10(gap)) for seconds, gap in points if gap > 0 and math.isfinite(gap + seconds)]
    if len(measured) < 2:
        return ""
    every = math.ceil(len(measured) / _MOST_POINTS)
    chosen = [*measured[:-1:every], measured[-1]]
    end = max(seconds for seconds, _ in measured) or 1.0
    low, high = math.floor(min(gap for _, gap in measured)), math.ceil(max(gap for _, gap in measured))
    high = max(high, low + 1)
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x(seconds: float) -> float:
        return _LEFT + wide * seconds / end

    def y(power: float) -> float:
        return _TOP + tall * (high - power) / (high - low)

    step = math.ceil((high - low) / 5)
    lines = [
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(at):.1f}" y2="{y(at):.1f}" stroke="currentColor" '
        f'stroke-opacity="0.15"/><text x="{_LEFT - 6}" y="{y(at) + 3:.1f}" text-anchor="end">1e{at}</text>'
        for at in range(low, high + 1, step)
    ]
    line = " ".join(f"{x(seconds):.1f},{y(gap):.1f}" for seconds, gap in chosen)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="relative gap against training time" '
        f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="10" fill="currentColor">'
        f'{"".join(lines)}<polyline points="{line}" fill="none" stroke="#1f77b4" stroke-width="1.5"/>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">0 s</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 8}" text-anchor="end">{end:.3g} s</text>'
        f'<text x="{_LEFT + wide / 2}" y="{_HEIGHT - 8}" text-anchor="middle">'
        "relative gap by training time</text></svg>"
    )


def _table(table: Table) -> str:
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in table.header)
    rows = ("".join(f'<td style="{_CELL}">{escape(text_of(value))}</td>' for value in values) for values in table.rows)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    shown = f"<thead><tr>{head}</tr></thead>" if head else ""
    more = f"<div>{escape(table.more)}</div>" if table.more else ""
    return f"<table>{shown}<tbody>{body}</tbody></table>{more}"
