"""A signal that asks a process to stop is heard at whatever moment it comes."""

import subprocess
import sys

IN_THE_MIDDLE_OF_A_WAIT = """
import signal
from app import process_manager

stopping = process_manager.event_of(signal.SIGTERM, signal.SIGINT)
assert not stopping.is_set()
with stopping._cond:  # as within ``wait``
    signal.raise_signal(signal.{name})
stopping.wait()
print("stopped")
"""


def _said(name: str) -> str:
    command = [sys.executable, "-c", IN_THE_MIDDLE_OF_A_WAIT.format(name=name)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_a_signal_in_the_middle_of_a_wait_for_it_is_heard():
    assert _said("SIGTERM") == "stopped\n"


def test_so_is_each_of_the_signals():
    assert _said("SIGINT") == "stopped\n"
