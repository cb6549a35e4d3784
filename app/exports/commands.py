"""``polymargin models`` export and import, and ``polymargin reproduce``."""

from pathlib import Path
from typing import Annotated, cast

import typer

from app.command_line.connection import connect
from app.command_line.output import Json, console, print_result, table
from app.exports.schemas import ExportFormat
from app.remote.errors import ClientError


def export(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int | None, typer.Option(help="Default: the latest.")] = None,
    output: Annotated[Path | None, typer.Option(help="Default: MODEL-VERSION.npz, .onnx or .skops here.")] = None,
    format: Annotated[
        str, typer.Option(metavar="archive|onnx|skops", help="onnx and skops need a linear model on given features.")
    ] = "archive",
    json: Json = False,
) -> None:
    """Export a version with all its files to an archive that another service can import and numpy can read."""
    out = console(json)
    client = connect()
    with out.status("Receiving"):
        if version is None:
            latest = client.models.get(model).latest
            if latest is None:
                raise ClientError(f"The model {model[:80]!r} has no version")
            version = latest.version
        path = output or Path(f"{model}-{version}.{'npz' if format == 'archive' else format}")
        size = client.models.export(model, version, path, cast(ExportFormat, format))
    print_result({"path": str(path), "size_bytes": size}, f"Wrote {path}, {size:,} bytes", json)


def reproduce(
    model: Annotated[str, typer.Argument(help="Name or id.")],
    version: Annotated[int, typer.Argument(help="Number.")],
    keep: Annotated[bool, typer.Option("--keep", help="Keep the new version as MODEL.reproduced.")] = False,
    json: Json = False,
) -> None:
    """Retrain a version from its lineage and compare all arrays bit by bit; exit with status 1 if they differ."""
    out = console(json)
    with out.status("Retraining"):
        found = connect().reproduce(model, version, keep)
    shown = [f"Identical: all {found.arrays} arrays have the same SHA-256"]
    if not found.same:
        shown = [f"{len(found.differing)} of {found.arrays} arrays differ: {', '.join(found.differing)}"]
        if found.code_version != found.code_version_now:
            shown.append(f"It was trained by version {found.code_version}; this is {found.code_version_now}")
    print_result(found, shown, json)
    if not found.same:
        raise typer.Exit(1)


def import_(
    path: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="Archive to import.")],
    name: Annotated[str | None, typer.Option(help="Model name. Default: the name in the archive.")] = None,
    json: Json = False,
) -> None:
    """Import a version from an archive; every hash is checked (administrators only)."""
    out = console(json)
    with out.status("Sending"):
        found = connect().models.import_archive(path, name)
    rows = [("version", found.version), ("solver", found.solver), ("SHA-256", found.sha256)]
    print_result(found, table(["model", found.model], rows), json)
