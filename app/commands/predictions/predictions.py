"""``polymargin predict``."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table

from app.client import Polymargin
from app.commands.common.instances import parsed
from app.commands.common.output import Json, console, options_of, print_json, table
from app.remote.errors import ClientError
from app.schemas.predictions.predictions import (
    ExplainedTerm,
    NamedLabel,
    Prediction,
    PredictRequest,
    PredictResponse,
    SubtreeNode,
    UsedThreshold,
)

# The service's default limit of instances in one request.
BATCH = 1000
_NOTHING = SubtreeNode(label="(no label)", parent=None, margin=0.0)
_NO_TEXTS = ("this model reads records", "this model reads numbers")


@options_of(PredictRequest, without=set(PredictRequest.model_fields) - {"threshold", "min_precision", "language"})
def predict(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    text: Annotated[list[str] | None, typer.Option(help="A text to classify; may be given several times.")] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JSON",
            help="In place of a text: an instance as the API takes it, such as "
            '\'{"record": {"price": 3.5, "colour": "red"}}\'; may be given several times.',
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="JSON lines: a text, or an instance as the API takes it."),
    ] = None,
    top_k: Annotated[int, typer.Option(help="Labels for each instance.")] = 1,
    version: Annotated[int | None, typer.Option(help="Default: the latest.")] = None,
    alias: Annotated[str | None, typer.Option(help="In place of a version.")] = None,
    include: Annotated[list[str] | None, typer.Option(help="Answer with this label alone, or another given.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Never answer with this label.")] = None,
    explain: Annotated[int, typer.Option(help="Features to show for each label and against it.")] = 0,
    json: Json = False,
    **more: Any,
) -> None:
    """Classify instances with a model."""
    if sum(given is not None for given in (text, instance, file)) != 1:
        hint = "--text / --instance / --file"
        raise typer.BadParameter("give one of --text, --instance and --file", param_hint=hint)
    given: Iterator[Any] = iter(text) if text else map(parsed, instance) if instance else _lines(file)
    answers: list[PredictResponse] = []
    with Polymargin() as client:
        for batch in _batches(given):
            options: dict[str, Any] = {"include": include, "exclude": exclude, "explain": explain, **more}
            try:
                answered = client.predict(model, batch, top_k, version, alias, **options)
            except ClientError as error:
                if text and any(fault.detail.startswith(_NO_TEXTS) for fault in error.errors):
                    error.detail += " --text is for models of texts: give this one instances by --instance or --file"
                raise
            answers.append(answered)
            version, alias = answers[0].version, None  # a version published meanwhile must not answer the rest
    if not answers:
        raise ClientError("There is no instance to classify")
    every = [prediction for answer in answers for prediction in answer.predictions]
    answer = answers[0].model_copy(update={"predictions": every})
    if json:
        print_json(answer)
        return
    shown = console(json)
    for row, one in enumerate(text or []):
        if not one.strip():
            shown.print(f"Instance {row} is a blank text: it has no features, and its answer is that of any such row")
    languages = sorted({language for item in every for language in _named(item)})
    optional = ["way", "probability"] if answer.sure_from is not None else ["way", "probability", "sure"]
    titles = ["instance", "label", *languages, "score", "way", "probability", "sure"]
    shown.print(_told(titles, [*_rows(every, languages)], optional))
    if explain:
        head = ["instance", "label", "against", "lead", "lifted by", "lowered by", "rest"]
        shown.print(table(head, _explained(every)))
    if answer.sure_from is not None:
        shown.print(_used(answer.sure_from))


def _told(titles: list[str], rows: list[tuple[object, ...]], optional: list[str]) -> Table:
    """The table without those of the optional columns that no answer of the model has."""
    kept = [
        at for at, title in enumerate(titles)
        if title not in optional or any(row[at] is not None for row in rows)
    ]  # fmt: skip
    return table([titles[at] for at in kept], ([row[at] for at in kept] for row in rows))


def _used(found: UsedThreshold) -> str:
    """What ``sure`` goes by, in words."""
    if found.threshold is None:
        return "Nothing is sure: on the rows held out no threshold reached it with a confidence of 95 %"
    note = f"Sure from a probability of {found.threshold:.3f} on"
    if found.precision is not None and found.lower_bound is not None and found.answered is not None:
        note += (
            f": right in {found.precision:.1%} of the held-out answers (at least {found.lower_bound:.1%}, with a "
            f"confidence of 95 %), which {found.answered:.1%} of the rows had"
        )
    if found.recall is not None:
        note += f"; they have {found.recall:.1%} of the labels"
    return note


def _named(item: Prediction) -> set[str]:
    """The languages in which labels of a prediction have names, or `name` where they have those in one alone."""
    labels: list[NamedLabel] = [*item.top, *(item.subtree or []), *(item.sure_labels or [])]
    one = {"name"} if any(label.name is not None for label in labels) else set()
    return one | {language for label in labels for language in label.names or {}}


def _rows(predictions: list[Prediction], languages: list[str]) -> Iterator[tuple[object, ...]]:
    for row, item in enumerate(predictions):
        if item.subtree is not None:
            yield from _set_rows(row, item, languages)
            continue
        for place, best in enumerate(item.top):
            way = (
                " > ".join(f"{step.label} {_score(step.margin) or '-'}" for step in item.path or [])
                if place == 0
                else None
            )
            sure = item.sure if place == 0 else None
            said = None if sure is None else f"{sure.label} {sure.probability:.3f}"
            named = (best.label, *_names(best, languages))
            yield row, *named, _score(best.score), way or None, _score(best.probability), said


def _set_rows(row: int, item: Prediction, languages: list[str]) -> Iterator[tuple[object, ...]]:
    """The labels of a predicted set, then those that are not in it and yet sure enough."""
    sure = {label.label: label for label in item.sure_labels or []}
    said = {label: f"{label} {found.probability:.3f}" for label, found in sure.items()}
    nodes = item.subtree or []
    for node in nodes or ([] if sure else [_NOTHING]):
        names = _names(node, languages)
        yield row, node.label, *names, _score(node.margin), node.parent, None, said.get(node.label)
    named = {node.label for node in nodes}
    for label, found in sure.items():
        if label not in named:
            yield row, label, *_names(found, languages), None, None, None, said[label]


def _names(label: NamedLabel, languages: list[str]) -> list[str | None]:
    return [label.name if language == "name" else (label.names or {}).get(language) for language in languages]


def _explained(predictions: list[Prediction]) -> Iterator[tuple[object, ...]]:
    for row, item in enumerate(predictions):
        for step in item.explanation or []:
            rest = f"{step.rest + step.intercept:+.4f}"
            yield row, step.label, step.rival, f"{step.lead:.4f}", _terms(step.lifted_by), _terms(step.lowered_by), rest


def _terms(terms: list[ExplainedTerm]) -> str:
    return ", ".join(f"{one.feature} {one.part:+.3f}" for one in terms)


def _score(value: float | None) -> str | None:
    # what rounds to zero has no sign
    return None if value is None else f"{round(value, 4) + 0.0:.4f}"


def _batches(instances: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(itertools.islice(instances, BATCH)):
        yield batch


def _lines(file: Path | None) -> Iterator[Any]:
    assert file is not None
    with file.open("rb") as lines:
        for row, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise ClientError(
                    f"Row {row} of {file} is not JSON: {error.msg}. --file takes JSON lines; files in the formats of "
                    "datasets are uploaded, without labels by --unlabelled, and answered by predict-dataset"
                ) from error
