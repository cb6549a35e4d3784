"""Training jobs from the request to the model's version."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker
from threadpoolctl import threadpool_info, threadpool_limits

from app.datasets import rows as dataset_rows
from app.datasets.recipe_schemas import TextRecipe
from app.features.load import load_features
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.store import tables
from app.store.corpus import open_corpus
from app.store.files import Files, files
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.registry import SOLVERS, parse_params
from workers.phases import publishing
from workers.phases.scoring import measures
from workers.phases.splitting import split_rows
from workers.tasks import run


def test_a_job_ends_with_a_version_that_can_be_traced(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset_id = dataset()
    with database() as session:
        request = TrainRequest(
            solver="weston_watkins", dataset="digits", model="m", params={"C": 0.5, "tol": 1e-3}, seed=3
        )
        job = jobs.submit(session, request)
        assert job.state == "queued"
        run(job.id)
        job = jobs.get(session, job.id)
        assert (job.state, job.error) == ("succeeded", None)
        assert job.result is not None
        assert (job.result.model, job.result.version) == ("m", 1)
        version = models.version(session, "m")
        steps = job_logs.steps(session, job.id).steps
    assert [step.number for step in steps] == list(range(len(steps)))
    assert (steps[-1].gap, steps[-1].epoch) == (version.gap, version.epochs)
    assert version.converged
    assert version.gap is not None
    assert version.gap <= 1e-3
    assert (version.dataset, version.job, version.seed, version.params["C"]) == (dataset_id, job.id, 3, 0.5)
    assert version.n_train == 60
    assert version.refit is not None
    assert (version.refit.n_measured, version.refit.n_test) == (48, 12)
    assert set(version.metrics) == {"train", "test"}
    assert version.metrics["test"]["error"] < version.metrics["test"]["majority_error"]
    with database() as session:
        folder = files().path(models.folder(session, version.id))
    model, details = load_model(folder / "model", verify=True)
    assert model.classes == ("class0", "class1", "class2")
    assert details["dataset_sha256"] == version.dataset_sha256
    assert version.report == model.report
    assert set(version.report) == {"nonzero_weights", "nonzero_duals"}
    assert not files().path(f"jobs/{job.id}").exists()


def test_rows_that_the_certificate_knows_to_be_right_are_not_scored_again(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    found, known = [], []

    def measured(model, rows, X_train, X_test, right):
        known.append(right)
        found.append(measures(model, rows, X_train, X_test))
        return measures(model, rows, X_train, X_test, right)

    monkeypatch.setattr(publishing, "measures", measured)
    with database() as session:
        run(jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id)
        assert [models.version(session, "m").metrics] == found
    assert np.count_nonzero(known[0]) > 24


@pytest.mark.parametrize("threads", [1, 2])
def test_linear_algebra_takes_no_more_threads_than_the_job(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    dataset()
    method, taken = SOLVERS["weston_watkins"], []
    fitted = method.model

    def model(self, *arguments):
        taken.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return fitted(self, *arguments)

    monkeypatch.setattr(method, "model", model)
    with threadpool_limits(3), database() as session:
        job = jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m", threads=threads))
        run(job.id)
        session.expire_all()
        assert jobs.get(session, job.id).state == "succeeded"
    assert max(taken) == threads  # a library that was loaded meanwhile may be at one


def test_steps_tell_the_measures_of_their_method(
    database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    dataset()
    params = {"max_epochs": 12, "validation": 0.25, "patience": 12}
    with database() as session:
        request = TrainRequest(dataset="digits", model="m", solver="multiboost_cw", params=params, seed=3, refit=False)
        job = jobs.submit(session, request)
        run(job.id)
        steps = job_logs.steps(session, job.id).steps
        version = models.version(session, "m")
        folder = files().path(models.folder(session, version.id))
        plain = jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="n"))
        run(plain.id)
        assert all(step.measures == {} for step in job_logs.steps(session, plain.id).steps)
    assert len(steps) == 12
    assert all(set(step.measures) == {"train_error", "validation_error", "variables"} for step in steps)
    errors = [step.measures["validation_error"] for step in steps]
    assert load_model(folder / "model")[0].report["rounds"] == 1 + int(np.argmin(errors))
    assert version.metrics["test"]["error"] < version.metrics["test"]["majority_error"]


def test_texts_are_learnt_from_the_training_part_alone(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    train = [("good fine", "a"), ("bad poor", "b"), ("good great", "a"), ("bad awful", "b")]
    rows = [f"{text},{label},train" for text, label in train] + [
        "good unseen,a,test",
        "bad unseen,b,test",
        "odd,c,test",
    ]
    dataset("text,label,split\n" + "\n".join(rows) + "\n", format="csv")
    with database() as session:
        request = TrainRequest(
            solver="weston_watkins", dataset="digits", model="m", text=TextRecipe(min_df=1), unseen_labels="count"
        )
        run(jobs.submit(session, request).id)
        version = models.version(session, "m")
        folder = files().path(models.folder(session, version.id))
    arrays, manifest = Files(folder).load_arrays("features")
    features = load_features(manifest["kind"], manifest["params"], arrays)
    names = features.names()
    assert names is not None
    assert sorted(names) == ["awful", "bad", "fine", "good", "great", "poor"]
    assert (version.n_features, version.n_classes, version.n_train) == (6, 2, 4)
    assert version.metrics["train"]["error"] == 0
    assert version.metrics["test"]["error"] == pytest.approx(1 / 3), "the row of an unseen label is an error"
    assert version.metrics["test"]["majority_error"] == pytest.approx(2 / 3)


def test_without_a_test_part_only_the_training_part_is_measured(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    with database() as session:
        run(
            jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m", test_fraction=0)).id
        )
        version = models.version(session, "m")
    assert set(version.metrics) == {"train"}
    assert version.n_train == 60


def _rows_of_three_formats() -> dict[str, tuple[str, dict[str, str]]]:
    random = np.random.default_rng(3)
    X, y = random.normal(size=(40, 4)).round(3), np.arange(40) % 3
    weights = random.uniform(0.2, 5.0, 40).round(3)
    parts = ["test" if i % 4 == 3 else "train" for i in range(40)]
    rows = list(zip(X.tolist(), y.tolist(), weights.tolist(), parts, strict=True))
    csv = "".join(f"{','.join(map(str, x))},c{c},{w},{part}\n" for x, c, w, part in rows)
    lines = (
        {"label": f"c{c}", "indices": [0, 1, 2, 3], "values": x, "weight": w, "split": part} for x, c, w, part in rows
    )
    svm = (f"c{c} cost:{w} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) + "\n" for x, c, w, _ in rows)
    return {
        "csv": ("p,q,r,s,label,importance,split\n" + csv, {"weight_column": "importance"}),
        "jsonl": ("".join(json.dumps(line) + "\n" for line in lines), {}),
        "svmlight": ("".join(svm), {}),
    }


@pytest.mark.parametrize("format", ["csv", "jsonl", "svmlight"])
def test_the_weights_of_the_training_rows_multiply_their_losses(
    format: str, database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    text, options = _rows_of_three_formats()[format]
    dataset_id = dataset(text, format=format, **options)
    with database() as session:
        request = TrainRequest(
            solver="weston_watkins", dataset="digits", model="m", params={"tol": 1e-6}, test_fraction=0.25, refit=False
        )
        run(jobs.submit(session, request).id)
        version = models.version(session, "m")
        row = session.get(tables.Dataset, dataset_id)
        assert row is not None
        assert row.path is not None
        corpus = open_corpus(files(), row.path)
        shown = dataset_rows.rows(session, "digits", limit=2).rows
    assert corpus.weights is not None
    assert [row.weight for row in shown] == corpus.weights[:2].tolist()
    rows = split_rows(corpus, request)
    assert rows.weights is not None
    assert len(rows.weights) == version.n_train == 30
    assert corpus.X is not None
    np.testing.assert_array_equal(rows.weights, corpus.weights[rows.train])
    problem = Problem.check(corpus.X[rows.train], rows.y_train, rows.classes, corpus.weights[rows.train])
    *_, last = SOLVERS["weston_watkins"](parse_params("weston_watkins", {"tol": 1e-6})).steps(problem)
    assert (version.primal, version.dual) == (last.primal, last.dual)
    plain = Problem.check(problem.X, problem.y)
    *_, other = SOLVERS["weston_watkins"](parse_params("weston_watkins", {"tol": 1e-6})).steps(plain)
    assert other.primal != pytest.approx(version.primal, rel=1e-2)
