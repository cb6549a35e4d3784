"""``polymargin models`` thresholds: what the answers of a version are worth from each threshold on."""

from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, number, print_json, table
from app.remote.errors import ClientError

_SHOWN = 20


def thresholds(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int | None, typer.Argument(help="Number; by default the latest.")] = None,
    json: Json = False,
) -> None:
    """Precision against coverage of a version that tells probabilities: twenty thresholds, with --json all."""
    with Polymargin() as client:
        if version is None:
            latest = client.models.get(model).latest
            if latest is None:
                raise ClientError(f"The model {model!r} has no version yet")
            version = latest.version
        found = client.models.thresholds(model, version)
    if json:
        print_json(found)
        return
    points = found.points
    chosen = sorted({round(k * (len(points) - 1) / (_SHOWN - 1)) for k in range(_SHOWN)}) if points else []
    of_sets = any(at.recall is not None for at in points)
    rows = [
        [
            number(value)
            for value in (at.threshold, at.answered, at.precision, at.lower_bound, at.recall if of_sets else at.depth)
        ]
        for at in (points[k] for k in chosen)
    ]
    last = "found" if of_sets else "mean level"
    console(json).print(table(["threshold", "answered", "right", "at least (95 %)", last], rows))
