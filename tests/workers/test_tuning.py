"""Tunings from the request to the model's version: trials in other jobs, whatever befalls them."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from interrupting import Crash, expire
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from app.access import quotas
from app.datasets.rows import class_counts
from app.errors import Conflict, InvalidInput
from app.features.text import TextFeatures
from app.jobs import leases, tunings
from app.jobs import queue as queue_order
from app.jobs import service as jobs
from app.jobs.request_schemas import Trial, TuneRequest
from app.jobs.schemas import Job, stored_request
from app.models import service as models
from app.store import tables
from app.store.db import db_now, writing
from app.store.files import files
from app.store.queue import GENERAL
from solvers.core.stored_models import load_model
from workers.job_kinds import tuning
from workers.phases import driving
from workers.tasks import run

GRID = [{"solver": "weston_watkins", "grid": {"C": [0.01, 1.0]}}]
OVER = ("succeeded", "failed", "cancelled")
TEXTS = "".join(
    f'{{"text": "{word} {i % 4} thing", "label": "{word}", "split": "{part}"}}\n'
    for i in range(12)
    for word in ("red", "green", "blue")
    for part in ["train" if i < 6 else "validation" if i < 9 else "test"]
)
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def _submit(database: sessionmaker[Session], space: list[dict[str, Any]] = GRID, **options: Any) -> str:
    request = TuneRequest.model_validate({"dataset": "digits", "model": "m", "space": space, **options})
    with database() as session:
        return jobs.submit(session, request).id


def _job(database: sessionmaker[Session], id: str) -> Job:
    with database() as session:
        return jobs.get(session, id)


def _work(database: sessionmaker[Session], id: str) -> Job:
    """A worker takes what is next in the queue, message by message, until the job is over."""
    for _ in range(100):
        run(id)
        if _job(database, id).state in OVER:
            break
    return _job(database, id)


def _trials(database: sessionmaker[Session], id: str) -> list[Trial]:
    with database() as session:
        return tunings.trials(session, id).items


def _seen(trials: list[Trial]) -> list[tuple[Any, ...]]:
    return [(each.rank, each.number, each.params, each.measures, each.epochs, each.gap) for each in trials]


def test_the_best_trial_is_trained_on_all_rows_and_published(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset_id = dataset()
    id = _submit(database, seed=5)
    job = _work(database, id)
    assert (job.state, job.error) == ("succeeded", None)
    trials = _trials(database, id)
    assert [each.rank for each in trials] == [1, 2]
    assert trials[0].value == trials[0].measures["accuracy"] >= trials[1].measures["accuracy"]
    assert trials[0].held_out is not None
    assert (trials[0].held_out.by, trials[0].held_out.n_train, trials[0].held_out.n_held_out) == ("fraction", 38, 10)
    assert {"log_loss", "macro_f1", "accuracy@5", "ndcg@5", "mrr"} <= trials[0].measures.keys()
    assert (trials[0].seed, trials[0].attempt, trials[0].converged) == (5, 1, True)
    assert job.result is not None
    assert (job.result.trial, job.result.measures) == (trials[0].number, trials[0].measures)
    with database() as session:
        version = models.version(session, "m")
        _, manifest = load_model(files().path(models.folder(session, version.id)) / "model")
    assert (version.job, version.dataset, version.n_train, version.seed) == (id, dataset_id, 60, 5)
    assert version.refit is not None
    assert version.refit.n_measured == 48
    assert version.gap is not None
    assert version.dataset_sha256 == trials[0].dataset_sha256
    assert manifest["tuning"]["trial_job"] == trials[0].job
    # what trains the same version again
    request = stored_request(version.request)
    assert (request.kind, request.solver, request.params) == ("train", "weston_watkins", trials[0].params)
    assert not files().path(f"jobs/{id}").exists()
    assert not any(files().path(f"jobs/{each.job}").exists() for each in trials)


def test_a_tuning_waits_for_its_trials_without_a_worker(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    id = _submit(database)
    run(id)
    with database() as session:
        shown, listed = jobs.get(session, id), jobs.page(session).items
        waiting = queue_order.in_order(session, GENERAL)
        assert leases.claim(session, id, "worker") is None
        assert [each.id for each in jobs.page(session, state="running").items] == [id]
        assert jobs.page(session, state="queued").items == []
        assert quotas._open_jobs(session, "default") == 1
    assert (shown.state, shown.worker, shown.queue) == ("running", None, None)
    assert shown.progress is not None
    assert (shown.progress.phase, shown.progress.trials, shown.progress.trials_done) == ("trials", 2, 0)
    assert [each.kind for each in listed] == ["tune", "import"]
    assert waiting == sorted(each.job for each in _trials(database, id))
    run(id)
    progress = _job(database, id).progress
    assert progress is not None
    assert (progress.trials_done, progress.fraction) == (1, 0.5)
    assert _work(database, id).state == "succeeded"


@on_sqlite
def test_two_workers_find_what_one_finds(database: sessionmaker[Session], dataset: Callable[..., str]) -> None:
    dataset()
    space = [{"solver": "weston_watkins", "ranges": {"C": {"low": 0.01, "high": 10, "log": True}}}]
    first, second = (_submit(database, space, draws=4, model=name, folds=2) for name in ("one", "two"))
    _work(database, first)
    threads = [threading.Thread(target=_work, args=(database, second)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert _seen(_trials(database, first)) == _seen(_trials(database, second))
    with database() as session:
        folders = [files().path(models.folder(session, models.version(session, name).id)) for name in ("one", "two")]
    a, b = (load_model(folder / "model")[0].arrays() for folder in folders)
    assert all(np.array_equal(a[name], b[name]) for name in a)


def test_a_trial_whose_worker_is_killed_goes_on_with_the_fold_that_it_was_in(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    whole = _submit(database, model="whole", folds=2)
    _work(database, whole)
    id = _submit(database, folds=2)
    run(id)
    measured = tuning.measured
    calls = iter(range(100))

    def die_in_the_second_fold(*given: Any) -> dict[str, float]:
        if next(calls) == 1:
            raise Crash
        return measured(*given)

    with monkeypatch.context() as broken:
        broken.setattr(tuning, "measured", die_in_the_second_fold)
        with pytest.raises(Crash):
            run(id)
    killed = next(each for each in _trials(database, id) if each.state == "running")
    with database() as session:
        expire(session, killed.job)
    assert _work(database, id).state == "succeeded"
    assert _seen(_trials(database, id)) == _seen(_trials(database, whole))
    again = next(each for each in _trials(database, id) if each.number == killed.number)
    assert (again.attempt, len(again.by_fold)) == (2, 2)


def test_a_tuning_that_dies_while_it_trains_the_winner_goes_on(
    database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    configure(checkpoint_seconds=0)
    dataset()
    id = _submit(database)
    for _ in range(3):
        run(id)

    def die(self: driving.Run, step: Any) -> Any:
        raise Crash

    with monkeypatch.context() as broken:
        broken.setattr(driving.Run, "note", die)
        with pytest.raises(Crash):
            run(id)
    with database() as session:
        expire(session, id)
    job = _work(database, id)
    assert (job.state, job.attempt) == ("succeeded", 3)
    assert len(_trials(database, id)) == 2


def test_cancelling_a_tuning_cancels_its_trials_and_trying_again_makes_them(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    id = _submit(database)
    run(id)
    run(id)
    with database() as session:
        held = leases.claim(session, queue_order.in_order(session, GENERAL)[0], "worker")
        assert held is not None
        assert jobs.cancel(session, id).state == "cancelled"
        assert leases.heartbeat(session, held) == "cancelling"
        with pytest.raises(Conflict, match="retry its tuning"):
            jobs.retry(session, _trials(database, id)[0].job)
        with pytest.raises(Conflict, match="still being cancelled"):
            jobs.retry(session, id)
        leases.give_back(session, held)
        assert sorted(each.state for each in _trials(database, id)) == ["cancelled", "succeeded"]
        assert jobs.retry(session, id).state == "running"
    assert _work(database, id).state == "succeeded"
    assert [each.attempt for each in sorted(_trials(database, id), key=lambda each: each.number)] == [1, 2]


def test_a_budget_ends_with_the_best_so_far(database: sessionmaker[Session], dataset: Callable[..., str]) -> None:
    dataset()
    id = _submit(database, [{"solver": "weston_watkins", "grid": {"C": [1.0, 0.1, 0.01]}}], budget_seconds=500)
    run(id)
    run(id)
    with database() as session, writing(session):
        session.execute(update(tables.Job).where(tables.Job.id == id).values(started_at=db_now() - 1000))
    job = _work(database, id)
    assert (job.state, job.result and job.result.trial) == ("succeeded", 0)
    trials = _trials(database, id)
    assert [each.state for each in trials] == ["succeeded", "cancelled", "cancelled"]
    assert {each.error.code for each in trials if each.error} == {"budget_over"}


@on_sqlite
def test_a_budget_measures_what_a_running_trial_has_reached(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    space = [{"solver": "weston_watkins", "params": {"tol": 1e-12}, "grid": {"C": [1.0, 0.1]}}]
    id = _submit(database, space, budget_seconds=1e6)
    run(id)
    note = driving.Run.note

    def late(self: driving.Run, step: Any) -> Any:
        self.context._ends_at = 0.0
        return note(self, step)

    with monkeypatch.context() as slow:
        slow.setattr(driving.Run, "note", late)
        run(id)
    with database() as session, writing(session):
        session.execute(update(tables.Job).where(tables.Job.id == id).values(started_at=db_now() - 2e6))
    assert _work(database, id).state == "succeeded"
    first, second = _trials(database, id)
    assert (first.stopped, first.converged, first.epochs, first.rank) == (True, False, 1, 1)
    assert second.state == "cancelled"


@on_sqlite
def test_a_budget_that_is_over_before_any_trial_fails(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    id = _submit(database, budget_seconds=1e-9)
    job = _work(database, id)
    assert job.state == "failed"
    assert job.error is not None
    assert "the budget" in job.error.detail


@on_sqlite
def test_a_trial_that_fails_tells_why_and_the_others_go_on(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    grid = {"loss": ["hinge", "squared_hinge"], "algorithm": ["auto", "newton"]}
    id = _submit(database, [{"solver": "one_vs_rest", "grid": grid}])
    assert _work(database, id).state == "succeeded"
    *good, bad = _trials(database, id)
    assert ([each.rank for each in good], bad.rank, bad.state) == ([1, 2, 3], None, "failed")
    assert bad.error is not None
    assert "newton needs loss squared_hinge" in bad.error.detail


@on_sqlite
def test_a_tuning_fails_where_all_trials_do(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    id = _submit(database)

    def no_memory(*_given: Any, **_options: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as small:
        small.setattr(tuning, "make", no_memory)
        job = _work(database, id)
    assert job.state == "failed"
    assert job.error is not None
    assert [fault.detail for fault in job.error.errors] == ["the worker does not have enough memory for it"]
    with database() as session:
        jobs.retry(session, id)
    assert _work(database, id).state == "succeeded"


@on_sqlite
def test_halving_gives_more_epochs_to_the_better_part(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    space = [{"solver": "crammer_singer", "params": {"tol": 1e-9}, "grid": {"C": [1e-4, 0.01, 0.1, 1.0, 10.0]}}]
    id = _submit(database, space, halving=2, first_epochs=1)
    assert _work(database, id).state == "succeeded"
    trials = _trials(database, id)
    assert sorted({(each.rung, each.max_epochs) for each in trials}) == [(0, 1), (1, 2), (2, None)]
    # those that converge early are not repeated
    assert [5, 3, 2] >= [sum(each.rung == rung for each in trials) for rung in range(3)] >= [5, 1, 1]
    assert [each.rank for each in trials if each.rank is not None] == [1, 2, 3, 4, 5]


@on_sqlite
def test_rows_marked_for_validation_are_held_out_and_then_trained_on(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(TEXTS, format="jsonl")
    fit, fitted = TextFeatures.fit, []

    def counted(texts: Any, recipe: Any) -> Any:
        found = fit(texts, recipe)
        fitted.append((recipe.ngram_max, found[1].shape[0]))
        return found

    monkeypatch.setattr(TextFeatures, "fit", staticmethod(counted))
    id = _submit(database, texts=[{"ngram_max": 1}, {"ngram_max": 2}], measure="macro_f1")
    assert _work(database, id).state == "succeeded"
    trials = _trials(database, id)
    assert len(trials) == 4
    assert {each.held_out.by for each in trials if each.held_out} == {"validation"}
    # once a recipe for the trials, on rows for training alone; and for the winner on those for validation, too
    assert fitted == [(1, 18), (2, 18), (trials[0].text.ngram_max if trials[0].text else None, 27)]
    with database() as session:
        version = models.version(session, "m")
    assert version.n_train == 27
    assert version.request["text"]["ngram_max"] == fitted[-1][0]


@on_sqlite
def test_sets_of_labels_are_tuned_by_their_own_measures(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    hierarchy([("root", "a"), ("root", "b"), ("a", "x"), ("a", "y")])
    sets = ["x", "y", "b", "x,b", "a"]
    dataset("".join(f"{sets[i % 5]} {i % 5 + 1}:1 {i % 7 + 6}:0.1\n" for i in range(60)), label_separator=",")
    id = _submit(
        database, [{"solver": "node_svm", "grid": {"C": [0.01, 1.0]}}, {"solver": "hm3"}], hierarchy="tree", folds=2
    )
    job = _work(database, id)
    assert (job.state, job.error) == ("succeeded", None)
    trials = _trials(database, id)
    assert job.request["measure"] == "micro_f1"
    assert [each.rank for each in trials] == [1, 2, 3]
    assert trials[0].value == trials[0].measures["micro_f1"]
    assert {"precision", "recall", "macro_f1", "precision@3"} <= trials[0].measures.keys()
    assert "log_loss" not in trials[0].measures
    with database() as session:
        assert models.version(session, "m").hierarchy is not None


@on_sqlite
def test_a_search_of_auto_may_be_a_trial_and_is_measured_along_the_tree(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset()
    hierarchy()
    space = [{"solver": "auto", "params": {"candidates": [{"solver": "softmax"}]}}, {"solver": "weston_watkins"}]
    id = _submit(database, space, hierarchy="tree", measure="tree_loss")
    assert _work(database, id).state == "succeeded"
    trials = _trials(database, id)
    assert [each.solver for each in trials if each.rank] == [each.solver for each in trials]
    assert trials[0].value is not None
    assert trials[1].value is not None
    # less of it is better
    assert trials[0].value <= trials[1].value
    assert all("log_loss" in each.measures for each in trials)


@on_sqlite
def test_trials_of_any_method_are_measured_by_the_costs_of_the_tuning(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    with database() as session:
        labels = class_counts(session.scalars(select(tables.DatasetVersion)).one()).labels
    costs = {label: {labels[0]: 50.0} for label in labels[1:]}
    priced = {"solver": "crammer_singer", "params": {"costs": costs}}
    space = [{"solver": "weston_watkins", "grid": {"C": [0.01, 1.0]}}, priced]
    id = _submit(database, space, costs=costs, other_cost=2.0)
    job = _work(database, id)
    assert (job.state, job.request["measure"]) == ("succeeded", "cost")
    trials = _trials(database, id)
    assert [each.value for each in trials] == sorted(each.measures["cost"] for each in trials)
    for each in trials:
        wrong = 1.0 - each.measures["accuracy"]
        assert 2.0 * wrong <= each.measures["cost"] + 1e-12 <= 50.0 * wrong + 2e-12
    # as expected by the probabilities, which only auto has
    auto = {"solver": "auto", "params": {"candidates": [{"solver": "centroids"}], "folds": 2}}
    id = _submit(database, [auto], costs=costs, measure="least_cost")
    assert _work(database, id).state == "succeeded"
    assert _trials(database, id)[0].value is not None


@on_sqlite
@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"measure": "cost"}, "/measure"),
        ({"other_cost": 2.0}, "/other_cost"),
        ({"costs": {"nobody": {"x": 1.0}}}, "/costs"),
        ({"costs": "tree"}, "/costs"),
        ({"costs": {"0": {"1": -1.0}}}, "/costs/0/1"),
        ({"costs": {"0": {"1": 3.0}}, "measure": "least_cost"}, "/measure"),
    ],
)
def test_costs_that_do_not_fit_a_tuning_are_refused(
    database: sessionmaker[Session], dataset: Callable[..., str], options: dict[str, Any], pointer: str
) -> None:
    dataset()
    with pytest.raises(InvalidInput) as refused:
        _submit(database, **options)
    assert pointer in [item.pointer for item in refused.value.errors]


@on_sqlite
def test_a_space_of_which_nothing_can_be_tried_is_refused_with_the_place_of_each_fault(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    with pytest.raises(InvalidInput) as refused:
        _submit(database, [{"solver": "spam"}, {"solver": "spoc", "params": {"D": 1}}, {"solver": "softmax"}])
    assert {item.pointer for item in refused.value.errors} == {"/space/0/solver", "/space/1/params/D"}
    with pytest.raises(InvalidInput) as refused:
        _submit(database, measure="tree_loss")
    assert [item.pointer for item in refused.value.errors] == ["/measure"]
    with database() as session:
        assert session.scalars(select(tables.Job.kind)).all() == ["import"]
