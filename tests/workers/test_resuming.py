"""Resuming: a job that was interrupted anywhere ends as if it had not been."""

from collections.abc import Callable
from typing import Any

import pytest
from interrupting import Crash, expire
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.models import versions
from app.operation import sweep as sweeping
from app.store import tables
from app.store.files import files
from app.version import VERSION
from solvers.core.base import STATE_FORMAT
from solvers.core.stored_models import load_model
from solvers.hierarchical.learnt_trees import driver as learnt_trees
from solvers.kernel_svm import kernel_machine
from solvers.registry import SOLVERS
from workers.phases import driving
from workers.running import lanes
from workers.tasks import run

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def _submit(database: sessionmaker[Session], model: str, solver: str = "weston_watkins") -> str:
    params: dict[str, Any] = {"tol": 1e-9, "max_epochs": 60}
    if solver == "label_trees":
        params |= {"trees": 10, "most_leaves": 2}
    request = TrainRequest(dataset="digits", solver=solver, model=model, params=params)
    if not SOLVERS[solver].handles.flat:
        request.hierarchy = "tree"
    with database() as session:
        return jobs.submit(session, request).id


def _outcome(database: sessionmaker[Session], model: str) -> Any:
    with database() as session:
        version = models.version(session, model)
        loaded, _ = load_model(files().path(models.folder(session, version.id)) / "model", verify=True)
        curve = job_logs.steps(session, version.job, limit=10000).steps
    return (
        {name: array.tobytes() for name, array in loaded.arrays().items()},
        version.metrics,
        [(step.number, step.epoch, step.primal, step.dual, step.violation) for step in curve],
    )


@on_sqlite
# these are there after one step
@pytest.mark.parametrize("solver", [name for name in SOLVERS if not SOLVERS[name].handles.closed_form])
def test_a_job_given_back_in_the_middle_ends_bit_for_bit_the_same(
    solver: str,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    hierarchy: Callable[..., str],
    interrupt: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # small problems would end before they are interrupted
    monkeypatch.setattr(kernel_machine, "REPORT_EVERY", 1)
    monkeypatch.setattr(learnt_trees, "SLICE_PRODUCTS", 1)
    dataset()
    hierarchy()
    run(_submit(database, "whole", solver))
    with monkeypatch.context():
        job_id = _submit(database, "m", solver)
        # conjugate gradients on five features end after a few steps
        interrupt(6 if solver == "hierarchical_rls" else 8)
        run(job_id)
        with database() as session:
            job = jobs.get(session, job_id)
            row = session.get(tables.Checkpoint, job_id)
            assert (job.state, job.attempt) == ("queued", 1)
            assert row is not None
            assert 1 <= row.step < len(_outcome(database, "whole")[2]) - 1
    monkeypatch.setattr(lanes, "drain_requested", lambda: False)
    run(job_id)
    with database() as session:
        assert jobs.get(session, job_id).attempt == 2
    assert _outcome(database, "m") == _outcome(database, "whole")


@on_sqlite
@pytest.mark.parametrize("after", [4, 12])
def test_a_path_over_all_c_given_back_anywhere_ends_bit_for_bit_the_same(
    after: int,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    interrupt: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset()

    def submit(model: str) -> str:
        asked = {"dataset": "digits", "solver": "weston_watkins", "model": model, "every_c": {"high": 10.0}}
        with database() as session:
            return jobs.submit(session, TrainRequest.model_validate(asked)).id

    run(submit("whole"))
    with monkeypatch.context():
        job_id = submit("m")
        interrupt(after)
        run(job_id)
        with database() as session:
            assert jobs.get(session, job_id).state == "queued"
    monkeypatch.setattr(lanes, "drain_requested", lambda: False)
    run(job_id)
    assert _outcome(database, "m") == _outcome(database, "whole")
    with database() as session:
        assert models.path_over_c(session, "m", 1) == models.path_over_c(session, "whole", 1)


def test_a_crash_before_the_last_commit_leaves_nothing_and_the_job_ends_once(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    job_id = _submit(database, "m")
    add = versions.add

    def crash(*arguments: Any) -> int:
        add(*arguments)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(versions, "add", crash)
        with pytest.raises(Crash):
            run(job_id)
    with database() as session:
        assert jobs.get(session, job_id).state == "running"
        assert session.scalars(select(tables.ModelVersion)).all() == []
        session.rollback()
        expire(session, job_id)
    run(job_id)
    with database() as session:
        assert models.get(session, "m").versions == [1]
        orphan = f"models/{job_id}.1"
        assert files().path(orphan).exists()
        assert sweeping.tidy(session, files()) == [orphan]
        assert files().path(models.folder(session, models.version(session, "m").id)).exists()


def _damage(job_id: str) -> None:
    (path,) = files().path(f"jobs/{job_id}").glob("*/W.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")


@on_sqlite
@pytest.mark.parametrize(
    ("written_by", "damaged"),
    [
        (driving.VERSIONS, True),
        (driving.VERSIONS | {"code_version": "0.0.1"}, False),
        (driving.VERSIONS | {"state_format": STATE_FORMAT - 1}, False),
        (driving.VERSIONS | {"state_format": STATE_FORMAT + 1}, False),
        ({"code_version": VERSION}, False),  # as versions wrote it that knew no format of states
    ],
)
def test_a_checkpoint_that_is_damaged_or_of_another_version_is_not_resumed_and_the_job_starts_afresh(
    written_by: dict[str, Any],
    damaged: bool,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    interrupt: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset()
    job_id = _submit(database, "m")
    interrupt(8)
    with monkeypatch.context() as patch:
        patch.setattr(driving, "VERSIONS", written_by)
        run(job_id)
    if damaged:
        _damage(job_id)
    monkeypatch.setattr(lanes, "drain_requested", lambda: False)
    run(job_id)
    with database() as session:
        steps = job_logs.steps(session, job_id, limit=10000).steps
    assert {step.attempt for step in steps} == {2}
    assert [step.measures.get("started_afresh") for step in steps[:2]] == [1.0, None]
    whole = _submit(database, "whole")
    run(whole)
    assert _outcome(database, "m") == _outcome(database, "whole")


@on_sqlite
def test_an_import_that_crashed_is_done_again(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any) -> Any:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr("workers.job_kinds.importing.update", crash)
        with pytest.raises(Crash):
            dataset()
    with database() as session:
        ((job_id, dataset_id),) = session.execute(select(tables.Job.id, tables.Job.dataset_id)).all()
        session.rollback()
        expire(session, job_id)
    run(job_id)
    with database() as session:
        assert session.scalars(select(tables.Dataset.state)).one() == "ready"
    folder = files().path(f"datasets/{dataset_id}")
    assert sorted(path.name for path in folder.iterdir()) == ["arrays-2", "source"]
