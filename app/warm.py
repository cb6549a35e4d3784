"""``python -m app.warm``: compile every solver's kernels into numba's cache by training on a tiny problem."""

import numpy as np

from solvers.problem import Problem
from solvers.registry import SOLVERS


def main() -> None:
    """Train each solver on twelve points of three classes, and predict with its model."""
    rng = np.random.default_rng(0)
    y = np.arange(12) % 3
    problem = Problem.check(np.eye(3)[y] + 0.1 * rng.standard_normal((12, 3)), y, ("a", "b", "c"))
    for name, kind in SOLVERS.items():
        solver = kind(kind.Params())
        *_, last = solver.steps(problem)
        solver.model(problem, last.state).top(np.array([0], np.int32), np.array([1.0]), 1)
        print(f"compiled {name}")


if __name__ == "__main__":
    main()
