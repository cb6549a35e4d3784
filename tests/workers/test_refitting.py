"""A model is measured on rows held out, then trained once more on all rows; nothing of the first is lost meanwhile."""

import contextlib
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from interrupting import Crash, expire
from sqlalchemy.orm import Session, sessionmaker

from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluateRequest, Evaluation
from app.exports.model_cards import model_card
from app.jobs import service as jobs
from app.jobs.schemas import Job, TrainRequest
from app.models import service as models
from app.models.schemas import ModelAbout, ModelVersion
from app.models.versions import MEASURED
from app.store import tables
from app.store.files import files
from solvers.core.base import Solver
from solvers.core.stored_models import load_model
from workers.phases import driving, preparation, refitting
from workers.phases.publishing import Publisher
from workers.running.job_context import TimeUp
from workers.tasks import run

Database = sessionmaker[Session]
ROWS = "".join(f"class{i % 3} {i % 3 + 1}:{1 + i % 4} {4 + i % 5}:0.5\n" for i in range(60))
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
CANDIDATES = [{"solver": "crammer_singer", "grid": {"C": [0.1, 1.0]}}, {"solver": "centroids"}]


def submitted(database: Database, **changes: Any) -> str:
    given = {"solver": "weston_watkins", "dataset": "digits", "model": "m", "params": {"tol": 1e-4}} | changes
    with database() as session:
        return jobs.submit(session, TrainRequest.model_validate(given)).id


def trained(database: Database, **changes: Any) -> tuple[Job, ModelVersion]:
    id = submitted(database, **changes)
    run(id)
    with database() as session:
        job = jobs.get(session, id)
        assert (job.state, job.error) == ("succeeded", None)
        return job, models.version(session, str(changes.get("model", "m")))


def arrays(database: Database, version: ModelVersion, measured: bool = False) -> dict[str, bytes]:
    with database() as session:
        folder = files().path(models.folder(session, version.id))
    beside = folder / MEASURED if measured else folder
    return {name: np.asarray(a).tobytes() for name, a in load_model(beside / "model", verify=True)[0].arrays().items()}


def evaluated(database: Database, model: str = "m", **changes: Any) -> Evaluation:
    with database() as session:
        given = {"kind": "evaluate", "model": model, "dataset": "digits", "resamples": 0} | changes
        job = jobs.submit(session, EvaluateRequest.model_validate(given))
        run(job.id)
        return evaluations.get(session, job.id)


@on_sqlite
@pytest.mark.parametrize(
    ("solver", "params"), [("weston_watkins", {"tol": 1e-4}), ("auto", {"candidates": CANDIDATES, "tol": 1e-3})]
)
def test_the_served_model_is_trained_on_all_rows_and_measured_by_its_twin(
    solver: str, params: dict[str, Any], database: Database, dataset: Callable[..., str]
) -> None:
    dataset(ROWS)
    _, version = trained(database, solver=solver, params=params)
    _, plain = trained(database, solver=solver, params=params, model="plain", refit=False)
    assert (plain.n_train, plain.refit) == (48, None)
    assert version.refit is not None
    assert (version.n_train, version.refit.n_served, version.refit.reason) == (60, 60, None)
    assert version.metrics == plain.metrics
    assert arrays(database, version, measured=True) == arrays(database, plain)
    _, whole = trained(database, solver=solver, params=params, model="whole", test_fraction=0.0)
    if solver == "weston_watkins":
        assert version.primal == pytest.approx(whole.primal, rel=1e-3)
        assert whole.refit is None
    assert version.refit.summary == (
        "Measured on 12 rows by the same recipe trained on the other 48; served: trained on all 60."
    )
    assert version.refit.summary in model_card(version, "sparse", "linear", ModelAbout())


@on_sqlite
@pytest.mark.parametrize(("most", "freed"), [(0, True), (1 << 26, False)])
def test_a_large_state_of_the_measured_model_is_on_disk_while_all_rows_are_trained_on(
    most: int, freed: bool, database: Database, dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(ROWS)
    monkeypatch.setattr(driving, "_SET_ASIDE_BYTES", most)
    held: list[weakref.ref[Any]] = []
    measures, refits = Publisher.measured, refitting.refit

    def measured(self: Publisher, model: Any, solver: Any, outcome: driving.Outcome, **more: Any) -> Any:
        held.extend(weakref.ref(array) for array in outcome.state.values())
        return measures(self, model, solver, outcome, **more)

    def refit(*given: Any) -> Any:
        gc.collect()
        assert all(ref() is None for ref in held) == freed
        return refits(*given)

    monkeypatch.setattr(Publisher, "measured", measured)
    monkeypatch.setattr(refitting, "refit", refit)
    _, version = trained(database, keep_duals=True)
    assert version.refit is not None
    assert version.refit.n_served == 60
    assert held


@on_sqlite
def test_the_measured_model_answers_where_the_served_one_has_seen_the_rows(
    database: Database, dataset: Callable[..., str]
) -> None:
    dataset(ROWS)
    _, version = trained(database)
    found = evaluated(database)
    assert (found.part, found.n_rows, found.measured_model) == ("test", 12, True)
    error = next(each.value for each in found.measures if each.name == "error")
    assert error == pytest.approx(version.metrics["test"]["error"])
    dataset(ROWS.replace("60", "61") + "class0 1:9\n", name="others")
    assert not evaluated(database, dataset="others").measured_model


@on_sqlite
def test_labels_that_only_held_out_rows_have_become_classes(
    database: Database, dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(ROWS + "new 9:1\n")
    held_out = preparation.held_out

    def out(*given: Any) -> Any:  # as where a row that was held out gets another label
        found = held_out(*given)
        found[-1] = 1
        return found

    monkeypatch.setattr(preparation, "held_out", out)
    _, version = trained(database, unseen_labels="count")
    assert version.n_classes == 4
    assert version.refit is not None
    assert version.refit.n_served == 61


@on_sqlite
def test_a_split_of_the_datasets_own_is_left_as_it_is(database: Database, dataset: Callable[..., str]) -> None:
    lines = [
        f'{{"features": {{"a": {i % 3 + 1}}}, "label": "c{i % 2}", "split": "{"train" if i % 4 else "test"}"}}'
        for i in range(40)
    ]
    dataset("\n".join(lines), format="jsonl")
    _, version = trained(database)
    assert (version.n_train, version.refit) == (30, None)


@on_sqlite
@pytest.mark.parametrize("error", [MemoryError, TimeUp])
def test_where_all_rows_do_not_fit_the_measured_model_is_published(
    error: type[Exception], database: Database, dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(ROWS)

    def fails(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(refitting, "all_rows", fails)
    job, version = trained(database)
    assert version.refit is not None
    assert version.refit.reason is not None
    assert job.result is not None
    assert job.result.not_refit == version.refit.reason
    assert version.refit.reason in version.refit.summary
    assert version.n_train == version.refit.n_served == 48
    with database() as session:
        assert not (files().path(models.folder(session, version.id)) / MEASURED).exists()
    assert not evaluated(database).measured_model


@on_sqlite
def test_workers_that_die_in_the_training_on_all_rows_do_not_take_the_measured_model_with_them(
    database: Database, dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(ROWS)
    id = submitted(database)

    def dies(*_: Any) -> Any:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(refitting, "all_rows", dies)
        for _ in range(2):
            with contextlib.suppress(Crash):
                run(id)
            with database() as session:
                expire(session, id)
    run(id)
    with database() as session:
        job, version = jobs.get(session, id), models.version(session, "m")
    assert job.state == "succeeded"
    assert version.refit is not None
    assert version.refit.reason == refitting.LOST


@on_sqlite
@pytest.mark.parametrize("solver", ["weston_watkins", "auto"])
def test_a_worker_that_dies_at_any_step_of_it_changes_nothing(
    solver: str,
    database: Database,
    dataset: Callable[..., str],
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset(ROWS)
    configure(checkpoint_seconds=0)
    monkeypatch.setattr("workers.phases.driving._CHECKPOINT_SHARE", 1e9)
    params = {"candidates": CANDIDATES, "tol": 1e-3} if solver == "auto" else {"tol": 1e-4}
    _, whole = trained(database, solver=solver, params=params)
    steps = refitting._Again.steps
    for at in range(1, 20):
        id = submitted(database, solver=solver, params=params, model=f"m{at}")

        def dying(self: Solver[Any], *given: Any, at: int = at) -> Any:
            for number, step in enumerate(steps(self, *given)):  # type: ignore[arg-type]
                if number == at:
                    raise Crash
                yield step

        with monkeypatch.context() as patch:
            patch.setattr(refitting._Again, "steps", dying)
            with contextlib.suppress(Crash):
                run(id)
        with database() as session:
            if jobs.get(session, id).state == "succeeded":
                break
            session.rollback()
            assert session.get(tables.Checkpoint, id) is not None
            session.rollback()
            expire(session, id)
        run(id)
        with database() as session:
            version = models.version(session, f"m{at}")
        assert (version.metrics, version.epochs, version.gap) == (whole.metrics, whole.epochs, whole.gap)
        assert arrays(database, version) == arrays(database, whole)
        assert arrays(database, version, measured=True) == arrays(database, whole, measured=True)
    assert at > 1
