import asyncio
import json
import threading
from typing import Any

import pytest
from asking import TestClient, bearer, call
from fastapi import FastAPI
from working import SPARSE, train, upload

from app.jobs import events


def parsed(text: str) -> list[dict[str, Any]]:
    """The events of a stream: event, id and data."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "event" in fields:
            found.append({**fields, "data": json.loads(fields["data"])})
    return found


def queued(client: TestClient) -> str:
    """The id of a job that nobody runs."""
    upload(client, "letters", SPARSE, "svmlight")
    request = {"dataset": "letters", "model": "letters", "solver": "weston_watkins"}
    return str(client.post("/api/v1/jobs", json=request).json()["id"])


def test_a_finished_job_is_reported_from_its_first_step_to_its_end(client: TestClient) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    job = train(client, "letters", "letters")
    steps = client.get(f"/api/v1/jobs/{job['id']}/steps").json()["steps"]
    response = client.get(f"/api/v1/jobs/{job['id']}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    found = parsed(response.text)
    assert [event["data"] for event in found if event["event"] == "step"] == steps
    assert [event["id"] for event in found if event["event"] == "step"] == [str(step["number"]) for step in steps]
    assert [event["data"] for event in found if event["event"] == "state"] == [job]
    assert found[-1]["event"] == "state"


def test_a_stream_is_taken_up_after_the_last_event(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_STEPS", 2)
    upload(client, "letters", SPARSE, "svmlight")
    job = train(client, "letters", "letters")
    steps = client.get(f"/api/v1/jobs/{job['id']}/steps").json()["steps"]
    found = parsed(client.get(f"/api/v1/jobs/{job['id']}/events", headers={"Last-Event-ID": "0"}).text)
    assert [event["data"] for event in found if event["event"] == "step"] == steps[1:]
    assert found[-1]["event"] == "state"


def test_a_stream_follows_a_job_until_it_is_over(
    client: TestClient, app: FastAPI, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(events, "_HEARTBEAT_SECONDS", 0.02)
    job, looks, look = queued(client), threading.Semaphore(0), events._look
    monkeypatch.setattr(events, "_look", lambda *given: looks.release() or look(*given))

    async def cancel_while_following() -> str:
        stream = asyncio.create_task(
            call(app, f"/api/v1/jobs/{job}/events", bearer(secrets["viewer"]), [b""], method="GET")
        )
        # many heartbeats apart
        for _ in range(20):
            assert await asyncio.to_thread(looks.acquire, timeout=20)
        assert not stream.done()
        await asyncio.to_thread(client.post, f"/api/v1/jobs/{job}/cancel")
        return (await stream)[1].decode()

    found = asyncio.run(cancel_while_following())
    assert [event["data"]["state"] for event in parsed(found)] == ["queued", "cancelled"]
    assert ": still here" in found


@pytest.mark.parametrize("by_session", [False, True])
def test_a_stream_ends_with_the_key_that_opened_it(
    by_session: bool, client: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_LOOK_SECONDS", 0.01)
    job = queued(client)
    key = client.post("/api/v1/keys", json={"name": "brief", "role": "viewer"}).json()
    headers = bearer(key["secret"])
    if by_session:
        browser = TestClient(app, follow_redirects=False)
        cookie = browser.post("/sign-in", data={"key": key["secret"]}).headers["set-cookie"].split(";")[0]
        headers = {"Cookie": cookie, "Host": "127.0.0.1"}
    looked = threading.Event()
    look = events._look
    monkeypatch.setattr(events, "_look", lambda *given: looked.set() or look(*given))

    async def revoke_while_following() -> str:
        stream = asyncio.create_task(call(app, f"/api/v1/jobs/{job}/events", headers, [b""], method="GET"))
        assert await asyncio.to_thread(looked.wait, 20)
        await asyncio.to_thread(client.delete, f"/api/v1/keys/{key['id']}")
        return (await asyncio.wait_for(stream, 20))[1].decode()

    assert {event["data"]["state"] for event in parsed(asyncio.run(revoke_while_following()))} <= {"queued"}
    assert client.get(f"/api/v1/jobs/{job}").json()["state"] == "queued"


def test_a_stream_ends_when_its_reader_leaves(
    client: TestClient, app: FastAPI, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_LOOK_SECONDS", 0.01)
    job = queued(client)
    _, body, _ = asyncio.run(
        call(app, f"/api/v1/jobs/{job}/events", bearer(secrets["viewer"]), [b"", None], method="GET")
    )
    assert len(parsed(body.decode())) <= 1
    assert client.get(f"/api/v1/jobs/{job}").json()["state"] == "queued"
