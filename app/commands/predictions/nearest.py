"""``polymargin models nearest``: training rows that are like an instance."""

from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.instances import Instance, Text, one_instance
from app.commands.common.output import Json, console, number, option, print_json, table
from app.schemas.predictions.nearest import NearestRequest

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
    """The training rows of the predicted label, or of another, that are the most like an instance."""
    asked = one_instance(text, instance)
    with Polymargin() as client:
        found = client.models.nearest(model, asked, label, limit, version)
    if json:
        print_json(found)
        return
    out = console(json)
    out.print(f"{found.label}: {found.n_compared} of {found.n_rows} rows of {found.dataset} compared", markup=False)
    rows = [
        (at.row, number(at.similarity), ", ".join(at.labels), (at.text or str(at.record or at.features))[:_SHOWN])
        for at in found.rows
    ]
    out.print(table(["row", "similarity", "labels", "beginning"], rows))
