"""What a process manager sends: a listening socket (systemd's sd_listen_fds(3)), and signals to stop.

The socket outlives the process: connections that come while the service restarts wait in it, instead of being refused.
"""

import os
import queue
import signal
import socket
import threading

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


def event_of(*numbers: signal.Signals) -> threading.Event:
    """An event that is set when one of these signals has come; to be called in the main thread.

    A handler runs between two instructions of the main thread, which may just hold the lock of the event in ``wait``:
    to set the event there would wait for that lock forever. ``SimpleQueue.put`` may be called at any moment, and a
    thread of its own sets the event.
    """
    stopping, come = threading.Event(), queue.SimpleQueue[None]()

    def set_when_come() -> None:
        come.get()
        stopping.set()

    for number in numbers:
        signal.signal(number, lambda *_: come.put(None))
    threading.Thread(target=set_when_come, name="stop-signals", daemon=True).start()
    return stopping
