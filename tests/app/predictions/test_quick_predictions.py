"""Predictions that are known to be good are answered before the application's layers, and as these would."""

import gc
import http.client
import threading
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
import uvicorn
from asking import JSON, TestClient, bearer, problem
from fastapi import FastAPI

from app import short_cache as remembered
from app.access.rate_limits import Rates
from app.config import settings
from app.http.connections import AT_ONCE
from app.predictions.model_cache import ModelCache
from app.predictions.quick_routes import QuickPredictions
from app.server import application, server_config

URL = "/api/v1/models/letters/predict"
BODY = orjson.dumps({"instances": [{"indices": [1, 4], "values": [1, 0.5]}], "top_k": 2})


@pytest.fixture
def quick(app: FastAPI, models: TestClient, monkeypatch: pytest.MonkeyPatch) -> QuickPredictions:
    """What has answered once, and remembers it for as long as the test takes."""
    monkeypatch.setattr(remembered, "REMEMBERED_SECONDS", 600.0)
    assert models.post(URL, content=BODY, headers=JSON).status_code == 200
    assert isinstance(app.middleware_stack, QuickPredictions)
    return app.middleware_stack


async def refused(*_: Any) -> None:
    raise AssertionError("the application was asked")


def test_an_answer_is_the_one_that_the_application_gives(
    models: TestClient, app: FastAPI, quick: QuickPredictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {**JSON, "X-Request-ID": "mine"}
    ordinary = models.post(URL, content=BODY, headers={**named, "Content-Type": "application/json; charset=utf-8"})
    assert 'route="/api/v1/models/{ref}/predict",status="200"} 2.0' in models.get("/metrics").text
    monkeypatch.setattr(quick, "_app", refused)
    answer = models.post(URL, content=BODY, headers=named)
    assert (answer.status_code, answer.content) == (ordinary.status_code, ordinary.content)
    assert dict(answer.headers) == dict(ordinary.headers)
    (one,) = orjson.loads(BODY)["instances"]
    several = models.post(URL, json={"instances": [one, one], "top_k": 2})
    assert several.json()["predictions"] == 2 * ordinary.json()["predictions"]
    assert 'route="/api/v1/models/{ref}/predict",status="200"} 4.0' in app.state.metrics.text().decode()


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"Content-Type": "text/plain"}, "", 415),
        ({"Origin": "http://elsewhere.example"}, "", 403),
        ({"Host": "elsewhere.example"}, "", 421),
        ({"Authorization": "Bearer pm_unknown"}, "", 401),
        ({"Authorization": "Basic eDp5"}, "", 401),
        ({}, "?version=0", 422),
        ({}, "?version=1&alias=production", 422),
        ({}, "?alias=none", 404),
        ({}, "?more=1", 422),
    ],
)
def test_what_is_not_known_to_be_good_goes_to_the_application(
    models: TestClient, quick: QuickPredictions, headers: dict[str, str], query: str, status: int
) -> None:
    response = models.post(URL + query, content=BODY, headers=JSON | headers)
    problem(response, status)


def test_a_request_that_fails_is_told_why_and_counts_once_against_its_rate(
    models: TestClient, app: FastAPI, quick: QuickPredictions
) -> None:
    app.state.keyring.rates = Rates(1e-9, 2)  # two, and then none for years
    body = {"instances": [{"indices": [-1], "values": [1]}]}
    for _ in range(2):
        assert problem(models.post(URL, json=body), 422)["errors"][0]["pointer"] == "/instances/0"
    problem(models.post(URL, content=BODY, headers=JSON), 429)


def test_predictions_go_on_while_the_database_does_not_answer(
    models: TestClient, app: FastAPI, quick: QuickPredictions
) -> None:
    asked, ending = threading.Event(), threading.Event()

    def blocked() -> None:
        asked.set()
        assert ending.wait(60)
        raise OSError("gone")

    cache: ModelCache = app.state.models
    sessions = cache._sessions
    cache._sessions = app.state.keyring._sessions = cache.counts._sessions = blocked  # type: ignore[assignment]
    waiting = threading.Thread(target=cache.resolved.refresh)
    waiting.start()
    assert asked.wait(60)
    try:
        for _ in range(20):
            assert models.post(URL, content=BODY, headers=JSON).status_code == 200
        assert waiting.is_alive()
    finally:
        ending.set()
        waiting.join()
        cache._sessions = app.state.keyring._sessions = cache.counts._sessions = sessions


class Server:
    """The application on a port, over the protocol that the service uses."""

    def __init__(self, app: FastAPI) -> None:
        config = server_config(settings(), "127.0.0.1", 0, 1)
        config.app, config.factory, config.lifespan = app, False, "off"
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        started = threading.Event()
        while not self.server.started:
            assert not started.wait(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


@pytest.fixture
def server(app: FastAPI, quick: QuickPredictions) -> Iterator[Server]:
    found = Server(app)
    yield found
    found.stop()


def test_a_whole_answer_is_written_at_once_and_the_connection_goes_on_as_asked(
    server: Server,
    secrets: dict[str, str],
    app: FastAPI,
    quick: QuickPredictions,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inner: Callable[..., Any] = quick.__call__
    seen: list[bool] = []

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            seen.append(False)
            await send(message)

        seen.append(AT_ONCE in scope["extensions"])
        await inner(scope, receive, sent)

    monkeypatch.setattr(app, "middleware_stack", watched)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    head = JSON | bearer(secrets["admin"]) | {"Host": "127.0.0.1"}
    for more in ({}, {}, {"Connection": "close"}):
        connection.request("POST", URL, BODY, head | more)
        response = connection.getresponse()
        assert (response.status, response.getheader("x-frame-options")) == (200, "DENY")
        assert orjson.loads(response.read())["predictions"][0]["label"] == "b"
    assert response.getheader("connection") == "close"
    assert response.getheader("date")
    assert seen == [True, True, True]  # and nothing was sent by its parts


def test_a_batch_of_instances_is_answered_without_a_collection_of_garbage(
    models: TestClient, secrets: dict[str, str], request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda threshold=gc.get_threshold(): gc.set_threshold(*threshold))
    content = orjson.dumps({"instances": 256 * orjson.loads(BODY)["instances"]})
    with TestClient(application(), headers=bearer(secrets["viewer"])) as client:
        assert client.post(URL, content=content, headers=JSON).status_code == 200
        gc.collect()
        before = gc.get_stats()[0]["collections"]
        assert len(client.post(URL, content=content, headers=JSON).json()["predictions"]) == 256
        assert gc.get_stats()[0]["collections"] == before
