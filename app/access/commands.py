"""Commands: signing in and out, keys, audit and usage."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

import typer
from rich.console import Console

from app.access.schemas import AuditEntry, DeviceCode, Key, Role
from app.client import Client
from app.command_line.connection import connect
from app.command_line.output import Json, print_result, table

_Url = Annotated[str | None, typer.Argument(help="Address of the service. Default: the service of other commands.")]


def login(url: _Url = None, json: Json = False) -> None:
    """Sign in with your own account at the identity provider of the service."""
    with Client(url) as client:
        token = client.login(_show_code)
        address, ignored = client.url, client.has_own_key
    who = f"{token.name} ({token.role} in {token.workspace})"
    shown = [
        f"Signed in to {address} as {who} until {_day(token.expires_at)}",
        "POLYMARGIN_API_KEY is set: commands use this key until you unset it" if ignored else None,
    ]
    print_result({**token.model_dump(mode="json", exclude={"secret", "state"}), "url": address}, shown, json)


def logout(url: _Url = None, json: Json = False) -> None:
    """Revoke the token of your sign-in and remove it from this machine."""
    with Client(url) as client:
        name, address = client.logout(), client.url
    print_result({"url": address, "name": name}, f"Signed {name} out of {address}", json)


def _show_code(code: DeviceCode) -> None:
    # on stderr, as the person reads it also where stdout goes to a program
    Console(stderr=True, highlight=False, soft_wrap=True).print(code.instructions, markup=False)


keys = typer.Typer(help="Create and revoke API keys (administrators only).", no_args_is_help=True)


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the key in the list.")],
    role: Annotated[
        str,
        typer.Option(
            help="viewer (reads, predicts), clerk (also predicts files, decides review rows, sends feedback), editor "
            "(also trains, promotes, deletes) or admin."
        ),
    ] = "viewer",
    days: Annotated[
        float | None, typer.Option(min=0.001, max=36_500, help="The key expires after this many days.")
    ] = None,
    workspace: Annotated[str | None, typer.Option(help="Workspace of the key. Default: your workspace.")] = None,
    promotes: Annotated[
        bool, typer.Option("--promotes", help="Let an editor's key move and remove protected aliases.")
    ] = False,
    json: Json = False,
) -> None:
    """Create a key; its secret is shown only once."""
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    key = connect().keys.create(name, cast(Role, role), expires_at, workspace, promotes)
    facts = {"id": key.id, "workspace": key.workspace, "role": key.role, "ends (UTC)": _day(key.expires_at)}
    print_result(key, table(["key", key.name], [*facts.items(), ("secret", key.secret)]), json)


@keys.command("list")
def list_(json: Json = False) -> None:
    """List the newest keys, without their secrets."""
    page = connect().keys.list()
    rows = [
        (key.name, key.kind, key.workspace, key.role, _state(key), _day(key.expires_at), _day(key.last_used_at), key.id)
        for key in page.items
    ]
    print_result(
        page, table(["name", "kind", "workspace", "role", "state", "ends (UTC)", "last used (UTC)", "id"], rows), json
    )


@keys.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Name or id; the id for keys of other workspaces.")], json: Json = False
) -> None:
    """Revoke a key; it stops working immediately."""
    connect().keys.revoke(key)
    print_result({"revoked": key}, f"Revoked {key}", json)


def _state(key: Key) -> str:
    return "revoked" if key.revoked else "expired" if key.expired else "valid"


def _day(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%F %H:%M}"


def audit(
    key: Annotated[str | None, typer.Option(help="Only changes made with this key, by name or id.")] = None,
    thing: Annotated[str | None, typer.Option(help="Only changes of this object, by name or id.")] = None,
    days: Annotated[float | None, typer.Option(min=0.0, max=36_500, help="Only the last this many days.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of entries to show.")] = 50,
    json: Json = False,
) -> None:
    """List who changed what, newest first (administrators only)."""
    since = None if days is None else datetime.now(UTC) - timedelta(days=days)
    page = connect().audit.list(key, thing, since, page_size=limit)
    rows = [(f"{entry.at:%F %T}", entry.key, entry.method, _thing(entry), _change(entry)) for entry in page.items]
    print_result(page, table(["when (UTC)", "key", "method", "what", "change"], rows), json)


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


def usage(json: Json = False) -> None:
    """Show the jobs and bytes of your workspace, and its limits."""
    found = connect().usage()
    rows = [
        ("unfinished jobs", f"{found.jobs:,}", _most(found.max_jobs)),
        ("stored bytes", f"{found.stored_bytes:,}", _most(found.max_stored_bytes)),
        ("requests per second of a key", None, _most(found.requests_per_second)),
    ]
    print_result(found, table(["workspace " + found.workspace, "now", "at most"], rows), json)


def _most(number: float | None) -> str:
    return "unlimited" if number is None else f"{number:,.15g}"
