"""``polymargin audit``: who changed what."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, print_json, table
from app.schemas.access.audit import AuditEntry


def audit(
    key: Annotated[str | None, typer.Option(help="Only what this key did, by name or id.")] = None,
    thing: Annotated[str | None, typer.Option(help="Only changes of this thing, by name or id.")] = None,
    days: Annotated[float | None, typer.Option(min=0.0, max=36_500, help="Only of the last so many days.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="So many of the newest.")] = 50,
    json: Json = False,
) -> None:
    """Who changed what, newest first (administrators only)."""
    since = None if days is None else datetime.now(UTC) - timedelta(days=days)
    with Polymargin() as client:
        page = client.audit.list(key, thing, since, page_size=limit)
    if json:
        print_json(page)
        return
    rows = [
        (f"{entry.at.astimezone():%Y-%m-%d %H:%M:%S}", entry.key, entry.method, _thing(entry), _change(entry))
        for entry in page.items
    ]
    console(json).print(table(["when", "key", "method", "what", "change"], rows))


def _thing(entry: AuditEntry) -> str:
    return entry.path if entry.what is None else f"{entry.what} {entry.name or entry.thing or ''}"


def _change(entry: AuditEntry) -> str:
    if entry.what is None:
        return ""
    if entry.what == "rule_run" and entry.after is not None:
        return ", ".join(f"{name}: {value}" for name, value in entry.after.items() if value is not None)
    if entry.before is None or entry.after is None:
        return "made" if entry.before is None else "removed"
    names = sorted({*entry.before, *entry.after})
    return ", ".join(f"{name}: {entry.before.get(name)} -> {entry.after.get(name)}" for name in names)
