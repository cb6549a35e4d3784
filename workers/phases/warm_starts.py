"""Trainings that begin at the dual variables of an earlier version, and what a version keeps for those to come."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from app.errors import Conflict
from app.jobs.schemas import TrainRequest
from app.models import warm_starts
from app.store.files import Files
from solvers.core.base import Solver, State
from solvers.core.dual_variables import DualShares
from solvers.core.problem import Problem
from workers.running.job_context import LeaseHeartbeat


@dataclass(frozen=True, eq=False)
class Former:
    """The version that a training begins from.

    Attributes
    ----------
    rows : int64 array, shape (n_samples,)
        The dataset's rows that it was trained on, ascending.
    n_rows : int
        Of the dataset at that time; they are the first rows of all its later versions.
    """

    duals: DualShares
    rows: NDArray[np.int64]
    n_rows: int

    def split(self, grown: NDArray[np.int8]) -> NDArray[np.int8]:
        """0 of training rows, 1 of test rows: former rows stay what they were, later ones are what ``grown`` has."""
        split = grown.copy()
        split[: self.n_rows] = 1
        split[self.rows] = 0
        return split

    def start(self, solver: Solver[Any], problem: Problem, train: NDArray[np.int64]) -> State:
        """The state that a training on the rows ``train`` of the dataset begins from."""
        at = np.searchsorted(self.rows, train)
        known = at < len(self.rows)
        known[known] = self.rows[at[known]] == train[known]
        return solver.warm(problem, self.duals.onto(problem, np.where(known, at, -1)))


def load(heartbeat: LeaseHeartbeat, store: Files, request: TrainRequest) -> Former | None:
    """The version that the request begins from; raises Conflict where it or its dual variables are gone."""
    if request.warm_start is None:
        return None
    path = heartbeat.read(lambda session: warm_starts.folder(session, str(request.warm_start)))
    try:
        arrays, manifest = store.load_arrays(f"{path}/{warm_starts.DUALS}", mmap=False)
    except OSError:
        raise Conflict("the dual variables of the version to start from have been deleted") from None
    shape = (len(arrays["labels"]), len(manifest["classes"]))
    shares = sp.csr_matrix((arrays["values"], arrays["columns"], arrays["ends"]), shape=shape)
    return Former(DualShares(shares, arrays["labels"], tuple(manifest["classes"])), arrays["rows"], manifest["n_rows"])


def save(
    store: Files, path: str, solver: Solver[Any], problem: Problem, state: State, rows: NDArray[np.int64], n_rows: int
) -> str:
    """Keep the dual variables of a state with a version's other files; the SHA-256 of their manifest."""
    shares = solver.dual_shares(problem, state)
    arrays = {
        "values": shares.data, "columns": shares.indices, "ends": shares.indptr, "labels": problem.y, "rows": rows,
    }  # fmt: skip
    folder = f"{path}/{warm_starts.DUALS}"
    store.delete(folder)
    return store.save_arrays(folder, arrays, {"classes": list(problem.classes), "n_rows": n_rows})


def save_split(store: Files, path: str, split: NDArray[np.int8]) -> None:
    """Save which rows were trained on: for such a version the request alone does not determine them."""
    store.delete(f"{path}/{warm_starts.SPLIT}")
    store.save_arrays(f"{path}/{warm_starts.SPLIT}", {"split": split}, {})


def reported(request: TrainRequest, duals_sha256: str | None) -> Mapping[str, Any]:
    """Its entry in the lineage."""
    given = {"warm_start": request.warm_start, "duals_sha256": duals_sha256}
    return {name: value for name, value in given.items() if value is not None}
