"""Aliases, names that move between the versions of a model; and which version a number or an alias names."""

from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.access import audit
from app.config import settings
from app.errors import Conflict, Forbidden, InvalidInput, NotFound, PreconditionFailed
from app.models.convergence import unconverged
from app.models.schemas import Alias, MovedAlias
from app.store import tables
from app.store.db import writing
from app.store.lookup import by_ref, check_name
from app.store.scope import scope_of

V = tables.ModelVersion
# a smaller copy takes nobody's place before an alias names it
LATEST = V.copy_of.is_not(None), V.number.desc()
MAX_ALIASES = 1000


def set_alias(session: Session, ref: str, alias: str, version: int, if_match: int | None = None) -> MovedAlias:
    """Point ``alias`` at a version.

    Parameters
    ----------
    if_match : int, optional
        The revision that the alias must have now (0: it must not exist yet); None: whatever it has.

    Raises
    ------
    NotFound
        No such model or version.
    Forbidden
        The alias is protected, and the key may not promote to it.
    Conflict
        The model has as many aliases as it may have.
    PreconditionFailed
        The alias has another revision.
    """
    with writing(session):
        return point_alias(session, by_ref(session, tables.Model, ref, lock=True), alias, version, if_match)


def point_alias(
    session: Session, model: tables.Model, alias: str, version: int, if_match: int | None = None
) -> MovedAlias:
    """As :func:`set_alias`, in the caller's transaction, which has locked the model."""
    check_name(alias)
    require_promotes(session, alias)
    target = version_of(session, model, version, None)
    at = (tables.Alias.model_id == model.id, tables.Alias.name == alias)
    current = session.scalars(select(tables.Alias.revision).where(*at)).one_or_none()
    before = _pointed_to(session, model, alias)
    if if_match is not None and if_match != (current or 0):
        raise PreconditionFailed(f"the alias has revision {current or 0}; If-Match names {if_match}")
    revision = (current or 0) + 1
    if current is None:
        n_aliases = select(func.count()).select_from(tables.Alias).where(tables.Alias.model_id == model.id)
        if session.scalars(n_aliases).one() >= MAX_ALIASES:
            raise Conflict(f"the model has {MAX_ALIASES} aliases; no more are allowed")
        session.add(tables.Alias(model_id=model.id, name=alias, version_id=target.id, revision=revision))
    else:
        session.execute(update(tables.Alias).where(*at).values(version_id=target.id, revision=revision))
    audit.changed(session, model, {f"alias {alias}": before}, {f"alias {alias}": target.number})
    return MovedAlias(name=alias, version=target.number, revision=revision, unconverged=unconverged(target))


def delete_alias(session: Session, ref: str, alias: str, if_match: int | None = None) -> None:
    """Remove an alias.

    Parameters
    ----------
    if_match : int, optional
        The revision that the alias must have now; None: whatever it has.

    Raises
    ------
    NotFound
        No such model or alias.
    Forbidden
        The alias is protected, and the key may not promote to it.
    PreconditionFailed
        The alias has another revision.
    """
    with writing(session):
        model = by_ref(session, tables.Model, ref, lock=True)
        at = (tables.Alias.model_id == model.id, tables.Alias.name == alias)
        current = session.scalars(select(tables.Alias.revision).where(*at)).one_or_none()
        if current is None:
            raise NotFound(f"the model has no alias {alias!r:.80}")
        require_promotes(session, alias)
        if if_match is not None and if_match != current:
            raise PreconditionFailed(f"the alias has revision {current}; If-Match names {if_match}")
        audit.changed(session, model, {f"alias {alias}": _pointed_to(session, model, alias)}, {f"alias {alias}": None})
        session.execute(delete(tables.Alias).where(*at))


def may_move(session: Session, alias: str) -> bool:
    """Whether the session's key may move and remove the alias; False for protected ones without the right."""
    scope = scope_of(session)
    if scope is None or scope.administers or scope.promotes:
        return True
    return alias not in {name.strip() for name in settings().protected_aliases.split(",")}


def require_promotes(session: Session, alias: str) -> None:
    """Raise Forbidden where the alias is protected and the session's key may not move it."""
    if not may_move(session, alias):
        raise Forbidden(
            f"The alias {alias!r} is protected; ask an administrator, or use a key that was created with `promotes`."
        )


def _pointed_to(session: Session, model: tables.Model, alias: str) -> int | None:
    query = select(V.number).join(tables.Alias, tables.Alias.version_id == V.id)
    return session.scalars(query.where(tables.Alias.model_id == model.id, tables.Alias.name == alias)).one_or_none()


def version_of(session: Session, model: tables.Model, number: int | None, alias: str | None) -> tables.ModelVersion:
    """The row of a version, the latest that is no smaller copy where neither is given.

    Raises
    ------
    NotFound
        The model has no such version or alias.
    InvalidInput
        Both are given.
    """
    if number is not None and alias is not None:
        raise InvalidInput("give a version or an alias, not both")
    query = select(V).where(V.model_id == model.id, V.deleted_at.is_(None))
    if alias is not None:
        query = query.join(tables.Alias, tables.Alias.version_id == V.id).where(tables.Alias.name == alias)
    elif number is not None:
        query = query.where(V.number == number)
    row = session.scalars(query.order_by(*LATEST).limit(1)).one_or_none()
    if row is None:
        what = f"alias {alias!r:.80}" if alias is not None else "version" if number is None else f"version {number}"
        deleted = select(V.id).where(V.model_id == model.id, V.number == number, V.deleted_at.is_not(None))
        note = "" if session.scalars(deleted).first() is None else "; it was deleted, and can be restored for a time"
        raise NotFound(f"the model {model.name!r} has no {what}{note}")
    return row


def of_models(session: Session, model_ids: Iterable[str]) -> dict[str, list[tuple[str, Alias]]]:
    """The aliases of each model with the ids of the versions that they name."""
    found: dict[str, list[tuple[str, Alias]]] = defaultdict(list)
    query = (
        select(tables.Alias, V.number)
        .join(V, V.id == tables.Alias.version_id)
        .where(tables.Alias.model_id.in_(model_ids))
        .order_by(tables.Alias.name)
    )
    for alias, number in session.execute(query):
        found[alias.model_id].append(
            (alias.version_id, Alias(name=alias.name, version=number, revision=alias.revision))
        )
    return found
