"""Shards of one training as threads of the test's process."""

import numpy as np

from solvers.sharding.exchange import run_shards


def in_shards(solver, problem, size, states=None, stop=None):
    """By rank, the steps of each shard with copies of their states, up to ``stop`` of them."""

    def work(exchange):
        found = []
        for step in solver.sharded(problem, exchange, states[exchange.rank] if states else None):
            found.append((step, {name: np.array(array) for name, array in step.state.items()}))
            if len(found) == stop:
                break
        return found

    return run_shards(size, work)
