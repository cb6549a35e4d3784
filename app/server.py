"""The API as a process: ``python -m app.server --host 127.0.0.1 --port 8000``."""

import argparse
import asyncio
import contextlib
import gc
import ipaddress
import os
import resource
import signal
import socket
import subprocess
import sys
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app import logs, process_manager
from app.access.proxies import Peer
from app.config import Settings, settings
from app.errors import SettingsError
from app.http.connections import DRAINING, Guard, GuardedProtocol
from app.process_manager import address_of, passed_socket
from app.store import buckets

# descriptors for the database, models, files and what is accepted just now
_RESERVED_DESCRIPTORS = 256
_MOST_DESCRIPTORS = 65_536
_POLL_SECONDS = 0.2
# in which connections that were taken from a socket of others send their requests
_LEAST_DRAIN_SECONDS = 2.0
# containers that are made between two collections: a batch of instances is thousands, and none is garbage in a cycle
_MADE_BETWEEN_COLLECTIONS = 20_000


class Server(uvicorn.Server):
    """uvicorn's server, with a time between the wish that it ends and the end of its listening.

    Meanwhile health checks answer 503, so that a load balancer turns to other processes, requests are answered as
    before, and each answer closes its connection.

    Parameters
    ----------
    leaves_socket : bool
        Others hold the socket: this process takes no new connections meanwhile, and they wait for its successor.
    """

    def __init__(self, config: uvicorn.Config, drain_seconds: float = 0.0, leaves_socket: bool = False) -> None:
        super().__init__(config)
        self._drain_seconds, self._leaves_socket = drain_seconds, leaves_socket

    async def main_loop(self) -> None:
        await super().main_loop()
        self.lifespan.state[DRAINING] = True
        for server in self.servers if self._leaves_socket else ():
            server.close()
        loop = asyncio.get_running_loop()
        end = loop.time() + self._drain_seconds
        while not self.force_exit and loop.time() < end:
            await self.on_tick(0)  # the date of answers
            await asyncio.sleep(min(_POLL_SECONDS, max(0.0, end - loop.time())))


def main(
    host: str,
    port: int,
    graceful_seconds: int = 5,
    shared: bool = False,
    drain_seconds: float = 0.0,
    descriptor: int | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Parameters
    ----------
    host : str
        Address, or name, to bind to; by a name that it is bound to the service may be asked.
    graceful_seconds : int
        Requests that are still answered after so long are cut off: an open event stream ends only when its job does.
    shared : bool
        Other processes of the same user may listen on the port, too; the system gives each connection to one of them.
    drain_seconds : float
        After the signal, new requests are still answered for so long, while health checks answer 503.
    descriptor : int, optional
        Of a listening socket, in place of ``host`` and ``port``.
    """
    if descriptor is None:
        _allow(host)
    configured = settings()
    buckets.answer_soon()
    logs.configure(configured.log_level)
    logs.adopt_libraries(configured.log_level)
    sockets = [shared_socket(host, port)] if shared else None
    if descriptor is not None:
        host, port = address_of(descriptor)
        sockets = [socket.socket(fileno=descriptor)]
    config = server_config(configured, host, port, graceful_seconds)
    least = 0.0 if descriptor is None else _LEAST_DRAIN_SECONDS
    server = Server(config, max(drain_seconds, least), leaves_socket=descriptor is not None)
    server.run(sockets)
    if not server.started:
        sys.exit(1)


def server_config(configured: Settings, host: str, port: int, graceful_seconds: int) -> uvicorn.Config:
    """How uvicorn serves the application, and within which bounds."""
    protocol: Any = partial(GuardedProtocol, guard(configured, descriptors()))
    return uvicorn.Config(
        "app.server:application",
        factory=True,
        host=host,
        port=port,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application has them, since it must see the connection's own address first
        timeout_graceful_shutdown=graceful_seconds,
    )


def together(
    host: str,
    port: int,
    graceful_seconds: int,
    processes: int,
    drain_seconds: float = 0.0,
    descriptor: int | None = None,
) -> None:
    """Serve in several processes on one port until SIGTERM or Ctrl-C; the end of one is the end of all."""
    command = [sys.executable, "-P", "-m", "app.server", "--host", host, "--port", str(port), "--shared"]
    if descriptor is not None:
        command = [sys.executable, "-P", "-m", "app.server", "--descriptor", str(descriptor)]
    command += ["--graceful-seconds", str(graceful_seconds), "--drain-seconds", str(drain_seconds)]
    passed = () if descriptor is None else (descriptor,)
    children = [subprocess.Popen(command, pass_fds=passed) for _ in range(processes)]
    ending = process_manager.event_of(signal.SIGTERM, signal.SIGINT)
    while not ending.wait(_POLL_SECONDS) and all(child.poll() is None for child in children):
        pass
    for child in children:
        child.terminate()
    statuses = [child.wait() for child in children]
    if not ending.is_set():
        sys.exit(max(map(abs, statuses)) or 1)


def shared_socket(host: str, port: int) -> socket.socket:
    """A socket on a port that several processes may listen on."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    found = socket.socket(family, kind, protocol)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    found.bind(address)
    return found


def application() -> ASGIApp:
    """The application, apart from what the collector of garbage looks through: that would hold up every request.

    What is collected by counting references is most of what requests leave behind; so the collector comes seldom.
    """
    gc.disable()  # a quarter of the time that the modules below take to be imported
    from app.main import create_app
    from app.predictions.first_answers import load_loops

    app: Any = create_app()
    trusted = settings().trusted_proxies
    if trusted.strip():
        app = ProxyHeadersMiddleware(app, trusted)
    served: ASGIApp = Peer(app) if settings().sign_in_networks else app
    load_loops()  # before the process listens: its first request would wait for them
    gc.collect()
    gc.freeze()
    gc.set_threshold(_MADE_BETWEEN_COLLECTIONS)
    gc.enable()
    return served


def guard(configured: Settings, n_descriptors: int) -> Guard:
    """The bounds on connections, so that files can still be opened when there are as many as there may be."""
    return Guard(
        head_seconds=configured.head_seconds,
        body_seconds=configured.body_seconds,
        least_rate=configured.body_least_rate,
        per_address=configured.connections_per_address,
        in_all=min(configured.connections, max(1, n_descriptors - _RESERVED_DESCRIPTORS)),
    )


def descriptors() -> int:
    """How many files this process may open, after it has asked for as many as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return _MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _allow(host: str) -> None:
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return
    os.environ["POLYMARGIN_ALLOWED_HOSTS"] = ",".join(filter(None, [settings().allowed_hosts, host]))
    settings.cache_clear()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--graceful-seconds", type=int, default=5)
    parser.add_argument("--drain-seconds", type=float, default=0.0)
    parser.add_argument("--shared", action="store_true", help="let other processes listen on the same port")
    parser.add_argument("--processes", type=int, default=1, help="that listen on the port together")
    parser.add_argument("--descriptor", type=int, help="of a listening socket that the parent has passed")
    given = parser.parse_args()
    try:
        descriptor = passed_socket() if given.descriptor is None else given.descriptor
    except SettingsError as error:
        sys.exit(f"Error: {error}")
    if given.processes > 1:
        together(given.host, given.port, given.graceful_seconds, given.processes, given.drain_seconds, descriptor)
    else:
        main(given.host, given.port, given.graceful_seconds, given.shared, given.drain_seconds, descriptor)
