"""What each answer shows of itself."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from app.datasets.schemas import Dataset, DatasetRow, DatasetRows
from app.datasets.statistics_schemas import DatasetStatistics
from app.display.html import Card, Table, text_of
from app.evaluations.schemas import Comparison, Evaluation
from app.hierarchies.schemas import Hierarchy
from app.jobs.schemas import Job, JobStep, JobSteps, SolverInfo
from app.models.schemas import Model, ModelVersion
from app.plurals import counted, gap_text, time_left
from app.predictions.schemas import Prediction, PredictResponse
from app.schemas import Page, ProblemDocument

B = TypeVar("B", bound=BaseModel)

# rows of a table in a notebook
_MOST_ROWS = 10
# the first of these that a version has is in its short form
_FIRST_MEASURES = ("accuracy", "error", "micro_f1", "f1@5")


class Ask(Protocol):
    """Gives a related answer of the service, or None."""

    def __call__(self, answer: type[B], path: str, **params: str | int) -> B | None: ...


def ask_nothing(answer: type[B], path: str, **params: str | int) -> B | None:
    """None: a short form makes no request."""
    return None


@singledispatch
def card(answer: Any, ask: Ask) -> Card:
    """The card of an answer; of one without a card of its own, its single values.

    Parameters
    ----------
    answer : BaseModel
    ask : callable
        For what the answer does not have itself: ``title`` and ``brief`` do not need it.
    """
    if not isinstance(answer, BaseModel):
        return Card(str(answer))
    plain = [(name, value) for name, value in answer if isinstance(value, str | int | float)]
    return Card("", [f"{name}={text_of(value)}" for name, value in plain[:4]], plain)


@card.register
def _(dataset: Dataset, ask: Ask) -> Card:
    counts = [counted(dataset.n_rows, "row")] if dataset.n_rows is not None else []
    if dataset.n_classes is not None:
        counts.append(counted(dataset.n_classes, "label"))
    facts = [
        ("rows", dataset.n_rows),
        ("training rows", dataset.n_train),
        ("labels", dataset.n_classes),
        ("features", dataset.n_features),
        ("kind", dataset.kind),
        ("format", dataset.format),
        ("version", dataset.version),
        ("created", f"{dataset.created_at:%F %T}"),
    ]
    tables, notes = [], [] if dataset.error is None else _faults(dataset.error)
    if dataset.state == "ready":
        asked = {"limit": _MOST_ROWS}
        found = ask(DatasetStatistics, f"/datasets/{dataset.id}/statistics", **asked)
        if found is not None:
            rows = [(each.label, each.train, each.test) for each in found.classes]
            tables.append(Table(("label", "train", "test"), rows, _further(found.n_classes, len(rows))))
            notes += [warning.detail for warning in found.warnings]
    return Card(dataset.name, [dataset.state, *counts], facts, tables, notes=notes)


@card.register
def _(rows: DatasetRows, ask: Ask) -> Card:
    shown = [(each.row, each.label if each.labels is None else each.labels, _content(each)) for each in rows.rows]
    brief = [f"{len(rows.rows):,} of {rows.n_rows:,}"]
    return Card("", brief, tables=[Table(("row", "label", "content"), shown[:_MOST_ROWS])])


@card.register
def _(job: Job, ask: Ask) -> Card:
    asked = job.request
    target = asked.get("model") or asked.get("name") or ""
    title = f"{job.kind} {target}".strip()
    result = job.result
    made = f"version {result.version}" if result is not None and result.version is not None else None
    facts = [
        ("id", job.id),
        ("state", job.state),
        ("method", asked.get("solver")),
        ("dataset", asked.get("dataset")),
        ("progress", None if job.finished else stage(job)),
        ("queued again", job.queued_again),
        ("seconds", _seconds(job)),
        ("result", None if made is None else f"{target}, {made}"),
    ]
    notes = [] if job.error is None else _faults(job.error)
    if result is not None and result.unconverged:
        notes.append(result.unconverged)
    steps = ask(JobSteps, f"/jobs/{job.id}/steps", limit=1000) if job.kind == "train" else None
    tables = []
    if made is not None and result is not None and job.state == "succeeded":
        version = ask(ModelVersion, f"/models/{result.model}/versions/{result.version}")
        tables = [] if version is None else _measures(version.metrics)
    brief = [job.state, *([made] if made else []), *([] if job.finished else [stage(job)])]
    return Card(f"{job.id[:8]} {title}", list(dict.fromkeys(brief)), facts, tables, _curve(steps), notes)


@card.register
def _(steps: JobSteps, ask: Ask) -> Card:
    last = steps.steps[-1] if steps.steps else None
    brief = [counted(len(steps.steps), "step")]
    if last is not None and last.gap is not None:
        brief.append(f"gap {gap_text(last.gap)} after {last.seconds:.3g} s")
    return Card("", brief, curve=_curve(steps))


@card.register
def _(model: Model, ask: Ask) -> Card:
    facts = [
        ("versions", model.versions),
        ("aliases", ", ".join(f"{alias.name} = {alias.version}" for alias in model.aliases) or None),
        ("owner", model.owner),
    ]
    latest = model.latest
    tables = [] if latest is None else _measures(latest.metrics)
    brief = [counted(len(model.versions), "version"), *([] if latest is None else _brief(latest))]
    if latest is not None:
        facts.append(("latest", f"version {latest.version}, {latest.solver}"))
    return Card(model.name, brief, facts, tables)


@card.register
def _(version: ModelVersion, ask: Ask) -> Card:
    facts = [
        ("method", version.solver),
        ("parameters", ", ".join(f"{name}={text_of(value)}" for name, value in version.params.items())),
        ("labels", version.n_classes),
        ("features", version.n_features),
        ("training rows", version.n_train),
        ("relative gap", gap_text(version.gap)),
        ("epochs", version.epochs),
        ("seconds", version.seconds),
        ("aliases", ", ".join(version.aliases) or None),
        ("tags", ", ".join(f"{name}={value}" for name, value in version.tags.items()) or None),
        ("notes", version.notes or None),
        ("bytes", version.size_bytes),
    ]
    steps = ask(JobSteps, f"/jobs/{version.job}/steps", limit=1000)
    notes = [text for text in (version.unconverged, version.refit and version.refit.summary) if text]
    points = _curve(steps, version.point)
    title = f"{version.model}@{version.version}"
    return Card(title, [version.solver, *_brief(version)], facts, _measures(version.metrics), points, notes)


@card.register
def _(answer: PredictResponse, ask: Ask) -> Card:
    rows = [
        (number, _labels(each), None if answer.set else each.probability, None if answer.set else each.score)
        for number, each in enumerate(answer.predictions[:_MOST_ROWS])
    ]
    more = _further(len(answer.predictions), len(rows))
    brief = [counted(len(answer.predictions), "prediction")]
    if len(answer.predictions) == 1:
        brief = [text_of(_labels(answer.predictions[0])), *_sureness(answer.predictions[0])]
    table = Table(("row", "labels" if answer.set else "label", "probability", "score"), rows, more)
    return Card(f"{answer.model}@{answer.version}", brief, tables=[table])


@card.register
def _(prediction: Prediction, ask: Ask) -> Card:
    top = [(each.label, each.name, each.probability, each.score) for each in prediction.top[:_MOST_ROWS]]
    table = Table(("label", "name", "probability", "score"), top)
    return Card(text_of(_labels(prediction)), _sureness(prediction), tables=[table])


@card.register
def _(evaluation: Evaluation, ask: Ask) -> Card:
    measured = [each for each in evaluation.measures if each.level == 0]
    rows = [(each.name, each.value, each.low, each.high) for each in measured]
    named = {each.name: each.value for each in measured}
    brief = [f"{evaluation.part}, {counted(evaluation.n_rows, 'row')}", *_first(named)]
    confidence = f"{evaluation.confidence:.0%}"
    table = Table(("measure", "value", f"{confidence} from", "to"), rows)
    return Card(f"{evaluation.model}@{evaluation.version}", brief, tables=[table])


@card.register
def _(comparison: Comparison, ask: Ask) -> Card:
    a, b = (f"{side.model}@{side.version}" for side in (comparison.a, comparison.b))
    rows = [(each.name, each.a, each.b, each.difference, each.low, each.high) for each in comparison.measures]
    header = ("measure", a, b, "difference", f"{comparison.confidence:.0%} from", "to")
    brief = [counted(comparison.n_rows, "row"), f"McNemar p {comparison.mcnemar.exact:.3g}"]
    return Card(f"{a} and {b}", brief, tables=[Table(header, rows)])


@card.register
def _(hierarchy: Hierarchy, ask: Ask) -> Card:
    facts = [
        ("nodes", hierarchy.n_nodes),
        ("leaves", hierarchy.n_leaves),
        ("levels", hierarchy.levels),
        ("languages", ", ".join(hierarchy.languages) or None),
        ("format", hierarchy.format),
    ]
    return Card(hierarchy.name, [counted(hierarchy.n_nodes, "node"), counted(hierarchy.depth, "level")], facts)


@card.register
def _(solver: SolverInfo, ask: Ask) -> Card:
    params = solver.params_schema.get("properties", {})
    rows = [(name, about.get("default"), about.get("description", "")) for name, about in params.items()]
    facts = [("objective", solver.summary), ("paper", solver.paper)]
    return Card(solver.name, [solver.title], facts, [Table(("parameter", "default", ""), rows)])


@card.register(Page)
def _(page: Page[Any], ask: Ask) -> Card:
    cards = [card(item, ask_nothing) for item in page.items]
    rows = [(each.title, ", ".join(each.brief)) for each in cards]
    more = ["there are more: next_page_token requests them"] if page.next_page_token else []
    brief = [counted(len(rows), "item"), *(title for title, _ in rows[:5]), *(["..."] if len(rows) > 5 else [])]
    return Card("", brief, tables=[Table((), rows)], notes=more)


def waiting(job: Job) -> str:
    """What a job waits for in the queue: ``queued at place 2 while train is running``; else its state."""
    place = job.queue
    if place is None or job.state != "queued":
        return job.state
    kinds = f" while {' and '.join(place.running)} {'is' if len(place.running) == 1 else 'are'} running"
    return f"queued at place {place.position}{kinds if place.running else ''}"


def stage(job: Job) -> str:
    """What a job does now and, where it is known, the time left: ``epoch 12, gap 3.1e-03, about 8 s left``."""
    now = job.progress
    if now is None:
        return waiting(job)
    if now.trials is not None:
        parts = [f"{now.trials_done} of {now.trials} trials"]
    else:
        parts = [now.phase]
        if now.epoch:
            parts.append(f"epoch {now.epoch}")
        if now.gap is not None:
            parts.append(f"gap {gap_text(now.gap)}")
    return ", ".join(parts + ([] if now.eta_seconds is None else [time_left(now.eta_seconds)]))


def _brief(version: ModelVersion) -> list[str]:
    measures = version.metrics.get("test") or {}
    gap = [] if version.gap is None else [f"gap {gap_text(version.gap)}"]
    return [*_first(measures), *gap]


def _first(measures: Mapping[str, float]) -> list[str]:
    return [f"{name} {measures[name]:.4g}" for name in _FIRST_MEASURES if name in measures][:1]


def _measures(metrics: Mapping[str, Mapping[str, float]]) -> list[Table]:
    """One row a measure, one column a part."""
    parts = [part for part, values in metrics.items() if values]
    names = list(dict.fromkeys(name for part in parts for name in metrics[part]))
    rows = [(name, *(metrics[part].get(name) for part in parts)) for name in names]
    return [Table(("measure", *parts), rows)] if rows else []


def _curve(steps: JobSteps | None, point: int | None = None) -> list[tuple[float, float]]:
    """(seconds, gap) of the steps of one training: the last setting, at one place of the path."""
    found: list[JobStep] = [] if steps is None else [step for step in steps.steps if step.gap is not None]
    if not found:
        return []
    last = found[-1]
    place = last.point if point is None else point
    chosen = [step for step in found if step.point == place and step.setting == last.setting]
    return [(step.seconds, step.gap) for step in chosen if step.gap is not None]


def _faults(problem: ProblemDocument) -> list[str]:
    places = ((f"row {each.row}: " if each.row is not None else "") + each.detail for each in problem.errors[:5])
    return [problem.detail, *places]


def _labels(prediction: Prediction) -> object:
    if prediction.subtree is not None:
        return [each.label for each in prediction.labels] or "no label"
    return prediction.labels[0].label if prediction.labels else prediction.top[0].label


def _sureness(prediction: Prediction) -> list[str]:
    if prediction.probability is not None:
        return [f"probability {prediction.probability:.3g}"]
    return [] if prediction.score is None else [f"score {prediction.score:.3g}"]


def _content(row: DatasetRow) -> str:
    if row.record is not None:
        return ", ".join(f"{name}={'-' if value is None else text_of(value)}" for name, value in row.record.items())
    return row.text or " ".join(f"{index}:{value:g}" for index, value in row.features or [])


def _seconds(job: Job) -> float | None:
    if job.started_at is None or job.finished_at is None:
        return None
    return (job.finished_at - job.started_at).total_seconds()


def _further(total: int, shown: int) -> str:
    return f"and {total - shown:,} more" if total > shown else ""
