"""Webhooks: created, shown and deleted; and the log of their deliveries."""

from collections.abc import Sequence

from sqlalchemy import delete as sql_delete
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.errors import Conflict, NotFound
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.lookup import by_ref, moment, newest, to_schema
from app.webhooks.schemas import Delivery, NewWebhook, Webhook, WebhookRequest
from app.webhooks.sending import check_url, new_secret

W, D = tables.Webhook, tables.WebhookDelivery
# of one workspace
_MOST = 100
# a receiver that still has the secret before accepts deliveries for so long
FORMER_SECONDS = 86_400.0


def create(session: Session, request: WebhookRequest) -> NewWebhook:
    """Create a webhook; events from now on are sent to it.

    Raises
    ------
    InvalidInput
        The settings do not allow the URL.
    Conflict
        The name is taken, or the workspace has as many as it may.
    """
    check_url(request.url)
    taken = Conflict(f"a webhook is named {request.name!r} already; choose another name")
    with writing(session):
        if session.scalars(select(W.id).where(W.name == request.name)).first() is not None:
            raise taken
        if session.scalars(select(func.count()).select_from(W)).one() >= _MOST:
            raise Conflict(f"the workspace has {_MOST} webhooks; no more are allowed. Delete some")
        now: float = session.scalars(select(db_now())).one()
        row = W(
            id=new_id(),
            name=request.name,
            url=request.url,
            events=list(request.events),
            secret=new_secret(),
            created_at=now,
            collected_at=now,
        )
        session.add(row)
        try:
            session.flush()
        except IntegrityError:
            session.rollback()
            raise taken from None
        return NewWebhook(**_show(session, [row])[0].model_dump(), secret=row.secret)


def get(session: Session, ref: str) -> Webhook:
    """A webhook by id or name; raises NotFound."""
    with reading(session):
        return _show(session, [by_ref(session, W, ref)])[0]


def page(session: Session, page_size: int = 100, page_token: str | None = None) -> Page[Webhook]:
    """Webhooks, newest first."""
    with reading(session):
        rows, token = newest(session, W, select(W), page_size, page_token)
        return Page[Webhook](items=_show(session, rows), next_page_token=token)


def delete(session: Session, ref: str) -> None:
    """Delete a webhook with its deliveries; raises NotFound."""
    with writing(session):
        row = by_ref(session, W, ref, lock=True)
        session.execute(sql_delete(D).where(D.webhook_id == row.id))
        session.delete(row)


def rotate_secret(session: Session, ref: str) -> NewWebhook:
    """Give a webhook a new secret; the former one signs deliveries as well for 24 hours. Raises NotFound."""
    with writing(session):
        row = by_ref(session, W, ref, lock=True)
        now: float = session.scalars(select(db_now())).one()
        row.former_secret, row.former_until, row.secret = row.secret, now + FORMER_SECONDS, new_secret()
        session.flush()
        return NewWebhook(**_show(session, [row])[0].model_dump(), secret=row.secret)


def retry(session: Session, ref: str, id: str) -> Delivery:
    """Send a delivery again at once, whatever came of it; if that fails, the intervals start over. Raises NotFound."""
    with writing(session):
        webhook = by_ref(session, W, ref)
        row = session.scalars(select(D).where(D.webhook_id == webhook.id, D.id == id).with_for_update()).one_or_none()
        if row is None:
            raise NotFound(f"the webhook {webhook.name} has no delivery {id}")
        now: float = session.scalars(select(db_now())).one()
        row.state, row.attempts, row.due_at, row.delivered_at = "waiting", 0, now, None
        session.flush()
        return _delivery(row)


def deliveries(session: Session, ref: str, page_size: int = 100, page_token: str | None = None) -> Page[Delivery]:
    """The deliveries of a webhook, newest first; raises NotFound."""
    with reading(session):
        webhook = by_ref(session, W, ref)
        rows, token = newest(session, D, select(D).where(D.webhook_id == webhook.id), page_size, page_token)
        return Page[Delivery](items=[_delivery(row) for row in rows], next_page_token=token)


def _show(session: Session, rows: Sequence[tables.Webhook]) -> list[Webhook]:
    query = select(D.webhook_id, D.state, func.count()).where(D.webhook_id.in_([row.id for row in rows]))
    counts = {(id, state): n for id, state, n in session.execute(query.group_by(D.webhook_id, D.state))}
    return [
        to_schema(
            Webhook,
            row,
            n_waiting=counts.get((row.id, "waiting"), 0),
            n_failed=counts.get((row.id, "failed"), 0),
        )
        for row in rows
    ]


def _delivery(row: tables.WebhookDelivery) -> Delivery:
    return to_schema(Delivery, row, next_attempt_at=moment(row.due_at) if row.state == "waiting" else None)
