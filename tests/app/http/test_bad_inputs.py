"""What makes no sense is refused with its status and code, repeats nothing, and changes nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import TestClient, bearer, problem
from bad_inputs import BAD_INPUTS, Bad

from app.config import settings
from app.main import create_app
from app.store.db import dispose

LISTS = ("datasets", "hierarchies", "jobs", "models", "keys", "models/letters")


@pytest.fixture(scope="module")
def service(
    trained_home: Path, empty_home: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestClient]:
    """A service with models that all the requests are sent to; after them all is as it was."""
    home = tmp_path_factory.mktemp("bad") / "home"
    shutil.copytree(trained_home, home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POLYMARGIN_HOME", str(home))
        patch.setenv("POLYMARGIN_DATABASE_URL", "")
        patch.setenv("POLYMARGIN_REDIS_URL", f"unix://{home}/no-redis.sock")
        patch.setenv("POLYMARGIN_LOG_LEVEL", "error")
        settings.cache_clear()
        with TestClient(create_app(), headers=bearer(empty_home[1]["admin"])) as client:
            before = _everything(client)
            yield client
            assert _everything(client) == before
        dispose()
    settings.cache_clear()


def _everything(client: TestClient) -> list[Any]:
    shown = [client.get(f"/api/v1/{path}").json() for path in LISTS]
    for key in shown[4]["items"]:
        del key["last_used_at"]
    return [*shown, sorted(str(path) for path in settings().files_folder.rglob("*"))]


def test_there_are_enough() -> None:
    assert len(BAD_INPUTS) >= 200


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=[bad.name for bad in BAD_INPUTS])
def test_a_bad_input_is_refused(service: TestClient, bad: Bad) -> None:
    sent: dict[str, Any] = {"headers": bad.headers or {}}
    if bad.query:
        sent["params"] = bad.query
    if bad.content is not None:
        sent["content"] = bad.content
    elif bad.json is not None:
        sent["json"] = bad.json
    document = problem(service.request(bad.method, f"/api/v1/{bad.path}", **sent), bad.status, bad.code)
    assert "Traceback" not in str(document)
