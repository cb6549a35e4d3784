"""``polymargin hierarchies``: upload, list, show, retired, changes, delete."""

from pathlib import Path
from typing import Annotated, cast

import typer

from app.command_line.connection import connect
from app.command_line.output import Json, console, option, print_json, print_result, table
from app.datasets.client import name_of
from app.hierarchies.formats import FORMATS
from app.hierarchies.schemas import Change, Hierarchy, HierarchyOptions, LabelChange

hierarchies = typer.Typer(help="Upload and manage label trees and vocabularies.", no_args_is_help=True)

_DROPPED = 5
ROOT = "root"

Ref = Annotated[str, typer.Argument(metavar="HIERARCHY", help="Name or id.")]


@hierarchies.command()
def upload(
    path: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="A label tree or vocabulary.")
    ],
    name: Annotated[str | None, typer.Option(help="Default: the file's name without extensions.")] = None,
    format: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(FORMATS)}; default: detected from the file's extension or first lines."),
    ] = None,
    root: Annotated[str | None, option(HierarchyOptions, "root")] = None,
    tree: Annotated[str | None, option(HierarchyOptions, "tree")] = None,
    exclude: Annotated[str | None, option(HierarchyOptions, "exclude")] = None,
    language: Annotated[str | None, option(HierarchyOptions, "language")] = None,
    languages: Annotated[str | None, option(HierarchyOptions, "languages")] = None,
    separator: Annotated[str | None, option(HierarchyOptions, "separator")] = None,
    option_: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help=(
                "Option of the format, for example id_field=Code, delimiter=tab, label=notation or base=URI; "
                "repeatable."
            ),
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Upload a label tree or vocabulary."""
    named = {"root": root, "tree": tree, "exclude": exclude, "language": language}
    named |= {"languages": languages, "separator": separator}
    options = named | dict(map(_option, option_ or ()))
    hierarchy = connect().hierarchies.upload(path, name or name_of(path), format, **options)
    _show(hierarchy, json)


@hierarchies.command("list")
def list_(json: Json = False) -> None:
    """List the newest hierarchies."""
    page = connect().hierarchies.list()
    rows = [(item.name, item.format, item.n_nodes, item.n_leaves, item.depth) for item in page.items]
    print_result(page, table(["name", "format", "nodes", "leaves", "depth"], rows), json)


@hierarchies.command()
def show(
    hierarchy: Ref,
    parent: Annotated[
        str | None, typer.Option(help="List the children of this node; root lists the top level.")
    ] = None,
    search: Annotated[
        str | None, typer.Option(help="List the nodes whose name contains this text, ignoring case.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="With --parent or --search: count the rows of this dataset per node.")
    ] = None,
    json: Json = False,
) -> None:
    """Show one hierarchy with its counts, the children of a node, or a search for nodes."""
    client = connect()
    if parent is None and search is None:
        _show(client.hierarchies.get(hierarchy), json)
        return
    found = client.hierarchies.nodes(hierarchy, parent, limit=10_000, search=search, dataset=dataset)
    languages = sorted({language for node in found.nodes for language in node.names})
    counted = [] if dataset is None else ["rows"]
    rows = [
        (
            node.name,
            node.level,
            node.n_children,
            *(node.n_rows for _ in counted),
            *(node.names.get(language) for language in languages),
        )
        for node in found.nodes
    ]
    print_result(found, table(["label", "level", "children", *counted, *languages], rows), json)


@hierarchies.command()
def retired(
    hierarchy: Ref,
    offset: Annotated[int, typer.Option(help="Number of results to skip.")] = 0,
    limit: Annotated[int, typer.Option(help="Maximum number of results.")] = 100,
    json: Json = False,
) -> None:
    """List deprecated labels without a place in the tree, with their replacements, and excluded labels."""
    found = connect().hierarchies.retired(hierarchy, offset, limit)
    rows = [
        (
            label.name,
            ", ".join(label.names.values()) or None,
            "excluded" if label.excluded else "deprecated",
            ", ".join(label.replaced_by) or None,
        )
        for label in found.labels
    ]
    print_result(found, table(["label", "names", "reason", "replaced by"], rows), json)


@hierarchies.command()
def changes(
    hierarchy: Ref,
    since: Annotated[str, typer.Option(help="The earlier edition, by name or id.")],
    change: Annotated[
        str | None, typer.Option(help="Only changes of this kind: appeared, went, moved, renamed or deprecated.")
    ] = None,
    offset: Annotated[int, typer.Option(help="Number of results to skip.")] = 0,
    limit: Annotated[int, typer.Option(help="Maximum number of results.")] = 100,
    json: Json = False,
) -> None:
    """List changes from an earlier edition of the same vocabulary, matched by id."""
    found = connect().hierarchies.changes(hierarchy, since, cast(Change | None, change), offset, limit)
    counts = ", ".join(f"{number} {kind}" for kind, number in found.counts.items())
    rows = [(each.change, each.label, *_difference(each)) for each in found.changes]
    changed = table(["change", "label", "before", "now", "replaced by"], rows)
    n_wanted = sum(number for kind, number in found.counts.items() if change in (None, kind))
    cut = f"{len(rows)} of {n_wanted:,} changes: see --offset and --limit" if len(rows) < n_wanted else None
    print_result(found, [f"{counts}; {found.n_same} unchanged", changed, cut], json)


@hierarchies.command()
def delete(
    hierarchy: Ref,
    force: Annotated[bool, typer.Option("--force", help="Delete even if models were trained on it.")] = False,
    json: Json = False,
) -> None:
    """Delete a hierarchy."""
    connect().hierarchies.delete(hierarchy, force)
    print_result({"deleted": hierarchy}, f"Deleted {hierarchy}", json)


def _difference(change: LabelChange) -> tuple[str | None, str | None, str | None]:
    replaced = ", ".join(change.replaced_by) or None
    if change.change == "renamed":
        return (
            ", ".join((change.names_before or {}).values()) or None,
            ", ".join(change.names.values()) or None,
            replaced,
        )
    before = ", ".join([change.parent_before or ROOT, *change.other_parents_before])
    now = ", ".join([change.parent or ROOT, *change.other_parents])
    return (
        before if change.change in ("went", "moved") else None,
        now if change.change in ("appeared", "moved") else None,
        replaced,
    )


def _option(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or name not in HierarchyOptions.model_fields:
        known = ", ".join(HierarchyOptions.model_fields)
        raise typer.BadParameter(f"expected NAME=VALUE with one of {known}; got {text[:80]!r}", param_hint="--option")
    return name, value


def _show(hierarchy: Hierarchy, json: bool) -> None:
    if json:
        print_json(hierarchy)
        return
    values = hierarchy.model_dump(mode="json", exclude={"dropped"}) | {"levels": ", ".join(map(str, hierarchy.levels))}
    for mapping in ("languages", "read_as"):
        values[mapping] = ", ".join(f"{key}: {value}" for key, value in values[mapping].items()) or None
    out = console(json)
    out.print(table(["hierarchy", hierarchy.name], values.items()))
    if hierarchy.dropped:
        shown = hierarchy.dropped[:_DROPPED]
        out.print(table(["dropped parent", "of", "line"], [(each.parent, each.label, each.line) for each in shown]))
        if hierarchy.n_dropped > len(shown):
            out.print(f"and {hierarchy.n_dropped - len(shown)} more: each node lists its other parents")
