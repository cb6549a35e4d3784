"""``polymargin uploads``: files that were sent in pieces, and broke off."""

from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, print_json, table

uploads = typer.Typer(help="Look after uploads that broke off.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(metavar="UPLOAD", help="As the upload that broke off told it.")]


@uploads.command()
def show(upload: Id, json: Json = False) -> None:
    """How much of an upload has come, and how long it is kept."""
    with Polymargin() as client:
        found = client.uploads.get(upload)
    if json:
        print_json(found)
        return
    rows = [(found.offset, found.size_bytes, f"{found.expires_at:%F %T}")]
    console(json).print(table(["bytes", "of", "kept until"], rows))


@uploads.command()
def discard(upload: Id, json: Json = False) -> None:
    """Forget an upload and what has come of it."""
    with Polymargin() as client:
        client.uploads.discard(upload)
    if json:
        print_json({"discarded": upload})
    else:
        console(json).print(f"Discarded {upload}", markup=False)
