"""Commands: evaluate, compare and evaluations."""

from typing import Annotated, Any, cast

import typer

from app.command_line.connection import connect
from app.command_line.output import Json, console, number, print_json, print_result, table
from app.command_line.request_fields import build_request, fields_of
from app.command_line.watching import watch as watch_job
from app.evaluations import bands
from app.evaluations.schemas import Comparison, EvaluateRequest, Evaluation, Measure, Mistake, Part

evaluations = typer.Typer(help="Show evaluation results.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="EVALUATION", help="Id; equal to the id of its job.")]
_LONGEST = 60
Level = Annotated[int | None, typer.Option(help="Only this level of the label tree.")]


@fields_of(EvaluateRequest, arguments=["model", "dataset"], leave=["kind"])
def evaluate(
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the job and show the result.")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Evaluate a model version on a dataset."""
    client = connect()
    job = client.jobs.submit(build_request(EvaluateRequest, given) | {"kind": "evaluate"})
    if watch:
        job = watch_job(job, console(json))
        _show(client.evaluations.get(job.id), json)
        return
    print_result(job, table(["job", job.id], [("kind", job.kind), ("state", job.state)]), json)


def compare(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    a: Annotated[str, typer.Argument(help="Version number or alias.")],
    b: Annotated[str, typer.Argument(help="Version number or alias.")],
    other: Annotated[str | None, typer.Option(help="Model of b, if different.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Name or id. Default: the dataset of the newest evaluations.")
    ] = None,
    part: Annotated[
        str | None, typer.Option(metavar="train|test|validation|all", help="Default: the dataset's part.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Resamples of the bootstrap.")] = 0,
    json: Json = False,
) -> None:
    """Test which of two versions is better on the same rows; evaluates them first if needed."""
    found = connect().compare(model, a, b, other, dataset, cast(Part | None, part), confidence, seed)
    if json:
        print_json(found)
        return
    out = console(json)
    out.print(table(["", "model", "version", "bytes", "µs per row", "evaluation"], _sides(found)))
    test = found.mcnemar
    values = {
        "rows": found.n_rows,
        "part": found.part,
        "only a correct": test.only_a,
        "only b correct": test.only_b,
        "McNemar, exact p": number(test.exact),
        "McNemar, mid-p": number(test.mid_p),
    }
    out.print(table(["compared", ""], values.items()))
    rows = [
        (
            each.name,
            number(each.a),
            number(each.b),
            number(each.difference),
            _span(each.low, each.high),
            number(each.p_value),
        )
        for each in found.measures
    ]
    out.print(table(["measure", "a", "b", "a - b", f"{found.confidence:.0%} interval", "p"], rows))
    if found.left_out:
        listed = ", ".join(found.left_out)
        out.print(f"Not compared, because the label tree has other nodes for one version: {listed}")
    if found.differing:
        out.print(table(["differs", "a", "b"], found.differing))
    if found.labels:
        each_label = [
            (
                each.label,
                each.level or None,
                each.support,
                number(each.f1_a),
                number(each.f1_b),
                number(each.difference),
            )
            for each in found.labels
        ]
        out.print(table(["label", "level", "rows", "F1, a", "F1, b", "a - b"], each_label))


@evaluations.command("list")
def list_(
    model: Annotated[str | None, typer.Option(help="Only evaluations of this model.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Only evaluations on this dataset.")] = None,
    json: Json = False,
) -> None:
    """List the newest evaluations."""
    page = connect().evaluations.list(model=model, dataset=dataset)
    rows = [
        (each.id, each.model, each.version, each.part, each.n_rows, _value(each, "error"), f"{each.created_at:%F %T}")
        for each in page.items
    ]
    print_result(page, table(["id", "model", "version", "part", "rows", "error", "made (UTC)"], rows), json)


@evaluations.command()
def show(evaluation: Id, json: Json = False) -> None:
    """Show the measures of an evaluation by level."""
    _show(connect().evaluations.get(evaluation), json)


@evaluations.command()
def labels(
    evaluation: Id,
    level: Level = None,
    order: Annotated[str, typer.Option(help="f1, support or label; prefix - for largest first.")] = "f1",
    limit: Annotated[int, typer.Option(help="Number of labels to show.")] = 50,
    json: Json = False,
) -> None:
    """Show precision, recall, F1 and support of each label, worst first."""
    found = connect().evaluations.labels(evaluation, limit=limit, level=level, order=order)
    rows = [
        (each.label, each.level, each.support, each.named, *map(number, (each.precision, each.recall, each.f1)))
        for each in found.labels
    ]
    print_result(found, table(["label", "level", "support", "named", "precision", "recall", "f1"], rows), json)


@evaluations.command()
def confusions(
    evaluation: Id,
    level: Level = None,
    limit: Annotated[int, typer.Option(help="Number of pairs to show.")] = 50,
    json: Json = False,
) -> None:
    """Show the most confused pairs of labels."""
    found = connect().evaluations.confusions(evaluation, level, limit)
    rows = [(each.level, each.true, each.predicted, each.n_rows) for each in found.pairs]
    print_result(found, table(["level", "true", "predicted", "rows"], rows), json)


@evaluations.command()
def mistakes(
    evaluation: Id,
    offset: Annotated[int, typer.Option(help="First row to show, from 0.")] = 0,
    limit: Annotated[int, typer.Option(help="Number of rows to show, up to 100.")] = 20,
    json: Json = False,
) -> None:
    """Show the largest errors of the version. If a label is wrong, fix it with datasets correct."""
    found = connect().evaluations.mistakes(evaluation, offset, limit)
    rows = [
        (each.row, _joined(each.corrected or each.labels), _joined(each.answered), _short(each))
        for each in found.mistakes
    ]
    print_result(found, table(["row", "label", "answered", "text or features"], rows), json)


def _joined(labels: list[str]) -> str:
    return ", ".join(labels)


def _short(mistake: Mistake) -> str:
    reported = mistake.text or " ".join(f"{index}:{value:.3g}" for index, value in mistake.features or [])
    words = " ".join(reported.split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 3] + "..."


def _show(evaluation: Evaluation, json: bool) -> None:
    if json:
        print_json(evaluation)
        return
    out = console(json)
    facts = evaluation.model_dump(
        mode="json", exclude={"measures", "unknown_named", "propensities", "reliability"}, exclude_none=True
    )
    if evaluation.microseconds_per_row is not None:
        facts["microseconds_per_row"] = number(evaluation.microseconds_per_row)
    if evaluation.unknown_named:
        facts["unknown_labels"] = f"{evaluation.unknown_labels}, such as {', '.join(evaluation.unknown_named)}"
    out.print(table(["evaluation", evaluation.id], facts.items()))
    others, by_frequency = bands.parted(evaluation.measures)
    for level in sorted({measure.level for measure in others}):
        rows = [(each.name, *_reported(each)) for each in others if each.level == level]
        out.print(
            table([f"level {level}" if level else "measure", "value", f"{evaluation.confidence:.0%} interval"], rows)
        )

    if by_frequency:
        found = [(each.training_rows, *map(_with_span, each.measures)) for each in by_frequency]
        out.print(table(["training rows of the label", *bands.COLUMNS], found))
    if evaluation.reliability is not None:
        bins = [
            (f"{each.low:.3g} to {each.high:.3g}", each.n_rows, number(each.confidence), number(each.accuracy))
            for each in evaluation.reliability
            if each.n_rows
        ]
        out.print(table(["probability", "rows", "mean probability", "right"], bins))


def _with_span(measure: Measure) -> str:
    value, span = _reported(measure)
    return f"{value}" if span is None else f"{value} ({span})"


def _reported(measure: Measure) -> tuple[str | None, str | None]:
    return number(measure.value), _span(measure.low, measure.high)


def _span(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{low:.3g} to {high:.3g}"


def _value(evaluation: Evaluation, name: str) -> str | None:
    return next((number(each.value) for each in evaluation.measures if (each.name, each.level) == (name, 0)), None)


def _sides(found: Comparison) -> list[tuple[object, ...]]:
    return [
        (name, side.model, side.version, side.size_bytes, number(side.microseconds_per_row), side.evaluation)
        for name, side in (("a", found.a), ("b", found.b))
    ]
