"""What the pictures of a tuning draw of its trials."""

from datetime import UTC, datetime, timedelta
from math import log
from typing import Any

import pytest
from matplotlib.figure import Figure

from app.figures.images import Draw
from app.figures.trial_charts import measure_by_time, settings_side_by_side
from app.jobs.request_schemas import Trial
from app.jobs.schemas import Job

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def _tuning(measure: str) -> Job:
    request = {"model": "m", "measure": measure}
    return Job.model_construct(id="a", kind="tune", request=request, started_at=BEGIN)


def _trial(rank: int, value: float | None, second: int = 1, **params: Any) -> Trial:
    """A trial that has ended ``second`` seconds after the start, unless it has no value yet."""
    over = {} if value is None else {"finished_at": BEGIN + timedelta(seconds=second)}
    fields = {"rank": None if value is None else rank, "value": value, "finished_at": None, **over}
    return Trial.model_construct(number=rank, solver="softmax", text=None, params=params, started_at=BEGIN, **fields)


def _lines(draw: Draw) -> tuple[Figure, list[list[float]]]:
    """The figure, and the heights of its lines but the upright ones."""
    figure = Figure()
    draw(figure)
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() != "None" and len(set(line.get_xdata())) > 1]
    return figure, [[float(at) for at in line.get_ydata()] for line in lines]


@pytest.mark.parametrize(("measure", "best"), [("accuracy", [0.5, 0.5, 0.9]), ("log_loss", [0.5, 0.4, 0.4])])
def test_the_best_so_far_is_the_largest_or_the_smallest_as_the_measure_wants(measure: str, best: list[float]) -> None:
    trials = [_trial(1, 0.9, second=9), _trial(2, 0.5, second=2), _trial(3, 0.4, second=4), _trial(4, None)]
    _, lines = _lines(measure_by_time(_tuning(measure), trials))
    assert lines == [best]


def test_a_trial_goes_through_its_settings_in_ascending_order_and_what_is_the_same_has_no_axis() -> None:
    trials = [
        _trial(1, 0.9, C=1.0, bias=True, weights="balanced"),
        _trial(2, 0.7, C=10.0, bias=True),
        _trial(3, 0.5, C=0.1, bias=True, weights="equal"),
        _trial(4, None, C=100.0, bias=False),
    ]
    figure, lines = _lines(settings_side_by_side(_tuning("accuracy"), trials))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["C", "weights", "accuracy"]
    # the best line is drawn last, above the others; words are read from the top, and what is absent is below them
    assert [line[:2] for line in lines] == [[0.0, 0.5], [1.0, 0.0], [0.5, 1.0]]
    assert [line[2] for line in lines] == pytest.approx([0.0, log(0.7 / 0.5) / log(0.9 / 0.5), 1.0])


def test_many_numbers_are_placed_by_their_order_of_magnitude() -> None:
    trials = [_trial(place + 1, 0.9 - place / 100, C=10.0**place) for place in range(9)]
    _, lines = _lines(settings_side_by_side(_tuning("accuracy"), trials))
    assert [line[0] for line in reversed(lines)] == pytest.approx([place / 8 for place in range(9)])


def test_a_tuning_without_a_measured_trial_has_both_pictures() -> None:
    for draw in (measure_by_time, settings_side_by_side):
        figure, lines = _lines(draw(_tuning("accuracy"), [_trial(1, None, C=1.0)]))
        assert lines == []
        assert "no trial is measured yet" in figure.axes[0].get_title()
