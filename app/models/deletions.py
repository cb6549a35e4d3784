"""Versions are deleted with a preview, brought back for a time, and removed; aliases and jobs hold them."""

from collections.abc import Sequence

from sqlalchemy import delete as sql_delete
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.config import settings
from app.errors import Conflict, Item, NotFound
from app.jobs import job_requests
from app.jobs.job_requests import RequestedJob
from app.jobs.schemas import FINAL_STATES
from app.models.schemas import DeletedVersion, Deletion, HeldVersion, Restored, Retention
from app.models.service import model_row, version_row
from app.plurals import counted
from app.store import tables
from app.store.db import db_now, reading, writing
from app.store.failures import isolated
from app.store.lookup import by_ref, moment, require_owner

V = tables.ModelVersion
# kinds of jobs whose model gets a version
MAKERS = ("train", "tune")


def delete_version(session: Session, ref: str, number: int, dry_run: bool = False) -> Deletion:
    """Delete one version, or with ``dry_run`` report what that would do.

    Raises
    ------
    NotFound
        No such model or version.
    Forbidden
        Another key made the model.
    Conflict
        An alias or a job that is not over holds it.
    """
    with writing(session):
        model = by_ref(session, tables.Model, ref, lock=True)
        require_owner(session, model)
        rows = [version_row(session, model.id, number)]
        return _delete(session, model, rows, held_versions(session, model, rows), dry_run)


def delete_model(session: Session, ref: str, dry_run: bool = False) -> Deletion:
    """Delete all versions of a model, or with ``dry_run`` report what that would do.

    Raises
    ------
    NotFound
        No such model.
    Forbidden
        Another key made it.
    Conflict
        An alias or a job that is not over holds a version, or a job is about to make one.
    """
    with writing(session):
        model = model_row(session, ref, lock=True)
        require_owner(session, model)
        rows = _live(session, model)
        held = held_versions(session, model, rows)
        held += [
            HeldVersion(version=model.last_number + 1, reason=f"the job {job.id} is about to make it; cancel it first")
            for job in _unfinished(session, model)
            if job.kind in MAKERS
        ]
        return _delete(session, model, rows, held, dry_run)


def restore_version(session: Session, ref: str, number: int) -> Restored:
    """Bring a deleted version back; of one that is not deleted nothing changes.

    Raises
    ------
    NotFound
        No such model, or it has no such version any more.
    Forbidden
        Another key made the model.
    """
    with writing(session):
        model = by_ref(session, tables.Model, ref, lock=True)
        require_owner(session, model)
        row = session.scalars(select(V).where(V.model_id == model.id, V.number == number)).one_or_none()
        if row is None:
            raise NotFound(
                f"the model {model.name!r} has no version {number} and no deleted version that can be restored"
            )
        return _restore(session, model, [row])


def restore_model(session: Session, ref: str) -> Restored:
    """Bring back the versions of a model that were deleted last, all those that went together.

    Raises
    ------
    NotFound
        No such model, or none of its versions can be brought back.
    Forbidden
        Another key made it.
    """
    with writing(session):
        model = by_ref(session, tables.Model, ref, lock=True)
        require_owner(session, model)
        last = select(func.max(V.deleted_at)).where(V.model_id == model.id).scalar_subquery()
        rows = session.scalars(select(V).where(V.model_id == model.id, V.deleted_at == last)).all()
        if not rows:
            raise NotFound(f"no version of the model {model.name!r} can be restored")
        return _restore(session, model, rows)


def retention(session: Session, ref: str) -> Retention:
    """A model's rule, and what it does now; raises NotFound."""
    with reading(session):
        model = model_row(session, ref)
        return _retention(session, model, model.keep_last, dry_run=True)


def set_retention(session: Session, ref: str, keep_last: int | None, dry_run: bool = False) -> Retention:
    """Keep so many of a model's newest versions, or with ``dry_run`` report what that would do.

    Raises
    ------
    NotFound
        No such model.
    Forbidden
        Another key made it.
    """
    with writing(session):
        model = model_row(session, ref, lock=True)
        require_owner(session, model)
        if not dry_run:
            model.keep_last = keep_last
        return _retention(session, model, keep_last, dry_run)


def apply_retention(session: Session) -> list[tuple[str, int]]:
    """Delete the versions that go by their models' rules; return models' names and numbers."""
    gone = []
    with reading(session):
        ids = session.scalars(select(tables.Model.id).where(tables.Model.keep_last.is_not(None))).all()
    for id in ids:
        with isolated(session, "retention_failed", model=id), writing(session):
            model = by_ref(session, tables.Model, id, lock=True)
            if model.keep_last is None:  # taken back meanwhile
                continue
            numbers = _retention(session, model, model.keep_last, dry_run=False).goes
            at = (V.model_id == model.id, V.number.in_(numbers))
            session.execute(update(V).where(*at).values(deleted_at=db_now()).execution_options(**_UNSEEN))
            gone += [(model.name, number) for number in numbers]
    return gone


def deleted(session: Session, due: bool) -> list[DeletedVersion]:
    """Deleted versions whose time is over (``due``), or those that can still be brought back; oldest first."""
    over = V.deleted_at < db_now() - settings().keep_deleted_seconds
    query = select(tables.Model.name, V).join(V, V.model_id == tables.Model.id)
    with reading(session):
        rows = session.execute(query.where(V.deleted_at.is_not(None), over if due else ~over).order_by(V.deleted_at))
        return [
            DeletedVersion(
                model=name,
                version=row.number,
                size_bytes=row.size_bytes,
                deleted_at=moment(row.deleted_at),
                restorable_until=moment(_until(row.deleted_at)),
            )
            for name, row in rows
        ]


def purge(session: Session, at_once: bool = False) -> list[tuple[str, int]]:
    """Remove the rows of deleted versions whose time is over, or with ``at_once`` of all; their files are orphans then.

    A model without versions stays as a row that nothing shows: it knows which numbers were given. Returns models' names
    and numbers.
    """
    least = 0.0 if at_once else settings().keep_deleted_seconds
    over = V.deleted_at <= db_now() - least
    gone = []
    with reading(session):
        ids = session.scalars(select(V.model_id).where(over).distinct()).all()
    for id in ids:
        with isolated(session, "purge_failed", model=id), writing(session):
            model = session.scalars(select(tables.Model).where(tables.Model.id == id).with_for_update()).one_or_none()
            if model is None:
                continue
            numbers = session.scalars(select(V.number).where(V.model_id == id, over).order_by(V.number)).all()
            session.execute(sql_delete(V).where(V.model_id == id, over).execution_options(**_UNSEEN))
            gone += [(model.name, number) for number in numbers]
            if session.scalars(select(V.id).where(V.model_id == id).limit(1)).first() is None:
                model.keep_last = None
        session.expire_all()
    return gone


def held_versions(session: Session, model: tables.Model, rows: Sequence[tables.ModelVersion]) -> list[HeldVersion]:
    """Which of the rows an alias or a job that is not over holds, and why; the model's row is locked."""
    numbers = {row.id: row.number for row in rows}
    aliases = session.execute(
        select(tables.Alias.version_id, tables.Alias.name)
        .where(tables.Alias.model_id == model.id, tables.Alias.version_id.in_(numbers))
        .order_by(tables.Alias.name)
    ).all()
    held = [
        HeldVersion(version=numbers[id], reason=f"the alias {name!r} names it; move or delete the alias first")
        for id, name in aliases
    ]
    for job in _unfinished(session, model):
        if job.kind not in MAKERS and job.request.get("version") in numbers.values():
            reason = f"the job {job.id} uses it; cancel it first"
            held.append(HeldVersion(version=job.request["version"], reason=reason))
    return held


_UNSEEN = {"synchronize_session": False}


def _delete(
    session: Session,
    model: tables.Model,
    rows: Sequence[tables.ModelVersion],
    held: list[HeldVersion],
    dry_run: bool,
) -> Deletion:
    if held and not dry_run:
        items = [Item(f"version {each.version}: {each.reason}") for each in held]
        raise Conflict(
            f"{counted(len(held), 'reference', 'prevents/prevent')} this deletion; nothing was deleted", items
        )
    ids = [row.id for row in rows]
    n_evaluations = select(func.count()).select_from(tables.Evaluation).where(tables.Evaluation.version_id.in_(ids))
    now: float = session.scalars(select(db_now())).one()
    if not dry_run:
        for row in rows:
            row.deleted_at = now
    return Deletion(
        model=model.name,
        dry_run=dry_run,
        versions=[row.number for row in rows],
        held=held,
        evaluations=session.scalars(n_evaluations).one(),
        size_bytes=sum(row.size_bytes for row in rows),
        restorable_until=moment(_until(now)),
    )


def _restore(session: Session, model: tables.Model, rows: Sequence[tables.ModelVersion]) -> Restored:
    for row in rows:
        row.deleted_at = None
    return Restored(model=model.name, versions=sorted((row.number for row in rows), reverse=True))


def _retention(session: Session, model: tables.Model, keep_last: int | None, dry_run: bool) -> Retention:
    old = [] if keep_last is None else _live(session, model)[keep_last:]
    held = held_versions(session, model, old)
    kept = {each.version for each in held}
    goes = [row.number for row in old if row.number not in kept]
    return Retention(model=model.name, keep_last=keep_last, dry_run=dry_run, goes=goes, held=held)


def _live(session: Session, model: tables.Model) -> Sequence[tables.ModelVersion]:
    query = select(V).where(V.model_id == model.id, V.deleted_at.is_(None))
    return session.scalars(query.order_by(V.number.desc())).all()


def _unfinished(session: Session, model: tables.Model) -> Sequence[RequestedJob]:
    J = tables.Job
    # a sweep's session sees the jobs of all workspaces, where others have models of the same name
    mine = J.workspace == model.workspace, J.state.not_in(sorted(FINAL_STATES))
    return list(job_requests.of_model(session, (model.name, model.id), *mine))


def _until(deleted_at: float | None) -> float:
    assert deleted_at is not None
    return deleted_at + settings().keep_deleted_seconds
