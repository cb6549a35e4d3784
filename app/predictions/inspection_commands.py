"""Commands: code, drift, nearest, terms and thresholds of a version."""

from itertools import zip_longest
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from app.command_line.connection import connect
from app.command_line.instances import Instance, Text, one_instance
from app.command_line.output import Json, console, number, option, print_result, table
from app.plurals import counted
from app.predictions.inspection_schemas import NearestRequest, WeightedTerm
from app.remote.errors import ClientError


def code(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int, typer.Argument(help="Number.")],
    picture: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write a chart to this file, .svg or .png.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the output code of a version; the first hundred classes and columns."""
    client = connect()
    if picture is not None:
        format_ = "png" if picture.suffix == ".png" else "svg"
        picture.write_bytes(client.models.code_picture(model, version, format_))
        console(json).print(f"Wrote {picture}", markup=False)
        return
    found = client.models.code(model, version)
    rows = [
        (label, " ".join(f"{entry:+.3g}" for entry in row))
        for label, row in zip(found.classes, found.matrix, strict=True)
    ]
    print_result(found, table(["class", f"{found.n_columns} columns, decoded by {found.decoding}"], rows), json)


def drift(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int, typer.Argument(help="Number.")],
    days: Annotated[int, typer.Option(help="Number of days up to today, in UTC.")] = 7,
    picture: Annotated[Path | None, typer.Option(help="Write a chart to this file, .svg or .png.")] = None,
    json: Json = False,
) -> None:
    """Compare scores and labels of recent predictions with those of held-out rows."""
    client = connect()
    if picture is not None:
        format_ = "png" if picture.suffix == ".png" else "svg"
        picture.write_bytes(client.models.drift_picture(model, version, days, format_))
    found = client.models.drift(model, version, days)
    counts = f"{counted(found.n_answers, 'prediction')} in {counted(found.days, 'day')}, {found.n_expected:,} held out"
    shown: list[Table | str | None] = [counts, found.too_few]
    if found.scores is not None:
        shown.append(f"scores: PSI {number(found.scores.psi)}, expected by chance {number(found.scores.psi_by_chance)}")
    if found.labels is not None:
        by_chance = number(found.labels.total_variation_by_chance)
        shown.append(f"labels: total variation {number(found.labels.total_variation)}, expected by chance {by_chance}")
        rows = [[at.label, number(at.expected), number(at.found)] for at in found.labels.moved]
        shown.append(table(["label", "held out", "late"], rows))
    print_result(found, shown, json)


_SHOWN = 80


def nearest(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    text: Text = None,
    instance: Instance = None,
    label: Annotated[str | None, option(NearestRequest, "label")] = None,
    limit: Annotated[int, option(NearestRequest, "limit")] = 5,
    version: Annotated[int | None, option(NearestRequest, "version")] = None,
    json: Json = False,
) -> None:
    """Show the training rows most similar to an instance, with the predicted label or another."""
    asked = one_instance(text, instance)
    found = connect().models.nearest(model, asked, label, limit, version)
    counts = f"{found.label}: {found.n_compared} of {found.n_rows} rows of {found.dataset} compared"
    rows = [
        (at.row, number(at.similarity), ", ".join(at.labels), (at.text or str(at.record or at.features))[:_SHOWN])
        for at in found.rows
    ]
    print_result(found, [counts, table(["row", "similarity", "labels", "beginning"], rows)], json)


def terms(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int, typer.Argument(help="Number.")],
    label: Annotated[str, typer.Argument(help="Class to show.")],
    limit: Annotated[int, typer.Option(help="Number of features on each side, up to 100.")] = 20,
    json: Json = False,
) -> None:
    """Show the features with the largest weights for and against a class of a linear model."""
    found = connect().models.terms(model, version, label, limit)
    rows = [(*_reported(for_it), *_reported(against)) for for_it, against in zip_longest(found.lifting, found.lowering)]
    print_result(found, table(["for it", "weight", "against it", "weight"], rows), json)


def _reported(term: WeightedTerm | None) -> tuple[str | int | None, str | None]:
    return (None, None) if term is None else (term.feature, number(term.weight))


_THRESHOLDS_SHOWN = 20


def thresholds(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int | None, typer.Argument(help="Version number. Default: the latest.")] = None,
    json: Json = False,
) -> None:
    """Show precision against coverage of a version with probabilities; twenty thresholds, all with --json."""
    client = connect()
    if version is None:
        latest = client.models.get(model).latest
        if latest is None:
            raise ClientError(f"The model {model!r} has no version yet")
        version = latest.version
    found = client.models.thresholds(model, version)
    points = found.points
    chosen = (
        sorted({round(k * (len(points) - 1) / (_THRESHOLDS_SHOWN - 1)) for k in range(_THRESHOLDS_SHOWN)})
        if points
        else []
    )
    of_sets = any(at.recall is not None for at in points)
    rows = [
        [
            number(value)
            for value in (at.threshold, at.answered, at.precision, at.lower_bound, at.recall if of_sets else at.depth)
        ]
        for at in (points[k] for k in chosen)
    ]
    last = "found" if of_sets else "mean level"
    print_result(found, table(["threshold", "answered", "right", "at least (95 %)", last], rows), json)
