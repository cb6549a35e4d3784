"""``polymargin keys``: create, list, revoke."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, print_json, table
from app.schemas.access.keys import Key, Role

keys = typer.Typer(help="Make and revoke API keys (administrators only).", no_args_is_help=True)


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="Tells keys apart in the list.")],
    role: Annotated[str, typer.Option(help="viewer (reads, predicts), editor (uploads, trains) or admin.")] = "viewer",
    days: Annotated[float | None, typer.Option(min=0.001, max=36_500, help="The key ends after so many days.")] = None,
    workspace: Annotated[str | None, typer.Option(help="Of the key; by default that of yours.")] = None,
    json: Json = False,
) -> None:
    """Make a key; its secret is shown this once."""
    expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
    with Polymargin() as client:
        key = client.keys.create(name, cast(Role, role), expires_at, workspace)
    if json:
        print_json(key)
        return
    console(json).print(
        table(
            ["key", key.name],
            [
                ("id", key.id),
                ("workspace", key.workspace),
                ("role", key.role),
                ("ends", _day(key.expires_at)),
                ("secret", key.secret),
            ],
        )
    )


@keys.command("list")
def list_(json: Json = False) -> None:
    """The newest keys, without their secrets."""
    with Polymargin() as client:
        page = client.keys.list()
    if json:
        print_json(page)
        return
    rows = [
        (key.name, key.workspace, key.role, _state(key), _day(key.expires_at), _day(key.last_used_at), key.id)
        for key in page.items
    ]
    console(json).print(table(["name", "workspace", "role", "state", "ends", "last used", "id"], rows))


@keys.command()
def revoke(
    key: Annotated[str, typer.Argument(help="Name or id; of other workspaces the id.")], json: Json = False
) -> None:
    """Refuse a key from now on."""
    with Polymargin() as client:
        client.keys.revoke(key)
    if json:
        print_json({"revoked": key})
    else:
        console(json).print(f"Revoked {key}", markup=False)


def _state(key: Key) -> str:
    return "revoked" if key.revoked else "expired" if key.expired else "valid"


def _day(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M}"
