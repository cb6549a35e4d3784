"""How long does the first step of every method take in a fresh process: with nothing compiled, and compiled before?

Processor seconds, as others may load the machine. Every line has a cache of its own (NUMBA_CACHE_DIR), empty at first,
so methods that share compiled loops each pay for all of theirs. Training goes on to the end: later steps may need loops
that the first does not. Methods that have shards are also trained in two of them, threads of the process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any, get_args

from benchmarks.results import write

SAMPLES, FEATURES, CLASSES = 60, 20, 4
EPOCHS = 30
COLD_AIM, WARM_AIM = 8.0, 0.5
TIMEOUT = 300
SHARDS = "shards"
# what an algorithm cannot do without
NEEDED: dict[str, dict[str, Any]] = {"newton": {"loss": "squared_hinge"}}


def cases() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, what is special, and parameters: every algorithm of a method that has several, sparse and dense rows."""
    from solvers.registry import SOLVERS

    for name, method in sorted(SOLVERS.items()):
        if not method.handles.flat:
            continue
        field = method.Params.model_fields.get("algorithm")
        for algorithm in [given for given in get_args(field.annotation) if given != "auto"] if field else [None]:
            for rows in ("sparse", "dense"):
                params = {"algorithm": algorithm} | NEEDED.get(algorithm, {}) if algorithm else {}
                yield name, " ".join(filter(None, [algorithm, rows])), params
                if method.handles.shards:
                    yield name, " ".join(filter(None, [algorithm, SHARDS, rows])), params


def child(name: str, what: str, params: str) -> None:
    """One fresh process: imports, the first step, and the rest of training."""
    rows, in_shards = what.split()[-1], SHARDS in what.split()
    began = time.process_time()
    import numpy as np
    import scipy.sparse as sp

    from solvers.core.problem import Problem
    from solvers.registry import SOLVERS, parse_params

    imported = time.process_time() - began
    rng = np.random.default_rng(0)
    density = 1.0 if rows == "dense" else 0.1
    X = sp.random(SAMPLES, FEATURES, density=density, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    y = rng.permutation(np.arange(SAMPLES) % CLASSES)
    given = json.loads(params)
    if "max_epochs" in SOLVERS[name].Params.model_fields:
        given["max_epochs"] = EPOCHS
    task = Problem.check(X, y)
    solver = SOLVERS[name](parse_params(name, given))
    began = time.process_time()
    first = sharded(solver, task, began) if in_shards else stepped(solver.steps(task), began)
    print(json.dumps([imported, first, time.process_time() - began]))


def stepped(steps: Iterator[Any], began: float) -> float:
    """Train to the end; the processor seconds of the first step."""
    next(steps)
    first = time.process_time() - began
    for _ in steps:
        pass
    return first


def sharded(solver: Any, task: Any, began: float) -> float:
    """Train in two shards to the end; the processor seconds until both have made their first step."""
    from concurrent.futures import ThreadPoolExecutor

    from solvers.sharding.exchange import Hub
    from solvers.sharding.shardable import shardable

    hub = Hub(2)
    with ThreadPoolExecutor(2) as pool:
        shards = [pool.submit(stepped, shardable(solver).sharded(task, hub.exchange(rank)), began) for rank in range(2)]
    return float(max(shard.result() for shard in shards))


def measure(name: str, what: str, params: dict[str, Any], cache: str) -> list[float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.bench_cold_start",
        "--child",
        name,
        what,
        json.dumps(params),
    ]
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise SystemExit(f"{name}, {what}:\n{done.stderr}")
    return list(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments.add_argument("--methods", nargs="*", default=None)
    arguments.add_argument(
        "--kinds", nargs="*", default=None, help="Only kinds that have one of these words, as shards."
    )
    chosen = arguments.parse_args()
    if chosen.child:
        child(*chosen.child)
        return
    rows = []
    for name, what, params in cases():
        if chosen.methods is not None and name not in chosen.methods:
            continue
        if chosen.kinds is not None and not set(chosen.kinds) & set(what.split()):
            continue
        with tempfile.TemporaryDirectory() as cache:
            _, first, whole = measure(name, what, params, cache)
            imports, again, whole_again = measure(name, what, params, cache)
        missed = [aim for aim, value in (("cold", whole > COLD_AIM), ("warm", again > WARM_AIM)) if value]
        figures = [f"{value:.2f}" for value in (first, whole, again, whole_again, imports)]
        rows.append([name, what, *figures, ", ".join(missed) or "-"])
        print(rows[-1], flush=True)
    note = (
        f"Processor seconds; {SAMPLES} examples, {FEATURES} features, {CLASSES} classes. Aims: {COLD_AIM:g} s for "
        f"all of training with nothing compiled, and {WARM_AIM:g} s for the first step compiled before; the last "
        "column says which is missed. Imports are of numpy, scipy, numba and all methods, and come on top."
    )
    header = ["method", "kind", "first step, cold", "training, cold", "first step, warm", "training, warm", "imports"]
    write("Cold start", [*header, "missed"], rows, note)


if __name__ == "__main__":
    main()
