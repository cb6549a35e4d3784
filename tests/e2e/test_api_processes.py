"""Several processes of the API on one port."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event

import httpx
import pytest
from running import Running, clean_environment, running, until

from app.client import Client

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]
_TRIES = 40
_CONNECTIONS = 12


def statuses(service: Running, key: str) -> set[int]:
    """What many connections, each of its own, are answered."""
    url, headers = f"{service.environment['POLYMARGIN_URL']}/api/v1/models", {"Authorization": f"Bearer {key}"}
    return {httpx.get(url, headers=headers).status_code for _ in range(_TRIES)}


def n_listening(service: Running) -> int:
    """How many processes take connections on the service's port; one that has just started takes none yet."""
    port = int(service.environment["POLYMARGIN_URL"].rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def test_all_answer_a_killed_one_comes_back_and_a_revocation_reaches_each(tmp_path: Path) -> None:
    with running(tmp_path / "home", "--api", "3") as service:
        until(lambda: n_listening(service) == 3)
        admin = (tmp_path / "home" / "admin.key").read_text().strip()
        with httpx.Client(
            base_url=f"{service.environment['POLYMARGIN_URL']}/api/v1", headers={"Authorization": f"Bearer {admin}"}
        ) as client:
            made = client.post("/keys", json={"name": "guest", "role": "viewer"}).json()
            assert statuses(service, made["secret"]) == {200}
            assert client.delete(f"/keys/{made['id']}").status_code == 204
        until(lambda: not statuses(service, made["secret"]) & {200})  # 401, and 429 after many
        before = service.members("app.server")
        assert len(before) == 3
        os.kill(next(iter(before)), signal.SIGKILL)
        until(lambda: len(service.members("app.server") - before) == 1)
        until(lambda: statuses(service, admin) == {200})


def test_promotions_lose_no_request_and_reach_every_process(tmp_path: Path) -> None:
    with running(tmp_path / "home", "--api", "3") as service:
        url, admin = service.environment["POLYMARGIN_URL"], (tmp_path / "home" / "admin.key").read_text().strip()
        with Client(url, admin) as client:
            rows = [{"text": f"{word} number {n}", "label": word} for word in ("apple", "pear") for n in range(20)]
            (tmp_path / "fruits.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
            client.datasets.upload(tmp_path / "fruits.jsonl", "fruits").wait()
            for C in (0.1, 1.0):
                client.train("fruits", "fruits", "weston_watkins", {"C": C}).wait()
            revision = client.models.set_alias("fruits", "best", 1).revision
            until(lambda: n_listening(service) == 3)
            connections = [_Connection(url, admin) for _ in range(_CONNECTIONS)]
            with ThreadPoolExecutor(_CONNECTIONS) as pool:
                ends = [pool.submit(connection.ask) for connection in connections]
                try:
                    for version in (2, 1, 2, 1, 2):
                        revision = client.models.set_alias("fruits", "best", version, revision).revision
                        until(partial(_all_see, connections, version))
                finally:
                    for connection in connections:
                        connection.ending.set()
                assert [end.result() for end in ends] == [{200}] * _CONNECTIONS
        # a connection stays with one process, which never goes back to a version that was promoted away
        assert [one.seen for one in connections if one.seen not in ([1, 2] * 3, [2, 1] * 2 + [2])] == []


class _Connection:
    """A client that asks for predictions by an alias, over one connection."""

    def __init__(self, url: str, key: str) -> None:
        kept = httpx.Limits(keepalive_expiry=None)
        headers = {"Authorization": f"Bearer {key}"}
        self._client = httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=600, limits=kept)
        self.ending = Event()
        self.seen: list[int] = []  # versions that answered, again at each change

    def ask(self) -> set[int]:
        """Ask until the end is wanted; the statuses of the answers."""
        found = set()
        with self._client as client:
            while not self.ending.is_set():
                answer = client.post(
                    "/models/fruits/predict", params={"alias": "best"}, json={"instances": [{"text": "pear number 3"}]}
                )
                found.add(answer.status_code)
                version = answer.json().get("version", 0)
                if self.seen[-1:] != [version]:
                    self.seen.append(version)
        return found


def _all_see(connections: list[_Connection], version: int) -> bool:
    return all(connection.seen[-1:] == [version] for connection in connections)


def test_the_end_of_one_process_is_the_end_of_all_where_nothing_restarts_it(tmp_path: Path) -> None:
    environment = clean_environment(POLYMARGIN_HOME=str(tmp_path))
    subprocess.run([sys.executable, "-m", "app.cli", "migrate"], env=environment, check=True, capture_output=True)
    command = [sys.executable, "-m", "app.server", "--port", "-1", "--processes", "2"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode != 0
