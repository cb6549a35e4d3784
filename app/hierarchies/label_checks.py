"""Check that the labels of a dataset fit a label tree and a method."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import InvalidInput, Item
from app.hierarchies.label_facts import name_key
from app.hierarchies.nodes import is_graph
from app.hierarchies.version_labels import VersionLabels, of_hierarchy, replacements
from app.jobs.schemas import TrainRequest
from app.plurals import counted
from app.store import tables
from app.store.corpus import ClassCounts
from solvers.core.base import Solver
from solvers.core.methods import all_methods
from solvers.labels.taxonomy import ROOT

_NAMED = 5
_SEPARATORS = (",", ";", "|", " ")


def check_labels(
    session: Session,
    solver: Solver[Any],
    request: TrainRequest,
    counts: ClassCounts,
    hierarchy: tables.Hierarchy | None,
    *,
    sets: bool,
) -> None:
    """Raise InvalidInput if labels do not fit the method or the tree, or test labels are missing from training.

    Along a tree every node can be predicted, whether or not a training row has it. So only labels that are no nodes
    cannot be learnt.
    """
    n_trained = int(np.count_nonzero(counts.train))
    if sets and not len(counts.labels):
        detail = "no row has a label: the dataset can be predicted, but no model can be trained on it"
        raise InvalidInput("no model can be trained on the dataset", [Item(detail, "/dataset")])
    if hierarchy is not None and is_graph(hierarchy):
        _check_graph(solver, hierarchy, sets=sets)
    if sets:
        _check_sets(solver, n_trained, counts, hierarchy)
    elif hierarchy is None and not solver.handles.flat:
        detail = f"{solver.name} trains along a label tree: pass the hierarchy that contains the labels"
        raise InvalidInput("the method requires a hierarchy", [Item(detail, "/hierarchy")])
    elif n_trained < 2:
        detail = f"its training part has {counted(n_trained, 'label')}; at least two are required"
        raise InvalidInput("no model can be trained on the dataset", [Item(detail, "/dataset")])
    unseen, what = counts.named(counts.test_only), "no training row has"
    if hierarchy is not None:
        nodes = select(tables.HierarchyNode.name).where(tables.HierarchyNode.hierarchy_id == hierarchy.id)
        known = set(session.scalars(nodes))
        checked = counts.named((counts.train > 0) | sets)
        strange = [label for label in checked if label not in known]
        labels = of_hierarchy(session, hierarchy.id, known) if strange or unseen else VersionLabels()
        mapped = {label for label in (*strange, *unseen) if labels.node_of(label) in known}
        strange = [label for label in strange if label not in mapped]
        if strange and request.unknown_labels == "refuse":
            notes = _retired(strange, replacements(session, hierarchy.id)) + _ambiguous(strange, labels)
            advice = (_lists_of_nodes(strange, known), notes)
            whose = "" if sets else " of training rows"
            raise _missing(strange, len(checked), whose, request.dataset, hierarchy.name, *advice)
        if strange:
            _check_unknown(request, strange, counts, hierarchy)
        unseen, what = [label for label in unseen if label not in known | mapped], f"{hierarchy.name} has no node for"
    if unseen and request.unseen_labels == "refuse":
        such = f"{counted(len(unseen), 'such label')}, such as {named(unseen)}"
        detail = f"{such}; unseen_labels='count' counts their rows as errors"
        raise InvalidInput(f"the test part has labels that {what}", [Item(detail, "/unseen_labels")])


def _missing(
    strange: Sequence[str], n_labels: int, whose: str, dataset: str, hierarchy: str, lists: str, notes: str
) -> InvalidInput:
    """The error of labels that are no nodes."""
    detail = f"{hierarchy} has no node for {counted(len(strange), 'label')}{whose}: {named(strange)}"
    ways = "; unknown_labels='drop' trains without these labels, unknown_labels='keep' adds them to the tree"
    if len(strange) == n_labels and not (lists or notes):
        none = f"none of {dataset}'s {n_labels:,} labels{whose} are in {hierarchy}"
        detail, ways = f"{none}, such as {named(strange)}: is it the right hierarchy?", ""
    detail += lists or notes + ways
    return InvalidInput("labels are missing from the hierarchy", [Item(detail, "/hierarchy")])


def _check_unknown(
    request: TrainRequest, strange: Sequence[str], counts: ClassCounts, hierarchy: tables.Hierarchy
) -> None:
    """Raise InvalidInput where labels that are no nodes cannot be dropped, or cannot be kept."""
    if request.unknown_labels == "drop" and not set(counts.named(counts.train > 0)) - set(strange):
        detail = f"{hierarchy.name} has no node for any label of the training rows, such as {named(strange)}"
        raise InvalidInput("no label would remain", [Item(detail, "/unknown_labels")])
    if request.unknown_labels == "keep" and ROOT in strange:
        detail = f"a label is named {ROOT!r}, which is reserved for the top of every label tree"
        raise InvalidInput("the label cannot be added to the tree", [Item(detail, "/unknown_labels")])


def _lists_of_nodes(labels: Sequence[str], known: Set[str]) -> str:
    """Advice on labels that are lists of nodes but were read as one name each."""
    for label in labels:
        for separator in _SEPARATORS:
            parts = label.split(separator)
            if len(parts) > 1 and all(part.strip() in known for part in parts):
                return f"; {label!r:.80} is a list of nodes: upload the dataset with label_separator={separator!r}"
    return ""


def _ambiguous(strange: Sequence[str], labels: VersionLabels) -> str:
    """A note on labels that are the name of several nodes."""
    named_by = {label: labels.by_name.get(name_key(label), []) for label in strange}
    label = next((label for label, nodes in named_by.items() if len(nodes) > 1), None)
    return "" if label is None else f"; {label!r:.80} is the name of {named(named_by[label])}: use the id of one"


def _retired(labels: Sequence[str], retired: Mapping[str, Sequence[str]]) -> str:
    """A note on retired labels that no single label replaces."""
    gone = [label for label in labels if label in retired]
    if not gone:
        return ""
    several = next((label for label in gone if retired[label]), None)
    more = "" if several is None else f" ({several!r:.80}: one of {named(retired[several])})"
    return (
        f"; {len(gone)} of them are retired, such as {named(gone[:1])}, and have no single replacement: relabel "
        f"their rows{more}"
    )


def _check_sets(solver: Solver[Any], n_trained: int, counts: ClassCounts, hierarchy: tables.Hierarchy | None) -> None:
    if not solver.handles.multilabel:
        detail = f"{solver.name} needs one label per row, but rows of this dataset have sets of labels"
        raise InvalidInput("the method does not support the dataset's labels", [Item(detail, "/solver")])
    if hierarchy is None and ROOT in counts.labels:
        detail = f"a label is named {ROOT!r}, which is reserved for the top of every label tree: rename it"
        raise InvalidInput("no model can be trained on the dataset", [Item(detail, "/dataset")])
    if not n_trained:
        raise InvalidInput("no model can be trained on the dataset", [Item("no training row has a label", "/dataset")])


def _check_graph(solver: Solver[Any], hierarchy: tables.Hierarchy, *, sets: bool) -> None:
    graph = f"labels of {hierarchy.name} have several parents: upload it with tree=first or tree=deepest"
    if not sets:
        detail = f"rows of this dataset have one label, but {graph}, or upload the dataset with sets of labels"
        raise InvalidInput("a label graph needs sets of labels", [Item(detail, "/hierarchy")])
    if solver.graph_fault is not None:
        methods = [name for name, method in all_methods().items() if method.handles.graph]
        detail = f"{solver.graph_fault}, but {graph}, or choose {', '.join(methods)}"
        raise InvalidInput("the method does not support label graphs", [Item(detail, "/solver")])


def named(labels: Sequence[str] | Iterable[str]) -> str:
    """The first few labels, for a message."""
    every = list(labels)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(f"{label!r:.80}" for label in every[:_NAMED]) + more
