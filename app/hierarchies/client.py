"""Hierarchies of a remote service: upload, inspect, delete."""

from pathlib import Path

from app.datasets.client import beginning
from app.hierarchies.formats import ENDINGS, FORMATS, format_by_name
from app.hierarchies.schemas import (
    Change,
    Changes,
    Hierarchy,
    HierarchyFormat,
    HierarchyNodes,
    HierarchyOptions,
    RetiredLabels,
)
from app.remote.errors import ClientError
from app.remote.files import send_file
from app.remote.transport import Resource
from app.schemas import Page


class Hierarchies(Resource):
    """The service's hierarchies."""

    def upload(
        self,
        path: str | Path,
        name: str,
        format: HierarchyFormat | None = None,
        **options: str | None,
    ) -> Hierarchy:
        """Upload a file; returns the hierarchy with its counts.

        Parameters
        ----------
        path : str or Path
        name : str
            Under which jobs will find it.
        format : a name in app.hierarchies.schemas.HierarchyFormat, or None
            None: by the file's ending, which may be followed by .gz, .xz or .zst, or by the name cat_hier.txt; of .xml
            by the beginning of the file.
        **options
            The fields of app.hierarchies.schemas.HierarchyOptions, as tree or languages.

        Raises
        ------
        ClientError
            The file's ending does not belong to a known format.
        InvalidInputError
            The file holds no tree; ``errors`` names the first faulty lines.
        ConflictError
            The name is taken.
        """
        file = Path(path)
        by_name, syntax = format_by_name(file.name)
        chosen = format or by_name
        if chosen is None and ".xml" in file.suffixes:
            head = beginning(file)
            chosen = next((each.name for each in FORMATS.values() if each.mark and each.mark in head), None)
        if chosen is None:
            known = ", ".join(ENDINGS)
            raise ClientError(
                f"The extension {file.suffix[:20]!r} does not determine a format: pass one, for example paths for a "
                f"list of paths, or use one of {known}"
            )
        if chosen == "skos" and options.get("syntax") is None:
            options["syntax"] = syntax
        query = options | {"name": name, "format": chosen}
        return self._transport.parsed(
            Hierarchy, send_file(self._transport, "/hierarchies", file, HierarchyOptions, query)
        )

    def get(self, hierarchy: str) -> Hierarchy:
        return self._transport.get(Hierarchy, f"/hierarchies/{hierarchy}")

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[Hierarchy]:
        """One page, newest first."""
        return self._transport.get(Page[Hierarchy], "/hierarchies", page_size=page_size, page_token=page_token)

    def nodes(
        self,
        hierarchy: str,
        parent: str | None = None,
        offset: int = 0,
        limit: int = 100,
        search: str | None = None,
        dataset: str | None = None,
    ) -> HierarchyNodes:
        """Nodes level by level: all, the children of ``parent`` (root: the top level), or matches of ``search``.

        With a dataset also how often its rows have each of them, or a node below it, as a label.
        """
        path = f"/hierarchies/{hierarchy}/nodes"
        query = {"parent": parent, "offset": offset, "limit": limit, "search": search, "dataset": dataset}
        return self._transport.get(HierarchyNodes, path, **query)

    def retired(self, hierarchy: str, offset: int = 0, limit: int = 100) -> RetiredLabels:
        """Deprecated labels without a place in the tree, by name, with their replacements."""
        return self._transport.get(RetiredLabels, f"/hierarchies/{hierarchy}/retired", offset=offset, limit=limit)

    def changes(
        self, hierarchy: str, since: str, change: Change | None = None, offset: int = 0, limit: int = 100
    ) -> Changes:
        """Changes from the edition ``since``, by kind: appeared, went, moved, renamed, deprecated."""
        path = f"/hierarchies/{hierarchy}/changes"
        return self._transport.get(Changes, path, since=since, change=change, offset=offset, limit=limit)

    def delete(self, hierarchy: str, force: bool = False) -> None:
        """Delete a hierarchy; ``force`` is required if a model was trained on it."""
        self._transport.send("DELETE", f"/hierarchies/{hierarchy}", params={"force": "true"} if force else None)
