"""Compare two editions of a vocabulary label by label, matched by id."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, get_args

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.concurrency import comparing
from app.formats.hierarchies.vocabulary import NO_LANGUAGE
from app.hierarchies.nodes import MAX_NODES, is_graph
from app.hierarchies.schemas import Change, Changes, LabelChange
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref, check_range

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class _Node:
    name: str
    parents: tuple[str, ...]  # by id, the first that of the tree
    facts: Facts


@dataclass(frozen=True)
class _Edition:
    """Nodes, and facts of retired labels, by id."""

    nodes: Mapping[str, _Node]
    retired: Mapping[str, Facts]

    def places(self, node: _Node) -> dict[str, Any]:
        """The first parent and the others, as the fields of a change."""
        names = [self.nodes[id].name for id in node.parents]
        return {"parent": names[0] if names else None, "other_parents": names[1:]}

    def places_before(self, node: _Node) -> dict[str, Any]:
        return {f"{name}_before": place for name, place in self.places(node).items()}


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
            owners = [by_ref(session, tables.Hierarchy, each) for each in (ref, since)]
            # along a tree the first parent alone counts
            graphs = all(is_graph(owner) for owner in owners)
            new, old = (_edition(session, owner, graph=graphs) for owner in owners)
        return _listed(old, new, change, offset, limit)


def _listed(old: _Edition, new: _Edition, change: Change | None, offset: int, limit: int) -> Changes:
    every = list(_compared(old, new))
    kinds: tuple[Change, ...] = get_args(Change)
    counts = {kind: sum(found.change == kind for found in every) for kind in kinds}
    touched = {found.label for found in every if found.change not in ("appeared", "went")}
    n_both = len(new.nodes.keys() & old.nodes.keys())
    wanted = (found for kind in kinds for found in every if found.change == kind and change in (None, kind))
    return Changes(counts=counts, n_same=n_both - len(touched), changes=list(islice(wanted, offset, offset + limit)))


def _edition(session: Session, owner: tables.Hierarchy, *, graph: bool) -> _Edition:
    N, R, id = tables.HierarchyNode, tables.RetiredLabel, owner.id
    rows = session.execute(select(N.name, N.parent, N.facts).where(N.hierarchy_id == id).order_by(N.number)).all()
    ids = [(row.facts or {}).get("id", row.name) for row in rows]
    number = {row.name: at for at, row in enumerate(rows)}
    nodes = {}
    for label, row in zip(ids, rows, strict=True):
        others = (row.facts or {}).get("other_parents", []) if graph else []
        above = [] if row.parent < 0 else [row.parent, *(number[name] for name in others if name in number)]
        nodes[label] = _Node(row.name, tuple(ids[at] for at in above), row.facts or {})
    retired = session.execute(select(R.name, R.facts).where(R.hierarchy_id == id)).all()
    return _Edition(nodes, {row.facts.get("id", row.name): row.facts for row in retired})


def _renamed(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Whether preferred names differ; a single name without a language may have got a language, or lost it."""
    fewer, more = (before, now) if NO_LANGUAGE in before else (now, before)
    return before != now and not (fewer.keys() == {NO_LANGUAGE} and fewer[NO_LANGUAGE] in more.values())


def _compared(old: _Edition, new: _Edition) -> Iterator[LabelChange]:
    for id, node in new.nodes.items():
        names = node.facts.get("names", {})
        before = old.nodes.get(id)
        if before is None:
            yield LabelChange(change="appeared", label=node.name, names=names, **new.places(node))
            continue
        if {*node.parents} != {*before.parents}:
            places = new.places(node) | old.places_before(before)
            yield LabelChange(change="moved", label=node.name, names=names, **places)
        names_before = before.facts.get("names", {})
        if _renamed(names_before, names):
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
                replaced_by=new.retired.get(id, {}).get("replaced_by", []),
                **old.places_before(node),
            )
