"""The client for event loops: all that the other client has, awaited."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from canned import DATASET, JOB, SUCCEEDED, Canned, problem
from test_reach import REACH, _asked, prepare

from app.async_client import AsyncClient
from app.jobs.schemas import Job
from app.remote import awaiting
from app.remote.errors import ClientError, ConflictError, JobFailedError, UnreachableError


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(awaiting.asyncio, "sleep", lambda _seconds: sleep(0))


def _run(use: Callable[[AsyncClient], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    async def within() -> Any:
        async with AsyncClient(**options) as client:
            return await use(client)

    return asyncio.run(within())


class _Recorded:
    """Attributes and calls as they are written for the other client."""

    def __init__(self) -> None:
        self._done: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> "_Recorded":
        self._done.append((name, (), {}))
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> "_Recorded":
        self._done.append(("()", args, kwargs))
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())


async def _again(recorded: _Recorded, client: AsyncClient) -> None:
    """The same with every call awaited."""
    found: Any = client
    for name, args, kwargs in recorded._done:
        found = found(*args, **kwargs) if name == "()" else getattr(found, name)
        if asyncio.iscoroutine(found):
            found = await found
        elif hasattr(found, "__anext__"):
            found = [each async for each in found]


@pytest.mark.slow
def test_every_route_is_reached(canned: Canned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLYMARGIN_HOME", str(tmp_path))
    monkeypatch.setattr(awaiting.AwaitingTransport, "sleep", lambda _self, _seconds: None)
    prepare(canned, tmp_path)

    async def reach(client: AsyncClient) -> None:
        for route, (call, _) in REACH.items():
            recorded = _Recorded()
            call(recorded)  # type: ignore[arg-type]
            canned.asked.clear()
            with pytest.raises(ClientError):
                await _again(recorded, client)
            assert _asked(canned, route), route

    _run(reach, attempts=1)


def test_a_job_is_waited_for_while_others_go_on(canned: Canned) -> None:
    for body in (JOB, JOB, SUCCEEDED):
        canned.answer("GET /jobs/j1", body)
    seen: list[str] = []

    async def other() -> None:
        while "done" not in seen:
            seen.append("other")
            await asyncio.sleep(0)

    async def use(client: AsyncClient) -> None:
        beside = asyncio.create_task(other())
        job = await client.jobs.get("j1")
        assert await job.wait() == job
        seen.append("done")
        await beside
        assert (job.state, job.result.version, job.finished) == ("succeeded", 3, True)
        assert Job.model_validate(job.model_dump()).id == "j1"

    _run(use)
    assert seen.count("other") > 2


def test_many_requests_go_on_at_once(canned: Canned) -> None:
    for number in range(8):
        canned.answer(f"GET /datasets/d{number}", DATASET | {"name": f"d{number}"})

    async def use(client: AsyncClient) -> list[str]:
        found = await asyncio.gather(*(client.datasets.get(f"d{number}") for number in range(8)))
        return [each.name for each in found]

    assert _run(use) == [f"d{number}" for number in range(8)]


def test_events_come_one_by_one(canned: Canned) -> None:
    canned.answer("GET /jobs/j1", JOB)
    lines = b'id: 1\nevent: step\ndata: {"epoch": 1}\n\nid: 2\nevent: state\ndata: {"state": "succeeded"}\n\n'
    canned.answer("GET /jobs/j1/events", lines)

    async def use(client: AsyncClient) -> list[str]:
        job = await client.jobs.get("j1")
        return [event.kind async for event in job.events()]

    assert _run(use) == ["step", "state"]


def test_files_are_sent_and_received_whole(canned: Canned, tmp_path: Path) -> None:
    file = tmp_path / "papers.jsonl"
    file.write_bytes(b'{"text": "a", "label": "b"}\n')
    canned.answer("POST /datasets", DATASET, 202)
    canned.answer("GET /jobs/j1", SUCCEEDED)
    canned.answer("GET /jobs/j1/predictions", b"label\na\n")

    async def use(client: AsyncClient) -> int:
        await client.datasets.upload(file, "papers")
        job = await client.jobs.get("j1")
        n_bytes: int = await job.save_predictions(tmp_path / "p.csv")
        return n_bytes

    assert _run(use) == 8
    assert (tmp_path / "p.csv").read_bytes() == b"label\na\n"
    assert next(each for each in canned.asked if each.method == "POST").body == file.read_bytes()


def test_errors_and_cancellations_reach_whoever_awaits(canned: Canned) -> None:
    canned.answer("GET /jobs/j1", JOB | {"state": "failed", "error": problem(500, "internal", "broken")})
    canned.answer("POST /jobs", problem(409, "conflict"), 409)
    canned.answer("GET /jobs/j2", JOB)

    async def use(client: AsyncClient) -> None:
        with pytest.raises(JobFailedError, match="broken"):
            await (await client.jobs.get("j1")).wait()
        with pytest.raises(ConflictError):
            await client.train("d", "m")
        waiting = asyncio.create_task((await client.jobs.get("j2")).wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(AttributeError):
            client.nothing  # noqa: B018
        assert {"train", "jobs", "close"} <= set(dir(client))

    _run(use)


def test_a_service_that_is_not_there_is_asked_again_and_then_given_up() -> None:
    async def use(client: AsyncClient) -> None:
        with pytest.raises(UnreachableError):
            await client.status()

    _run(use, url="http://127.0.0.1:9", attempts=2)
