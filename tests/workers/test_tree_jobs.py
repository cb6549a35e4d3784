"""Training jobs along a label tree, from the request to the prediction."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from app.errors import Conflict
from app.hierarchies import service as hierarchies
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.predictions.model_cache import ModelCache
from app.predictions.schemas import PredictResponse
from app.predictions.service import predict
from app.store import tables
from app.store.corpus import open_corpus
from app.store.files import files
from solvers.core.problem import Problem
from solvers.core.stored_models import load_model
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.hierarchical import hierarchical
from solvers.metrics.label_table import AVERAGES, HIERARCHICAL
from solvers.registry import SOLVERS, parse_params
from workers.phases.splitting import split_rows
from workers.tasks import run

EDGES = [("root", "a"), ("root", "b"), ("a", "a1"), ("a", "a2"), ("a1", "x"), ("a1", "y"), ("b", "only")]
TREE = Taxonomy.from_edges(EDGES)
LABELS = ["x", "y", "a2", "only", "a1"]  # an inner one, too


def _rows(n: int = 60) -> str:
    random = np.random.default_rng(5)
    rows = []
    for i in range(n):
        values = random.normal(size=6) + 1.5 * (np.arange(6) == i % len(LABELS))
        rows.append(" ".join([LABELS[i % len(LABELS)], *(f"{j + 1}:{value:.6f}" for j, value in enumerate(values))]))
    return "\n".join(rows) + "\n"


def _trained(session: Session, **changes: Any) -> str:
    request = {"dataset": "digits", "hierarchy": "tree", "model": "m", "solver": "orthogonal_transfer"} | changes
    job = jobs.submit(session, TrainRequest(**request))
    run(job.id)
    return job.id


@pytest.mark.parametrize(
    ("solver", "params"),
    [("orthogonal_transfer", {}), ("tree_loss", {}), ("transfer", {"kernel": "rbf", "C": 2.0, "tol": 1e-5})],
)
def test_a_model_along_a_tree_is_that_of_the_library_with_measures_of_each_level(
    solver: str,
    params: dict[str, Any],
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    hierarchy: Callable[..., str],
) -> None:
    dataset_id, hierarchy_id = dataset(_rows()), hierarchy(EDGES)
    with database() as session:
        job = jobs.get(session, _trained(session, solver=solver, params=params, refit=False))
        assert (job.state, job.error, job.hierarchy) == ("succeeded", None, hierarchy_id)
        version = models.version(session, "m")
        folder = files().path(models.folder(session, version.id))
        row = session.get(tables.Dataset, dataset_id)
        assert row is not None
        assert row.path is not None
        corpus = open_corpus(files(), row.path)
    assert (version.hierarchy, version.hierarchy_sha256) == (hierarchy_id, TREE.sha256)
    assert version.n_classes == TREE.n_nodes
    assert version.gap is not None
    assert 0 <= version.gap <= 0.01
    model, details = load_model(folder / "model", verify=True)
    assert details["hierarchy_sha256"] == TREE.sha256
    assert model.tree == TREE  # type: ignore[attr-defined]

    rows = split_rows(corpus, TrainRequest(solver="weston_watkins", dataset="digits", model="m"), TREE)
    assert corpus.X is not None
    X = corpus.X[rows.train]
    machine = SOLVERS[solver](parse_params(solver, params))
    problem = Problem.check(X, rows.y_train, rows.classes, taxonomy=TREE)
    *_, last = machine.steps(problem)
    same = machine.model(problem, last.state)
    for name, array in same.arrays().items():
        np.testing.assert_array_equal(model.arrays()[name], array)
    expected = hierarchical(TREE, TREE.find(rows.classes)[rows.y_train], same.predict(X))
    names = {"error", "tree_loss", *AVERAGES, *(HIERARCHICAL[name] for name in AVERAGES)}
    assert {name: version.metrics["train"][name] for name in names} == {name: expected[name] for name in names}
    assert set(version.metrics["test"]) == names | {"majority_error", "accuracy@3", "accuracy@5", "mrr"}
    assert version.metrics["test"]["error"] < version.metrics["test"]["majority_error"]
    assert [len(levels) for levels in version.levels.values()] == [3, 3]
    for level, measures in enumerate(version.levels["train"], 1):
        assert measures == {name: expected[f"{name}_{level}"] for name in measures}
        assert set(measures) == {"error", "precision", "recall", "f1", "macro_f1", "weighted_f1"}


@pytest.mark.parametrize("params", [{}, {"kernel": "rbf"}], ids=["linear", "rbf"])
def test_a_prediction_tells_the_path_with_the_margin_at_each_level(
    params: dict[str, Any],
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    hierarchy: Callable[..., str],
) -> None:
    dataset(_rows())
    hierarchy(EDGES)
    with database() as session:
        _trained(session, params=params)
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    instances = [[3.0, 0, 0, 0, 0, 0], [0, 0, 0, 3.0, 0, 0]]
    answer = PredictResponse.model_validate(predict(loaded, {"instances": instances, "top_k": 3}, 10))
    first, second = answer.predictions
    assert first.path is not None
    assert [step.label for step in first.path] == ["a", "a1", "x"]
    margins = [step.margin for step in first.path]
    assert all(margin is not None and margin > 0 for margin in margins)
    assert first.score == pytest.approx(min(margin for margin in margins if margin is not None))
    assert (first.label, len(first.top)) == ("x", 3)
    assert {entry.label for entry in first.top} <= {"x", "y", "a2", "only"}, "leaves"
    assert all(entry.score is not None and entry.score <= 0 for entry in first.top[1:])
    assert second.path is not None
    assert [step.label for step in second.path] == ["b", "only"]


def test_a_flat_method_is_measured_along_a_tree_that_it_does_not_use(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(_rows())
    hierarchy(EDGES)
    with database() as session:
        _trained(session, solver="weston_watkins")
        _trained(session, solver="weston_watkins", hierarchy=None)
        plain, measured = models.versions(session, "m")
    assert (measured.primal, measured.dual) == (plain.primal, plain.dual)
    assert (measured.n_classes, plain.levels, plain.hierarchy_sha256) == (5, {}, None)
    assert len(measured.levels["test"]) == 3
    assert measured.metrics["test"]["tree_loss"] > 0


def test_test_rows_may_carry_nodes_that_no_training_row_has(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    rows = ["p,label,split", "1,x,train", "-1,only,train", "1,y,test", "1,a1,test", "-1,strange,test"]
    dataset("\n".join(rows) + "\n", format="csv")
    hierarchy(EDGES)
    with database() as session:
        _trained(session, unseen_labels="count")
        version = models.version(session, "m")
    assert version.metrics["test"]["error"] == pytest.approx(2 / 3), "a1 is above x; y and strange are errors"
    assert version.levels["test"][0]["error"] == 0


def test_a_job_whose_labels_are_no_nodes_any_more_fails_with_their_names(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(_rows())
    hierarchy(EDGES)
    with database() as session:
        job = jobs.submit(session, TrainRequest(dataset="digits", hierarchy="tree", model="m", solver="transfer"))
        node = tables.HierarchyNode
        session.execute(update(node).where(node.name == "a2").values(name="a3"))
        session.commit()
        run(job.id)
        job = jobs.get(session, job.id)
        assert (job.state, job.error and "'a2'" in job.error.detail) == ("failed", True)


def test_a_hierarchy_that_models_came_from_is_deleted_only_by_force(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(_rows())
    hierarchy(EDGES)
    with database() as session:
        _trained(session, solver="flat_multiclass")
        with pytest.raises(Conflict, match="force"):
            hierarchies.delete(session, "tree")
        hierarchies.delete(session, "tree", force=True)
        version = models.version(session, "m")
        assert (version.hierarchy, version.hierarchy_sha256) == (None, TREE.sha256)
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    (prediction,) = predict(loaded, {"instances": [[0, 0, 3.0, 0, 0, 0]]}, 10)["predictions"]
    assert [step["label"] for step in prediction["path"]] == ["a", "a2"]
