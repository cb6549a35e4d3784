"""``polymargin backup``, ``restore`` and ``doctor``: they work on the data folder and the database themselves."""

# As in app.commands.operation.service, what loads the numerics is imported when it is called.

from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.common.output import Json, console, fail, print_json, table


def backup(
    target: Annotated[Path, typer.Argument(help="A new folder.")],
    link: Annotated[
        bool, typer.Option("--link", help="Link files instead of copying them: at once, and on the same disk.")
    ] = False,
    json: Json = False,
) -> None:
    """Copy a service's rows and files, which may go on running, to a new folder."""
    from app.backup import backup as run
    from app.database_copies import BackupError

    out = console(json)
    try:
        found = run(target, link, lambda line: out.print(line, markup=False))
    except BackupError as error:
        raise typer.Exit(fail(str(error), json)) from None
    _show(found, f"backup {target}", json)


def restore(
    source: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A backup.")], json: Json = False
) -> None:
    """Bring a backup into an empty POLYMARGIN_HOME, and an empty POLYMARGIN_DATABASE_URL where one is set."""
    from app.backup import restore as run
    from app.database_copies import BackupError

    out = console(json)
    try:
        found = run(source, lambda line: out.print(line, markup=False))
    except BackupError as error:
        raise typer.Exit(fail(str(error), json)) from None
    _show(found, f"restored from {source}", json)


def doctor(
    hashes: Annotated[bool, typer.Option("--hashes", help="Compare the bytes of every array with its hash.")] = False,
    json: Json = False,
) -> None:
    """Look whether rows, files, schema, disk, clock, queue and workers are as they should be; status 1 where not."""
    from app.doctor import examine

    found = list(examine(hashes))
    if json:
        print_json({"findings": [each.document() for each in found]})
    else:
        console(json).print(table(["part", "state", "found"], [(each.part, each.state, each.detail) for each in found]))
    if any(each.state == "fault" for each in found):
        raise typer.Exit(1)


def _show(found: dict[str, Any], title: str, json: bool) -> None:
    if json:
        print_json(found)
        return
    rows = {"version": found["version"], "schema": found["schema"], "made (UTC)": found["created_at"]}
    rows |= {"bytes": f"{found['size_bytes']:,}"} | found["rows"]
    console(json).print(table([title, ""], rows.items()))
