"""The API as a process: ``python -m app.server --host 127.0.0.1 --port 8000``."""

import argparse
import contextlib
import gc
import ipaddress
import os
import resource
from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI

from app import logs
from app.api.connections import Guard, GuardedProtocol
from app.config import Settings, settings
from app.main import create_app

# descriptors for the database, models, files and what is accepted just now
_RESERVED_DESCRIPTORS = 256
_MOST_DESCRIPTORS = 65_536


def main(host: str, port: int, graceful_seconds: int = 5) -> None:
    """Serve until SIGTERM or Ctrl-C.

    Parameters
    ----------
    host : str
        Address, or name, to bind to; by a name that it is bound to the service may be asked.
    port : int
    graceful_seconds : int
        Requests that are still answered after so long are cut off: an open event stream ends only when its job does.
    """
    _allow(host)
    configured = settings()
    logs.configure(configured.log_level)
    logs.adopt_libraries(configured.log_level)
    protocol: Any = partial(GuardedProtocol, guard(configured, descriptors()))
    uvicorn.run(
        "app.server:application",
        factory=True,
        host=host,
        port=port,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=graceful_seconds,
    )


def application() -> FastAPI:
    """The application, apart from what the collector of garbage looks through: that would hold up every request."""
    app = create_app()
    gc.collect()
    gc.freeze()
    return app


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
    given = parser.parse_args()
    main(given.host, given.port, given.graceful_seconds)
