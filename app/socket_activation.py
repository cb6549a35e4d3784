"""A listening socket that the process manager has opened, as systemd passes it to a service (sd_listen_fds(3)).

It outlives the process: connections that come while the service restarts wait in it, instead of being refused.
"""

import os
import socket

from app.errors import SettingsError

_FIRST = 3


def passed_socket() -> int | None:
    """The descriptor of the socket that was passed to this process, once; None where there is none.

    Raises
    ------
    SettingsError
        Several were passed, or one that is not a listening TCP socket.
    """
    given = {name: os.environ.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")}
    if given["LISTEN_PID"] != str(os.getpid()) or given["LISTEN_FDS"] in ("", "0"):
        return None  # or it is for a parent
    if given["LISTEN_FDS"] != "1":
        raise SettingsError(f"expected one socket from the process manager, got {given['LISTEN_FDS']:.20}")
    try:
        with socket.socket(fileno=os.dup(_FIRST)) as found:
            is_tcp = found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM
            listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        is_tcp = listens = False
    if not (is_tcp and listens):
        raise SettingsError("the socket from the process manager does not listen on a TCP port (ListenStream=)")
    os.set_inheritable(_FIRST, False)
    return _FIRST


def address_of(descriptor: int) -> tuple[str, int]:
    """Host and port of a listening socket."""
    with socket.socket(fileno=os.dup(descriptor)) as found:
        host, port = found.getsockname()[:2]
    return host, port
