"""Compare two editions of a vocabulary label by label, matched by id."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.concurrency import comparing
from app.hierarchies.nodes import MAX_NODES
from app.hierarchies.schemas import Change, Changes, LabelChange
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref, check_range

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class _Node:
    name: str
    parent: str | None  # by id
    facts: Facts


@dataclass(frozen=True)
class _Edition:
    """Nodes, and facts of retired labels, by id."""

    nodes: Mapping[str, _Node]
    retired: Mapping[str, Facts]

    def name(self, id: str | None) -> str | None:
        return None if id is None else self.nodes[id].name


def changes(
    session: Session, ref: str, since: str, change: Change | None = None, offset: int = 0, limit: int = 100
) -> Changes:
    """Changes from the hierarchy ``since`` to the hierarchy ``ref``.

    Labels are the same that have the same id, or without ids the same name.

    Parameters
    ----------
    ref, since : str
        Id or name of the later and of the earlier edition.
    change : str, optional
        Only changes of this kind.
    offset, limit : int
        Changes ``offset`` to ``offset + limit`` of those.

    Raises
    ------
    NotFound
        No such hierarchy.
    InvalidInput
        ``offset`` or ``limit`` is out of range.
    TooMany
        Others are compared.
    """
    check_range(offset, limit, MAX_NODES)
    with comparing():
        with reading(session):
            new, old = (_edition(session, by_ref(session, tables.Hierarchy, each).id) for each in (ref, since))
        return _listed(old, new, change, offset, limit)


def _listed(old: _Edition, new: _Edition, change: Change | None, offset: int, limit: int) -> Changes:
    every = list(_compared(old, new))
    kinds: tuple[Change, ...] = get_args(Change)
    counts = {kind: sum(found.change == kind for found in every) for kind in kinds}
    touched = {found.label for found in every if found.change not in ("appeared", "went")}
    n_both = len(new.nodes.keys() & old.nodes.keys())
    wanted = (found for kind in kinds for found in every if found.change == kind and change in (None, kind))
    return Changes(counts=counts, n_same=n_both - len(touched), changes=list(islice(wanted, offset, offset + limit)))


def _edition(session: Session, id: str) -> _Edition:
    N, R = tables.HierarchyNode, tables.RetiredLabel
    rows = session.execute(select(N.name, N.parent, N.facts).where(N.hierarchy_id == id).order_by(N.number)).all()
    ids = [(row.facts or {}).get("id", row.name) for row in rows]
    nodes = {
        label: _Node(row.name, None if row.parent < 0 else ids[row.parent], row.facts or {})
        for label, row in zip(ids, rows, strict=True)
    }
    retired = session.execute(select(R.name, R.facts).where(R.hierarchy_id == id)).all()
    return _Edition(nodes, {row.facts.get("id", row.name): row.facts for row in retired})


def _compared(old: _Edition, new: _Edition) -> Iterator[LabelChange]:
    for id, node in new.nodes.items():
        names = node.facts.get("names", {})
        before = old.nodes.get(id)
        if before is None:
            yield LabelChange(change="appeared", label=node.name, names=names, parent=new.name(node.parent))
            continue
        if node.parent != before.parent:
            places = {"parent": new.name(node.parent), "parent_before": old.name(before.parent)}
            yield LabelChange(change="moved", label=node.name, names=names, **places)
        names_before = before.facts.get("names", {})
        if names != names_before:
            yield LabelChange(change="renamed", label=node.name, names=names, names_before=names_before)
        if node.facts.get("deprecated") and not before.facts.get("deprecated"):
            replaced = node.facts.get("replaced_by", [])
            yield LabelChange(change="deprecated", label=node.name, names=names, replaced_by=replaced)
    for id, node in old.nodes.items():
        if id not in new.nodes:
            yield LabelChange(
                change="went",
                label=node.name,
                names=node.facts.get("names", {}),
                parent_before=old.name(node.parent),
                replaced_by=new.retired.get(id, {}).get("replaced_by", []),
            )
