"""Pictures of a tuning: its measure against time, and the settings of its trials side by side."""

from collections.abc import Sequence
from itertools import accumulate
from math import inf, log
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import orjson

from app.figures.charts import titled
from app.figures.images import Draw, shortened
from app.jobs.request_schemas import LESS_IS_BETTER, Trial
from app.jobs.schemas import Job
from app.plurals import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TrialChart = Literal["time", "settings"]
MOST_TICKS, MOST_SPREAD, MOST_LINES = 12, 8, 150


class _Axis(NamedTuple):
    """What is written along an axis from 0 to 1, and where on it each trial is."""

    name: str
    ticks: list[str]
    places: list[float]


def measure_by_time(job: Job, trials: Sequence[Trial]) -> Draw:
    """The measure of each trial against the end of it, and the best so far."""
    measure = str(job.request["measure"])
    ended = [(at.finished_at, at.value) for at in trials if at.finished_at is not None and at.value is not None]
    ended.sort(key=lambda pair: pair[0])
    begun = job.started_at or min((at.started_at for at in trials if at.started_at is not None), default=None)
    seconds = [(at - (begun or ended[0][0])).total_seconds() for at, _ in ended]
    values = [value for _, value in ended]
    best = list(accumulate(values, min if measure in LESS_IS_BETTER else max))

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(7.0, 4.5)
        axes = figure.subplots()
        if ended:
            axes.step(seconds, best, where="post", color="tab:green", label="best so far")
            axes.plot(seconds, values, linestyle="", marker="o", label="a trial")
            axes.set_xlim(left=0)
            axes.legend()
        titled(axes, _title(job, len(ended)), "time since the start (s)", measure.replace("_", " "))

    return draw


def settings_side_by_side(job: Job, trials: Sequence[Trial]) -> Draw:
    """A line for each of the best trials, through their differing settings to the measure; the best one in green."""
    shown = sorted((at for at in trials if at.rank is not None), key=lambda at: at.rank or 0)[:MOST_LINES]
    columns: dict[str, list[Any]] = {
        "method": [at.solver for at in shown],
        "text": [at.text and at.text.summary() for at in shown],
    }
    params = dict.fromkeys(name for at in shown for name in at.params)
    columns |= {name: [at.params.get(name) for at in shown] for name in params}
    varied = {name: values for name, values in columns.items() if len({_written(value) for value in values}) > 1}
    axis_of = [_axis(name, values) for name, values in varied.items()]
    axis_of.append(_axis(str(job.request["measure"]), [at.value for at in shown], most_spread=0))

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(max(6.0, 2.2 * len(axis_of)), 5.0)
        axes = figure.subplots()
        for trial in reversed(range(len(shown))):
            heights = [axis.places[trial] for axis in axis_of]
            if trial == 0:
                axes.plot(heights, color="tab:green", linewidth=3.0)
            else:
                axes.plot(heights, color="tab:blue", linewidth=1.2, alpha=0.15 + 0.5 * (1 - trial / len(shown)))
        for place, axis in enumerate(axis_of):
            axes.axvline(place, color="lightgrey", linewidth=0.8, zorder=0)
            for at, tick in enumerate(axis.ticks[:MOST_TICKS]):
                height = at / (len(axis.ticks) - 1) if len(axis.ticks) > 1 else 0.5
                axes.annotate(
                    shortened(tick), (place, height), xytext=(0, 4), textcoords="offset points", ha="center",
                    fontsize=8, parse_math=False, bbox={"color": "white", "alpha": 0.7, "pad": 0.5},
                )  # fmt: skip
        axes.set(xlim=(-0.5, len(axis_of) - 0.5), ylim=(-0.06, 1.1), yticks=[])
        axes.set_xticks(
            range(len(axis_of)), [shortened(axis.name.replace("_", " ")) for axis in axis_of], parse_math=False
        )
        axes.spines[:].set_visible(False)
        axes.tick_params(bottom=False)
        titled(axes, _title(job, len(shown)), "", "")

    return draw


def _title(job: Job, n_trials: int) -> str:
    found = counted(n_trials, "trial") if n_trials else "no trial is measured yet"
    return f"tuning of {job.request['model']}: {found}"


def _axis(name: str, values: Sequence[Any], most_spread: int = MOST_SPREAD) -> _Axis:
    """Few values are evenly spaced; many numbers are on a logarithmic scale if all are above 0."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    distinct = {_written(value): value for value in values}
    if len(numbers) < len(values) or len(distinct) <= most_spread:
        ticks = _ascending(distinct)
        last = len(ticks) - 1
        return _Axis(name, ticks, [ticks.index(_written(value)) / last if last else 0.5 for value in values])
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    if low == high:
        return _Axis(name, [f"{low:.3g}"], [0.5] * len(numbers))
    scaled = [log(value) if low > 0 else float(value) for value in numbers]
    least, most = min(scaled), max(scaled)
    return _Axis(name, [f"{low:.3g}", f"{high:.3g}"], [(value - least) / (most - least) for value in scaled])


def _ascending(distinct: dict[str, Any]) -> list[str]:
    """Numbers upwards, what is absent below them; words are read from the top."""
    if all(value is None or isinstance(value, int | float) for value in distinct.values()):
        return sorted(distinct, key=lambda name: -inf if distinct[name] is None else distinct[name])
    return sorted(distinct, reverse=True)


def _written(value: Any) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
