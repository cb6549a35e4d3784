"""From raw text to the five best labels of a pool that `auto` has made, phase by phase, and over HTTP.

The pool is trained on the index of industries (naics), with the words, pairs of words and runs of three characters that
`auto` takes; texts are runs of 50 words of the test rows. Phases are called by themselves, in one thread.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from benchmarks.bench_serving import CONNECTIONS, serving
from benchmarks.bench_waiting import write_files
from benchmarks.processes import apart, cpu_seconds
from benchmarks.results import write
from benchmarks.serving_load import load
from benchmarks.waiting_peers import read

NAME, N_WORDS, TOP, BATCH = "pool", 50, 5, 256
# calls of each phase on each text, of which the least counts
REPEATS = 4


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=5.0)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.environ["POLYMARGIN_HOME"], os.environ["POLYMARGIN_LOG_LEVEL"] = name, "error"
        os.environ["POLYMARGIN_REQUESTS_PER_SECOND"] = "0"  # of one key: there is no other here
        train, test = write_files("naics", Path(name))
        secret = apart(_train, str(train))
        words = " ".join(read(test)[0]).split()
        texts = [" ".join(words[at : at + N_WORDS]) for at in range(0, len(words) - N_WORDS, N_WORDS)]
        rows, about = apart(_phases, texts)
        with serving("app.server") as server:
            bodies = [orjson.dumps({"instances": [{"text": text}], "top_k": TOP}) for text in texts]
            began = cpu_seconds(server.pid)
            found = load(server.port, f"/api/v1/models/{NAME}/predict", bodies, secret, CONNECTIONS, chosen.seconds)
            assert found["failed"] == 0, found
            used = 1e6 * (cpu_seconds(server.pid) - began) / found["answered"]
    rows.append(["a request over HTTP, processor time of the service", f"{used:.0f}"])
    note = (
        f"{about} {len(texts)} texts of {N_WORDS} words, the {TOP} best labels. Medians over the texts. One process "
        f"answers {found['rate']:.0f} requests/s of one text each over {CONNECTIONS} connections; the load comes from "
        "the same machine."
    )
    write("Serving: texts by a pool of auto", ["phase", "microseconds a text"], rows, note)


def _train(path: str) -> str:
    """Train the pool in this process; returns a viewer's secret."""
    from benchmarks.bench_serving_texts import train

    return train(path, NAME, "auto")


def _phases(texts: list[str]) -> tuple[list[list[str]], str]:
    from app.main import create_app
    from solvers.selection.pool_model import PoolModel

    loaded = create_app().state.models.get(("default", NAME, None, None))
    model, features = loaded.model, loaded.features
    assert isinstance(model, PoolModel)
    rows = [features.text_row(text) for text in texts]
    members = [[member.score_one(*row)[None] for member in model.members] for row in rows]
    found = [["features", _median(lambda at: features.text_row(texts[at]), len(texts))]]
    for member in model.members:

        def score(at: int, member: Any = member) -> Any:
            return member.score_one(*rows[at])

        found.append([f"scores: {member.kind}", _median(score, len(texts))])
    found.append(["pooling", _median(lambda at: model._log_probabilities(members[at]), len(texts))])
    found.append(["all, from text", _median(lambda at: model.top(*features.text_row(texts[at]), TOP), len(texts))])
    began = time.process_time()
    for _ in range(REPEATS):
        for at in range(0, len(texts), BATCH):
            model.top_rows(features.transform(texts[at : at + BATCH]), TOP)
    used = 1e6 * (time.process_time() - began) / (REPEATS * len(texts))
    found.append([f"all, in batches of {BATCH}, processor time", f"{used:.0f}"])
    terms = np.mean([len(indices) for indices, _ in rows])
    return found, (
        f"{len(model.members)} members, {len(model.classes):,} classes, {model.n_features:,} terms; a text has "
        f"{terms:.0f} of them in the mean; {model.nbytes / 1e6:.0f} MB."
    )


def _median(part: Callable[[int], Any], n: int) -> str:
    times = np.empty((REPEATS, n))
    for again in range(REPEATS):
        for at in range(n):
            began = time.perf_counter()
            part(at)
            times[again, at] = time.perf_counter() - began
    return f"{1e6 * np.median(times.min(axis=0)):.0f}"


if __name__ == "__main__":
    main()
