"""``polymargin models`` delete, restore, tag, retention, and ``polymargin storage``."""

from typing import Annotated

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, option, print_json, table
from app.schemas.models.deletions import Deletion, HeldVersion, Retention, RetentionRule, Storage, VersionPatch

storage = typer.Typer(help="See and free the room that files take (administrators only).", no_args_is_help=True)

Model = Annotated[str, typer.Argument(help="Name or id.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what it would do, and change nothing.")]


def delete(
    model: Model,
    version: Annotated[int | None, typer.Option(help="Default: all versions.")] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Delete a version, or a model with all its versions; for a time they can be restored."""
    with Polymargin() as client:
        found = client.models.delete(model, version, dry_run)
    if json:
        print_json(found)
        return
    _show_deletion(found)


def restore(
    model: Model,
    version: Annotated[int | None, typer.Option(help="Default: those that were deleted last.")] = None,
    json: Json = False,
) -> None:
    """Bring deleted versions back."""
    with Polymargin() as client:
        found = client.models.restore(model, version)
    if json:
        print_json(found)
    else:
        console(json).print(f"Restored {found.model} version {', '.join(map(str, found.versions))}", markup=False)


def tag(
    model: Model,
    version: Annotated[int, typer.Argument(help="Number.")],
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Set a tag.")] = None,
    unset: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Take a tag away.")] = None,
    notes: Annotated[str | None, option(VersionPatch, "notes")] = None,
    revision: Annotated[int | None, typer.Option(help="Refuse if it has another revision now.")] = None,
    json: Json = False,
) -> None:
    """Set tags and notes of a version."""
    tags: dict[str, str | None] = dict.fromkeys(unset or ())
    for text in set_ or ():
        name, sign, value = text.partition("=")
        if not sign:
            raise typer.BadParameter(f"expected NAME=VALUE, got {text[:80]!r}", param_hint="--set")
        tags[name] = value
    with Polymargin() as client:
        found = client.models.change(model, version, tags or None, notes, revision)
    if json:
        print_json(found)
        return
    rows = [*found.tags.items(), ("notes", found.notes or None), ("revision", found.revision)]
    console(json).print(table([f"{found.model} {found.version}", ""], rows))


def retention(
    model: Model,
    keep_last: Annotated[int | None, option(RetentionRule, "keep_last", min=1)] = None,
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Keep all versions from now on.")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Show or set how many of a model's versions are kept."""
    if keep_all and keep_last is not None:
        raise typer.BadParameter("give one of them", param_hint="--keep-last / --keep-all")
    with Polymargin() as client:
        if keep_all or keep_last is not None:
            found = client.models.set_retention(model, keep_last, dry_run)
        else:
            found = client.models.retention(model)
    if json:
        print_json(found)
        return
    _show_retention(found)


@storage.command()
def show(json: Json = False) -> None:
    """What takes room and goes with the next collection."""
    with Polymargin() as client:
        _show_storage(client.storage.report(), json)


@storage.command()
def collect(
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Also versions that could still be restored; then they cannot any more.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove now what `storage show` tells."""
    with Polymargin() as client:
        _show_storage(client.storage.collect(deleted), json)


def _show_deletion(found: Deletion) -> None:
    out = console(False)
    values = {
        "versions": ", ".join(map(str, found.versions)),
        "evaluations": found.evaluations,
        "bytes": f"{found.size_bytes:,}",
        "restorable until (UTC)": f"{found.restorable_until:%F %T}",
    }
    out.print(table(["would delete" if found.dry_run else "deleted", found.model], values.items()))
    _show_held(found.held)


def _show_retention(found: Retention) -> None:
    kept = "all versions" if found.keep_last is None else f"the last {found.keep_last}"
    rows = [("keeps", kept), ("goes", ", ".join(map(str, found.goes)) or None)]
    console(False).print(table(["model", found.model], rows))
    _show_held(found.held)


def _show_held(held: list[HeldVersion]) -> None:
    if held:
        console(False).print(table(["held version", "why"], [(each.version, each.reason) for each in held]))


def _show_storage(found: Storage, json: bool) -> None:
    if json:
        print_json(found)
        return
    title = "removed" if found.collected else "goes"
    rows: list[tuple[object, ...]] = [
        (title, f"{each.model} version {each.version}", f"{each.size_bytes:,}", None) for each in found.versions
    ]
    rows += [(title, each.path, f"{each.size_bytes:,}", None) for each in found.orphans]
    rows += [
        ("restorable", f"{each.model} version {each.version}", f"{each.size_bytes:,}", f"{each.restorable_until:%F %T}")
        for each in found.restorable
    ]
    out = console(json)
    out.print(table(["", "what", "bytes", "until (UTC)"], rows))
    out.print(
        f"{found.size_bytes:,} bytes {'were' if found.collected else 'can be'} freed; {found.free_bytes:,} are free"
    )
