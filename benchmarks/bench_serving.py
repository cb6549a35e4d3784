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

import numpy as np

from benchmarks import serving_model
from benchmarks.processes import apart
from benchmarks.results import write
from benchmarks.serving_load import load
from benchmarks.serving_phases import phases

CONNECTIONS = 16
PATH = f"/api/v1/models/{serving_model.NAME}/predict"
ROWS_OF_BATCH = 256


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=5.0)
    arguments.add_argument("--rounds", type=int, default=5)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        os.environ["POLYMARGIN_HOME"], os.environ["POLYMARGIN_LOG_LEVEL"] = name, "error"
        secret = apart(_make)
        table = apart(phases, secret)
        write("Serving: where the microseconds go", ["phase", "microseconds", "share"], table, _PHASES)
        with ExitStack() as stack:
            folder = str(serving_model.model_file(home))
            ports = {
                "bare": stack.enter_context(_serving("benchmarks.serving_peers", "bare", folder)),
                "parsing and scoring": stack.enter_context(_serving("benchmarks.serving_peers", "scoring", folder)),
                "service": stack.enter_context(_serving("app.server")),
            }
            _measure(ports, secret, chosen.seconds, chosen.rounds)


_PHASES = (
    f"Medians over requests of one instance with {serving_model.NONZEROS} features, the five best labels of "
    f"{serving_model.CLASSES} classes, a model of {serving_model.FEATURES} features; each phase called by itself, and "
    "the whole application without sockets. The rest surrounds a request: middleware, counters, headers."
)


def _make() -> str:
    from app.config import settings

    return serving_model.make(settings().sqlalchemy_url)


def _measure(ports: dict[str, int], secret: str, seconds: float, rounds: int) -> None:
    kinds = {"one instance": [serving_model.body(1, seed) for seed in range(64)]}
    kinds[f"{ROWS_OF_BATCH} instances"] = [serving_model.body(ROWS_OF_BATCH, seed) for seed in range(4)]
    rows = []
    for kind, bodies in kinds.items():
        found: dict[str, list[dict[str, float]]] = {name: [] for name in ports}
        for _ in range(rounds):
            for name, port in ports.items():
                found[name].append(load(port, PATH, bodies, secret, CONNECTIONS, seconds))
                assert found[name][-1]["failed"] == 0, found[name][-1]
        base = np.array([one["rate"] for one in found["parsing and scoring"]])
        for name, runs in found.items():
            rates = np.array([one["rate"] for one in runs])
            p50, p99 = (np.median([one[which] for one in runs]) for which in ("p50", "p99"))
            share = f"{np.median(rates / base):.0%}"
            rows.append([kind, name, f"{np.median(rates):.0f}", f"{p50:.2f}", f"{p99:.2f}", share])
    note = (
        f"{CONNECTIONS} connections, {rounds} rounds of {seconds:g} s in turns; medians. The load comes from the same "
        "machine. Ratios are of pairs of one round."
    )
    header = ["request", "endpoint", "requests/s", "p50 ms", "p99 ms", "of parsing and scoring"]
    write("Serving: requests a second", header, rows, note)


@contextmanager
def _serving(module: str, *arguments: str) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    given = ["--port", str(port)] if module == "app.server" else [arguments[0], str(port), *arguments[1:]]
    process = subprocess.Popen([sys.executable, "-m", module, *given])
    try:
        deadline = time.monotonic() + 60
        while not _listens(port):
            assert process.poll() is None, f"{module} ended"
            assert time.monotonic() < deadline, f"{module} does not listen"
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    main()
