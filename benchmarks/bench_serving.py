"""How many predictions a second does one API process answer, and where does each microsecond go?

Side by side, in turns: an endpoint that only reads the body, one that parses it and scores it with the same model and
does nothing else, and the service. Ratios of one run compare; rates of different runs do not.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import pictures, serving_model
from benchmarks.pictures import Curve
from benchmarks.processes import apart, children, cpu_seconds
from benchmarks.results import write
from benchmarks.serving_load import load
from benchmarks.serving_pace import keep_pace
from benchmarks.serving_phases import phases

CONNECTIONS = 16
PATH = f"/api/v1/models/{serving_model.NAME}/predict"
ROWS_OF_BATCH = 256
RATES = (125, 250, 500, 1000, 1500, 2000, 3000)


class Server(NamedTuple):
    """A process that listens."""

    port: int
    pid: int


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=5.0)
    arguments.add_argument("--rounds", type=int, default=5)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        os.environ["POLYMARGIN_HOME"], os.environ["POLYMARGIN_LOG_LEVEL"] = name, "error"
        os.environ["POLYMARGIN_REQUESTS_PER_SECOND"] = "0"  # of one key: there is no other here
        secret = apart(_make)
        table = apart(phases, secret)
        write("Serving: where the microseconds go", ["phase", "microseconds", "share"], table, _PHASES)
        with ExitStack() as stack:
            folder = str(serving_model.model_file(home))
            servers = {
                "bare": stack.enter_context(serving("benchmarks.serving_peers", "bare", folder)),
                "parsing and scoring": stack.enter_context(serving("benchmarks.serving_peers", "scoring", folder)),
                "service": stack.enter_context(serving("app.server")),
            }
            _measure(servers, secret, chosen.seconds, chosen.rounds)
            with serving("app.server", "--processes", "2") as both:
                _several({1: servers["service"], 2: both}, secret, chosen.seconds, chosen.rounds)
            _pace({name: servers[name] for name in ("parsing and scoring", "service")}, secret, chosen.seconds)


_PHASES = (
    f"Medians over requests of one instance with {serving_model.NONZEROS} features, the five best labels of "
    f"{serving_model.CLASSES} classes, a model of {serving_model.FEATURES} features; each phase called by itself, and "
    "the whole application without sockets. The rest surrounds a request: middleware, counters, headers."
)


def _make() -> str:
    from app.config import settings

    return serving_model.make(settings().sqlalchemy_url)


def _measure(servers: dict[str, Server], secret: str, seconds: float, rounds: int) -> None:
    kinds = {"one instance": [serving_model.body(1, seed) for seed in range(64)]}
    kinds[f"{ROWS_OF_BATCH} instances"] = [serving_model.body(ROWS_OF_BATCH, seed) for seed in range(4)]
    rows = []
    for kind, bodies in kinds.items():
        found: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
        for _ in range(rounds):
            for name, server in servers.items():
                began = cpu_seconds(server.pid)
                run = load(server.port, PATH, bodies, secret, CONNECTIONS, seconds)
                assert run["failed"] == 0, run
                found[name].append(run | {"cpu": 1e6 * (cpu_seconds(server.pid) - began) / run["answered"]})
        base = {which: _of(found["parsing and scoring"], which) for which in ("rate", "cpu")}
        for name, runs in found.items():
            rate, p50, p99, cpu = (_of(runs, which) for which in ("rate", "p50", "p99", "cpu"))
            shares = (f"{np.median(rate / base['rate']):.0%}", f"{np.median(base['cpu'] / cpu):.0%}")
            medians = [f"{np.median(of):.{digits}f}" for of, digits in ((rate, 0), (p50, 2), (p99, 2), (cpu, 0))]
            rows.append([kind, name, *medians, *shares])
    note = (
        f"{CONNECTIONS} connections, {rounds} rounds of {seconds:g} s in turns; medians. The load comes from the same "
        "machine and takes its part of the processors; the processor time is that of the endpoint's process alone. "
        "Ratios are to parsing and scoring, of pairs of one round: of rates, and of requests for the same CPU time."
    )
    header = ["request", "endpoint", "requests/s", "p50 ms", "p99 ms", "CPU us", "ratio of rates", "for the same CPU"]
    write("Serving: requests a second", header, rows, note)


def _several(servers: dict[int, Server], secret: str, seconds: float, rounds: int) -> None:
    """What a second process on the port adds; the load uses the same processors, so processor time is compared."""
    bodies = [serving_model.body(1, seed) for seed in range(64)]
    found: dict[int, list[dict[str, float]]] = {n: [] for n in servers}
    for _ in range(rounds):
        for n, server in servers.items():
            members = [server.pid] if n == 1 else children(server.pid)
            began = sum(map(cpu_seconds, members))
            run = load(server.port, PATH, bodies, secret, CONNECTIONS, seconds)
            assert run["failed"] == 0, run
            found[n].append(run | {"cpu": 1e6 * (sum(map(cpu_seconds, members)) - began) / run["answered"]})
    rows = []
    for n, runs in found.items():
        rate, cpu = _of(runs, "rate"), _of(runs, "cpu")
        times = (np.median(rate / _of(found[1], "rate")), n * np.median(_of(found[1], "cpu") / cpu))
        rows.append([n, f"{np.median(rate):.0f}", f"{np.median(cpu):.0f}", *(f"{of:.2f}" for of in times)])
    note = (
        f"One instance, {CONNECTIONS} connections, {rounds} rounds of {seconds:g} s in turns; medians. Where the load "
        "takes a processor of two, a second process has none: the last column says how many times as many requests "
        "processors of their own would answer, by the processor time of a request."
    )
    header = ["processes", "requests/s", "CPU us", "times the rate of one", "with processors of their own"]
    write("Serving: processes on one port", header, rows, note)


def _of(runs: list[dict[str, float]], which: str) -> NDArray[np.float64]:
    return np.array([run[which] for run in runs])


def _pace(servers: dict[str, Server], secret: str, seconds: float) -> None:
    """How long requests take that come at a given rate, whether or not those before are answered."""
    bodies = [serving_model.body(1, seed) for seed in range(64)]
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    rows = []
    for rate in RATES:
        for name, server in servers.items():
            found = keep_pace(server.port, PATH, bodies, secret, rate, seconds)
            assert all(one.good for one in found)
            p50, p99 = np.percentile([1000 * one.seconds for one in found], [50, 99])
            rows.append([rate, name, f"{p50:.2f}", f"{p99:.2f}"])
            points.setdefault((name, "p50"), []).append((rate, p50))
            points.setdefault((name, "p99"), []).append((rate, p99))
    curves = [Curve("serving", "milliseconds", f"{name}, {which}", at) for (name, which), at in points.items()]
    pictures.write("serving", curves)
    note = f"One instance, {CONNECTIONS} connections, {seconds:g} s each; a request's time counts from when it was due."
    write("Serving: latency against load", ["requests/s", "endpoint", "p50 ms", "p99 ms"], rows, note)


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[Server]:
    """A server that is a process of its own for as long as the context lasts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    ours = module == "app.server"
    given = ["--port", str(port), *arguments] if ours else [arguments[0], str(port), *arguments[1:]]
    process = subprocess.Popen([sys.executable, "-m", module, *given])
    try:
        deadline = time.monotonic() + 60
        while not _listens(port):
            assert process.poll() is None, f"{module} ended"
            assert time.monotonic() < deadline, f"{module} does not listen"
            time.sleep(0.05)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
