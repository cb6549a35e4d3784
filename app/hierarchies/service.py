"""Hierarchies: register, read and delete label trees and facts about their labels."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from sqlalchemy import delete as sql_delete
from sqlalchemy import func, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.access import audit
from app.config import settings
from app.errors import Conflict, InvalidInput, Item, TooMany
from app.formats.hierarchies.apart import TooManyWaitError, read_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Vocabulary
from app.formats.table import FormatError
from app.hierarchies.formats import formats_of
from app.hierarchies.nodes import MAX_NODES
from app.hierarchies.schemas import Hierarchy, NewHierarchy, RetiredLabel, RetiredLabels
from app.jobs import job_requests
from app.plurals import counted
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.files import Upload
from app.store.lookup import by_ref, check_range, newest, require_owner, to_schema

_INSERTED_AT_ONCE = 10_000

_LISTED = 100
_COME_AGAIN_SECONDS = 15.0

N = tables.HierarchyNode


def check_new(session: Session, new: NewHierarchy) -> None:
    """Check, before any byte is received, whether the hierarchy may be uploaded.

    Raises
    ------
    InvalidInput
        The format has no such option.
    Conflict
        The name is taken.
    """
    given = new.model_dump(exclude_defaults=True, exclude={"name", "format"})
    strange = [
        Item(f"this option belongs to the format {' and '.join(formats)}; the format is {new.format}", f"/{option}")
        for option in given
        if (formats := formats_of(option)) and new.format not in formats
    ]
    if strange:
        raise InvalidInput("the option does not fit the format", strange)
    with reading(session):
        if session.scalars(select(tables.Hierarchy.id).where(tables.Hierarchy.name == new.name)).first():
            raise _taken(new.name)


def read(upload: Upload, new: NewHierarchy, check: Callable[[], None] = lambda: None) -> Vocabulary:
    """Parse the labels and their tree from a received file, which is then deleted.

    Raises
    ------
    InvalidInput
        With the faults of its lines.
    TooMany
        Others are being read, and several wait for their turn.
    Exception
        What ``check`` raises, which is called now and then.
    """
    most = settings()
    bounds = Bounds(
        most.max_hierarchy_nodes,
        most.max_hierarchy_depth,
        4 * most.max_hierarchy_bytes,
        most.max_hierarchy_seconds,
        4 * most.max_hierarchy_bytes,
    )
    try:
        upload.finish()
        return read_hierarchy(upload.path, new.format, new, bounds, check)
    except FormatError as error:
        raise _not_a_tree(error) from error
    except TooManyWaitError as error:
        raise TooMany(f"{error}; retry later", _COME_AGAIN_SECONDS) from error
    finally:
        upload.abort()


def register(session: Session, name: str, format: str, vocabulary: Vocabulary) -> Hierarchy:
    """Store a parsed hierarchy; raises Conflict if the name is taken."""
    tree = vocabulary.tree
    try:
        with writing(session):
            row = tables.Hierarchy(
                id=new_id(),
                name=name,
                format=format,
                sha256=tree.sha256,
                n_nodes=tree.n_nodes,
                n_leaves=len(tree.leaves),
                levels=[len(tree.level_range(level + 1)) for level in range(tree.depth)],
                report=_report(vocabulary),
                created_at=db_now(),
            )
            session.add(row)
            session.flush()
            _insert(session, row.id, vocabulary)
            session.refresh(row)
            return _show(row)
    except IntegrityError:
        raise _taken(name) from None


def get(session: Session, ref: str) -> Hierarchy:
    """A hierarchy by id or name; raises NotFound."""
    with reading(session):
        return _show(by_ref(session, tables.Hierarchy, ref))


def page(session: Session, page_size: int = 100, page_token: str | None = None) -> Page[Hierarchy]:
    """Hierarchies, newest first."""
    with reading(session):
        rows, token = newest(session, tables.Hierarchy, select(tables.Hierarchy), page_size, page_token)
        return Page[Hierarchy](items=[_show(row) for row in rows], next_page_token=token)


def retired(session: Session, ref: str, offset: int = 0, limit: int = 100) -> RetiredLabels:
    """Deprecated labels without a place in the tree, by name, ``offset`` to ``offset + limit``; raises as ``nodes``."""
    check_range(offset, limit, MAX_NODES)
    R = tables.RetiredLabel
    with reading(session):
        owner = by_ref(session, tables.Hierarchy, ref)
        of_owner = select(R).where(R.hierarchy_id == owner.id).order_by(R.name)
        found = session.scalars(of_owner.offset(offset).limit(limit)).all()
        n_labels = session.scalars(select(func.count()).select_from(R).where(R.hierarchy_id == owner.id)).one()
    labels = [
        RetiredLabel(name=row.name, **{name: fact for name, fact in row.facts.items() if name != "deprecated"})
        for row in found
    ]
    return RetiredLabels(labels=labels, n_labels=n_labels)


def delete(session: Session, ref: str, force: bool = False) -> None:
    """Delete a hierarchy.

    Raises
    ------
    NotFound
        No such hierarchy.
    Forbidden
        Another key made it.
    Conflict
        A job that is not over uses it; or, unless ``force``, models came from it.
    """
    with writing(session):
        row = by_ref(session, tables.Hierarchy, ref, lock=True)
        require_owner(session, row)
        job_requests.refuse_in_use(
            session, "hierarchy", tables.Job.hierarchy_id, tables.ModelVersion.hierarchy_id, row.id, force
        )
        audit.changed(session, row, {"name": row.name, "sha256": row.sha256, "owner": row.owner}, None)
        session.execute(sql_delete(tables.Hierarchy).where(tables.Hierarchy.id == row.id))


def _report(vocabulary: Vocabulary) -> dict[str, Any]:
    languages = Counter(language for label in vocabulary.labels.values() for language in label.names)
    return {
        "languages": dict(languages.most_common()),
        "n_deprecated": sum(label.deprecated for label in vocabulary.labels.values()),
        "n_retired": len(vocabulary.retired),
        "n_several_parents": len(np.unique(vocabulary.tree.others[:, 0])),
        "n_dropped": len(vocabulary.dropped),
        "dropped": [parent._asdict() for parent in vocabulary.dropped[:_LISTED]],
        "read_as": dict(vocabulary.read_as),
    }


def _insert(session: Session, id: str, vocabulary: Vocabulary) -> None:
    tree = vocabulary.tree
    facts = {name: label.facts() for name, label in vocabulary.labels.items()}
    # of a graph all other parents are its own; those dropped to open a cycle are none
    others = [(tree.names[child], tree.names[parent]) for child, parent in tree.others.tolist()]
    for child, parent in others or [(dropped.label, dropped.parent) for dropped in vocabulary.dropped]:
        facts.setdefault(child, {}).setdefault("other_parents", []).append(parent)
    parents = tree.parent.tolist()
    for begin in range(0, tree.n_nodes, _INSERTED_AT_ONCE):
        end = begin + _INSERTED_AT_ONCE
        rows: list[dict[str, Any]] = [
            {"hierarchy_id": id, "number": number, "parent": above, "name": name, "facts": facts.get(name)}
            for number, (above, name) in enumerate(zip(parents[begin:end], tree.names[begin:end], strict=True), begin)
        ]
        session.execute(insert(N), rows)
    retired = [{"hierarchy_id": id, "name": name, "facts": label.facts()} for name, label in vocabulary.retired.items()]
    for begin in range(0, len(retired), _INSERTED_AT_ONCE):
        session.execute(insert(tables.RetiredLabel), retired[begin : begin + _INSERTED_AT_ONCE])


def _taken(name: str) -> Conflict:
    return Conflict(f"a hierarchy named {name!r} already exists")


def _not_a_tree(error: FormatError) -> InvalidInput:
    items = [Item(fault.detail, row=fault.row, column=fault.column) for fault in error.errors]
    shown = f"; the first {len(items)} are listed" if error.n_errors > len(items) else ""
    return InvalidInput(f"the file has {counted(error.n_errors, 'error')}{shown}", items)


def _show(row: tables.Hierarchy) -> Hierarchy:
    return to_schema(Hierarchy, row, depth=len(row.levels), **(row.report or {}))
