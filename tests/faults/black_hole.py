"""A way to a server on which bytes may vanish: what is sent is taken, and nothing comes back."""

import contextlib
import socket
import threading
from collections.abc import Callable

# a host and port, or the path of a unix socket
Address = tuple[str, int] | str


class BlackHole:
    """Forwards connections to a server; those that were open while it swallowed never carry a byte again.

    Parameters
    ----------
    server : (str, int) or str
        Host and port, or a unix socket.
    """

    def __init__(self, server: Address) -> None:
        self._server = server
        self._lost: set[socket.socket] = set()
        self._open: dict[socket.socket, socket.socket] = {}
        self._swallowing = False
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._begin(self._accept)

    def swallow(self) -> None:
        """From now on nothing gets through."""
        with self._lock:
            self._swallowing = True
            self._lost |= set(self._open)

    def heal(self, hang_up: bool = False) -> None:
        """New connections get through again; the others are as dead as they were, or are closed."""
        with self._lock:
            self._swallowing = False
            lost = self._lost & set(self._open) if hang_up else set()
        for client in lost:
            _shut(client, self._open[client])

    def end(self) -> None:
        """Close every connection."""
        _shut(self._listening)
        self._threads[0].join()
        for pair in self._open.items():
            _shut(*pair)
        for thread in self._threads[1:]:
            thread.join()
        for each in (self._listening, *self._open, *self._open.values()):
            each.close()

    def _begin(self, do: Callable[..., None], *given: socket.socket) -> None:
        thread = threading.Thread(target=do, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX if isinstance(self._server, str) else socket.AF_INET)
            with self._lock:
                self._open[client] = server
                if self._swallowing:
                    self._lost.add(client)
            try:
                server.connect(self._server)
            except OSError:
                _shut(client)
            for source, target in ((client, server), (server, client)):
                self._begin(self._carry, client, source, target)

    def _carry(self, client: socket.socket, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(65536):
                if client not in self._lost:
                    target.sendall(content)
        # of a connection that is lost neither side hears that the other has gone
        if client not in self._lost:
            _shut(client, self._open[client])


def _shut(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
