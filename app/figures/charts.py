"""Pictures of what the dashboard draws: convergence, trials, reliability, coverage, classes, confusions."""

from typing import TYPE_CHECKING

import numpy as np

from app.datasets.statistics_schemas import DatasetStatistics
from app.evaluations.schemas import ConfusedPairs, Evaluation
from app.figures.images import Draw, shortened
from app.jobs.schemas import Job, JobStep
from app.models.schemas import PathOverC
from app.plurals import counted
from app.predictions.inspection_schemas import ThresholdCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# classes of a confusion matrix that can still be read
MOST_CONFUSED = 40


def convergence(job: Job, steps: list[JobStep]) -> Draw:
    """The relative gap of a training job, and its objective and dual, against seconds."""
    measured = [step for step in steps if step.gap is not None]

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(11.0, 4.2)
        figure.suptitle(f"{job.request.get('model', job.kind)} by {job.request.get('solver', '')}", parse_math=False)
        left, right = figure.subplots(1, 2)
        seconds = [step.seconds for step in measured]
        left.plot(seconds, [step.gap or np.nan for step in measured], marker=".")
        left.set_yscale("log")
        titled(left, "relative gap", "training time (s)", "")
        for name, values in (("objective", [at.primal for at in measured]), ("dual", [at.dual for at in measured])):
            right.plot(seconds, [np.nan if value is None else value for value in values], label=name)
        titled(right, "bounds of the optimum", "training time (s)", "")
        right.legend()

    return draw


def trials(job: Job, steps: list[JobStep]) -> Draw:
    """What each trial of a training that chooses among models reached on rows held out; the best ones are green."""
    tried = [step.measures for step in steps if "trial" in step.measures and len(step.measures) > 1]
    names = list(tried[0]) if tried else []
    best = next((name for name in ("accuracy", "micro_f1", *names[1:]) if name in names), "")
    numbers, values = [int(each["trial"]) + 1 for each in tried], [each.get(best, np.nan) for each in tried]

    def draw(figure: "Figure") -> None:
        from matplotlib.ticker import MaxNLocator

        figure.set_size_inches(7.0, 4.5)
        axes = figure.subplots()
        top = max((value for value in values if value == value), default=None)
        axes.scatter(numbers, values, color=["tab:green" if value == top else "tab:blue" for value in values])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        found = counted(len(tried), "trial") if tried else "no trial is measured yet"
        titled(
            axes,
            f"{job.request.get('model', job.kind)}: {found}",
            "trial",
            f"{best.replace('_', ' ')} on rows held out".strip(),
        )

    return draw


def path_over_c(path: PathOverC) -> Draw:
    """Training loss of the solutions over C; errors on held-out rows, and between which bounds those of the optima are.

    The green point is the chosen C, and the dotted line the number of errors that no C can undercut.
    """

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(8.0, 6.5)
        above, below = figure.subplots(2, 1, sharex=True)
        edges, n = np.array(path.edges), path.n_held_out
        below.stairs(
            np.array(path.most_errors) / n,
            edges,
            baseline=np.array(path.least_errors) / n,
            fill=True,
            color="tab:blue",
            alpha=0.25,
            label="certified bounds of the exact optimum",
        )
        below.plot(edges, np.array(path.errors) / n, color="tab:blue", label="models within the gap")
        below.axhline(path.bound / n, linestyle=":", color="grey", label=f"no C has fewer than {path.bound} errors")
        below.scatter([path.chosen.C], [path.chosen.errors / n], color="tab:green", zorder=3, label="chosen C")
        below.set_xscale("log")
        titled(below, "", "C", f"error on {n} held-out rows")
        below.legend(fontsize="small")
        above.plot([each.C for each in path.models], [each.loss for each in path.models], marker=".")
        name = f"{counted(len(path.models), 'solution')}: every C is within a gap of {path.largest_gap:.2%}"
        titled(above, name, "", "mean training loss")

    return draw


def reliability(evaluation: Evaluation) -> Draw:
    """The share of correct answers by predicted probability; empty if there are no probabilities."""
    bins = [each for each in evaluation.reliability or [] if each.n_rows]

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(5.5, 5.0)
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], linestyle=":", color="grey")
        predicted, right = [each.confidence or 0.0 for each in bins], [each.accuracy or 0.0 for each in bins]
        most = max((each.n_rows for each in bins), default=1)
        axes.plot(predicted, right)
        axes.scatter(predicted, right, s=[20 + 180 * each.n_rows / most for each in bins])
        axes.set(xlim=(0, 1.02), ylim=(0, 1.02))
        name = f"{evaluation.model}, version {evaluation.version}: {evaluation.n_rows} rows"
        titled(axes, name, "predicted probability", "share of correct answers")

    return draw


def precision_by_coverage(curve: ThresholdCurve) -> Draw:
    """What is right of the answers that are given, from each threshold on; of sets against the labels found."""

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(7.0, 4.5)
        axes = figure.subplots()
        of_sets = any(at.recall is not None for at in curve.points)
        answered = [at.answered if at.recall is None else at.recall for at in curve.points]
        # a line of one point cannot be seen
        marker = "o" if len(answered) == 1 else ""
        axes.plot(answered, [at.precision for at in curve.points], marker=marker, label="right")
        axes.plot(answered, [at.lower_bound for at in curve.points], linestyle=":", marker=marker, label="95 % bound")
        axes.set_xlim(0, 1.02)
        name = f"{curve.model}, version {curve.version}: {curve.n_rows} rows held out"
        covered = "share of the true labels that are found" if of_sets else "share that is answered"
        titled(axes, name, covered, "share of correct answers")
        axes.legend()

    return draw


def classes(name: str, statistics: DatasetStatistics) -> Draw:
    """The rows of each class, the largest first: those to train on, and the others above them."""

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(9.0, 4.0)
        axes = figure.subplots()
        places = np.arange(1, len(statistics.classes) + 1)
        bottom = np.zeros(len(places))
        for part in ("train", "test", "validation"):
            rows = np.array([getattr(each, part) for each in statistics.classes], float)
            if rows.any():
                axes.bar(places, rows, bottom=bottom, width=1.0 if len(places) > 60 else 0.8, label=part)
            bottom += rows
        titled(axes, f"{name}: {statistics.n_rows} rows", "class, the largest first", "rows")
        if axes.patches:
            axes.legend()

    return draw


def confusion_matrix(evaluation: Evaluation, found: ConfusedPairs) -> Draw:
    """The classes of the most confused pairs, row by row the share of each that is named as every other."""
    names = list(dict.fromkeys(name for pair in found.pairs for name in (pair.true, pair.predicted)))[:MOST_CONFUSED]
    place = {name: at for at, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)))
    support = np.ones(len(names))
    for label in found.labels:
        if label.label in place:
            counts[place[label.label], place[label.label]] = label.right
            support[place[label.label]] = max(label.support, 1)
    for pair in found.pairs:
        if pair.true in place and pair.predicted in place:
            counts[place[pair.true], place[pair.predicted]] = pair.n_rows

    def draw(figure: "Figure") -> None:
        figure.set_size_inches(9.0, 8.0)
        axes = figure.subplots()
        title = f"{evaluation.model}, version {evaluation.version}: {evaluation.n_rows} rows"
        titled(axes, title if names else f"{title}; no confused pairs", "named", "true class")
        if names:
            image = axes.imshow(counts / support[:, np.newaxis], cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
            figure.colorbar(image, ax=axes, shrink=0.7, label="share of the class's rows")
            short = [shortened(name) for name in names]
            size = max(5.0, min(10.0, 280.0 / len(names)))
            axes.set_xticks(range(len(names)), short, rotation=90, fontsize=size, parse_math=False)
            axes.set_yticks(range(len(names)), short, fontsize=size, parse_math=False)

    return draw


def titled(axes: "Axes", title: str, x: str, y: str) -> None:
    axes.set_title(title, parse_math=False, fontsize=11)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
