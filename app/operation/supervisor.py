"""Child processes that are kept alive while wanted and do not outlive their supervisor."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.operation import process_reaper

# A child that dies sooner than this after its start has not worked at all.
QUICK_DEATH_SECONDS = 10.0
MAX_QUICK_DEATHS = 5
BACKOFF_SECONDS = 0.5
_POLL_SECONDS = 0.1
_LAST_WORDS_SECONDS = 2.0
LOG_BYTES = 10 << 20
# after which a process that is not ready is named
SAY_SECONDS = 15.0


class SupervisorError(Exception):
    """A child does not start or does not stay."""


class RotatingLog:
    """Appends lines to a file; one that finds no room is lost.

    Parameters
    ----------
    path : Path
        Of the log; the one before it is kept as ``path`` with ``.1`` at its end.
    most_bytes : int
        The file is put aside when it would come to more.
    """

    def __init__(self, path: Path, most_bytes: int = LOG_BYTES) -> None:
        self._path = path
        self._most_bytes = most_bytes
        with contextlib.suppress(OSError):
            path.touch()

    def write(self, line: bytes) -> None:
        """Append a line."""
        with contextlib.suppress(OSError):
            if self._path.exists() and self._path.stat().st_size + len(line) > self._most_bytes:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with self._path.open("ab", buffering=0) as file:
                file.write(line)


@dataclass
class Child:
    """One process to keep.

    Parameters
    ----------
    name : str
        For messages and for its log file.
    stop_seconds : float
        Between SIGTERM and SIGKILL.
    once : bool
        It has a task of its own and ends: it is not started again, however it ended.
    descriptors : sequence of int
        Files of the supervisor that the process inherits, by the same numbers.
    """

    name: str
    command: Sequence[str]
    stop_seconds: float = 10.0
    once: bool = False
    descriptors: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    quick_deaths: int = 0
    restart_at: float = field(default=0.0)
    copying: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Starts children in order, starts them again when they die, stops them in the opposite order.

    Each child leads its own session, so that Ctrl-C reaches the supervisor alone and a whole family can be killed.

    Parameters
    ----------
    logs : Path
        Folder of the children's output, one ``<name>.log`` each.
    environment : mapping of str to str
        The children's whole environment.
    say : callable
        Takes one line for people.
    stopping : Event
        Once set, nothing is started or waited for any more.
    verbose : bool
        Show the children's output on stderr, too.
    """

    def __init__(
        self,
        logs: Path,
        environment: Mapping[str, str],
        say: Callable[[str], None],
        stopping: threading.Event,
        verbose: bool = False,
    ) -> None:
        self._logs = logs
        self._environment = dict(environment)
        self._say = say
        self._verbose = verbose
        self._children: list[Child] = []
        logs.mkdir(parents=True, exist_ok=True)
        self._stopping = stopping
        self._reaper = _start_reaper()

    def start(self, child: Child, ready: Callable[[], bool], timeout: float) -> None:
        """Start a child and wait until it is ready for what comes after it, or until ``stopping`` is set.

        Raises
        ------
        SupervisorError
            It ended, or was not ready within ``timeout`` seconds.
        """
        if self._stopping.is_set():
            return
        self._children.append(child)
        self._launch(child)
        began, said = time.monotonic(), False
        deadline = began + timeout
        while not self._stopping.is_set() and not ready():
            if not said and time.monotonic() - began > SAY_SECONDS:
                said = True
                self._say(f"The {child.name} process is not ready after {SAY_SECONDS:g} s; its log: {self.log(child)}")
            if not child.running:
                raise SupervisorError(f"The {child.name} process ended at once{self._last_words(child)}")
            if time.monotonic() > deadline:
                raise SupervisorError(
                    f"The {child.name} process was not ready within {timeout:g} s, see {self.log(child)}"
                )
            time.sleep(_POLL_SECONDS)

    def watch(self) -> None:
        """Start again what dies until ``stopping`` is set.

        Raises
        ------
        SupervisorError
            A child died at once five times in a row.
        """
        while not self._stopping.wait(_POLL_SECONDS):
            if self._reaper.poll() is not None:
                self._replace_reaper()
            for child in list(self._children):
                self._attend(child)

    def stop(self) -> None:
        """Stop every child, the last one first; then the reaper, which kills what is still there."""
        for child in reversed(self._children):
            self._terminate(child)
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        self._reaper.wait()

    def log(self, child: Child) -> Path:
        return self._logs / f"{child.name}.log"

    def _attend(self, child: Child) -> None:
        if child.process is None:
            if time.monotonic() >= child.restart_at:
                self._launch(child)
            return
        status = child.process.poll()
        if status is None:
            return
        self._forget(child)
        if child.once:
            self._children.remove(child)
            return
        quick = time.monotonic() - child.started_at < QUICK_DEATH_SECONDS
        child.quick_deaths = child.quick_deaths + 1 if quick else 0
        if child.quick_deaths >= MAX_QUICK_DEATHS:
            raise SupervisorError(
                f"The {child.name} process ended at once {MAX_QUICK_DEATHS} times in a row{self._last_words(child)}"
            )
        seconds = BACKOFF_SECONDS * 2.0**child.quick_deaths if quick else 0.0
        child.restart_at = time.monotonic() + seconds
        how = f"killed by signal {-status}" if status < 0 else f"status {status}"
        self._say(f"The {child.name} process ended ({how}); starting it again. Its log: {self.log(child)}")

    def _launch(self, child: Child) -> None:
        log = RotatingLog(self.log(child))
        child.started_at = time.monotonic()
        child.process = subprocess.Popen(
            child.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            start_new_session=True,
            pass_fds=child.descriptors,
        )
        self._tell_reaper(f"+{child.process.pid}")
        child.copying = threading.Thread(target=self._copy, args=(child, child.process, log), daemon=True)
        child.copying.start()

    def _forget(self, child: Child) -> None:
        # Children of a worker that was killed must not go on beside those of its successor.
        assert child.process is not None
        _signal_group(child.process.pid, signal.SIGKILL)
        self._tell_reaper(f"-{child.process.pid}")
        child.process = None
        self._let_copy(child)

    def _terminate(self, child: Child) -> None:
        if child.process is None:
            return
        child.process.terminate()
        try:
            child.process.wait(child.stop_seconds)
        except subprocess.TimeoutExpired:
            self._say(f"The {child.name} process did not stop within {child.stop_seconds:g} s and is killed")
            _signal_group(child.process.pid, signal.SIGKILL)
            child.process.wait()
        self._forget(child)

    def _tell_reaper(self, line: str) -> None:
        assert self._reaper.stdin is not None
        try:
            self._reaper.stdin.write(f"{line}\n".encode())
        except BrokenPipeError:
            self._replace_reaper()

    def _replace_reaper(self) -> None:
        assert self._reaper.stdin is not None
        self._reaper.stdin.close()
        self._reaper = _start_reaper()
        for child in self._children:
            if child.process is not None:
                self._tell_reaper(f"+{child.process.pid}")

    def _let_copy(self, child: Child) -> None:
        """Wait for what a child that has ended wrote last; a process that it left behind may hold its output open."""
        if child.copying is not None:
            child.copying.join(_LAST_WORDS_SECONDS)

    def _copy(self, child: Child, process: subprocess.Popen[bytes], log: RotatingLog) -> None:
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                log.write(line)
                if self._verbose:
                    with contextlib.suppress(OSError):
                        sys.stderr.write(f"{child.name}: {line.decode(errors='replace')}")

    def _last_words(self, child: Child) -> str:
        self._let_copy(child)
        lines = self.log(child).read_text(errors="replace").strip().splitlines() if self.log(child).exists() else []
        last = f": {lines[-1][:300]}" if lines else ""
        return f"{last} (log: {self.log(child)})"


def _start_reaper() -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(process_reaper.__file__))]
    return subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
