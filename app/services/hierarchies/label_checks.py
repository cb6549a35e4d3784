"""Whether the labels of a dataset, a label tree and a method fit one another."""

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import InvalidInput, Item
from app.plurals import counted
from app.schemas.jobs.jobs import TrainRequest
from app.services.hierarchies.version_labels import replacements
from app.store import tables
from app.store.corpus import ClassCounts
from solvers.core.base import Solver
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
    """Raise InvalidInput if the method takes no such labels, rows have labels that are no nodes, or test rows others.

    Along a tree every node can be predicted, whether or not a training row has it. So only labels that are no nodes
    cannot be learnt.
    """
    n_trained = int(np.count_nonzero(counts.train))
    if sets and not len(counts.labels):
        detail = "no row has a label: such a dataset is there to be predicted, and no model learns from it"
        raise InvalidInput("the dataset cannot be trained on", [Item(detail, "/dataset")])
    if sets:
        _check_sets(solver, n_trained, counts, hierarchy)
    elif hierarchy is None and not solver.handles.flat:
        detail = f"{solver.name} learns along a label tree: name the one that the labels are nodes of"
        raise InvalidInput("the solver needs a hierarchy", [Item(detail, "/hierarchy")])
    elif n_trained < 2:
        detail = f"its training part has {counted(n_trained, 'label')}; at least two are needed"
        raise InvalidInput("the dataset cannot be trained on", [Item(detail, "/dataset")])
    unseen, what = counts.named(counts.test_only), "no training row has"
    if hierarchy is not None:
        nodes = select(tables.HierarchyNode.name).where(tables.HierarchyNode.hierarchy_id == hierarchy.id)
        known = set(session.scalars(nodes))
        strange = [label for label in counts.named((counts.train > 0) | sets) if label not in known]
        retired = replacements(session, hierarchy.id) if strange or unseen else {}
        mapped = {label for label, nodes_ in retired.items() if len(nodes_) == 1}
        strange = [label for label in strange if label not in mapped]
        if strange:
            whose = "" if sets else " of training rows"
            detail = f"{hierarchy.name} has no node for {counted(len(strange), 'label')}{whose}: {named(strange)}"
            detail += _lists_of_nodes(strange, known) + _retired(strange, retired)
            raise InvalidInput("labels are not in the hierarchy", [Item(detail, "/hierarchy")])
        unseen, what = [label for label in unseen if label not in known | mapped], f"{hierarchy.name} has no node for"
    if unseen and request.unseen_labels == "refuse":
        such = f"{counted(len(unseen), 'such label')}, as {named(unseen)}"
        detail = f"{such}; unseen_labels='count' counts their rows as errors"
        raise InvalidInput(f"the test part has labels that {what}", [Item(detail, "/unseen_labels")])


def _lists_of_nodes(labels: Sequence[str], known: Set[str]) -> str:
    """What to do about labels that are lists of nodes, read as one name each."""
    for label in labels:
        for separator in _SEPARATORS:
            parts = label.split(separator)
            if len(parts) > 1 and all(part.strip() in known for part in parts):
                return f"; {label!r:.80} is a list of nodes: upload the dataset with label_separator={separator!r}"
    return ""


def _retired(labels: Sequence[str], retired: Mapping[str, Sequence[str]]) -> str:
    """What there is to say of labels that the vocabulary has retired, and that no one label replaces."""
    gone = [label for label in labels if label in retired]
    if not gone:
        return ""
    several = next((label for label in gone if retired[label]), None)
    more = "" if several is None else f" ({several!r:.80}: one of {named(retired[several])})"
    return f"; {len(gone)} of them are retired, as {named(gone[:1])}, and not replaced by one label: relabel rows{more}"


def _check_sets(solver: Solver[Any], n_trained: int, counts: ClassCounts, hierarchy: tables.Hierarchy | None) -> None:
    if not solver.handles.multilabel:
        detail = f"{solver.name} takes one label a row, and the dataset has sets of them"
        raise InvalidInput("the solver does not take the dataset's labels", [Item(detail, "/solver")])
    if hierarchy is None and ROOT in counts.labels:
        detail = f"a label is called {ROOT!r}, which is the name of the top of every label tree: call it otherwise"
        raise InvalidInput("the dataset cannot be trained on", [Item(detail, "/dataset")])
    if not n_trained:
        raise InvalidInput("the dataset cannot be trained on", [Item("no training row has a label", "/dataset")])


def named(labels: Sequence[str] | Iterable[str]) -> str:
    """The first few of some labels, for use in a message."""
    every = list(labels)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(f"{label!r:.80}" for label in every[:_NAMED]) + more
