"""``polymargin models drift``: how late answers differ from those to held-out rows."""

from pathlib import Path
from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, number, print_json, table


def drift(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int, typer.Argument(help="Number.")],
    days: Annotated[int, typer.Option(help="Days, by UTC, up to today.")] = 7,
    picture: Annotated[Path | None, typer.Option(help="Write a picture there: .svg or .png.")] = None,
    json: Json = False,
) -> None:
    """Scores and labels of a version's late answers, beside those to rows held out from its training."""
    with Polymargin() as client:
        if picture is not None:
            format_ = "png" if picture.suffix == ".png" else "svg"
            picture.write_bytes(client.models.drift_picture(model, version, days, format_))
        found = client.models.drift(model, version, days)
    if json:
        print_json(found)
        return
    out = console(json)
    out.print(f"{found.n_answers} answers in {found.days} days, {found.n_expected} held out")
    if found.scores is not None:
        out.print(f"scores: PSI {number(found.scores.psi)}, by chance {number(found.scores.psi_by_chance)}")
    if found.labels is not None:
        by_chance = number(found.labels.total_variation_by_chance)
        out.print(f"labels: total variation {number(found.labels.total_variation)}, by chance {by_chance}")
        rows = [[at.label, number(at.expected), number(at.found)] for at in found.labels.moved]
        out.print(table(["label", "held out", "late"], rows))
