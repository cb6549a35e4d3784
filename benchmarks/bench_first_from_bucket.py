"""How soon does a machine answer with a model of two gigabytes that is only in object storage?

A process of the API, an empty local cache, and a bucket behind a network of ``--megabytes-per-second`` and 15 ms.
Without digests of blocks the process fetches the whole version before its first answer.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import orjson

from benchmarks import serving_model
from benchmarks.bench_serving import serving
from benchmarks.processes import apart
from benchmarks.results import write

NAME, N_CLASSES = "large", 1_000
FOLDER = f"models/{NAME}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--gigabytes", type=float, default=2.0)
    arguments.add_argument("--megabytes-per-second", type=float, default=100.0)
    arguments.add_argument("--rounds", type=int, default=3)
    chosen = arguments.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        home, objects = Path(folder) / "home", Path(folder) / "objects"
        os.environ["POLYMARGIN_HOME"], os.environ["POLYMARGIN_LOG_LEVEL"] = str(home), "error"
        n_features = int(chosen.gigabytes * 1e9 / (4 * N_CLASSES))
        secret = apart(_make, n_features)
        shutil.move(home / "files", objects / "files")
        digests = objects / "files" / FOLDER / "model" / "W.npy.blocks"
        apart(_write_digests, digests)
        for way in ("whole version first", "rows by ranges"):
            if way != "rows by ranges":
                digests.rename(objects / "aside")
            found = []
            for _ in range(chosen.rounds):
                with _bucket(objects, chosen.megabytes_per_second) as url:
                    found.append(_measure(url, Path(folder) / "cache", secret, n_features))
            rows.append([way, *(f"{statistics.median(each):.2f}" for each in zip(*found, strict=True))])
            if way != "rows by ranges":
                (objects / "aside").rename(digests)
    header = ["way", "first answer, s", "next, other features, s", "whole version there, s", "then an answer, s"]
    note = (
        f"Medians of {chosen.rounds} processes. The weights take {chosen.gigabytes:g} GB; requests have one instance "
        f"of {serving_model.NONZEROS} features, {N_CLASSES} classes. The bucket answers after 15 ms, with "
        f"{chosen.megabytes_per_second:g} MB/s for all requests together; it runs on the same two cores."
    )
    write("Serving: first answers from object storage", header, rows, note)


def _make(n_features: int) -> str:
    from app.config import settings

    return serving_model.make(settings().sqlalchemy_url, FOLDER, n_features, N_CLASSES, name=NAME)


def _write_digests(target: Path) -> None:
    from app.store.ranges import digests

    manifest = orjson.loads((target.parent / "manifest.json").read_bytes())
    target.write_bytes(digests(target.with_suffix(""), manifest["arrays"]["W"]))


@contextmanager
def _bucket(objects: Path, megabytes_per_second: float) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.throttled_bucket", str(objects)]
    command += ["--megabytes-per-second", str(megabytes_per_second)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


def _measure(bucket: str, cache: Path, secret: str, n_features: int) -> tuple[float, ...]:
    shutil.rmtree(cache, ignore_errors=True)
    given = {"FILES": "s3://bench/files", "FILES_ENDPOINT": bucket, "CACHE": str(cache)}
    names = {f"POLYMARGIN_{name}": value for name, value in given.items()}
    names |= {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ.update(names)
    try:
        with serving("app.server") as server, httpx.Client(timeout=120.0, verify=False) as client:
            url = f"http://127.0.0.1:{server.port}/api/v1/models"
            client.headers["Authorization"] = f"Bearer {secret}"
            began = time.perf_counter()
            first = _ask(client, url, n_features, 1)
            following = _ask(client, url, n_features, 2)
            while not (cache / FOLDER / "model").exists():
                time.sleep(0.05)
            there = time.perf_counter() - began
            time.sleep(1.0)
            return first, following, there, _ask(client, url, n_features, 3)
    finally:
        for name in names:
            del os.environ[name]


def _ask(client: httpx.Client, url: str, n_features: int, seed: int) -> float:
    """Seconds until the answer."""
    rng = np.random.default_rng(seed)
    indices = np.sort(rng.choice(n_features, serving_model.NONZEROS, replace=False)).tolist()
    body = orjson.dumps({"instances": [{"indices": indices, "values": [0.5] * len(indices)}], "top_k": 5})
    began = time.perf_counter()
    answer = client.post(f"{url}/{NAME}/predict", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
