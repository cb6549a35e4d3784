"""How does the service bear minutes of predictions while jobs train and versions are promoted?

``polymargin up`` on a data folder of its own; texts of 50 words, 100 labels. Requests keep their pace, each with one
text, the five best labels wanted, of the version that an alias names; another thread trains version after version and
promotes each. The curves go to ``data/soak.csv`` and their picture.
"""

import argparse
import itertools
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks import pictures
from benchmarks.pictures import Curve
from benchmarks.processes import children
from benchmarks.results import write
from benchmarks.serving_pace import Paced, keep_pace

N_LABELS, N_ROWS, N_WORDS = 100, 5_000, 50
NAME, ALIAS = "soaked", "production"
MOST_POINTS = 40


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=10.0)
    arguments.add_argument("--rate", type=float, default=500.0)
    arguments.add_argument("--api", type=int, default=1, help="processes of the API")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        probe.close()
        environment = {**os.environ, "POLYMARGIN_HOME": name, "POLYMARGIN_LOG_LEVEL": "error"}
        command = [sys.executable, "-m", "app.cli", "up", "--port", str(port), "--api", str(chosen.api)]
        service = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        try:
            _soak(Path(name), port, service.pid, chosen)
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(60)


def _soak(home: Path, port: int, pid: int, chosen: argparse.Namespace) -> None:
    client = _client(home, port)
    texts = texts_with_labels(home / "texts.jsonl")
    client.datasets.upload(home / "texts.jsonl", "texts").wait()
    _train(client, 1.0, None)
    bodies = [orjson.dumps({"instances": [{"text": text}], "top_k": 5}) for text in texts[:512]]
    ending = threading.Event()
    promoted: list[float] = []
    trainer = threading.Thread(target=_train_on, args=(client, ending, promoted))
    memory: list[tuple[float, float]] = []
    watcher = threading.Thread(target=_watch, args=(pid, ending, memory))
    secret = (home / "admin.key").read_text().strip()
    path = f"/api/v1/models/{NAME}/predict?alias={ALIAS}"
    keep_pace(port, path, bodies, secret, chosen.rate, 5.0)  # warm
    began = time.perf_counter()
    trainer.start()
    watcher.start()
    found = keep_pace(port, path, bodies, secret, chosen.rate, 60 * chosen.minutes)
    ending.set()
    trainer.join()
    watcher.join()
    _report(chosen, began, found, promoted, memory)


def _client(home: Path, port: int) -> Any:
    from app.client import Client
    from app.remote.errors import ClientError

    deadline = time.monotonic() + 120
    while True:
        try:
            client = Client(f"http://127.0.0.1:{port}", (home / "admin.key").read_text().strip())
            client.models.list()
            return client
        except (ClientError, OSError):  # it does not listen yet, or its key is not written yet
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def texts_with_labels(path: Path) -> list[str]:
    """Write rows of JSON lines, texts with labels that depend on some of their words; their texts."""
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 7)) for _ in range(20_000)])
    chance = 1.0 / np.arange(1, len(words) + 1)
    common = rng.choice(len(words), (N_ROWS, N_WORDS), p=chance / chance.sum())
    labels = rng.integers(0, N_LABELS, N_ROWS)
    own = rng.integers(0, 40, (N_ROWS, 8)) + 40 * labels[:, None] + 2000  # of their label
    common[:, :8] = own
    texts = [" ".join(words[row]) for row in common]
    rows = [orjson.dumps({"text": text, "label": f"label-{label}"}) for text, label in zip(texts, labels, strict=True)]
    path.write_bytes(b"\n".join(rows))
    return texts


def _train(client: Any, C: float, revision: int | None) -> int:
    job = client.train("texts", NAME, solver="weston_watkins", params={"C": C, "tol": 1e-4})
    version: int = job.wait().result.version
    alias = client.models.set_alias(NAME, ALIAS, version, revision)
    return int(alias.revision)


def _train_on(client: Any, ending: threading.Event, promoted: list[float]) -> None:
    revision = client.models.get(NAME).aliases[0].revision
    for number in itertools.count():
        if ending.is_set():
            return
        revision = _train(client, 0.5 + 0.1 * (number % 10), revision)
        promoted.append(time.perf_counter())


def _watch(pid: int, ending: threading.Event, memory: list[tuple[float, float]]) -> None:
    """Megabytes of the API's processes, each second: their own pages, without those of mapped files."""
    while not ending.wait(1.0):
        resident = 0
        for process in _descendants(pid):
            reported = Path(f"/proc/{process}")
            try:
                if b"app.server" in (reported / "cmdline").read_bytes():
                    lines = (reported / "status").read_text().splitlines()
                    resident += next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
            except (OSError, StopIteration):
                continue
        memory.append((time.perf_counter(), resident / 1024))


def _descendants(pid: int) -> list[int]:
    try:
        return [pid, *(one for child in children(pid) for one in _descendants(child))]
    except OSError:
        return []


def _report(
    chosen: argparse.Namespace,
    began: float,
    found: list[Paced],
    promoted: list[float],
    memory: list[tuple[float, float]],
) -> None:
    due = np.array([one.due for one in found]) - began
    ms = 1000 * np.array([one.seconds for one in found])
    good = np.array([one.good for one in found])
    at, mb = np.array(memory).T
    at = at - began
    edges = np.linspace(0.0, 60 * chosen.minutes, min(MOST_POINTS, int(60 * chosen.minutes)) + 1)
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for begin, end in itertools.pairwise(edges):
        inside, seen = (due >= begin) & (due < end), (at >= begin) & (at < end)
        minute = (begin + end) / 120
        if inside.any():
            for name, q in (("p50", 50), ("p99", 99)):
                points.setdefault(("milliseconds", name), []).append((minute, float(np.percentile(ms[inside], q))))
        if seen.any():
            points.setdefault(("megabytes", "API"), []).append((minute, float(np.median(mb[seen]))))
    pictures.write("soak", [Curve("soak", panel, name, of) for (panel, name), of in points.items()])
    p50, p99, most = (f"{np.percentile(ms, q):.1f}" for q in (50, 99, 100))
    tenth = max(1, len(mb) // 10)
    grown = f"{np.median(mb[tenth : 2 * tenth]):.0f} to {np.median(mb[-tenth:]):.0f}"
    row = {
        "minutes": f"{chosen.minutes:g}",
        "requests/s": f"{len(found) / (60 * chosen.minutes):.0f}",
        "requests": len(found),
        "errors": int((~good).sum()),
        "p50 ms": p50,
        "p99 ms": p99,
        "most ms": most,
        "versions promoted": len(promoted),
        "MB": grown,
    }
    note = (
        f"{chosen.api} API process, one worker, on the machine that also makes the load; texts of {N_WORDS} words, "
        f"{N_LABELS} labels, {N_ROWS} rows to train on. A request's time counts from when it was due. MB: anonymous "
        "memory of the API, medians of the second tenth of the time and of the last."
    )
    write("Serving: while jobs train and versions are promoted", list(row), [list(row.values())], note)


if __name__ == "__main__":
    main()
