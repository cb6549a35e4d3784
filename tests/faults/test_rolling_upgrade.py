"""Processes of the API that are replaced one after the other behind a load balancer refuse no request."""

import asyncio
import os
import signal
import socket
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import inspect, text
from sqlalchemy.orm import Session, sessionmaker
from warm_parent import fork_api

from app.access import keys
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from workers.tasks import run

PER_SECOND = 200
MOST_AT_ONCE = 60
# longer than an idle connection is kept by the API, which is 5 s
DRAIN_SECONDS = 6
PATH = "/api/v1/models/m/predict"
NEW_COLUMN = "of_a_later_version"
BODY = {"instances": [{"indices": [1], "values": [1.0]}]}

pytestmark = pytest.mark.slow


class Api:
    """A process of the API on a port of its own, which may be replaced."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        self.process = fork_api(self.port, "--drain-seconds", str(DRAIN_SECONDS))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class Balancer:
    """Asks processes that are well in turn; where one cannot be connected to, the next. It sends no request twice."""

    def __init__(self, apis: list[Api], secret: str) -> None:
        self.statuses: Counter[object] = Counter()
        self.well: dict[Api, bool] = dict.fromkeys(apis, False)
        self.answered: Counter[int] = Counter()  # by process
        limits = httpx.Limits(keepalive_expiry=3.0)
        headers = {"Authorization": f"Bearer {secret}"}
        self._clients = {
            api: httpx.AsyncClient(base_url=api.url, headers=headers, limits=limits, timeout=600) for api in apis
        }
        self._n_asked = 0

    async def watch(self) -> None:
        """Look again and again which processes are well."""
        while True:
            for api in self.well:
                try:
                    async with httpx.AsyncClient(base_url=api.url, timeout=600) as client:
                        self.well[api] = (await client.get("/healthz")).status_code == 200
                except httpx.TransportError:
                    self.well[api] = False
            await asyncio.sleep(0.2)

    async def ask(self) -> None:
        """One prediction, by one process."""
        well = [api for api, is_well in self.well.items() if is_well]
        first = self._n_asked = self._n_asked + 1
        for api in [well[(first + n) % len(well)] for n in range(len(well))]:
            pid = api.process.pid
            try:
                found = (await self._clients[api].post(PATH, json=BODY)).status_code
            except httpx.ConnectError:
                continue
            except httpx.TransportError as error:
                self.statuses[repr(error)] += 1
                return
            self.statuses[found] += 1
            self.answered[pid] += 1
            return
        self.statuses["no process"] += 1

    async def load(self) -> None:
        """Requests at an even pace, whether earlier ones are answered or not."""
        loop = asyncio.get_running_loop()
        asked: set[asyncio.Task[None]] = set()
        due = loop.time()
        try:
            while True:
                due += 1 / PER_SECOND
                await asyncio.sleep(max(0.0, due - loop.time()))
                if len(asked) >= MOST_AT_ONCE:
                    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
                task = asyncio.create_task(self.ask())
                asked.add(task)
                task.add_done_callback(asked.discard)
        finally:
            await asyncio.gather(*asked)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def until(self, condition: Callable[[], object]) -> None:
        deadline = asyncio.get_running_loop().time() + 600
        while not condition():
            assert asyncio.get_running_loop().time() < deadline, self.statuses
            await asyncio.sleep(0.05)


def test_no_request_is_refused_while_one_process_after_the_other_is_replaced(
    database: sessionmaker[Session], dataset: Callable[..., str], redis_url: str
) -> None:
    dataset()
    with database() as session:
        job = jobs.submit(session, TrainRequest(dataset="digits", model="m", solver="weston_watkins"))
        secret = keys.create(session, "root", "admin").secret
    run(job.id)
    apis = [Api(), Api()]
    try:
        # in a thread of its own: this one has an event loop where pages were tested before
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(_replace(apis, Balancer(apis, secret), database))).result()
    finally:
        for api in apis:
            api.end()
        with database.begin() as session:  # which later tests have, too
            if NEW_COLUMN in {each["name"] for each in inspect(session.connection()).get_columns("model_versions")}:
                session.execute(text(f"ALTER TABLE model_versions DROP COLUMN {NEW_COLUMN}"))


async def _replace(apis: list[Api], balancer: Balancer, database: sessionmaker[Session]) -> None:
    background: list[asyncio.Task[Any]] = [asyncio.create_task(balancer.watch())]
    await balancer.until(lambda: all(balancer.well.values()))
    background.append(asyncio.create_task(balancer.load()))
    await balancer.until(lambda: min(balancer.answered[api.process.pid] for api in apis) > PER_SECOND)
    with database.begin() as session:
        # as a migration of a later version: it only adds, and the old processes go on
        session.execute(text(f"ALTER TABLE model_versions ADD COLUMN {NEW_COLUMN} TEXT"))
    for api in apis:
        os.kill(api.process.pid, signal.SIGTERM)
        await balancer.until(lambda api=api: not balancer.well[api])  # type: ignore[misc]
        assert api.process.poll() is None, "health checks fail while the process still answers"
        await balancer.until(lambda api=api: api.process.poll() is not None)  # type: ignore[misc]
        assert api.process.wait() in (0, -signal.SIGTERM)
        api.start()
        await balancer.until(lambda api=api: balancer.answered[api.process.pid] > PER_SECOND)  # type: ignore[misc]
    for task in reversed(background):
        task.cancel()
        await asyncio.wait([task])
    await balancer.close()
    print(dict(balancer.statuses), dict(balancer.answered))
    assert set(balancer.statuses) == {200}
    assert len(balancer.answered) == 4
