"""What a version knows of its labels beside their tree: names for its answers, replacements, and further parents.

A version keeps this for itself, in the manifest of its model: the hierarchy that it comes from may be deleted, or give
way to a new edition.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store import tables
from app.store.corpus import Corpus
from app.store.db import reading
from solvers.labels.label_sets import with_ancestors
from solvers.labels.taxonomy import Taxonomy

KEPT = "labels"

_STRINGS = ("id", "notation")
_SHOWN = (*_STRINGS, "names", "deprecated")


@dataclass(frozen=True, eq=False)
class VersionLabels:
    """What is known of labels.

    Attributes
    ----------
    shown : mapping of str to mapping
        What answers tell of a label: its id, notation, names, and whether it is deprecated.
    replaced : mapping of str to str
        Retired labels, and the one node that is used in place of each.
    other_parents : mapping of str to sequence of str
        The parents that a node has in the vocabulary beside the one in the tree.
    """

    shown: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)
    other_parents: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def kept(self, labels: Iterable[str]) -> dict[str, Any]:
        """What a version keeps that answers with these labels, as JSON."""
        return {
            "shown": {label: self.shown[label] for label in labels if label in self.shown},
            "replaced": dict(self.replaced),
            "other_parents": {label: list(parents) for label, parents in self.other_parents.items()},
        }

    def mapped(self, corpus: Corpus) -> tuple[Corpus, int]:
        """Rows with retired labels replaced, and how many labels of rows that were."""
        names = [self.replaced.get(label, label) for label in corpus.labels] if self.replaced else []
        changed = np.array([new != old for new, old in zip(names, corpus.labels, strict=False)], bool)
        if not changed.any():
            return corpus, 0
        labels = sorted(set(names))
        number = {name: at for at, name in enumerate(labels)}
        index = np.array([number[name] for name in names], np.int32)
        y = np.asarray(corpus.y)
        return replace(corpus, labels=labels, y=index[y]), int(changed[y].sum())

    def closed(self, tree: Taxonomy, sets: sp.csr_matrix) -> sp.csr_matrix:
        """Sets of nodes that are closed along the tree, closed along all parents."""
        number = {name: at for at, name in enumerate(tree.names)} if self.other_parents else {}
        edges = [
            (number[child], number[parent])
            for child, parents in self.other_parents.items()
            for parent in parents
            if child in number and parent in number  # it may be measured along another tree
        ]
        if not edges:
            return sets
        children, parents = zip(*edges, strict=True)
        return with_ancestors(tree, sets, children, parents)


def of_hierarchy(session: Session, id: str) -> VersionLabels:
    """What the hierarchy with that id says of its labels."""
    N = tables.HierarchyNode
    with reading(session):
        described = session.execute(select(N.name, N.facts).where(N.hierarchy_id == id, N.facts.is_not(None))).all()
    facts = {row.name: row.facts for row in described}
    shown = {label: {fact: reported[fact] for fact in _SHOWN if fact in reported} for label, reported in facts.items()}
    others = {label: reported["other_parents"] for label, reported in facts.items() if "other_parents" in reported}
    replaced = {label: nodes[0] for label, nodes in replacements(session, id).items() if len(nodes) == 1}
    return VersionLabels({label: reported for label, reported in shown.items() if reported}, replaced, others)


def replacements(session: Session, id: str) -> dict[str, list[str]]:
    """The retired labels of the hierarchy with that id, and which of its nodes replace each in the end."""
    R, N = tables.RetiredLabel, tables.HierarchyNode
    with reading(session):
        rows = session.execute(select(R.name, R.facts).where(R.hierarchy_id == id)).all()
        gone = {row.name: row.facts.get("replaced_by", []) for row in rows}
        nodes = set(session.scalars(select(N.name).where(N.hierarchy_id == id))) if gone else set()
    return {label: [node for node in _ends(label, gone) if node in nodes] for label in gone}


def of_details(details: Mapping[str, Any]) -> VersionLabels:
    """What a version kept; what has another form than :meth:`VersionLabels.kept` gave it is left out.

    A manifest may have come from somewhere else.
    """
    given = details.get(KEPT)
    if not isinstance(given, dict):
        return VersionLabels()
    shown = {
        label: _checked(reported)
        for label, reported in _mapping(given.get("shown")).items()
        if isinstance(reported, dict)
    }
    replaced = {old: new for old, new in _mapping(given.get("replaced")).items() if isinstance(new, str)}
    others = {
        label: parents
        for label, parents in _mapping(given.get("other_parents")).items()
        if isinstance(parents, list) and all(isinstance(parent, str) for parent in parents)
    }
    return VersionLabels(shown, replaced, others)


def _ends(label: str, gone: Mapping[str, Sequence[str]]) -> list[str]:
    """What replaces a label in the end, through others that were replaced themselves."""
    found: dict[str, None] = {}
    seen, waiting = {label}, [label]
    for each in waiting:  # grows on the way
        for next_ in gone[each]:
            if next_ not in gone:
                found[next_] = None
            elif next_ not in seen:
                seen.add(next_)
                waiting.append(next_)
    return list(found)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _checked(facts: Mapping[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {name: facts[name] for name in _STRINGS if isinstance(facts.get(name), str)}
    names = facts.get("names")
    if isinstance(names, dict) and all(isinstance(name, str) for name in names.values()):
        shown["names"] = names
    if facts.get("deprecated") is True:
        shown["deprecated"] = True
    return shown
