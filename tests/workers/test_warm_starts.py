"""Retraining from the dual variables of an earlier version, on a dataset to which rows were appended."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.datasets import appending
from app.datasets.corrections import correct_labels
from app.datasets.schemas import CorrectionsRequest, LabelCorrection, NewRows
from app.errors import InvalidInput, NotFound
from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluateRequest
from app.jobs import service as jobs
from app.jobs.schemas import Job, TrainRequest
from app.models import service as models
from app.store.files import files
from solvers.core.stored_models import load_model
from workers.tasks import run

MORE = "".join(f"class{i % 4} 1:{1 + i % 3} {2 + i % 4}:0.5\n" for i in range(24))


def _request(**changes: Any) -> TrainRequest:
    given = {"solver": "weston_watkins", "dataset": "digits", "model": "m", "keep_duals": True, "params": {"tol": 1e-6}}
    return TrainRequest.model_validate(given | changes)


def _done(database: sessionmaker[Session], **changes: Any) -> Job:
    with database() as session:
        job = jobs.submit(session, _request(**changes))
        run(job.id)
        return jobs.get(session, job.id)


def _append(database: sessionmaker[Session], text: str = MORE) -> None:
    upload = files().upload()
    upload.write(text.encode())
    with database() as session:
        job = appending.append(session, "digits", NewRows(format="svmlight"), upload)
    run(job.id)


def test_a_version_begins_from_the_one_before_and_reaches_the_optimum_of_all_rows(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    assert _done(database).state == "succeeded"
    _append(database)
    warm = _done(database, warm_start="m@1")
    assert (warm.state, warm.error) == ("succeeded", None)
    assert warm.request["warm_start"] == "m@1"
    with database() as session:
        first, second = models.version(session, "m", 1), models.version(session, "m", 2)
        _, lineage = load_model(files().path(models.folder(session, second.id)) / "model", verify=True)
        job = jobs.submit(session, EvaluateRequest(kind="evaluate", model="m", dataset="digits", resamples=0))
        run(job.id)
        found = evaluations.get(session, job.id)
    assert second.converged
    assert second.n_train > first.n_train
    assert second.n_classes == 4
    assert lineage["warm_start"] == "m@1"
    assert len(lineage["duals_sha256"]) == 64
    # the evaluation knows which rows were held out, although former rows stayed where they were
    assert second.refit is not None
    assert second.n_train == 84
    assert (found.part, found.n_rows) == ("test", 84 - second.refit.n_measured)


def test_where_a_training_cannot_begin_is_told_before_it_is_queued(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    dataset(name="others")
    _done(database)
    _done(database, model="without", keep_duals=False)
    _done(database, model="other", solver="crammer_singer")
    for changes, fault in (
        ({"solver": "softmax", "keep_duals": False, "warm_start": "m@1"}, "begins from nothing"),
        ({"warm_start": "other@1"}, "crammer_singer"),
        ({"warm_start": "without@1"}, "keep_duals"),
        ({"dataset": "others", "warm_start": "m@1"}, "first rows"),
        ({"solver": "softmax"}, "no dual variables"),
        ({"path": [1.0, 2.0], "warm_start": "m@1"}, "paths"),
    ):
        with database() as session, pytest.raises(InvalidInput) as refused:
            jobs.submit(session, _request(**changes))
        assert fault in refused.value.errors[0].detail
    with database() as session, pytest.raises(NotFound):
        jobs.submit(session, _request(warm_start="m@7"))


def test_after_a_deletion_a_version_is_measured_on_the_same_rows_and_no_training_begins_from_it(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    assert _done(database).state == "succeeded"

    def measured() -> int:
        with database() as session:
            job = jobs.submit(session, EvaluateRequest(kind="evaluate", model="m", dataset="digits", resamples=0))
            run(job.id)
            found = evaluations.get(session, job.id)
            assert found.part == "test"
            return found.n_rows

    before = measured()
    with database() as session:
        given = [LabelCorrection(row=row, delete=True) for row in range(before * 5 // 2)]
        job = correct_labels(session, "digits", CorrectionsRequest(corrections=given))
    run(job.id)
    assert 0 < measured() < before
    with database() as session, pytest.raises(InvalidInput) as refused:
        jobs.submit(session, _request(warm_start="m@1"))
    assert "deleted since" in refused.value.errors[0].detail
