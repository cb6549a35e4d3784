"""The walks that docs/explanation/architecture.md draws are those that requests take."""

import asyncio
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import orjson
import pytest
from asking import JSON, TestClient, bearer
from fastapi import FastAPI
from working import SPARSE

import app as package
from app import short_cache

ROOT = Path(package.__file__).parent.parent
PAGE = ROOT / "docs/explanation/architecture.md"
Ask = Callable[[httpx.AsyncClient], Any]


def walk(app: FastAPI, secret: str, ask: Ask) -> tuple[list[str], set[str]]:
    """The files of ``app/`` that a request passes, in the order of their first call, and the functions called back.

    A function is called back if a file further down calls it that its own file has called. All threads of the request
    count; they start with the loop, so that each can be followed.
    """
    prefix = f"{ROOT}/app/"
    files: dict[str, None] = {}
    called_back = set()

    def follow(frame: FrameType, event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(prefix):
            return
        files[name.removeprefix(f"{ROOT}/")] = None
        callers, back = [], frame.f_back
        while back is not None:
            if back.f_code.co_filename.startswith(prefix):
                callers.append(back.f_code.co_filename)
            back = back.f_back
        if callers and callers[0] != name and name in callers:
            called_back.add(f"{name.removeprefix(prefix)}:{frame.f_code.co_qualname}")

    async def request() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers=bearer(secret)
        ) as client:
            sys.setprofile(follow)
            try:
                response = await ask(client)
            finally:
                sys.setprofile(None)
            assert response.status_code < 300, response.text

    threading.setprofile(follow)
    try:
        asyncio.run(request())
    finally:
        threading.setprofile(None)
    return list(files), called_back


REQUESTS: dict[str, Ask] = {
    "POST /datasets": lambda client: client.post("/api/v1/datasets?name=d&format=svmlight", content=SPARSE),
    "POST /jobs": lambda client: client.post(
        "/api/v1/jobs", json={"dataset": "letters", "model": "m", "solver": "weston_watkins"}
    ),
    "POST /models/{ref}/predict": lambda client: client.post(
        "/api/v1/models/letters/predict",
        content=orjson.dumps({"instances": [{"indices": [1, 4], "values": [1, 0.5]}]}),
        headers=JSON,
    ),
}


def drawn(name: str) -> list[str]:
    """The files of a walk as the page lists them."""
    walks = PAGE.read_text().partition("## Call paths of three requests")[2]
    for row in re.findall(r"^\| `(.+?)` \| (.+) \|$", walks, re.MULTILINE):
        if row[0] == name:
            return [f"app/{file}" for file in re.findall(r"`(.+?)`", row[1])]
    raise AssertionError(f"{name} is not drawn")


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_passes_the_files_that_are_drawn(
    name: str, models: TestClient, app: FastAPI, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_cache, "REMEMBERED_SECONDS", 600.0)
    walk(app, secrets["editor"], REQUESTS["POST /models/{ref}/predict"])  # then key and model are remembered
    while any(loaded.on_disk for loaded in app.state.models.loaded()):
        time.sleep(0.001)
    files, called_back = walk(app, secrets["editor"], REQUESTS[name])
    assert set(files) - set(drawn("each")) == set(drawn(name))
    assert not {called for called in called_back if called.startswith(("datasets/", "jobs/"))}
