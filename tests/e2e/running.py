"""A service started by its command, and the processes that belong to it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_SECONDS = 600.0


@dataclass
class Running:
    """One ``polymargin up``."""

    process: subprocess.Popen[str]
    environment: dict[str, str]

    def members(self, word: str = "") -> set[int]:
        """Process ids of the supervisor's descendants whose command line has ``word``."""
        return {pid for pid in descendants(self.process.pid) if word in _command(pid)}

    def cli(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "app.cli", *arguments]
        return subprocess.run(command, env=self.environment, check=check, capture_output=True, text=True)


@contextmanager
def running(home: Path, *arguments: str, **settings: str) -> Iterator[Running]:
    """Start a service on a free port and wait until it says that it is ready; stop it at the end."""
    command = [sys.executable, "-m", "app.cli", "up", "--port", "0", *arguments]
    environment = clean_environment(POLYMARGIN_HOME=str(home), **settings)
    log = home.with_suffix(".out")
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True)
    try:
        until(lambda: "Ctrl-C" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        # the link to sign in with comes before it
        url = next(word for word in log.read_text().split() if word.endswith("/api/v1")).removesuffix("/api/v1")
        yield Running(process, environment | {"POLYMARGIN_URL": url})
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)


def clean_environment(**values: str) -> dict[str, str]:
    """The environment without settings of the service, with the repository importable from every folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POLYMARGIN_")}
    # each service would compile all methods beside the tests
    return kept | {"PYTHONPATH": str(Path(__file__).parents[2]), "POLYMARGIN_COMPILE_AHEAD": "0"} | values


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    parents = {int(entry.name): parent for entry in Path("/proc").glob("[0-9]*") if (parent := _parent(entry))}
    front = {pid}
    while front := {child for child, parent in parents.items() if parent in front} - found:
        found |= front
    return found


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if _command(pid)}


def until(condition: Callable[[], object]) -> None:
    """Wait for a condition; fail when it has not come true after a long time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.1)


def _parent(entry: Path) -> int | None:
    try:
        # The name in parentheses may hold anything; the fields after its last parenthesis are plain.
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def _command(pid: int) -> str:
    # Empty for a process that has ended, reaped or not.
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
