"""Nodes of hierarchies, by parent or name with facts and row counts, or all of them as a label tree or graph."""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session, defer

from app.datasets import versions as dataset_versions
from app.datasets.rows import class_counts
from app.errors import NotFound
from app.hierarchies.schemas import HierarchyNode, HierarchyNodes
from app.store import tables
from app.store.db import reading
from app.store.lookup import by_ref, check_range
from solvers.labels.several_parents import other_edges
from solvers.labels.taxonomy import ROOT, Taxonomy

N = tables.HierarchyNode
MAX_NODES = 10_000


def nodes(
    session: Session,
    ref: str,
    parent: str | None = None,
    offset: int = 0,
    limit: int = 100,
    search: str | None = None,
    dataset: str | None = None,
) -> HierarchyNodes:
    """Nodes ``offset`` to ``offset + limit`` of all nodes, or of the children of ``parent`` (``root``: the top level).

    Children come in the order of their notations, then of their labels. With ``search`` only nodes that have it in
    their label, or in a name in some language, in upper or lower case.

    Raises
    ------
    NotFound
        No such hierarchy or dataset, or it has no node ``parent``.
    Conflict
        The dataset is not ready.
    InvalidInput
        ``offset`` or ``limit`` is out of range.
    """
    check_range(offset, limit, MAX_NODES)
    with reading(session):
        owner = by_ref(session, tables.Hierarchy, ref)
        of_owner, further = N.hierarchy_id == owner.id, other_parents(session, owner)
        chosen: list[ColumnElement[bool]] = [of_owner]
        if parent is not None:
            below = N.parent == _number(session, owner, parent)
            others = [node for node, above in further.items() if parent in above]
            chosen.append(or_(below, N.number.in_(others)) if others else below)
        if search is not None:
            chosen.append(_named(session, owner, search))
        n_nodes = session.scalars(select(func.count()).select_from(N).where(*chosen)).one()
        notation = N.facts["notation"].as_string()
        order = [N.number] if parent is None else [notation.is_(None), notation, N.name]
        found = session.scalars(select(N).where(*chosen).order_by(*order).offset(offset).limit(limit)).all()
        numbers = [node.number for node in found]
        counts = Counter(_counts(session, owner.id, numbers))
        by_name = Counter(name for above in further.values() for name in above)
        counts.update({node.number: by_name[node.name] for node in found})
        names = _names(session, owner.id, {node.parent for node in found})
        n_rows = None if dataset is None else _rows_below(session, owner.id, dataset)
    level = np.searchsorted(list(accumulate(owner.levels)), numbers, side="right") + 1
    return HierarchyNodes(
        nodes=[
            HierarchyNode(
                number=node.number,
                name=node.name,
                parent=names.get(node.parent),
                level=at,
                n_children=counts[node.number],
                n_rows=None if n_rows is None else int(n_rows[node.number]),
                **(node.facts or {}),
            )
            for node, at in zip(found, level.tolist(), strict=True)
        ],
        n_nodes=n_nodes,
    )


def _named(session: Session, owner: tables.Hierarchy, search: str) -> ColumnElement[bool]:
    """Only nodes whose label, name or notation contains this text."""
    by_label = N.name.icontains(search, autoescape=True)
    if not (owner.report or {}).get("languages"):
        return by_label
    wanted = search.casefold()
    rows = session.execute(select(N.number, N.facts).where(N.hierarchy_id == owner.id, N.facts.is_not(None)))
    found = [number for number, facts in rows if any(wanted in name.casefold() for name in _all_names(facts or {}))]
    return or_(by_label, N.number.in_(found))


def _all_names(facts: dict[str, Any]) -> list[str]:
    others = [name for names in facts.get("alternatives", {}).values() for name in names]
    return [*facts.get("names", {}).values(), *others, *filter(None, [facts.get("notation")])]


def _rows_below(session: Session, id: str, dataset: str) -> NDArray[np.int64]:
    """For each node, how often rows of a dataset have it, or a node below it, as a label."""
    owner = by_ref(session, tables.Dataset, dataset, defer(tables.Dataset.statistics))
    version = dataset_versions.resolve_version(session, owner, None)
    counts = class_counts(version)
    of_label = dict(zip(counts.labels, (counts.train + counts.test + counts.validation).tolist(), strict=True))
    tree = taxonomy(session, id)
    if tree is None:
        return np.empty(0, np.int64)
    found = np.array([of_label.get(name, 0) for name in tree.names], np.int64)
    start, above = tree.at_or_above
    return np.bincount(above, np.repeat(found, np.diff(start)), tree.n_nodes).astype(np.int64)


def names_of(session: Session, id: str | None, labels: Iterable[str]) -> dict[str, dict[str, str]]:
    """The preferred names by language of those of these labels that have some in the hierarchy with that id.

    Of no hierarchy there are none.
    """
    if id is None:
        return {}
    with reading(session):
        wanted = select(N.name, N.facts).where(N.hierarchy_id == id, N.facts.is_not(None), N.name.in_(set(labels)))
        return {row.name: row.facts["names"] for row in session.execute(wanted) if row.facts.get("names")}


def sharing(session: Session, id: str) -> list[str]:
    """The names of the other hierarchies that have a label of the hierarchy with that id, newest first."""
    H = tables.Hierarchy
    own = select(N.name).where(N.hierarchy_id == id)
    common = select(N.number).where(N.hierarchy_id == H.id, N.name.in_(own)).exists()
    with reading(session):
        return list(session.scalars(select(H.name).where(H.id != id, common).order_by(H.id.desc())))


def _counts(session: Session, id: str, numbers: list[int]) -> dict[int, int]:
    """The number of children of these nodes, without nodes that have none."""
    below = N.parent.in_(numbers)
    rows = session.execute(select(N.parent, func.count()).where(N.hierarchy_id == id, below).group_by(N.parent))
    return {row[0]: row[1] for row in rows}


def _names(session: Session, id: str, numbers: set[int]) -> dict[int, str]:
    rows = session.execute(select(N.number, N.name).where(N.hierarchy_id == id, N.number.in_(numbers)))
    return {row[0]: row[1] for row in rows}


def _number(session: Session, owner: tables.Hierarchy, name: str) -> int:
    if name == ROOT:
        return -1
    number = session.scalars(select(N.number).where(N.hierarchy_id == owner.id, N.name == name)).first()
    if number is None:
        raise NotFound(f"the hierarchy {owner.name!r} has no node {name!r:.80}")
    return number


def taxonomy(session: Session, id: str) -> Taxonomy | None:
    """The tree or graph of the hierarchy with that id; None if there is none."""
    with reading(session):
        found = session.execute(select(N.parent, N.name).where(N.hierarchy_id == id).order_by(N.number)).all()
        owner = session.get(tables.Hierarchy, id)
        further = {} if owner is None else other_parents(session, owner)
    if not found:
        return None
    names, parent = tuple(row.name for row in found), np.array([row.parent for row in found], np.int32)
    if not further:
        return Taxonomy(names, parent)
    others = {names[node]: above for node, above in further.items()}
    return Taxonomy(names, parent, other_edges({name: node for node, name in enumerate(names)}, others))


def other_parents(session: Session, hierarchy: tables.Hierarchy) -> dict[int, list[str]]:
    """The parents beside the first one, by the number of the node; only of a label graph."""
    if not is_graph(hierarchy):
        return {}
    others = N.facts["other_parents"].as_string()
    rows = session.execute(select(N.number, others).where(N.hierarchy_id == hierarchy.id, others.is_not(None)))
    return {row[0]: json.loads(row[1]) for row in rows}


def is_graph(hierarchy: tables.Hierarchy) -> bool:
    """Whether labels of a hierarchy have several parents."""
    return bool((hierarchy.report or {}).get("n_several_parents"))
