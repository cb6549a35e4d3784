"""HiGHS on one linear program; as a script, the process that the module ``linear_programs`` beside it starts.

It imports nothing of this package, so that the process begins quickly.
"""

import os
import sys
import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

ORPHANED = 3
# the interior point method was two to five times as fast as the simplex method, which rounding disturbs less
METHODS = ("highs-ipm", "highs-ds")


def solve(costs: Any, A_ub: Any, b_ub: Any, A_eq: Any, b_eq: Any, box: Any, tolerance: float) -> Any:
    """What :func:`scipy.optimize.linprog` finds by the first method that succeeds, or what the last says."""
    # imported here: every process that knows the methods would wait for it
    from scipy.optimize import linprog

    call: Any = linprog
    names = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")
    options = dict.fromkeys(names, tolerance)
    for method in METHODS:
        found = call(costs, A_ub, b_ub, A_eq, b_eq, box, method=method, options=options)
        if found.status == 0:
            break
    return found


def main(task: str, answer: str) -> None:
    """Read a program from the file ``task``, and write what was found to ``answer``."""
    threading.Thread(target=_end_with_the_caller, daemon=True).start()
    held = np.load(task)
    A_ub, A_eq = (
        sp.csc_matrix(
            tuple(held[f"{name}_{part}"] for part in ("data", "indices", "indptr")),
            shape=(len(held[bounds]), len(held["costs"])),
        )
        for name, bounds in (("A_ub", "b_ub"), ("A_eq", "b_eq"))
    )
    found = solve(held["costs"], A_ub, held["b_ub"], A_eq, held["b_eq"], held["box"], float(held["tolerance"]))
    x, multipliers = (found.x, found.eqlin.marginals) if found.status == 0 else (np.empty(0), np.empty(0))
    np.savez(answer, status=found.status, message=np.array(found.message), x=x, multipliers=multipliers)


def _end_with_the_caller() -> None:
    """The caller holds the other end of standard input and writes nothing: its end means that the caller is gone."""
    os.read(0, 1)
    os._exit(ORPHANED)


if __name__ == "__main__":
    main(*sys.argv[1:])
