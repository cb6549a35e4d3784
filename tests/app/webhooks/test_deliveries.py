"""What happened is written once for each webhook that wants it, and sent until the receiver takes it."""

import threading
from contextlib import nullcontext
from typing import Any

import orjson
import pytest
from receiving import Receiver
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from app.access.audit import Act, note_for
from app.models.aliases import set_alias
from app.store import tables
from app.store.db import db_now
from app.store.scope import DEFAULT, Scope, confine
from app.webhooks import deliveries, service
from app.webhooks.schemas import WebhookRequest
from app.webhooks.sending import signature

D, W = tables.WebhookDelivery, tables.Webhook
EVENTS: Any = ["job.succeeded", "job.failed", "model.promoted", "review.dry", "review.precision_low"]


@pytest.fixture
def factory(database: sessionmaker[Session], receiver: Receiver, request: pytest.FixtureRequest) -> Any:
    return database


@pytest.fixture
def secret(factory: sessionmaker[Session], receiver: Receiver) -> str:
    """That of the webhook ``hook``, which wants all events."""
    with confine(factory(), Scope(DEFAULT, "ann")) as session:
        return service.create(session, WebhookRequest(name="hook", url=receiver.url, events=EVENTS)).secret


def collect(factory: sessionmaker[Session]) -> int:
    with factory() as session:
        session.execute(update(W).values(collected_at=W.collected_at - 10.0))  # as if time had passed
        session.commit()
        return deliveries.collect(session)


def end_job(factory: sessionmaker[Session], id: str, state: str = "succeeded", workspace: str = DEFAULT) -> None:
    given: Any = {"kind": "train", "request": {"model": "m"}, "queue": "general", "attempt": 1, "losses": 0}
    given |= {"created_at": 0.0, "owner": "ann", "state": state, "workspace": workspace, "priority": 0}
    with factory() as session:
        session.add(tables.Job(id=id, **given))
        session.flush()
        session.execute(update(tables.Job).where(tables.Job.id == id).values(finished_at=db_now()))
        session.commit()


def rows(factory: sessionmaker[Session]) -> list[tables.WebhookDelivery]:
    with factory() as session:
        return list(session.scalars(select(D).order_by(D.id)).all())


def test_the_end_of_a_job_is_told_once_signed_and_in_its_workspace_alone(
    factory: sessionmaker[Session], secret: str, receiver: Receiver
) -> None:
    end_job(factory, "a" * 32)
    end_job(factory, "b" * 32, "cancelled")  # not wanted
    end_job(factory, "c" * 32, workspace="elsewhere")
    assert [collect(factory), collect(factory)] == [1, 0]
    assert deliveries.deliver(factory, nullcontext()) == 1
    assert deliveries.deliver(factory, nullcontext()) == 0
    [(_, headers, body)] = receiver.received
    document = orjson.loads(body)
    assert document["type"] == "job.succeeded"
    assert document["data"] == {
        "job": "a" * 32, "kind": "train", "state": "succeeded", "dataset": None, "owner": "ann", "model": "m",
        "error": None,
    }  # fmt: skip
    stamp = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == signature(secret, headers["webhook-id"], stamp, body)
    [row] = rows(factory)
    assert (row.state, row.attempts, row.status, row.error) == ("delivered", 1, 204, None)


def test_what_happened_before_the_webhook_is_not_told(factory: sessionmaker[Session], receiver: Receiver) -> None:
    end_job(factory, "a" * 32)
    with factory() as session:
        service.create(session, WebhookRequest(name="hook", url=receiver.url, events=EVENTS))
        session.execute(update(W).values(created_at=W.created_at + 1.0))
        session.commit()
    assert collect(factory) == 0


@pytest.mark.usefixtures("secret")
def test_processes_that_look_at_once_write_each_event_once(factory: sessionmaker[Session]) -> None:
    for at in range(5):
        end_job(factory, f"{at}" * 32)
    with factory() as session:
        session.execute(update(W).values(collected_at=W.collected_at - 10.0))
        session.commit()
    start, found = threading.Barrier(4), []

    def look() -> None:
        start.wait()
        with factory() as session:
            found.append(deliveries.collect(session))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 0, 0, 5]
    assert len(rows(factory)) == 5


@pytest.mark.usefixtures("secret")
def test_a_delivery_that_fails_is_tried_again_later_and_given_up_at_last(
    factory: sessionmaker[Session], receiver: Receiver
) -> None:
    receiver.status = 500
    end_job(factory, "a" * 32)
    collect(factory)
    waits = []
    for _ in range(len(deliveries.BACKOFF_SECONDS) + 1):
        assert deliveries.deliver(factory, nullcontext()) == 1
        assert deliveries.deliver(factory, nullcontext()) == 0  # not due yet
        with factory() as session:
            left = session.execute(select(D.due_at - db_now()).where(D.state == "waiting")).scalar()
            waits.append(left)
            session.execute(update(D).values(due_at=db_now() - 1.0))
            session.commit()
    assert waits[-1] is None
    assert all(
        0.5 * backoff < wait <= backoff for wait, backoff in zip(waits, deliveries.BACKOFF_SECONDS, strict=False)
    )
    [row] = rows(factory)
    assert (row.state, row.attempts, row.status) == ("failed", len(deliveries.BACKOFF_SECONDS) + 1, 500)
    assert len({headers["webhook-id"] for _, headers, _ in receiver.received}) == 1


@pytest.mark.usefixtures("secret")
def test_an_attempt_whose_process_died_is_made_again(factory: sessionmaker[Session], receiver: Receiver) -> None:
    end_job(factory, "a" * 32)
    collect(factory)
    with factory() as session:
        [row] = session.scalars(select(D)).all()
        assert deliveries._claim(session, row.id, row.due_at) is not None
        assert deliveries._claim(session, row.id, row.due_at - 1.0) is None
    assert deliveries.deliver(factory, nullcontext()) == 0
    with factory() as session:
        session.execute(update(D).values(due_at=db_now() - 1.0))
        session.commit()
    assert deliveries.deliver(factory, nullcontext()) == 1
    assert rows(factory)[0].attempts == 2


@pytest.mark.usefixtures("secret")
def test_a_promotion_is_told_with_who_made_it(factory: sessionmaker[Session]) -> None:
    given: Any = {"dataset_sha256": "d", "solver": "spoc", "params": {}, "seed": 0, "request": {}, "code_version": "0"}
    given |= {"n_classes": 2, "n_features": 3, "n_train": 4, "epochs": 5, "converged": True, "seconds": 1.0}
    given |= {"path": "p", "sha256": "s", "size_bytes": 6, "created_at": 1.0, "job_id": "j"}
    with factory() as session:
        session.add(tables.Model(id="m" * 32, name="topics", created_at=0.0))
        session.flush()
        session.add(tables.ModelVersion(id="v" * 32, model_id="m" * 32, number=1, **given))
        session.commit()
    act = Act("k", "ann", DEFAULT, "PUT", "r", "p", None, None)
    with note_for(confine(factory(), Scope(DEFAULT, "ann")), act) as session:
        set_alias(session, "topics", "production", 1)
    assert collect(factory) == 1
    assert rows(factory)[0].payload["data"] == {
        "model": "topics", "alias": "production", "version": 1, "former": None, "by": "ann"
    }  # fmt: skip


@pytest.mark.usefixtures("secret")
def test_a_queue_that_runs_dry_and_one_below_its_promise_are_told_once(factory: sessionmaker[Session]) -> None:
    given: Any = {"job_id": "0" * 32, "model": "m", "version": 1, "dataset_version": 1, "sure_share": 0.1, "seed": 0}
    given |= {"opinions": 1, "promised": 0.95, "created_at": 0.0}
    with factory() as session:
        session.add(tables.Review(id="q" * 32, name="q", **given))
        session.flush()
        for row in range(10):
            each: Any = {"row": row, "place": row, "alternatives": [{"label": "a"}], "sure": True, "revision": 1}
            state = "open" if row == 9 else "decided"
            session.add(tables.ReviewRow(review_id="q" * 32, state=state, labels=["b" if row < 5 else "a"], **each))
        session.commit()
    assert collect(factory) == 0  # nobody has decided anything since
    with factory() as session:
        opinion: Any = {"labels": ["b"], "arbiter": False, "decided_at": db_now()}
        session.add(tables.ReviewOpinion(review_id="q" * 32, row=0, person="ann", **opinion))
        session.commit()
    assert collect(factory) == 1
    with factory() as session:
        session.execute(update(tables.ReviewRow).values(state="decided"))
        session.commit()
    assert [collect(factory), collect(factory)] == [1, 0]
    found = {row.event: row.payload["data"] for row in rows(factory)}
    assert found["review.dry"]["states"]["decided"] == 10
    assert found["review.precision_low"]["measured"]["n_right"] == 4


def test_old_entries_of_the_log_are_forgotten(factory: sessionmaker[Session], secret: str) -> None:
    end_job(factory, "a" * 32)
    end_job(factory, "b" * 32)
    collect(factory)
    deliveries.deliver(factory, nullcontext())
    with factory() as session:
        assert deliveries.forget(session) == 0
        session.execute(update(D).values(created_at=D.created_at - deliveries.KEPT_SECONDS - 1.0))
        session.commit()
        assert deliveries.forget(session) == 2
