"""What happened becomes rows of deliveries, each once, and rows become requests, each at least once."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import orjson
from sqlalchemy import delete, exists, select, update
from sqlalchemy.orm import Session, sessionmaker

from app.jobs.schemas import FINAL_STATES
from app.reviews import progress
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.lookup import moment
from app.webhooks.sending import Sent, send

W, D, J, A = tables.Webhook, tables.WebhookDelivery, tables.Job, tables.AuditEntry
R, O, V = tables.ReviewRow, tables.ReviewOpinion, tables.Review
# what was written before another look is seen by it, also if its transaction took this long to commit
_OVERLAP_SECONDS = 300.0
_PAUSE_SECONDS = 5.0
# until an attempt whose process has died is made again
_LEASE_SECONDS = 60.0
# after each attempt that failed; then the delivery is given up
BACKOFF_SECONDS = (5.0, 30.0, 120.0, 600.0, 1800.0, 7200.0, 21_600.0, 43_200.0, 86_400.0)
KEPT_SECONDS = 30 * 86_400.0
_AT_ONCE = 20


def collect(session: Session) -> int:
    """Write the deliveries of what has happened since the last look; return how many.

    The one process that moves ``collected_at`` on writes them, in the same transaction.
    """
    with reading(session):
        now: float = session.scalars(select(db_now())).one()
        due = session.execute(select(W.id, W.collected_at).where(W.collected_at < now - _PAUSE_SECONDS)).all()
    n = 0
    for id, before in due:
        with writing(session):
            mine = update(W).where(W.id == id, W.collected_at == before).values(collected_at=db_now())
            taken = session.execute(mine.execution_options(synchronize_session=False)).rowcount  # type: ignore[attr-defined]
            webhook = session.get(W, id, populate_existing=True) if taken == 1 else None
            if webhook is not None:
                n += _write(session, webhook, max(webhook.created_at, before - _OVERLAP_SECONDS))
    return n


def _write(session: Session, webhook: tables.Webhook, since: float) -> int:
    n = 0
    for key, event, at, data in _happened(session, webhook, since):
        known = select(D.id).where(D.webhook_id == webhook.id, D.key == key)
        if event not in webhook.events or session.scalars(known).first() is not None:
            continue
        payload = {"type": event, "timestamp": moment(at).isoformat(), "data": data}
        values = {"key": key, "event": event, "payload": payload, "state": "waiting", "attempts": 0}
        now: float = session.scalars(select(db_now())).one()
        session.add(D(id=new_id(), webhook_id=webhook.id, due_at=now, created_at=now, **values))
        session.flush()
        n += 1
    return n


_Happened = tuple[str, str, float, dict[str, Any]]


def _happened(session: Session, webhook: tables.Webhook, since: float) -> Iterator[_Happened]:
    """What a webhook may be notified of: its key, the event, when, and the payload's data."""
    wanted = {event.partition(".")[0] for event in webhook.events}
    if "job" in wanted:
        yield from _ended_jobs(session, webhook.workspace, since)
    if "model" in wanted:
        yield from _promotions(session, webhook.workspace, since)
    if "review.dry" in webhook.events:
        yield from _dry_reviews(session, webhook)
    if "review.precision_low" in webhook.events:
        yield from _low_reviews(session, webhook)


def _ended_jobs(session: Session, workspace: str, since: float) -> Iterator[_Happened]:
    columns = (J.id, J.kind, J.state, J.dataset_id, J.owner, J.finished_at, J.request, J.error)
    mine = J.workspace == workspace, J.finished_at >= since, J.parent_id.is_(None), J.state.in_(sorted(FINAL_STATES))
    for row in session.execute(select(*columns).where(*mine).order_by(J.finished_at)):
        data = {"job": row.id, "kind": row.kind, "state": row.state, "dataset": row.dataset_id, "owner": row.owner}
        data["model"] = row.request.get("model")
        data["error"] = None if row.error is None else row.error.get("code")
        yield f"job:{row.id}:{row.finished_at!r}", f"job.{row.state}", row.finished_at, data


def _promotions(session: Session, workspace: str, since: float) -> Iterator[_Happened]:
    """Aliases that moved: the audit log has all of them, in the transaction that did."""
    query = select(A).where(A.workspace == workspace, A.what == "model", A.at >= since).order_by(A.id)
    for entry in session.scalars(query).all():
        for name, version in (entry.after or {}).items():
            if name.startswith("alias ") and version is not None:
                data = {"model": entry.name, "alias": name.removeprefix("alias "), "version": version}
                data |= {"former": (entry.before or {}).get(name), "by": entry.key}
                yield f"promotion:{entry.id}:{data['alias']}"[:200], "model.promoted", entry.at, data


def _untold(webhook: tables.Webhook, what: str) -> Any:
    return ~exists().where(D.webhook_id == webhook.id, D.key == what + V.id)


def _dry_reviews(session: Session, webhook: tables.Webhook) -> Iterator[_Happened]:
    """Queues without open rows, the last of which was decided since the webhook was made; each is sent once."""
    is_open = exists().where(R.review_id == V.id, R.state == "open")
    lately = exists().where(O.review_id == V.id, O.decided_at >= webhook.created_at)
    query = select(V).where(V.workspace == webhook.workspace, _untold(webhook, "dry:"), ~is_open, lately)
    for review in session.scalars(query).all():
        at: float = session.scalars(select(db_now())).one()
        data = {"review": review.name, "model": review.model, "states": progress.states(session, review.id)}
        yield f"dry:{review.id}", "review.dry", at, data


def _low_reviews(session: Session, webhook: tables.Webhook) -> Iterator[_Happened]:
    """Queues whose sure rows are surely right less often than promised; each is sent once."""
    decided = exists().where(R.review_id == V.id, R.state == "decided", R.sure.is_(True))
    lately = exists().where(O.review_id == V.id, O.decided_at >= webhook.created_at)
    mine = V.workspace == webhook.workspace, V.promised.is_not(None), _untold(webhook, "low:")
    for review in session.scalars(select(V).where(*mine, decided, lately)).all():
        found = progress.measured(session, review)
        if found is not None and review.promised is not None and found.upper_bound < review.promised:
            at: float = session.scalars(select(db_now())).one()
            data = {"review": review.name, "model": review.model, "promised": review.promised}
            yield f"low:{review.id}", "review.precision_low", at, data | {"measured": found.model_dump(mode="json")}


def deliver(factory: sessionmaker[Session], guard: AbstractContextManager[object]) -> int:
    """Send what is due, and write what came of it; return the number of attempts.

    Parameters
    ----------
    guard : context manager
        Held while the database is asked, and not while a receiver is.
    """
    with guard, factory() as session, reading(session):
        due = session.execute(
            select(D.id, D.due_at).where(D.state == "waiting", D.due_at <= db_now()).order_by(D.due_at).limit(_AT_ONCE)
        ).all()
    n = 0
    for id, before in due:
        with guard, factory() as session:
            claimed = _claim(session, id, before)
        if claimed is None:  # another process was faster
            continue
        url, secrets, timestamp, body, attempt = claimed
        sent = send(url, secrets, id, timestamp, body)
        with guard, factory() as session:
            _note(session, id, attempt, sent)
        n += 1
    return n


def forget(session: Session) -> int:
    """Delete the log of deliveries that ended long ago; return how many."""
    with writing(session):
        old = delete(D).where(D.state != "waiting", D.created_at < db_now() - KEPT_SECONDS)
        # events are looked for since the last look alone, so none of these comes again but a queue's, which has one
        kept = old.where(~D.key.startswith("dry:"), ~D.key.startswith("low:"))
        return int(session.execute(kept.execution_options(synchronize_session=False)).rowcount)  # type: ignore[attr-defined]


def _claim(session: Session, id: str, before: float) -> tuple[str, list[str], int, bytes, int] | None:
    with writing(session):
        mine = update(D).where(D.id == id, D.state == "waiting", D.due_at == before)
        mine = mine.values(due_at=db_now() + _LEASE_SECONDS, attempts=D.attempts + 1)
        if session.execute(mine.execution_options(synchronize_session=False)).rowcount != 1:  # type: ignore[attr-defined]
            return None
        query = select(W, D.payload, D.attempts, db_now()).join(D, D.webhook_id == W.id).where(D.id == id)
        webhook, payload, attempts, now = session.execute(query, execution_options={"populate_existing": True}).one()
        secrets = [webhook.secret]
        if webhook.former_secret is not None and webhook.former_until > now:
            secrets.append(webhook.former_secret)
        return webhook.url, secrets, int(now), orjson.dumps(payload), attempts


def _note(session: Session, id: str, attempt: int, sent: Sent) -> None:
    values: dict[str, Any] = {"status": sent.status, "error": sent.error}
    if sent.error is None:
        values |= {"state": "delivered", "delivered_at": db_now()}
    elif attempt > len(BACKOFF_SECONDS):
        values |= {"state": "failed"}
    else:
        values |= {"due_at": db_now() + BACKOFF_SECONDS[attempt - 1]}
    with writing(session):
        mine = update(D).where(D.id == id, D.attempts == attempt, D.state == "waiting").values(**values)
        session.execute(mine.execution_options(synchronize_session=False))
