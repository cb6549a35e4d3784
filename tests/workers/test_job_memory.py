"""What a job may take of the machine's memory, and what features that no row has cost."""

import resource
from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import service as jobs
from app.jobs.schemas import Job, TrainRequest
from app.models import service as models
from app.predictions.model_cache import ModelCache
from app.predictions.service import predict
from solvers.core import memory
from workers.running import job_memory
from workers.tasks import run

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
# 2,147,483,647 features, of which rows have five
WIDE = "a 1:1 7:1\nb 2:1 2147483647:1\na 1:2\nb 2:2 9:1\n" * 3


def _train(database: sessionmaker[Session], **request: object) -> Job:
    with database() as session:
        asked = {"model": "m", "dataset": "digits", "solver": "weston_watkins", "test_fraction": 0.0, **request}
        id = jobs.submit(session, TrainRequest.model_validate(asked)).id
    run(id)
    with database() as session:
        return jobs.get(session, id)


@pytest.mark.parametrize("solver", ["weston_watkins", "kernel_weston_watkins", "one_vs_rest", "multiboost"])
def test_features_that_no_row_has_cost_nothing_and_are_remembered(
    solver: str, database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset(WIDE)
    # what one number for each feature would take is a multiple of this
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (job_memory._data_bytes() + (1 << 30), hard))
    try:
        job = _train(database, solver=solver)
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    assert job.error is None
    with database() as session:
        version = models.version(session, "m")
    assert version.n_features == 2**31 - 1
    assert version.metrics["train"]["error"] == 0
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    instances = [{"indices": [0], "values": [1.0]}, {"indices": [1, 5, 2**31 - 2], "values": [1.0, 1.0, 1.0]}]
    answer = predict(loaded, {"instances": instances}, 10)
    assert [prediction["label"] for prediction in answer["predictions"]] == ["a", "b"]


def test_a_job_whose_estimate_is_above_what_it_may_take_is_refused(
    database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    dataset()
    configure(job_memory_bytes=1000)
    error = _train(database).error
    assert error is not None
    assert error.code == "invalid_input"
    assert "a job may use 0 MB" in error.detail


def test_an_allocation_far_beyond_what_a_job_may_take_fails_it(
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset()
    configure(job_memory_bytes=1 << 20)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    monkeypatch.setattr("workers.job_kinds.training.prepare", lambda *_: np.ones(3 << 27))
    error = _train(database).error
    assert error is not None
    assert error.code == "out_of_memory"
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.usefixtures("database")
def test_jobs_in_threads_of_a_process_give_back_the_limit_that_it_had_in_whatever_order_they_end() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    first, second = job_memory.bounded(), job_memory.bounded()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    limited = resource.getrlimit(resource.RLIMIT_DATA)
    second.__exit__(None, None, None)
    assert 0 <= limited[0] != before[0]
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_the_processes_of_a_worker_share_what_it_may_take(
    database: sessionmaker[Session], configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_memory, "_processes", [1])
    whole = job_memory.job_bytes()
    assert 0 < whole < memory.machine_bytes()
    job_memory.divide(4)
    assert job_memory.job_bytes() == pytest.approx(whole / 4, abs=1)
    configure(job_memory_bytes=5)
    assert job_memory.job_bytes() == 5
