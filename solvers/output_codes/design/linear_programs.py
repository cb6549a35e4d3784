"""Linear programs, solved by HiGHS; large ones in a process of their own, so that their caller can report and stop.

HiGHS as :func:`scipy.optimize.linprog` has it takes no callback, and a thread that is in it cannot be ended; a process
can. The process ends itself, too, when its caller is no more.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scipy.sparse as sp

from solvers.core.problem import ProblemError
from solvers.numerics.array_types import Floats
from solvers.output_codes.design import highs_process

# programs with more non-zero entries take seconds, and so much longer that half a second for a process is little
OWN_PROCESS_ENTRIES = 200_000
WAIT_SECONDS = 1.0


@dataclass(frozen=True, eq=False)
class LinearProgram:
    """Minimise ``costs x`` subject to ``A_ub x <= b_ub``, ``A_eq x = b_eq`` and ``box[:, 0] <= x <= box[:, 1]``.

    Attributes
    ----------
    costs, b_ub, b_eq : float64 arrays, shapes (n,), (m,) and (e,)
    A_ub, A_eq : csc_matrix, shapes (m, n) and (e, n)
    box : float64 array, shape (n, 2)
    tolerance : float
        How far constraints of the program and of its dual may be violated.
    """

    costs: Floats
    A_ub: sp.csc_matrix
    b_ub: Floats
    A_eq: sp.csc_matrix
    b_eq: Floats
    box: Floats
    tolerance: float

    @property
    def n_entries(self) -> int:
        """Non-zero entries of the constraints."""
        return int(self.A_ub.nnz + self.A_eq.nnz)

    def solving(self) -> Generator[None, None, tuple[Floats, Floats]]:
        """Solve; a large program yields each second that it is at work. To close the generator gives it up.

        Returns
        -------
        x : float64 array, shape (n,)
        multipliers : float64 array, shape (e,)
            Of the equalities.

        Raises
        ------
        ProblemError
            HiGHS found no optimum.
        """
        if self.n_entries <= OWN_PROCESS_ENTRIES:
            return self._here()
        return (yield from self._in_a_process())

    def _here(self) -> tuple[Floats, Floats]:
        found = highs_process.solve(self.costs, self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.box, self.tolerance)
        if found.status != 0:
            raise ProblemError(f"HiGHS could not solve the linear program: {found.message}")
        return np.asarray(found.x), np.asarray(found.eqlin.marginals)

    def _in_a_process(self) -> Generator[None, None, tuple[Floats, Floats]]:
        with TemporaryDirectory(prefix="polymargin-") as folder:
            task, answer, complaint = (Path(folder) / name for name in ("task.npz", "answer.npz", "complaint.txt"))
            np.savez(task, **self._arrays())
            # -P: files beside the script must not hide modules of the same name
            command = [sys.executable, "-P", highs_process.__file__, str(task), str(answer)]
            with complaint.open("wb") as errors:
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors, env=os.environ
                )
            try:
                while True:
                    try:
                        process.wait(WAIT_SECONDS)
                        break
                    except subprocess.TimeoutExpired:
                        yield
            finally:
                process.kill()
                process.wait()
                assert process.stdin is not None
                process.stdin.close()
            if process.returncode == -signal.SIGKILL:
                raise ProblemError(
                    "the process that solved a linear program was killed, probably because memory ran out; fewer "
                    "columns, or a smaller memory_mb, keep programs smaller"
                )
            if process.returncode != 0:
                raise RuntimeError(f"the process of a linear program failed: {complaint.read_text()[-2000:]}")
            found = np.load(answer)
            if found["status"] != 0:
                raise ProblemError(f"HiGHS could not solve the linear program: {found['message']}")
            return found["x"], found["multipliers"]

    def _arrays(self) -> dict[str, Any]:
        held: dict[str, Any] = {"costs": self.costs, "b_ub": self.b_ub, "b_eq": self.b_eq, "box": self.box}
        for name, A in (("A_ub", self.A_ub), ("A_eq", self.A_eq)):
            held |= {f"{name}_data": A.data, f"{name}_indices": A.indices, f"{name}_indptr": A.indptr}
        return held | {"tolerance": np.array(self.tolerance)}
