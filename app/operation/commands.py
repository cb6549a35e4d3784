"""Commands: backup, restore, doctor and status."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from app.command_line.connection import connect
from app.command_line.output import Json, console, fail, print_json, print_result, table
from app.operation.schemas import Status
from app.plurals import gap_text

# As in app.operation.service_commands, what loads the numerics is imported when it is called.


def backup(
    target: Annotated[Path, typer.Argument(help="New folder for the backup.")],
    link: Annotated[
        bool, typer.Option("--link", help="Link files instead of copying them; fast, but on the same disk only.")
    ] = False,
    json: Json = False,
) -> None:
    """Back up the service's database and files to a new folder; the service may keep running."""
    from app.operation.backup import backup as run
    from app.operation.database_copies import BackupError

    out = console(json)
    try:
        found = run(target, link, lambda line: out.print(line, markup=False))
    except BackupError as error:
        raise typer.Exit(fail(str(error), json)) from None
    _show(found, f"backup {target}", json)


def restore(
    source: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Folder of the backup.")],
    json: Json = False,
) -> None:
    """Restore a backup into an empty POLYMARGIN_HOME, and into an empty POLYMARGIN_DATABASE_URL if one is set."""
    from app.config import settings
    from app.operation.backup import restore as run
    from app.operation.database_copies import BackupError

    out = console(json)
    try:
        found = run(source, lambda line: out.print(line, markup=False))
    except BackupError as error:
        raise typer.Exit(fail(str(error), json)) from None
    _show(found, f"restored from {source}", json)
    out.print(f"Start it: POLYMARGIN_HOME={shlex.quote(str(settings().home))} polymargin up", markup=False)
    out.print("If another service uses port 8000, add --port 0 or another port")


def move_files(
    target: Annotated[str, typer.Argument(help="s3://bucket/prefix, or `folder` for the data folder.")],
    json: Json = False,
) -> None:
    """Copy all files from the data folder to object storage or back, each compared by its hash.

    Repeat it after an interruption. Stop the service, run it, and set or unset POLYMARGIN_FILES.
    """
    from app.operation.moving_files import MoveError
    from app.operation.moving_files import move_files as run

    out = console(json)
    try:
        found = run(target, lambda line: out.print(line, markup=False))
    except (MoveError, OSError, ValueError) as error:
        raise typer.Exit(fail(str(error), json)) from None
    how = "unset POLYMARGIN_FILES" if target == "folder" else f"set POLYMARGIN_FILES={target}"
    shown = [
        f"{found['copied']} of {found['files']} files copied, {found['bytes']} bytes; the others were there",
        f"Nothing was removed. To use the new place, {how} for all processes",
    ]
    print_result(found, shown, json)


def doctor(
    hashes: Annotated[bool, typer.Option("--hashes", help="Check the hash of every array.")] = False,
    json: Json = False,
) -> None:
    """Check database, files, schema, disk, clock, queue and workers; exit with status 1 if a check fails."""
    from app.operation.doctor import examine

    found = list(examine(hashes))
    print_result(
        {"findings": [each.document() for each in found]},
        table(["part", "state", "found"], [(each.part, each.state, each.detail) for each in found]),
        json,
    )
    if any(each.state == "fault" for each in found):
        raise typer.Exit(1)


def _show(found: dict[str, Any], title: str, json: bool) -> None:
    rows = {"version": found["version"], "schema": found["schema"], "made (UTC)": found["created_at"]}
    rows |= {"bytes": f"{found['size_bytes']:,}"} | found["rows"]
    print_result(found, table([title, ""], rows.items()), json)


_GIB = float(1 << 30)


def status(json: Json = False) -> None:
    """Show running and queued jobs, workers, free disk space and problems."""
    found = connect().status()
    if json:
        print_json(found)
    else:
        _status_show(found)


def _status_show(found: Status) -> None:
    out = console(False)
    running = [
        (
            running.job.id,
            running.job.kind,
            running.job.request.get("model"),
            None if running.job.progress is None else f"{running.job.progress.fraction:.0%}",
            None if running.job.progress is None else gap_text(running.job.progress.gap),
        )
        for running in found.running
    ]
    if running:
        out.print(table(["running", "kind", "model", "done", "gap"], running))
    queues = [(queue.name, queue.processes, queue.busy, queue.waiting) for queue in found.queues]
    out.print(table(["queue", "processes", "busy", "waiting"], queues))
    for name, room in (("disk", found.disk), ("memory", found.memory)):
        out.print(f"{name}: {room.free_bytes / _GIB:.1f} of {room.total_bytes / _GIB:.1f} GiB free")
    for fault in found.attention:
        subject = " ".join(part for part in (fault.kind, fault.name, fault.id) if part)
        out.print(f"{subject}: {fault.detail}", markup=False)
