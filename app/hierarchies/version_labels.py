"""Facts about the labels of a model version: names for predictions, replacements, and further parents.

A version keeps this for itself, in the manifest of its model: the hierarchy that it comes from may be deleted, or give
way to a new edition.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.formats.hierarchies.vocabulary import names_in
from app.hierarchies.label_facts import name_key, named_labels
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
    """Facts about labels.

    Attributes
    ----------
    shown : mapping of str to mapping
        What answers show of a label: its id, notation, names, and whether it is deprecated.
    replaced : mapping of str to str
        Retired labels, and the one node that is used in place of each.
    other_parents : mapping of str to sequence of str
        The parents that a node has in the vocabulary beside the one in the tree.
    alternatives : mapping of str to mapping
        The other names of a label, by language; versions do not keep them.
    nodes : frozenset of str
        All labels that rows may have. Other labels of rows are looked up among the names.
    former : mapping of str to mapping
        The names of labels that a node replaces, by language.
    """

    shown: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replaced: Mapping[str, str] = field(default_factory=dict)
    other_parents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    alternatives: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
    former: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    @cached_property
    def has_names(self) -> bool:
        """Whether some label has a name."""
        return any(facts.get("names") for facts in self.shown.values())

    @cached_property
    def languages(self) -> frozenset[str]:
        """The languages that some label has a name in, without ``und``."""
        return frozenset(tag for facts in self.shown.values() for tag in facts.get("names", {})) - {"und"}

    @cached_property
    def by_name(self) -> Mapping[str, list[str]]:
        """As :func:`app.hierarchies.label_facts.named_labels`."""
        return named_labels(self.shown)

    def node_of(self, label: str) -> str:
        """What a row's label is: the one replacement of a retired label, the one node of that name, else itself."""
        if label in self.replaced:
            return self.replaced[label]
        if label in self.nodes:
            return label
        found = self.by_name.get(name_key(label), [])
        return found[0] if len(found) == 1 and found[0] in self.nodes else label

    def names(self, label: str, language: str | None) -> list[str]:
        """All names of a label in a language and without one, the preferred first; in all languages where it is None.

        A label without names is its own name, unless it is an address.
        """
        others = {language: list(names) for language, names in self.alternatives.get(label, {}).items()}
        for tag, names in self.former.get(label, {}).items():
            others[tag] = [*others.get(tag, ()), *names]
        return names_in(label, self.shown.get(label, {}).get("names", {}), others, language)

    def with_names_of(self, labels: Iterable[str], before: Self) -> Self:
        """The same where nodes also have the names of the labels ``before`` that they replace.

        These are carried on: a node also has the ``former`` names that it, or a label that it replaces, had before.
        Names that are those of other nodes by now are left out.
        """
        former: dict[str, dict[str, list[str]]] = {}
        for label in labels:
            node = self.node_of(label)
            if node not in self.nodes:
                continue
            given = [before.former.get(label, {})]
            if label in self.replaced:
                preferred = before.shown.get(label, {}).get("names", {})
                given += [{tag: [name] for tag, name in preferred.items()}, before.alternatives.get(label, {})]
            for language, names in (pair for each in given for pair in each.items()):
                own = [name for name in names if self.by_name.get(name_key(name), [node]) == [node]]
                if own:
                    mine = former.setdefault(node, {}).setdefault(language, [])
                    mine += [name for name in own if name not in mine]
        return replace(self, former=former)

    def kept(self, labels: Iterable[str]) -> dict[str, Any]:
        """Facts that a version with these labels stores, as JSON."""
        return {
            "shown": {label: self.shown[label] for label in labels if label in self.shown},
            "replaced": dict(self.replaced),
            "other_parents": {label: list(parents) for label, parents in self.other_parents.items()},
            **({"former": self.former} if self.former else {}),
        }

    def mapped(self, corpus: Corpus) -> tuple[Corpus, int]:
        """Rows with the nodes that their labels are (:meth:`node_of`), and the number of labels replaced."""
        names = [self.node_of(label) for label in corpus.labels] if self.replaced or self.nodes else []
        changed = np.array([new != old for new, old in zip(names, corpus.labels, strict=False)], bool)
        if not changed.any():
            return corpus, 0
        labels = sorted(set(names))
        number = {name: at for at, name in enumerate(labels)}
        index = np.array([number[name] for name in names], np.int32)
        y, indptr = np.asarray(corpus.y), corpus.label_indptr
        n_changed, y = int(changed[y].sum()), index[y]
        if indptr is not None and len(labels) < len(names):  # a row may have a label twice by now
            row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
            row, y = np.divmod(np.unique(row * len(labels) + y), len(labels))
            indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(indptr) - 1))])
            y = y.astype(np.int32)
        return replace(corpus, labels=labels, y=y, label_indptr=indptr), n_changed

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


def of_hierarchy(session: Session, id: str, nodes: Iterable[str] = ()) -> VersionLabels:
    """Facts that the hierarchy with that id has about its labels, with the nodes that rows may have."""
    N = tables.HierarchyNode
    with reading(session):
        described = session.execute(select(N.name, N.facts).where(N.hierarchy_id == id, N.facts.is_not(None))).all()
    facts = {row.name: row.facts for row in described}
    shown = {label: {fact: reported[fact] for fact in _SHOWN if fact in reported} for label, reported in facts.items()}
    others = {label: reported["other_parents"] for label, reported in facts.items() if "other_parents" in reported}
    replaced = {label: nodes[0] for label, nodes in replacements(session, id).items() if len(nodes) == 1}
    also = {label: reported["alternatives"] for label, reported in facts.items() if "alternatives" in reported}
    shown = {label: reported for label, reported in shown.items() if reported}
    return VersionLabels(shown, replaced, others, also, frozenset(nodes))


def replacements(session: Session, id: str) -> dict[str, list[str]]:
    """The retired labels of the hierarchy with that id, with the nodes that finally replace each."""
    R, N = tables.RetiredLabel, tables.HierarchyNode
    with reading(session):
        rows = session.execute(select(R.name, R.facts).where(R.hierarchy_id == id)).all()
        gone = {row.name: row.facts.get("replaced_by", []) for row in rows}
        nodes = set(session.scalars(select(N.name).where(N.hierarchy_id == id))) if gone else set()
    return {label: [node for node in _ends(label, gone) if node in nodes] for label in gone}


def of_details(details: Mapping[str, Any]) -> VersionLabels:
    """Facts stored with a version; entries not in the form of :meth:`VersionLabels.kept` are ignored.

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
        label: parents for label, parents in _mapping(given.get("other_parents")).items() if _are_strings(parents)
    }
    former = {
        label: {tag: names for tag, names in _mapping(by_tag).items() if _are_strings(names)}
        for label, by_tag in _mapping(given.get("former")).items()
    }
    return VersionLabels(shown, replaced, others, former=former)


def _ends(label: str, gone: Mapping[str, Sequence[str]]) -> list[str]:
    """The final replacements of a label, through labels that were replaced themselves."""
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


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


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
