"""Failures: reported to the user in words that help, and never with what the data held."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.errors import InvalidInput
from app.jobs import service as jobs
from app.jobs.schemas import Job, TextRecipe, TrainRequest
from solvers.core.linear_model import LinearModel
from solvers.core.problem import ProblemError
from workers.tasks import run

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def _failed(database: sessionmaker[Session], **changes: Any) -> tuple[str, str]:
    with database() as session:
        job: Job = jobs.submit(
            session, TrainRequest(**{"dataset": "digits", "model": "m", "solver": "weston_watkins", **changes})
        )
        run(job.id)
        job = jobs.get(session, job.id)
    assert job.state == "failed"
    assert job.error is not None
    return job.error.code, job.error.detail


@pytest.mark.parametrize(
    ("error", "code", "detail"),
    [
        (MemoryError(), "out_of_memory", "memory"),
        (ProblemError("class 'a' has no example"), "invalid_input", "class 'a' has no example"),
        (OSError(28, "No space left on device"), "storage_full", "The disk is full"),
        (RuntimeError("the text of a row"), "internal", "see the worker's log for job"),
    ],
)
def test_every_failure_has_a_code_and_words(
    error: Exception,
    code: str,
    detail: str,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    dataset()
    monkeypatch.setattr("workers.job_kinds.training.drive", fail)
    found = _failed(database)
    assert found[0] == code
    assert detail in found[1]
    assert "the text of a row" not in found[1]


def test_texts_without_a_common_term_are_reported(database: sessionmaker[Session], dataset: Callable[..., str]) -> None:
    dataset("text,label\none,a\nsix,b\ntwo,a\nten,b\n", format="csv")
    code, detail = _failed(database, text=TextRecipe(min_df=4))
    assert code == "invalid_input"
    assert "terms in" in detail


@pytest.mark.slow
def test_a_job_whose_weights_outgrow_the_memory_allowed_fails_with_what_it_had_come_to(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset("".join(f"c{i} {i}:1\n" for i in range(1, 701)))
    code, detail = _failed(database, params={"memory_mb": 1}, test_fraction=0)
    assert code == "invalid_input"
    assert "weights of 700 x 700 so far needs at least 2 MB; memory_mb allows 1 MB" in detail


def test_a_message_for_a_job_that_is_not_there_does_nothing(database: sessionmaker[Session]) -> None:
    run("0" * 32)
    with database() as session:
        assert jobs.page(session).items == []


def test_a_second_message_for_a_job_does_nothing(database: sessionmaker[Session], dataset: Callable[..., str]) -> None:
    dataset()
    with database() as session:
        job_id = jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id
        run(job_id)
        run(job_id)
        assert jobs.get(session, job_id).attempt == 1


@pytest.mark.parametrize("params", [{"C": 1e308}, {"bias": 1e308}])
def test_parameters_that_would_leave_the_range_of_floats_are_refused_at_submission(
    params: dict[str, float], database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    request = TrainRequest(dataset="digits", model="m", solver="weston_watkins", params=params)
    with database() as session, pytest.raises(InvalidInput):
        jobs.submit(session, request)


def test_a_model_whose_weights_are_no_numbers_is_not_published(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    make = LinearModel.__init__

    def overflow(
        self: LinearModel, classes: Any, n_features: int, features: Any, W: Any, intercept: Any = None
    ) -> None:
        make(self, classes, n_features, features, W * np.inf, intercept)

    monkeypatch.setattr(LinearModel, "__init__", overflow)
    with np.errstate(invalid="ignore"):
        assert "exceed the range of floats" in _failed(database)[1]
