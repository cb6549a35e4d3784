"""``polymargin hierarchies``: upload, list, show, delete."""

from pathlib import Path
from typing import Annotated, cast

import typer

from app.client import Polymargin
from app.commands.output import Json, console, option, print_json, table
from app.schemas.hierarchies import Hierarchy, HierarchyFormat, HierarchyOptions

hierarchies = typer.Typer(help="Upload and look after label trees.", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(metavar="HIERARCHY", help="Name or id.")]


@hierarchies.command()
def upload(
    path: Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, help="A label tree.")],
    name: Annotated[str | None, typer.Option(help="Default: the file's name without its ending.")] = None,
    format: Annotated[
        str | None, typer.Option(help="json, csv, lshtc, rcv1 or paths; default: by the file's ending.")
    ] = None,
    root: Annotated[str | None, option(HierarchyOptions, "root")] = None,
    separator: Annotated[str | None, option(HierarchyOptions, "separator")] = None,
    json: Json = False,
) -> None:
    """Upload a label tree."""
    with Polymargin() as client:
        chosen = cast(HierarchyFormat | None, format)
        hierarchy = client.hierarchies.upload(path, name or path.stem, chosen, root=root, separator=separator)
    _show(hierarchy, json)


@hierarchies.command("list")
def list_(json: Json = False) -> None:
    """The newest hierarchies."""
    with Polymargin() as client:
        page = client.hierarchies.list()
    if json:
        print_json(page)
        return
    rows = [(item.name, item.format, item.n_nodes, item.n_leaves, item.depth) for item in page.items]
    console(json).print(table(["name", "format", "nodes", "leaves", "depth"], rows))


@hierarchies.command()
def show(
    hierarchy: Ref,
    parent: Annotated[str | None, typer.Option(help="List the children of this node; root: those of the top.")] = None,
    json: Json = False,
) -> None:
    """One hierarchy with its counts, or the children of one of its nodes."""
    with Polymargin() as client:
        if parent is None:
            _show(client.hierarchies.get(hierarchy), json)
            return
        found = client.hierarchies.nodes(hierarchy, parent, limit=10_000)
    if json:
        print_json(found)
        return
    rows = [(node.name, node.level, node.n_children) for node in found.nodes]
    console(json).print(table(["name", "level", "children"], rows))


@hierarchies.command()
def delete(
    hierarchy: Ref,
    force: Annotated[bool, typer.Option("--force", help="Even if models were trained on it.")] = False,
    json: Json = False,
) -> None:
    """Delete a hierarchy."""
    with Polymargin() as client:
        client.hierarchies.delete(hierarchy, force)
    if json:
        print_json({"deleted": hierarchy})
    else:
        console(json).print(f"Deleted {hierarchy}", markup=False)


def _show(hierarchy: Hierarchy, json: bool) -> None:
    if json:
        print_json(hierarchy)
        return
    values = hierarchy.model_dump(mode="json") | {"levels": ", ".join(map(str, hierarchy.levels))}
    console(json).print(table(["hierarchy", hierarchy.name], values.items()))
