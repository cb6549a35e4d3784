"""How soon does a service answer after its start, and with a model of two gigabytes?

A process of the API, and two models: a small one and one whose weights take ``--gigabytes``. The large one is read from
the disk, once out of the system's cache and once in it, while the small one is asked every few milliseconds.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import numpy as np
import orjson

from benchmarks import serving_model
from benchmarks.bench_serving import serving
from benchmarks.processes import apart
from benchmarks.results import write

SMALL, LARGE = "small", "large"
N_CLASSES = 1_000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--gigabytes", type=float, default=2.0)
    arguments.add_argument("--rounds", type=int, default=3)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["POLYMARGIN_HOME"], os.environ["POLYMARGIN_LOG_LEVEL"] = name, "error"
        n_features = int(chosen.gigabytes * 1e9 / (4 * N_CLASSES))
        secret = apart(_make, n_features)
        weights = Path(name) / "files" / "models" / LARGE / "model" / "W.npy"
        rows = []
        for state in ("not in the system's cache", "in it"):
            found = []
            for _ in range(chosen.rounds):
                if state != "in it":
                    _forget(weights)
                found.append(_measure(secret, n_features))
            rows.append([state, *(f"{statistics.median(each):.0f}" for each in zip(*found, strict=True))])
    header = [
        "weights", "first answer of a process", "first of the large model", "the next", "100 ms later",
        "meanwhile the small one, median", "most",
    ]  # fmt: skip
    note = (
        f"Milliseconds, medians of {chosen.rounds} processes. The weights take {chosen.gigabytes:g} GB; requests have "
        f"one instance of {serving_model.NONZEROS} features, {N_CLASSES} classes. The process listens before the first "
        "request is sent."
    )
    write("Serving: first answers", header, rows, note)


def _make(n_features: int) -> str:
    from app.config import settings

    url = settings().sqlalchemy_url
    serving_model.make(url, f"models/{SMALL}", 2_000, N_CLASSES, name=SMALL)
    return serving_model.make(url, f"models/{LARGE}", n_features, N_CLASSES, name=LARGE)


def _forget(path: Path) -> None:
    """Let the system drop its copy of a file."""
    os.sync()
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _measure(secret: str, n_features: int) -> tuple[float, ...]:
    with serving("app.server") as server, ExitStack() as stack:
        url, head = f"http://127.0.0.1:{server.port}/api/v1/models", {"Authorization": f"Bearer {secret}"}
        client = stack.enter_context(httpx.Client(headers=head, timeout=60.0, verify=False))
        first = _ask(client, url, SMALL, 2_000, 0)
        ending = threading.Event()
        meanwhile: list[float] = []
        other = threading.Thread(target=_go_on, args=(url, head, ending, meanwhile))
        other.start()
        time.sleep(0.5)
        del meanwhile[:]
        large = _ask(client, url, LARGE, n_features, 1)
        during = list(meanwhile)
        following = _ask(client, url, LARGE, n_features, 2)
        time.sleep(0.1)
        later = _ask(client, url, LARGE, n_features, 3)
        ending.set()
        other.join()
    during = during or meanwhile
    return first, large, following, later, statistics.median(during), max(during)


def _go_on(url: str, head: dict[str, str], ending: threading.Event, found: list[float]) -> None:
    with httpx.Client(headers=head, timeout=60.0, verify=False) as client:
        while not ending.wait(0.003):
            found.append(_ask(client, url, SMALL, 2_000, 5))


def _ask(client: httpx.Client, url: str, name: str, n_features: int, seed: int) -> float:
    """Milliseconds until the answer."""
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.choice(n_features, serving_model.NONZEROS, replace=False)).tolist()
    body = orjson.dumps({"instances": [{"indices": indices, "values": [0.5] * len(indices)}], "top_k": 5})
    began = time.perf_counter()
    answer = client.post(f"{url}/{name}/predict", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    sys.exit(main())
