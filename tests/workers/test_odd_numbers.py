"""A job on numbers of any kind trains or is refused with a reason; none ends in a bare Python error."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.datasets.recipe_schemas import ColumnRecipe
from app.errors import PolymarginError
from app.jobs import service as jobs
from app.jobs.request_schemas import TuneRequest
from app.jobs.schemas import Job, TrainRequest
from solvers.registry import SOLVERS
from workers.tasks import run

EDGES = [("root", "a"), ("root", "other"), ("other", "b"), ("other", "c")]
Y = np.arange(24) % 3


def _noisy() -> np.ndarray:
    return np.eye(3)[Y] * [3.7, 3.5, 2.0] + 0.1 * np.random.default_rng(0).standard_normal((24, 3))


# numbers of unit one, and their labels
ROWS: dict[str, tuple[np.ndarray, np.ndarray]] = {
    "noisy": (_noisy(), Y),
    "identity": (np.eye(3)[Y] * [3.7, 3.5, 2.0], Y),
    "constants": (np.ones((24, 2)), Y),
    "duplicates": (np.repeat(_noisy()[:3], 8, axis=0), np.repeat(Y[:3], 8)),
    "contradictions": (np.repeat(_noisy()[:8], 3, axis=0), Y),
    "apart": (_noisy() * [1.0, 1e-9, 1e-200], Y),
    "no numbers": (np.zeros((24, 2)), Y),
    "one class": (_noisy(), np.zeros(24, int)),
    "two rows": (_noisy()[:2], Y[:2]),
    "one row": (_noisy()[:1], Y[:1]),
}
UNITS = ("1e-300", "1e-160", "1e-100", "1e-20", "1", "1e19", "1e60", "1e154", "1e300")
# one row of each kind of odd numbers at one unit each, for one method of each kind
QUICK_METHODS = ("weston_watkins", "adaboost_mh", "spoc", "node_svm")
QUICK = [("noisy", "1e-300"), ("noisy", "1e300"), ("constants", "1e19"), ("apart", "1"), ("one class", "1")]
QUICK += [("one row", "1"), ("two rows", "1e-100"), ("no numbers", "1")]
EVERY = [("noisy", unit) for unit in UNITS]
# each other kind at a tiny or at a huge unit, which methods take in turn
OTHERS = [kind for kind in ROWS if kind != "noisy"]


def _svmlight(X: np.ndarray, y: np.ndarray, unit: str) -> str:
    rows = (
        " ".join([label, *(f"{at + 1}:{value!r}" for at, value in enumerate((row * float(unit)).tolist()) if value)])
        for label, row in zip(np.array(["a", "b", "c"])[y].tolist(), X, strict=True)
    )
    return "\n".join(rows) + "\n"


def _job(session: Session, solver: str, dataset: str, test_fraction: float) -> Job | None:
    """The job, over; None where it was refused."""
    tree = None if SOLVERS[solver].handles.flat else "tree"
    params = {"max_epochs": 20} if "max_epochs" in SOLVERS[solver].Params.model_fields else {}
    request = TrainRequest(
        dataset=dataset, model="m", solver=solver, hierarchy=tree, params=params, test_fraction=test_fraction
    )
    try:
        job = jobs.submit(session, request)
    except PolymarginError:
        return None
    run(job.id)
    return jobs.get(session, job.id)


def _check(session: Session, make: Callable[..., str], cases: list[tuple[str, str]], solver: str) -> dict[str, int]:
    """What all jobs came to; each fault is reported with its case."""
    ends: dict[str, int] = {}
    faults = []
    for at, (kind, unit) in enumerate(cases):
        make(_svmlight(*ROWS[kind], unit), name=f"d{at}")
        job = _job(session, solver, f"d{at}", test_fraction=0.25 * (at % 2))
        end = "refused" if job is None else job.state if job.error is None else job.error.code
        ends[end] = ends.get(end, 0) + 1
        if end not in ("refused", "succeeded", "invalid_input"):
            faults.append((kind, unit, end))
    assert faults == []
    return ends


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("solver", QUICK_METHODS)
def test_jobs_on_odd_numbers_train_or_say_what_is_wrong(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str], solver: str
) -> None:
    hierarchy(EDGES)
    with database() as session:
        ends = _check(session, dataset, QUICK, solver)
    assert ends.get("succeeded", 0) > 0


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_jobs_of_every_method_on_numbers_of_any_unit_train_or_say_what_is_wrong(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str], solver: str
) -> None:
    hierarchy(EDGES)
    turn = sorted(SOLVERS).index(solver)
    others = [(kind, ("1e-160", "1e154")[(at + turn) % 2]) for at, kind in enumerate(OTHERS)]
    with database() as session:
        _check(session, dataset, EVERY + others, solver)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("request_of", "scales"),
    [
        (partial(TrainRequest, solver="weston_watkins", path=[0.1, 10.0]), True),
        (partial(TrainRequest, solver="crammer_singer", params={"bias": 1.0}), True),
        (partial(TrainRequest, solver="one_vs_rest", columns=ColumnRecipe(scaling="none")), False),
        (partial(TuneRequest, folds=2, space=[{"solver": "softmax"}, {"solver": "centroids"}]), True),
    ],
    ids=["path", "bias", "unscaled", "tuned"],
)
def test_paths_and_tuned_jobs_on_numbers_of_any_unit_train_or_say_what_is_wrong(
    database: sessionmaker[Session], dataset: Callable[..., str], request_of: Callable[..., Any], scales: bool
) -> None:
    found = {}
    with database() as session:
        for at, (kind, unit) in enumerate([("noisy", unit) for unit in UNITS[::2]] + QUICK[2:]):
            dataset(_svmlight(*ROWS[kind], unit), name=f"d{at}")
            try:
                job = jobs.submit(session, request_of(dataset=f"d{at}", model="m"))
            except PolymarginError:
                found[kind, unit] = "refused"
                continue
            for _ in range(20):  # each takes what is next in the queue: a tuning has jobs of its own
                run(job.id)
            ended = jobs.get(session, job.id)
            found[kind, unit] = ended.state if ended.error is None else ended.error.code
    assert set(found.values()) <= {"refused", "succeeded", "invalid_input"}, found
    assert (found["noisy", "1"], found["noisy", "1e300"]) == ("succeeded", "refused" if scales else "invalid_input")
    assert found["noisy", "1e-100"] == ("succeeded" if scales else "invalid_input")
