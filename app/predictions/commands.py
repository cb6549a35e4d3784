"""Commands: predict, predict-dataset and code."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import orjson
import typer
from rich.table import Table

from app.client import Client
from app.command_line.instances import parsed
from app.command_line.output import Json, console, option, options_of, print_json, table
from app.command_line.request_fields import build_request, fields_of, tags_of
from app.command_line.watching import watch
from app.datasets.schemas import ImportOptions
from app.jobs.client import Job
from app.plurals import counted
from app.predictions.schemas import (
    BatchPredictRequest,
    ExplainedTerm,
    NamedLabel,
    PathStep,
    Prediction,
    PredictRequest,
    PredictResponse,
    SubtreeNode,
    SureRows,
    UsedThreshold,
)
from app.remote.errors import ClientError, JobFailedError
from app.reviews.schemas import ReviewRequest

# The service's default limit of instances in one request.
BATCH = 1000
_NOTHING = SubtreeNode(label="(no label)", parent=None, margin=0.0)
_NOT_IN_SET = "not in the set"
_LISTED = 10
_SureLevel = Annotated[str, option(BatchPredictRequest, "sure_level", metavar="any|leaves|LEVEL")]
# what joins the steps of a label that is a whole path
_AFTER = re.compile(r"^\s*(?:>|/|::|\||›)\s*(?=\S)")
_NO_TEXTS = ("this model takes records", "this model takes numbers")


@options_of(
    PredictRequest,
    without=set(PredictRequest.model_fields)
    - {"threshold", "min_precision", "language", "text_language", "certain", "least_cost"},
)
def predict(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    text: Annotated[list[str] | None, typer.Option(help="Text to classify; may be repeated.")] = None,
    instance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JSON",
            help="Instance as JSON, instead of a text, such as "
            '\'{"record": {"price": 3.5, "colour": "red"}}\'; may be repeated.',
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="JSON lines; each line is a text or an instance."),
    ] = None,
    top_k: Annotated[
        int,
        typer.Option(help="Number of labels per instance. The best labels outside a predicted set follow it."),
    ] = 1,
    version: Annotated[int | None, typer.Option(help="Default: the latest.")] = None,
    alias: Annotated[str | None, typer.Option(help="Alias instead of a version.")] = None,
    include: Annotated[list[str] | None, typer.Option(help="Predict only this label; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Never predict this label; may be repeated.")] = None,
    sure_level: _SureLevel = "any",
    explain: Annotated[int, typer.Option(help="Number of features to show for and against each label.")] = 0,
    json: Json = False,
    **more: Any,
) -> None:
    """Classify instances with a model."""
    if sum(given is not None for given in (text, instance, file)) != 1:
        hint = "--text / --instance / --file"
        raise typer.BadParameter("give exactly one of --text, --instance and --file", param_hint=hint)
    given: Iterator[Any] = iter(text) if text else map(parsed, instance) if instance else _lines(file)
    answers: list[PredictResponse] = []
    with Client() as client:
        for batch in _batches(given):
            options: dict[str, Any] = {"include": include, "exclude": exclude, "explain": explain, **more}
            options |= {} if sure_level == "any" else {"sure_level": _level(sure_level)}
            try:
                answered = client.predict(model, batch, top_k, version, alias, **options)
            except ClientError as error:
                if text and any(fault.detail.startswith(_NO_TEXTS) for fault in error.errors):
                    error.detail += " --text needs a text model; pass instances with --instance or --file"
                raise
            answers.append(answered)
            version, alias = answers[0].version, None  # a version published meanwhile must not answer the rest
    if not answers:
        raise ClientError("No instances to classify")
    every = [prediction for answer in answers for prediction in answer.predictions]
    answer = answers[0].model_copy(update={"predictions": every})
    if json:
        print_json(answer)
    else:
        _show_answer(answer, text or [], explain=explain > 0)


def _show_answer(answer: PredictResponse, texts: list[str], *, explain: bool) -> None:
    """Print warnings, a table of predictions, and what else was asked for."""
    shown, every = console(False), answer.predictions
    for row, one in enumerate(texts):
        if not one.strip():
            shown.print(f"Instance {row} is a blank text without features; its prediction is that of an empty row")
    for warning in (_unknown(every, texts), _unseen(every), _untrained(every), _unseen_languages(every)):
        if warning is not None:
            shown.print(warning, markup=False)
    if read := _text_languages(every):
        shown.print(read, markup=False)
    languages = sorted({language for item in every for language in _named(item)})
    optional = ["way", "probability", "expected cost", "certain", *([] if answer.sure_from is not None else ["sure"])]
    titles = ["instance", "label", *languages, "score", "way", "probability", "expected cost", "sure", "certain"]
    shown.print(_without_empty_columns(titles, [*_rows(every, languages)], optional))
    if explain:
        head = ["instance", "label", "against", "lead", "lifted by", "lowered by", "rest"]
        shown.print(table(head, _explained(every)))
    if answer.sure_from is not None:
        shown.print(_used(answer.sure_from, sets=any(item.subtree is not None for item in every)))


def _unknown(predictions: list[Prediction], texts: list[str]) -> str | None:
    """Warn about instances without a known word; blank texts have their own warning."""
    found = [row for row, one in enumerate(predictions) if one.known_terms == 0 and not _blank(texts, row)]
    if not found:
        return None
    listed = ", ".join(map(str, found[:_LISTED])) + (" ..." if len(found) > _LISTED else "")
    instances = counted(len(found), "instance")
    return f"The model knows no word in the text of {instances} ({listed}). The text does not affect the prediction"


def _unseen_languages(predictions: list[Prediction]) -> str | None:
    """Warn about texts in languages that training texts were not in."""
    found = {row: one.unseen_language for row, one in enumerate(predictions) if one.unseen_language is not None}
    if not found:
        return None
    listed = ", ".join(map(str, list(found)[:_LISTED])) + (" ..." if len(found) > _LISTED else "")
    named = ", ".join(sorted(set(found.values())))
    return f"The text of {counted(len(found), 'instance')} ({listed}) is in a language without training texts: {named}"


def _text_languages(predictions: list[Prediction]) -> str | None:
    """Say in which language each text was read, for versions with a model for each language."""
    rows: dict[str, list[int]] = {}
    for row, one in enumerate(predictions):
        if one.text_language is not None:
            rows.setdefault(one.text_language, []).append(row)
    listed = (
        f"{name} ({', '.join(map(str, at[:_LISTED]))}{' ...' * (len(at) > _LISTED)})" for name, at in rows.items()
    )
    return f"Languages of the instances: {', '.join(listed)}" if rows else None


def _unseen(predictions: list[Prediction]) -> str | None:
    """Warn about values of categories that no training row has."""
    found = [f"{value} ({row})" for row, one in enumerate(predictions) for value in one.unknown or []]
    if not found:
        return None
    listed = ", ".join(found[:_LISTED]) + (" ..." if len(found) > _LISTED else "")
    return f"No training row has {counted(len(found), 'value')} of the instances: {listed}"


def _untrained(predictions: list[Prediction]) -> str | None:
    """Name predicted labels that no training row has, as concepts found by their names."""
    found = list(dict.fromkeys(each.label for one in predictions for each in one.labels if not each.seen))
    if not found:
        return None
    listed = ", ".join(found[:_LISTED]) + (" ..." if len(found) > _LISTED else "")
    return f"No training row has {counted(len(found), 'predicted label')}: {listed}"


def _blank(texts: list[str], row: int) -> bool:
    return row < len(texts) and not texts[row].strip()


def _without_empty_columns(titles: list[str], rows: list[tuple[object, ...]], optional: list[str]) -> Table:
    """Return the table without the optional columns that no prediction fills."""
    kept = [
        at for at, title in enumerate(titles)
        if title not in optional or any(row[at] is not None for row in rows)
    ]  # fmt: skip
    return table([titles[at] for at in kept], ([row[at] for at in kept] for row in rows))


def _used(found: UsedThreshold, *, sets: bool) -> str:
    if found.threshold is None:
        return "No threshold reached this precision on held-out rows with 95 % confidence"
    note = f"Minimum probability {found.threshold:.3f}"
    if found.precision is not None and found.lower_bound is not None and found.answered is not None:
        what, of = ("a label", "these labels") if sets else ("an answer", "these")
        note += (
            f": {found.answered:.1%} of the held-out rows had such {what}; of {of}, {found.precision:.1%} were "
            f"right (at least {found.lower_bound:.1%}, with a confidence of 95 %)"
        )
    if found.recall is not None:
        note += f"; they have {found.recall:.1%} of the labels"
    return note


def _named(item: Prediction) -> set[str]:
    """Return the languages of label names, or `name` if there is only one language."""
    labels: list[NamedLabel] = [*item.top, *(item.subtree or []), *(item.sure_labels or [])]
    one = {"name"} if any(label.name is not None for label in labels) else set()
    return one | {language for label in labels for language in label.names or {}}


def _rows(predictions: list[Prediction], languages: list[str]) -> Iterator[tuple[object, ...]]:
    for row, item in enumerate(predictions):
        if item.subtree is not None:
            yield from _set_rows(row, item, languages)
            continue
        for place, best in enumerate(item.top):
            way = _way(item.path or []) if place == 0 else None
            sure = item.sure if place == 0 else None
            said = None if sure is None else f"{sure.label} {sure.probability:.3f}"
            named = (best.label, *_names(best, languages))
            certain = None if place or item.certain is None else "yes" if item.certain else "no"
            yield (
                row,
                *named,
                _score(best.score),
                way or None,
                _score(best.probability),
                _score(best.expected_cost),
                said,
                certain,
            )


def _way(path: list[PathStep]) -> str:
    """The steps with their margins."""
    above = ["", *(step.label for step in path)]
    return " > ".join(
        f"{_own_step(each.label, up)} {_score(each.margin) or '-'}" for each, up in zip(path, above[:-1], strict=True)
    )


def _own_step(label: str, above: str) -> str:
    """A label without the one above it, if it is a path that begins with that: of `a > b`, below `a`, only `b`."""
    between = _AFTER.match(label.removeprefix(above)) if above and label.startswith(above) else None
    return label if between is None else label[len(above) + between.end() :]


def _set_rows(row: int, item: Prediction, languages: list[str]) -> Iterator[tuple[object, ...]]:
    """Return the labels of a predicted set, other labels above the threshold, and the best candidates outside.

    Labels with a probability have the score that the API returns; without one, nodes have their margins.
    """
    sure = {label.label: label for label in item.sure_labels or []}
    said = {label: f"{label} {found.probability:.3f}" for label, found in sure.items()}
    nodes = item.subtree or []
    answered = {label.label: label for label in item.labels}
    for node in nodes or ([] if sure else [_NOTHING]):
        own = answered.get(node.label)
        names = _names(node, languages)
        score = node.margin if own is None or own.probability is None else own.score
        scores = _score(score), node.parent, _score(None if own is None else own.probability)
        yield row, node.label, *names, *scores, None, said.get(node.label), None
    named = {node.label for node in nodes}
    for label, found in sure.items():
        if label not in named:
            yield row, label, *_names(found, languages), None, None, _score(found.probability), None, said[label], None
    for best in item.top:
        if best.label in named or best.label in sure:
            continue
        candidate = _score(best.score), _NOT_IN_SET, _score(best.probability)
        yield row, best.label, *_names(best, languages), *candidate, None, None, None


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
                    f"Row {row} of {file} is not JSON: {error.msg}. --file expects JSON lines; upload files in other "
                    "formats as a dataset (with --unlabelled if they have no labels), and use predict-dataset"
                ) from error


_FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".xlsx": "xlsx"}
# of a file of rows; what is not given is as in the model's training data
_COLUMNS = {
    *("id_column", "text_columns", "number_columns", "category_columns", "ignore_columns"),
    *("encoding", "decimal", "delimiter", "quotes", "missing_values"),
}
# what both commands have options of their own for
_OWN = ("kind", "model", "dataset", "format", "include", "exclude", "sure_level", "tags")

_Model = Annotated[str, option(BatchPredictRequest, "model", argument=True)]
_Include = Annotated[list[str] | None, option(BatchPredictRequest, "include")]
_Exclude = Annotated[list[str] | None, option(BatchPredictRequest, "exclude")]
_Review = Annotated[str | None, typer.Option(help="Name of a review queue to create from the rows that are not sure.")]
_SureShare = Annotated[float, option(ReviewRequest, "sure_share")]


@options_of(ImportOptions, without=set(ImportOptions.model_fields) - _COLUMNS | {"ignore_columns"})
@fields_of(
    BatchPredictRequest,
    leave=[*_OWN, "top_k", "dataset_version", "part", "inputs", "target", "time_limit_seconds", "priority"],
)
def code_file(
    model: _Model,
    file: Annotated[
        Path, typer.Argument(help="Rows to code: .csv, .xlsx, .tsv, .jsonl or .parquet.", exists=True, dir_okay=False)
    ],
    output: Annotated[Path, typer.Option(help="File to write: .csv, .xlsx, .parquet or .jsonl.", dir_okay=False)],
    top_k: Annotated[int, option(BatchPredictRequest, "top_k")] = 3,
    sure_level: _SureLevel = "leaves",
    include: _Include = None,
    exclude: _Exclude = None,
    review: _Review = None,
    sure_share: _SureShare = 0.0,
    json: Json = False,
    **given: Any,
) -> None:
    """Code a file: label each row, with alternatives, and say which labels are sure."""
    own: dict[str, Any] = {"top_k": top_k, "include": include, "exclude": exclude}
    if given["min_precision"] is not None or sure_level != "leaves":
        own["sure_level"] = _level(sure_level)
    _answer_rows(model, str(file), output, given, own, json, review, sure_share)


@options_of(ImportOptions, without=set(ImportOptions.model_fields) - _COLUMNS)
@fields_of(BatchPredictRequest, leave=_OWN)
def predict_dataset(
    model: _Model,
    dataset: Annotated[str, typer.Argument(help="Dataset name or id, or a file of rows without labels.")],
    output: Annotated[
        Path | None, typer.Argument(help="File to write: .parquet, .csv, .jsonl or .xlsx.", dir_okay=False)
    ] = None,
    output_option: Annotated[
        Path | None, typer.Option("--output", help="The same as OUTPUT, as code has it.", dir_okay=False)
    ] = None,
    sure_level: _SureLevel = "any",
    include: _Include = None,
    exclude: _Exclude = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A tag of the job.")] = None,
    review: _Review = None,
    sure_share: _SureShare = 0.0,
    json: Json = False,
    **given: Any,
) -> None:
    """Predict all rows of a dataset or of a file, and write the predictions to a file."""
    path = output or output_option
    if path is None or (output is not None and output_option is not None):
        raise typer.BadParameter("name one file to write", param_hint="OUTPUT")
    own: dict[str, Any] = {
        "sure_level": _level(sure_level),
        "include": include,
        "exclude": exclude,
        "tags": tags_of(tag or []) or None,
    }
    _answer_rows(model, dataset, path, given, own, json, review, sure_share)


def _answer_rows(
    model: str,
    rows: str,
    output: Path,
    given: dict[str, Any],
    own: dict[str, Any],
    json: bool,
    review: str | None,
    sure_share: float,
) -> None:
    """Let a job answer the rows of a dataset or of a file, save what it has made, and queue the unsure rows."""
    format = _FORMATS.get(output.suffix)
    if format is None:
        raise typer.BadParameter(f"ends with none of {', '.join(_FORMATS)}", param_hint="output")
    if not output.parent.is_dir():  # checked before the job is made, not after it
        raise typer.BadParameter(f"folder not found: {output.parent}", param_hint="output")
    if output.exists() and Path(rows).is_file() and output.samefile(rows):
        raise typer.BadParameter(f"{output} is the file of rows; name another file", param_hint="output")
    request = build_request(BatchPredictRequest, given)
    request |= {name: value for name, value in own.items() if value is not None}
    columns = {name: value for name, value in given.items() if name in _COLUMNS and value is not None}
    path = Path(rows)
    if columns and not path.is_file():
        raise typer.BadParameter("this option needs a file of rows; a dataset was given", param_hint="dataset")
    with Client() as client:
        uploaded = _uploaded(client, path, model, columns) if path.is_file() else None
        try:
            job = client.predict_dataset(model, uploaded or rows, format=format, **request)
            job = watch(job, console(json))
            n_bytes = job.save_predictions(output)
            if json:
                print_json(job)
            else:
                _show_answered(job, output, n_bytes)
            if review is not None:
                answered = job
                if format != "parquet":  # queues are made of Parquet
                    again = {name: value for name, value in request.items() if name not in ("alias", "bom")}
                    if job.result is not None:
                        again["version"] = job.result.version
                    again_job = client.predict_dataset(model, uploaded or rows, format="parquet", **again)
                    answered = watch(again_job, console(json))
                queue = client.reviews.create(review, answered.id, sure_share)
                if not json:
                    console(json).print(f"Review {queue.name}: {counted(queue.n_rows, 'row')} to decide")
        finally:
            if uploaded is not None:
                client.datasets.delete(uploaded, force=True)


def _show_answered(job: Job, output: Path, n_bytes: int) -> None:
    result = job.result
    if result is not None and result.sure is not None:
        for line in sure_sentences(result.sure):
            console(json=False).print(line)
    if result is not None and result.warning is not None:
        console(json=False).print(f"Warning: {result.warning}", markup=False)
    console(json=False).print(f"{None if result is None else result.n_rows} rows, {n_bytes} bytes: {output}")


def _level(given: str) -> int | str:
    return int(given) if given.isdecimal() else given


def sure_sentences(sure: SureRows) -> Iterator[str]:
    """How many rows have a sure label, and what held-out rows promise for just these."""
    n_sure = sure.n_sure or 0
    share = n_sure / sure.n_rows if sure.n_rows else 0.0
    if sure.threshold is None:
        yield f"No label is sure: no threshold reached the precision {sure.asked} on held-out rows with 95 % confidence"
        return
    if sure.is_set:
        yield (
            f"{sure.n_sure_labels} of {sure.n_labels} labels are sure; in {n_sure} of {sure.n_rows} rows ({share:.1%}) "
            "all are"
        )
    if sure.counted == "nodes" and sure.n_answered is not None:
        yield _with_nodes(sure, sure.n_answered)
    elif not sure.is_set:
        yield f"{n_sure} of {sure.n_rows} rows ({share:.1%}) have a sure label"
    if sure.levels is not None and sure.n_at_level is None:
        levels = ", ".join(f"{n} at level {level}" for level, n in enumerate(sure.levels, 1))
        more = "" if sure.counted == "nodes" else f"{sure.n_broader} more rows have a broader sure node only; "
        yield f"{more}by the deepest sure node: {levels}"
    if sure.precision is not None and sure.lower_bound is not None and sure.answered is not None:
        of = "these" if not sure.is_set else f"these {sure.what}s"
        of += ", with those above others" if sure.is_set and sure.counted == "nodes" else ""
        yield (
            f"{sure.answered:.1%} of the held-out rows had a sure {sure.what}; of {of}, {sure.precision:.1%} were "
            f"right (at least {sure.lower_bound:.1%}, with a confidence of 95 %)"
        )


def _with_nodes(sure: SureRows, n_answered: int) -> str:
    """How many rows have a sure node, and how many of them a sure label."""
    share = n_answered / sure.n_rows if sure.n_rows else 0.0
    begin = f"{n_answered} of {sure.n_rows} rows ({share:.1%}) have a sure {sure.what}"
    if sure.is_set:
        return f"{begin}: a label or a node above it"
    return f"{begin}: in {sure.n_sure or 0} it is the label, in {sure.n_broader or 0} a broader node (sure_ancestor)"


def _uploaded(client: Client, path: Path, model: str, columns: dict[str, Any]) -> str:
    """Upload the rows of a file, by the columns that the model reads; the id of the dataset, which is temporary."""
    name = f"{model[:90]}-rows-{uuid4().hex}"
    dataset = client.datasets.upload(path, name, for_model=model, progress=False, **columns)
    try:
        return dataset.wait(progress=False).id
    except JobFailedError as error:
        client.datasets.delete(dataset.id, force=True)
        detail = f"{path} cannot be read" if dataset.error is None else f"{path} cannot be read: {dataset.error.detail}"
        raise JobFailedError(detail, error.errors) from None
    except ClientError:
        client.datasets.delete(dataset.id, force=True)
        raise
