"""``python -m app.warm``: compile every solver's kernels into numba's cache by training on a tiny problem."""

import numpy as np

from solvers.core.problem import Problem
from solvers.labels.taxonomy import Taxonomy
from solvers.registry import SOLVERS


def main() -> None:
    """Train each solver on twelve points of three classes, go on to another C, and predict with its model."""
    rng = np.random.default_rng(0)
    y, names = np.arange(12) % 3, ("a", "b", "c")
    taxonomy = Taxonomy.from_edges([("root", name) for name in names])
    problem = Problem.check(np.eye(3)[y] + 0.1 * rng.standard_normal((12, 3)), y, names, taxonomy=taxonomy)
    for name, kind in SOLVERS.items():
        solver = kind(kind.Params())
        *_, last = solver.steps(problem)
        if solver.has_path and solver.params.C is not None:
            solver.at(2.0 * solver.params.C).rescaled(problem, last.state, solver.params.C)
        solver.model(problem, last.state).top(np.array([0], np.int32), np.array([1.0]), 1)
        print(f"compiled {name}")


if __name__ == "__main__":
    main()
