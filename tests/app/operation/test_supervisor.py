import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.operation import process_reaper
from app.operation.supervisor import Child, RotatingLog, Supervisor, SupervisorError

SLEEP = (sys.executable, "-c", "import time; time.sleep(1000)")
FAIL = (sys.executable, "-c", "raise SystemExit('no such luck')")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervisor(tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setattr("app.operation.supervisor.BACKOFF_SECONDS", 0.01)
    made = Supervisor(tmp_path / "logs", os.environ, said.append, threading.Event())
    yield made
    made.stop()


def test_a_child_that_dies_is_started_again(supervisor: Supervisor, said: list[str]) -> None:
    child = Child("sleeper", SLEEP)
    supervisor.start(child, lambda: True, 10)
    assert child.process is not None
    first = child.process.pid
    watching = threading.Thread(target=supervisor.watch)
    watching.start()
    os.kill(first, signal.SIGKILL)
    _until(lambda: child.process is not None and child.process.pid != first)
    supervisor._stopping.set()
    watching.join()
    assert child.running
    assert "killed by signal 9" in said[0]


@pytest.mark.parametrize("command", [FAIL, (sys.executable, "-c", "")])
def test_a_child_with_a_task_of_its_own_is_not_started_again(
    supervisor: Supervisor, said: list[str], command: tuple[str, ...]
) -> None:
    child, other = Child("task", command, once=True), Child("sleeper", SLEEP)
    supervisor.start(child, lambda: True, 10)
    supervisor.start(other, lambda: True, 10)
    watching = threading.Thread(target=supervisor.watch)
    watching.start()
    _until(lambda: supervisor._children == [other])
    supervisor._stopping.set()
    watching.join()
    assert child.process is None
    assert said == []


def test_a_child_that_never_works_is_given_up_with_its_last_words(supervisor: Supervisor, said: list[str]) -> None:
    supervisor.start(Child("failing", FAIL), lambda: True, 10)
    with pytest.raises(SupervisorError, match=r"5 times in a row: no such luck \(log: .*failing\.log\)"):
        supervisor.watch()
    assert len(said) == 4


def test_a_child_that_ends_before_it_is_ready_is_an_error_at_once(supervisor: Supervisor) -> None:
    with pytest.raises(SupervisorError, match="ended at once: no such luck"):
        supervisor.start(Child("failing", FAIL), lambda: False, 1000)


def test_a_child_that_is_not_ready_in_time_is_an_error(supervisor: Supervisor) -> None:
    with pytest.raises(SupervisorError, match=r"not ready within 0\.1 s"):
        supervisor.start(Child("sleeper", SLEEP), lambda: False, 0.1)


def test_a_child_that_takes_long_is_named_once_with_its_log(
    supervisor: Supervisor, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.operation.supervisor.SAY_SECONDS", 0.0)
    looks = iter([False, False, True])
    supervisor.start(Child("sleeper", SLEEP), lambda: next(looks), 10)
    assert [line.split(";")[0] for line in said] == ["The sleeper process is not ready after 0 s"]
    assert said[0].endswith("sleeper.log")


def test_nothing_starts_once_it_shall_stop(supervisor: Supervisor) -> None:
    supervisor._stopping.set()
    child = Child("sleeper", SLEEP)
    supervisor.start(child, lambda: False, 1000)
    assert not child.running


def test_children_stop_in_the_opposite_order_and_a_stubborn_one_is_killed(
    supervisor: Supervisor, said: list[str], tmp_path: Path
) -> None:
    note = "import pathlib, signal, sys, time\n"
    note += "def end(*_): pathlib.Path(sys.argv[1]).open('a').write(sys.argv[2]); sys.exit()\n"
    note += "signal.signal(signal.SIGTERM, end)\nprint('up', flush=True)\ntime.sleep(1000)"
    for name in ("a", "b"):
        child = Child(name, (sys.executable, "-c", note, str(tmp_path / "order"), name))
        supervisor.start(child, lambda child=child: "up" in supervisor.log(child).read_text(), 10)  # type: ignore[misc]
    deaf = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(1000)"
    )
    stubborn = Child("deaf", (sys.executable, "-c", deaf), stop_seconds=0.1)
    supervisor.start(stubborn, lambda: "up" in supervisor.log(stubborn).read_text(), 10)
    supervisor.stop()
    assert (tmp_path / "order").read_text() == "ba"
    assert "deaf process did not stop" in said[0]


def test_the_reaper_kills_the_families_that_are_still_listed() -> None:
    family = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(1000)'])"
    doomed, spared = (subprocess.Popen((sys.executable, "-c", family), start_new_session=True) for _ in range(2))
    process_reaper.main([f"+{doomed.pid}\n", f"+{spared.pid}\n", f"-{spared.pid}\n"])
    assert doomed.wait(10) == -signal.SIGKILL
    assert spared.poll() is None
    os.killpg(spared.pid, signal.SIGKILL)
    spared.wait(10)


def test_a_reaper_that_was_killed_is_replaced(supervisor: Supervisor) -> None:
    supervisor._reaper.kill()
    supervisor._reaper.wait()
    child = Child("sleeper", SLEEP)
    supervisor.start(child, lambda: True, 10)
    assert supervisor._reaper.poll() is None


def _until(condition: object) -> None:
    deadline = time.monotonic() + 600
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_log_rotates_while_its_child_runs(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RotatingLog.__init__, "__defaults__", (1000,))
    talker = "import time\nfor i in range(100): print(f'{i:019}', flush=True)\n"
    talker += "print('over', flush=True)\ntime.sleep(1000)"
    child = Child("talker", (sys.executable, "-c", talker))
    supervisor.start(child, lambda: "over" in supervisor.log(child).read_text(), 60)
    assert child.running
    assert supervisor.log(child).stat().st_size <= 1000
    kept = (tmp_path / "logs" / "talker.log.1").read_text() + supervisor.log(child).read_text()
    assert kept.endswith("0000000000000000098\n0000000000000000099\nover\n")


def test_a_log_without_room_loses_its_lines_and_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    log = RotatingLog(tmp_path / "full")
    log.write(b"lost\n")
    assert (tmp_path / "full").is_symlink()
