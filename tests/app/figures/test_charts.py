"""What pictures draw where there is little to draw."""

import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from app.figures.charts import precision_by_coverage, trials
from app.jobs.schemas import Job, JobStep
from app.predictions.inspection_schemas import ThresholdCurve, ThresholdPoint


@pytest.mark.parametrize(("n", "marker"), [(1, "o"), (3, "")])
def test_a_curve_of_one_point_has_a_mark_that_can_be_seen(n: int, marker: str) -> None:
    point = ThresholdPoint(threshold=0.5, precision=1.0, lower_bound=0.9, answered=1.0, depth=1.0)
    figure = Figure()
    precision_by_coverage(ThresholdCurve(model="m", version=1, n_rows=9, points=[point] * n))(figure)
    assert [line.get_marker() for line in figure.axes[0].lines] == [marker] * 2


def test_the_curve_of_sets_is_drawn_against_the_labels_that_are_found() -> None:
    points = [
        ThresholdPoint(threshold=at, precision=0.5 + at / 2, lower_bound=at, answered=1.0, recall=1.0 - at)
        for at in (0.25, 0.5)
    ]
    figure = Figure()
    precision_by_coverage(ThresholdCurve(model="m", version=1, n_rows=9, points=points))(figure)
    assert [list(line.get_xdata()) for line in figure.axes[0].lines] == [[0.75, 0.5]] * 2
    assert "found" in figure.axes[0].get_xlabel()


def test_trials_are_drawn_by_their_measure_and_the_best_one_is_green() -> None:
    job = Job.model_construct(id="a", kind="train", request={"model": "m"})
    measures = [
        {"trial": 0, "seconds": 1.0, "accuracy": 0.5},
        {"trial": 1},
        {"trial": 1, "seconds": 2.0, "accuracy": 0.75},
    ]
    figure = Figure()
    trials(job, [JobStep.model_construct(measures=each) for each in [*measures, {}]])(figure)
    (points,) = figure.axes[0].collections
    assert points.get_offsets().tolist() == [[1.0, 0.5], [2.0, 0.75]]
    assert points.get_facecolor()[1].tolist() == list(to_rgba("tab:green"))
    assert figure.axes[0].get_ylabel() == "accuracy on rows held out"


def test_a_job_without_trials_has_an_empty_picture() -> None:
    figure = Figure()
    trials(Job.model_construct(id="a", kind="train", request={"model": "m"}), [])(figure)
    assert "no trial" in figure.axes[0].get_title()
