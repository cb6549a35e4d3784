"""The socket that a process manager passes is taken once, and by the process that it names."""

import os
import socket
import subprocess
import sys

import pytest

_TAKE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_PID": str(os.getpid() + int(sys.argv[3])), "LISTEN_FDS": sys.argv[2]}
from app.errors import SettingsError
from app.process_manager import address_of, passed_socket
try:
    found = passed_socket()
except SettingsError as error:
    sys.exit(str(error))
print(found, found and address_of(found), passed_socket(), "LISTEN_FDS" in os.environ, os.get_inheritable(3))
"""


def _take(given: socket.socket, n: str = "1", other: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _TAKE, str(given.fileno()), n, str(other)]
    return subprocess.run(command, pass_fds=(given.fileno(),), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_socket_is_taken_once_and_not_inherited(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    try:
        given = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with given:
        port = given.getsockname()[1]
        assert _take(given).stdout == f"3 ({host!r}, {port}) None False False\n"


def test_one_for_another_process_or_none_is_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        for n, other in (("1", 1), ("0", 0), ("", 0)):
            assert _take(given, n, other).stdout.startswith("None None None False")


def test_several_sockets_and_other_kinds_are_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as given:
        assert _take(given, "2").stderr == "expected one socket from the process manager, got 2\n"
    said = "the socket from the process manager does not listen on a TCP port (ListenStream=)\n"
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as given:
            given.bind(("127.0.0.1", 0))
            assert _take(given).stderr == said
    with socket.socket(socket.AF_UNIX) as given:
        assert _take(given).stderr == said
    assert "LISTEN_FDS" not in os.environ
