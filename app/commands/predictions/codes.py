"""``polymargin models`` code: the output code of a version, as numbers or as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, print_json, table


def code(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int, typer.Argument(help="Number.")],
    picture: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Draw it into this file: .svg, .png, or .json for Plotly.")
    ] = None,
    json: Json = False,
) -> None:
    """The output code of a version that has one; the first hundred classes and columns."""
    with Polymargin() as client:
        if picture is not None:
            format_ = {".json": "plotly", ".png": "png"}.get(picture.suffix, "svg")
            picture.write_bytes(client.models.code_picture(model, version, format_))
            console(json).print(f"Wrote {picture}", markup=False)
            return
        found = client.models.code(model, version)
    if json:
        print_json(found)
        return
    rows = [
        (label, " ".join(f"{entry:+.3g}" for entry in row))
        for label, row in zip(found.classes, found.matrix, strict=True)
    ]
    out = console(json)
    out.print(table(["class", f"{found.n_columns} columns, decoded by {found.decoding}"], rows))
