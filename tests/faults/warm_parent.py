"""Workers, and processes of the API, that are forked from a process which has imported what they import.

Each takes seconds of a processor to import its modules, and the tests here start a hundred. That they start by their
commands is what the tests of the whole service are about.
"""

import atexit
import functools
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

# as `python -m` runs a module
_RUN = "import runpy\nrunpy.run_module({!r}, run_name='__main__', alter_sys=True)"


class Forked:
    """A process that is no child of this one: as much of ``subprocess.Popen`` as tests need."""

    def __init__(self, parent: "WarmParent", pid: int) -> None:
        self.pid = pid
        self._parent = parent
        self._ended = os.pidfd_open(pid)
        self._status: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, or the negative number of the signal that has ended it."""
        if self._status is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a process", timeout or 0.0)
            os.close(self._ended)
            self._status = self._parent.ask(wait=self.pid)
        return self._status

    def kill(self) -> None:
        """End it at once, if it has not ended."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)

    def poll(self) -> int | None:
        """Its exit status, or None while it runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None


class WarmParent:
    """The process that forks; it imports these modules, and ends with this one."""

    def __init__(self, *modules: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[2])},
            start_new_session=True,
        )
        atexit.register(self.end)

    def end(self) -> None:
        """Let it end, as nobody asks any more."""
        self._process.communicate()

    def fork(self, code: str, arguments: list[str], log: str) -> Forked:
        """Run a piece of Python in a process that leads a group of its own, with this one's environment.

        What it writes is appended to ``log``.
        """
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return Forked(self, self.ask(code=code, arguments=arguments, log=log, environment=environment))

    def ask(self, **request: Any) -> int:
        """What the process answers: the id of a new process, or the status of one that has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@functools.cache
def _warm_parent(*modules: str) -> WarmParent:
    """One for all tests of this process."""
    return WarmParent(*modules)


def fork_worker(first: str, arguments: list[str], log: str) -> Forked:
    """A worker, which runs a piece of Python ``first``."""
    code = f"{first}\n{_RUN.format('workers.main')}"
    return _warm_parent("workers.pool").fork(code, arguments, log)


def fork_api(port: int, *arguments: str) -> Forked:
    """A process of the API on a port of this machine; after the signal to end, requests have a minute left."""
    given = ["--host", "127.0.0.1", "--port", str(port), "--graceful-seconds", "60", *arguments]
    return _warm_parent("app.main", "app.predictions.first_answers").fork(_RUN.format("app.server"), given, os.devnull)


def main() -> None:
    """Import what is named, and do what is asked until nobody asks any more."""
    gc.disable()
    for module in sys.argv[1:]:
        importlib.import_module(module)
    gc.enable()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1])
        else:
            answer = os.fork()
            if answer == 0:
                return _become(**request)
            # before the answer: who has it may kill the group
            os.setpgid(answer, answer)
        print(answer, flush=True)


def _become(code: str, arguments: list[str], log: str, environment: dict[str, str]) -> None:
    nothing, written = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor, place in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(descriptor, place)
    os.environ.clear()
    os.environ.update(environment)
    if "workers.running.lanes" in sys.modules:
        # its byte of memory is shared with all that are forked: each worker has its own
        importlib.reload(sys.modules["workers.running.lanes"])
    sys.argv[1:] = arguments
    exec(code, {"__name__": "__main__"})


if __name__ == "__main__":
    main()
