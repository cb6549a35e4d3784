"""``polymargin models`` terms: what speaks for a class."""

from itertools import zip_longest
from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, number, print_json, table
from app.schemas.predictions.terms import WeightedTerm


def terms(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int, typer.Argument(help="Number.")],
    label: Annotated[str, typer.Argument(help="The class.")],
    limit: Annotated[int, typer.Option(help="How many on either side, up to 100.")] = 20,
    json: Json = False,
) -> None:
    """The features that count most for a class of a linear machine, and against it."""
    with Polymargin() as client:
        found = client.models.terms(model, version, label, limit)
    if json:
        print_json(found)
        return
    rows = [(*_reported(for_it), *_reported(against)) for for_it, against in zip_longest(found.lifting, found.lowering)]
    console(json).print(table(["for it", "weight", "against it", "weight"], rows))


def _reported(term: WeightedTerm | None) -> tuple[str | int | None, str | None]:
    return (None, None) if term is None else (term.feature, number(term.weight))
