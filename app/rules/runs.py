"""Starts of rules: by time, by feedback or on request, each exactly once even if several processes check together."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.orm import Session

from app.access import audit
from app.errors import Conflict
from app.rules import feedback
from app.rules.cron import next_moment
from app.rules.schemas import RuleRun
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.failures import isolated
from app.store.lookup import by_id, by_ref, newest, to_schema

Cause = Literal["time", "feedback", "asked"]

R, U, F = tables.Rule, tables.RuleRun, tables.Feedback


def start(session: Session, ref: str) -> RuleRun:
    """Start a rule now, be it switched off; its schedule stays.

    Raises
    ------
    NotFound
        There is none.
    Conflict
        Its run before is not over.
    """
    with writing(session):
        rule = by_ref(session, R, ref, lock=True)
        id = _take(session, rule, "asked")
        if id is None:
            raise Conflict(f"the run {rule.run_id} of the rule is unfinished; wait until it ends")
        audit.changed(session, rule, {"run": None}, {"run": id})
        return _show(by_id(session, U, id), rule.name)


def start_due(session: Session) -> list[str]:
    """Start all rules whose time has come or whose feedback suffices, and return the ids of their runs.

    A rule with a run that is not over keeps its due time, and starts once that has ended: however many times have
    passed, it is once.
    """
    with reading(session):
        ids = session.scalars(
            select(R.id)
            .where(R.enabled, R.run_id.is_(None), or_(R.due_at <= db_now(), R.feedback_rows.is_not(None)))
            .order_by(R.id)
        ).all()
        now: float = session.scalars(select(db_now())).one()
    started = []
    for rule_id in ids:
        with isolated(session, "rule_not_started", rule=rule_id):
            id = _start_due(session, rule_id, now)
            if id is not None:
                started.append(id)
    return started


def page(session: Session, ref: str, page_size: int = 100, page_token: str | None = None) -> Page[RuleRun]:
    """Runs of a rule, newest first; raises NotFound."""
    with reading(session):
        rule = by_ref(session, R, ref)
        rows, token = newest(session, U, select(U).where(U.rule_id == rule.id), page_size, page_token)
        return Page[RuleRun](items=[_show(row, rule.name) for row in rows], next_page_token=token)


def get(session: Session, id: str) -> RuleRun:
    """One run; raises NotFound."""
    with reading(session):
        row = by_id(session, U, id)
        return _show(row, by_id(session, R, row.rule_id).name)


def latest(session: Session, rules: Sequence[tables.Rule]) -> Mapping[str, RuleRun]:
    """The newest run of each of the rules that has one, by the rule's id."""
    names = {rule.id: rule.name for rule in rules}
    newest_ids = select(func.max(U.id)).where(U.rule_id.in_(names)).group_by(U.rule_id)
    return {
        row.rule_id: _show(row, names[row.rule_id]) for row in session.scalars(select(U).where(U.id.in_(newest_ids)))
    }


def _start_due(session: Session, rule_id: str, now: float) -> str | None:
    """Start one rule if it is due; None where it is not, or another sweep was faster."""
    with reading(session):
        rule = session.get(R, rule_id, populate_existing=True)
        if rule is None:
            return None
        cause: Cause
        if rule.due_at is not None and rule.due_at <= now:
            cause = "time"
        elif rule.feedback_rows is not None and _n_unseen(session, rule) >= rule.feedback_rows:
            cause = "feedback"
        else:
            return None
    with writing(session):
        return _take(session, rule, cause)


def _take(session: Session, rule: tables.Rule, cause: Cause) -> str | None:
    """Make a run in the caller's transaction; None where another has been faster."""
    now: float = session.scalars(select(db_now())).one()
    id = new_id()
    values: dict[str, Any] = {
        "run_id": id,
        "seen_feedback": session.scalars(select(func.max(F.id)).where(_of(rule))).one(),
    }
    unchanged: list[ColumnElement[bool]] = [R.id == rule.id, R.run_id.is_(None)]
    if cause != "asked":
        unchanged += [R.enabled.is_(True), R.due_at.is_(None) if rule.due_at is None else R.due_at == rule.due_at]
    if cause == "time":
        assert rule.cron is not None
        values["due_at"] = next_moment(rule.cron, rule.time_zone, now)
    taken = update(R).where(*unchanged).values(**values).returning(R.id)
    if session.scalars(taken.execution_options(synchronize_session=False)).one_or_none() is None:
        return None
    session.add(U(id=id, rule_id=rule.id, cause=cause, stage="starting", created_at=now))
    session.flush()
    return id


def _n_unseen(session: Session, rule: tables.Rule) -> int:
    """Reports that wait and came after those by which the rule was started before."""
    query = select(func.count()).select_from(F).where(_of(rule), feedback.waiting())
    if rule.seen_feedback is not None:
        query = query.where(F.id > rule.seen_feedback)
    return session.scalars(query).one()


def _of(rule: tables.Rule) -> Any:
    return F.model_id == rule.model_id


def _show(row: tables.RuleRun, rule: str) -> RuleRun:
    return to_schema(RuleRun, row, rule=rule, evaluations=row.evaluations or [])
