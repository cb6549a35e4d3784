"""Several processes of the API on one port."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from running import Running, clean_environment, running, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]
_TRIES = 40


def statuses(service: Running, key: str) -> set[int]:
    """What many connections, each of its own, are answered."""
    url, headers = f"{service.environment['POLYMARGIN_URL']}/api/v1/models", {"Authorization": f"Bearer {key}"}
    return {httpx.get(url, headers=headers).status_code for _ in range(_TRIES)}


def test_all_answer_a_killed_one_comes_back_and_a_revocation_reaches_each(tmp_path: Path) -> None:
    with running(tmp_path / "home", "--api", "3") as service:
        until(lambda: len(service.members("app.server")) == 3)
        admin = (tmp_path / "home" / "admin.key").read_text().strip()
        with httpx.Client(
            base_url=f"{service.environment['POLYMARGIN_URL']}/api/v1", headers={"Authorization": f"Bearer {admin}"}
        ) as client:
            made = client.post("/keys", json={"name": "guest", "role": "viewer"}).json()
            assert statuses(service, made["secret"]) == {200}
            assert client.delete(f"/keys/{made['id']}").status_code == 204
        until(lambda: not statuses(service, made["secret"]) & {200})  # 401, and 429 after many
        before = service.members("app.server")
        os.kill(next(iter(before)), signal.SIGKILL)
        until(lambda: len(service.members("app.server") - before) == 1)
        until(lambda: statuses(service, admin) == {200})


def test_the_end_of_one_process_is_the_end_of_all_where_nothing_restarts_it(tmp_path: Path) -> None:
    environment = clean_environment(POLYMARGIN_HOME=str(tmp_path))
    subprocess.run([sys.executable, "-m", "app.cli", "migrate"], env=environment, check=True, capture_output=True)
    command = [sys.executable, "-m", "app.server", "--port", "-1", "--processes", "2"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode != 0
