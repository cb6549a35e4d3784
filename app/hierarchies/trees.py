"""The label tree or graph of a registered hierarchy."""

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store import tables
from app.store.db import reading
from solvers.labels.several_parents import other_edges
from solvers.labels.taxonomy import Taxonomy

N = tables.HierarchyNode


def taxonomy(session: Session, id: str) -> Taxonomy | None:
    """The tree or graph of the hierarchy with that id; None if there is none."""
    with reading(session):
        found = session.execute(select(N.parent, N.name).where(N.hierarchy_id == id).order_by(N.number)).all()
        owner = session.get(tables.Hierarchy, id)
        further: dict[str, list[str]] = {}
        if owner is not None and is_graph(owner):
            described = select(N.name, N.facts).where(N.hierarchy_id == id, N.facts.is_not(None))
            further = {row.name: row.facts.get("other_parents", []) for row in session.execute(described)}
    if not found:
        return None
    names, parent = tuple(row.name for row in found), np.array([row.parent for row in found], np.int32)
    if not further:
        return Taxonomy(names, parent)
    return Taxonomy(names, parent, other_edges({name: node for node, name in enumerate(names)}, further))


def is_graph(hierarchy: tables.Hierarchy) -> bool:
    """Whether labels of a hierarchy have several parents."""
    return bool((hierarchy.report or {}).get("n_several_parents"))
