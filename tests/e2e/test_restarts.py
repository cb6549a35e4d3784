"""A service whose socket another process holds, as systemd does: connections wait while it restarts."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from running import PATIENCE_SECONDS, clean_environment, descendants, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]
# becomes the command, with the socket as descriptor 3 and what systemd says of it
_START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "polymargin.socket"}
os.execv(sys.executable, [sys.executable, "-m", "app.cli", *sys.argv[2:]])
"""


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=512) as found:
        yield found


@contextmanager
def started(home: Path, listening: socket.socket, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _START, str(listening.fileno()), *arguments]
    log = home.with_suffix(".out")
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            env=clean_environment(POLYMARGIN_HOME=str(home)),
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=(listening.fileno(),),
        )
    try:
        until(lambda: "Ctrl-C" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)


class Load:
    """Clients that ask again and again, each with connections of its own, until the block ends."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._headers = url, {"Authorization": f"Bearer {key}"}
        self._ending = threading.Event()
        self.statuses: list[int | str] = []
        self._threads = [threading.Thread(target=self._ask, args=(number % 2 == 0,)) for number in range(6)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, keeps_connection: bool) -> None:
        with httpx.Client() as kept:
            while not self._ending.wait(0.01):
                given: dict[str, Any] = {"headers": self._headers, "timeout": PATIENCE_SECONDS}
                ask = kept.get if keeps_connection else httpx.get
                try:
                    self.statuses.append(ask(f"{self._url}/api/v1/datasets", **given).status_code)
                except httpx.HTTPError as error:
                    self.statuses.append(repr(error))


@pytest.mark.parametrize("apis", [1, 2])
def test_a_restart_under_load_refuses_nothing(apis: int, tmp_path: Path, listening: socket.socket) -> None:
    home, url = tmp_path / "home", f"http://127.0.0.1:{listening.getsockname()[1]}"
    with started(home, listening, "up", "--api", str(apis)):
        key = (home / "admin.key").read_text().strip()
        assert (home / "run/address").read_text().strip() == url
    with Load(url, key) as load:  # begun while nobody answers: it waits
        time.sleep(0.5)
        assert load.statuses == []
        with started(home, listening, "up", "--api", str(apis)):
            until(lambda: len(load.statuses) > 100)
        with started(home, listening, "up", "--api", str(apis)):
            n = len(load.statuses)
            until(lambda: len(load.statuses) > n + 100)
            load._ending.set()
    assert set(load.statuses) == {200}, set(load.statuses)


def test_a_killed_process_of_the_api_refuses_nothing(tmp_path: Path, listening: socket.socket) -> None:
    home, url = tmp_path / "home", f"http://127.0.0.1:{listening.getsockname()[1]}"
    with started(home, listening, "up") as service:
        (api,) = (pid for pid in descendants(service.pid) if b"app.server" in _command(pid))
        os.kill(api, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{api}").exists())
        assert httpx.get(f"{url}/healthz", timeout=PATIENCE_SECONDS).status_code == 200


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.parametrize("processes", ["1", "2"])
def test_the_api_alone_takes_a_socket_too(processes: str, tmp_path: Path, listening: socket.socket) -> None:
    home, url = tmp_path / "home", f"http://127.0.0.1:{listening.getsockname()[1]}"
    environment = clean_environment(POLYMARGIN_HOME=str(home), POLYMARGIN_REDIS_URL="redis://127.0.0.1:9")
    subprocess.run([sys.executable, "-m", "app.cli", "migrate"], env=environment, check=True, capture_output=True)
    command = [sys.executable, "-c", _START, str(listening.fileno()), "api", "--processes", processes]
    process = subprocess.Popen(command, env=environment, pass_fds=(listening.fileno(),), stderr=subprocess.DEVNULL)
    try:
        assert httpx.get(f"{url}/healthz", timeout=PATIENCE_SECONDS).status_code == 200
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
    with socket.create_connection(listening.getsockname()):
        pass  # still open
