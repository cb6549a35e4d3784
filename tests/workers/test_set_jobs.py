"""Training jobs over sets of labels, from the request to the predicted subtree."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.evaluations import service as evaluations
from app.evaluations.schemas import EvaluateRequest
from app.jobs import logs as job_logs
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
from solvers.hierarchical.subtree_model import ClosedSetModel
from solvers.labels.label_sets import of_names
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.multilabel import multilabel
from solvers.registry import SOLVERS
from workers.phases.splitting import split_rows
from workers.tasks import run

EDGES = [("root", "a"), ("root", "b"), ("a", "a1"), ("a", "a2"), ("a1", "x"), ("b", "b1")]
TREE = Taxonomy.from_edges(EDGES)
SETS = [["x"], ["a2", "b1"], ["a", "b"], [], ["a1", "a2"]]
COMPLETED = [4, 3, 2, 0, 3]


def _file(n: int = 60) -> str:
    random = np.random.default_rng(5)
    rows = []
    for i in range(n):
        values = random.normal(size=6) + 2.0 * (np.arange(6) == i % len(SETS))
        pairs = " ".join(f"{j + 1}:{value:.6f}" for j, value in enumerate(values))
        rows.append(f"{','.join(SETS[i % len(SETS)])} {pairs}")
    return "\n".join(rows) + "\n"


def _trained(session: Session, **changes: Any) -> str:
    job = jobs.submit(
        session,
        TrainRequest(**{"dataset": "digits", "hierarchy": "tree", "model": "m", "solver": "weston_watkins", **changes}),
    )
    run(job.id)
    return job.id


@pytest.fixture
def tagged(dataset: Callable[..., str], hierarchy: Callable[..., str]) -> str:
    """A dataset of sets of labels, and its tree."""
    hierarchy(EDGES)
    return dataset(_file(), label_separator=",")


@pytest.mark.parametrize(
    "solver", [name for name, solver in SOLVERS.items() if solver.handles.multilabel and not solver.chooses]
)
def test_a_model_over_sets_is_that_of_the_library_with_measures_of_each_level(
    solver: str, database: sessionmaker[Session], tagged: str
) -> None:
    with database() as session:
        job = jobs.get(session, _trained(session, solver=solver, refit=False))
        assert (job.state, job.error) == ("succeeded", None)
        version = models.version(session, "m")
        folder = files().path(models.folder(session, version.id))
        row = session.get(tables.Dataset, tagged)
        assert row is not None
        assert row.path is not None
        corpus = open_corpus(files(), row.path)
    assert version.hierarchy_sha256 == TREE.sha256
    assert (version.n_train, version.n_classes) == (48, 6)
    rows = split_rows(corpus, TrainRequest(solver="weston_watkins", dataset="digits", model="m"), TREE)
    labels, _ = of_names(TREE, [SETS[i % len(SETS)] for i in rows.train.tolist()])
    assert corpus.X is not None
    X = corpus.X[rows.train]
    problem = Problem.check_sets(X, labels, TREE)
    machine = SOLVERS[solver](SOLVERS[solver].Params())
    *_, last = machine.steps(problem)
    same = machine.model(problem, last.state)
    model, _ = load_model(folder / "model", verify=True)
    assert isinstance(model, ClosedSetModel)
    assert isinstance(same, ClosedSetModel)
    for name, array in same.arrays().items():
        np.testing.assert_array_equal(model.arrays()[name], array)
    expected = multilabel(TREE, labels, same.predict_sets(X))
    assert version.metrics["train"] == {name: expected[name] for name in version.metrics["train"]}
    assert {"error", "hierarchical_symmetric_difference", "h_sibling", "micro_f1", "hierarchical_f1"} <= set(
        version.metrics["test"]
    )
    assert version.metrics["test"]["hierarchical_f1"] > 0.5
    for level, measures in enumerate(version.levels["train"], 1):
        assert measures == {name: expected[f"{name}_{level}"] for name in measures}
        assert set(measures) == {"error", "precision", "recall", "f1", "macro_f1", "weighted_f1"}
    assert len(version.levels["test"]) == 3


def test_held_out_rows_have_measures_by_training_rows_as_an_evaluation_has_them(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    lines = []
    for i, line in enumerate(_file().splitlines()):
        sets, _, rest = line.partition(" ")
        # the fifth part of the rows tests, and has a label that no other row has
        lines.append(f"{sets + ',new' if i % 5 == 0 and sets else sets} {rest}")
    dataset("\n".join(lines) + "\n", label_separator=",")
    with database() as session:
        _trained(session, solver="node_svm", hierarchy=None, refit=False, params={"C": 1.0}, test_fraction=0.3)
        version = models.version(session, "m")
        asked = EvaluateRequest(kind="evaluate", model="m", dataset="digits", part="test", resamples=20)
        id = jobs.submit(session, asked).id
        run(id)
        found = {each.name: each for each in evaluations.get(session, id).measures if each.level == 0}
    reported = version.metrics["test"]
    names = {"f1@5", "ndcg@10", "recall@10", "precision@5", "rows_10_to_99_recall@10", "rows_2_to_9_ndcg@10"}
    assert names <= set(reported)
    for name in names | {name for name in reported if name.startswith("rows_")}:
        assert found[name].value == pytest.approx(reported[name], abs=1e-6)
        assert found[name].low <= found[name].high  # type: ignore[operator]


def test_labels_above_those_given_are_added_and_counted_or_the_job_is_refused(
    database: sessionmaker[Session], tagged: str
) -> None:
    with database() as session:
        _trained(session, solver="node_svm")
        report = models.version(session, "m").report
        assert report["labels_added"] == 12 * sum(
            full - len(given) for full, given in zip(COMPLETED, SETS, strict=True)
        )
        assert report["rows_completed"] == 36
        job = jobs.get(session, _trained(session, solver="node_svm", missing_parents="refuse"))
    assert job.state == "failed"
    assert job.error is not None
    assert "row 0 has 'x' but not 'a1'" in job.error.detail


@pytest.mark.parametrize("solver", ["auto", "node_svm"])
def test_without_a_hierarchy_a_set_is_what_was_given_and_nothing_above(
    solver: str, database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset(_file(), label_separator=",")
    with database() as session:
        job = jobs.get(session, _trained(session, solver=solver, hierarchy=None))
        assert (job.state, job.error) == ("succeeded", None)
        version = models.version(session, "m")
        evaluated = jobs.submit(session, EvaluateRequest(kind="evaluate", model="m", dataset="digits", part="all"))
        run(evaluated.id)
        assert jobs.get(session, evaluated.id).state == "succeeded"
    assert version.hierarchy is None
    assert version.report.get("labels_added", 0.0) == 0.0
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    instance = [0, 4.0, 0, 0, 0, 0]
    [prediction] = PredictResponse.model_validate(predict(loaded, {"instances": [instance]}, 10)).predictions
    assert prediction.subtree is not None
    assert {(node.label, node.parent) for node in prediction.subtree} == {("a2", None), ("b1", None)}


def test_a_prediction_is_a_subtree_with_the_margin_of_each_label(database: sessionmaker[Session], tagged: str) -> None:
    with database() as session:
        _trained(session, solver="hm3")
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    instances = [[4.0, 0, 0, 0, 0, 0], [0, 4.0, 0, 0, 0, 0], [0, 0, 0, 4.0, 0, 0]]
    answer = PredictResponse.model_validate(predict(loaded, {"instances": instances, "top_k": 6}, 10))
    first, second, _ = answer.predictions
    assert first.subtree is not None
    assert second.subtree is not None
    assert [(node.label, node.parent) for node in first.subtree] == [("a", None), ("a1", "a"), ("x", "a1")]
    assert {node.label for node in second.subtree} == {"a", "b", "a2", "b1"}
    for prediction in answer.predictions:
        assert prediction.subtree is not None
        chosen = {node.label: node.margin for node in prediction.subtree}
        assert chosen == {
            best.label: best.score for best in prediction.top if best.score is not None and best.score > 0
        }
        assert all(node.parent is None or chosen[node.parent] >= node.margin for node in prediction.subtree)


def test_a_method_over_sets_takes_single_labels_as_their_paths(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset()
    hierarchy()
    with database() as session:
        _trained(session, solver="hierarchical_svm")
        version = models.version(session, "m")
    assert {"error", "h_uniform", "majority_error"} <= set(version.metrics["test"])
    assert len(version.levels["test"]) == 2


def test_a_model_that_is_chosen_for_sets_predicts_closed_subtrees(database: sessionmaker[Session], tagged: str) -> None:
    with database() as session:
        job = jobs.get(session, _trained(session, solver="auto"))
        assert (job.state, job.error) == ("succeeded", None)
        version = models.version(session, "m")
        assert version.report["held_out_micro_f1"] > 0.5
        chosen = models.selection(session, "m", 1)
        tried = [step.setting for step in job_logs.steps(session, job.id).steps if "micro_f1" in step.measures]
    assert len(chosen.members) == 1
    assert {str(setting).split(",")[0] for setting in tried} == {trial.solver for trial in chosen.trials}
    assert len(chosen.trials) == version.report["trials"]
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    values = [3.0 if j == 0 else 0.0 for j in range(6)]
    document = {"instances": [{"indices": list(range(6)), "values": values}]}
    [prediction] = PredictResponse.model_validate(predict(loaded, document, 10)).predictions
    assert prediction.subtree
    margins = {node.label: node.margin for node in prediction.subtree}
    for node in prediction.subtree:
        assert node.margin > 0
        assert node.parent is None or margins[node.parent] >= node.margin


def test_a_version_that_is_chosen_for_sets_knows_labels_of_the_tree_that_no_row_has(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    hierarchy([*EDGES, ("root", "c"), ("c", "c1"), ("a", "a3"), ("x", "x1")])
    dataset(_file(), label_separator=",")
    with database() as session:
        params = {"candidates": [{"solver": "node_svm"}]}
        job = jobs.get(session, _trained(session, solver="auto", params=params))
        assert (job.state, job.error) == ("succeeded", None)
        version = models.version(session, "m")
        assert version.n_classes == 10
        evaluated = jobs.submit(session, EvaluateRequest(kind="evaluate", model="m", dataset="digits", part="all"))
        run(evaluated.id)
        assert jobs.get(session, evaluated.id).state == "succeeded"
    loaded = ModelCache(database, 1 << 30).get(("default", "m", None, None))
    document = {"instances": [[3.0, 0, 0, 0, 0, 0], [0, 3.0, 0, 0, 0, 0]], "top_k": 10, "explain": 3, "threshold": 0}
    answer = PredictResponse.model_validate(predict(loaded, document, 10))
    new = {"c", "c1", "a3", "x1"}
    for prediction in answer.predictions:
        assert prediction.subtree
        assert not {node.label for node in prediction.subtree} & new
        # labels that no row has as its own are not ranked
        assert not {each.label for each in prediction.top} & new
        assert prediction.sure_labels is not None
        assert {each.label for each in prediction.sure_labels if each.probability > 0.1}.isdisjoint(new)
        assert prediction.explanation
