"""Evaluation jobs, from the request to the comparison of versions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from interrupting import Crash, expire
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.datasets import service as datasets
from app.errors import Conflict, InvalidInput, NotFound
from app.evaluations import comparisons
from app.evaluations import service as evaluations
from app.evaluations.comparisons import Side
from app.evaluations.schemas import ComparisonRequest, EvaluateRequest, Evaluation
from app.hierarchies import service as hierarchies
from app.jobs import comparing
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import aliases
from app.models import service as models
from app.operation import sweep as sweeping
from app.store import tables
from app.store.files import files
from solvers.metrics.comparison import mcnemar, paired_bootstrap
from workers.job_kinds import evaluating
from workers.running import lanes
from workers.tasks import run

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

EDGES = [("root", "a"), ("root", "b"), ("a", "a1"), ("a", "a2"), ("a1", "x"), ("b", "b1")]
SETS = [["x"], ["a2", "b1"], ["a", "b"], ["a1", "a2"]]
TEXTS = ["red apple tart", "green pear cake", "steel hammer nail", "iron saw blade"]


def rows_of(names: list[str], n: int = 60, seed: int = 5, shift: float = 1.5) -> str:
    """svmlight rows, row after row of the next label."""
    random = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        values = random.normal(size=6) + shift * (np.arange(6) == i % len(names))
        lines.append(" ".join([names[i % len(names)], *(f"{j + 1}:{value:.6f}" for j, value in enumerate(values))]))
    return "\n".join(lines) + "\n"


def trained(session: Session, **changes: Any) -> int:
    request = TrainRequest(**({"dataset": "digits", "model": "m", "solver": "weston_watkins"} | changes))
    job = jobs.submit(session, request)
    run(job.id)
    assert jobs.get(session, job.id).state == "succeeded", jobs.get(session, job.id).error
    return models.version(session, request.model).version


def submitted(session: Session, **changes: Any) -> str:
    request = {
        "kind": "evaluate",
        "dataset": "digits",
        "model": "m",
        "resamples": 50,
    } | changes
    return jobs.submit(session, EvaluateRequest(**request)).id


def evaluated(session: Session, **changes: Any) -> Evaluation:
    id = submitted(session, **changes)
    run(id)
    job = jobs.get(session, id)
    assert (job.state, job.error) == ("succeeded", None)
    assert job.result is not None
    assert job.result.evaluation == id
    return evaluations.get(session, id)


def reported(evaluation: Evaluation, level: int = 0) -> dict[str, float]:
    return {each.name: each.value for each in evaluation.measures if each.level == level}


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize(
    "case",
    [
        "flat",
        "flat along a tree",
        "tree",
        pytest.param("kernel tree", marks=pytest.mark.slow),
        "sets",
        "paths as sets",
        "costs",
        "costs along a tree",
        "decisions by cost",
    ],
)
def test_on_its_own_data_a_version_has_the_measures_that_its_training_told(
    case: str, part: str, session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    changes: dict[str, Any] = {"hierarchy": "tree"}
    if case == "sets":
        dataset(rows_of([",".join(labels) for labels in SETS]), label_separator=",")
        changes["solver"] = "node_svm"
    else:
        dataset(rows_of(["x", "a2", "b1", "a1"]))
    hierarchy(EDGES)
    if case == "flat":
        changes = {}
    elif case == "tree":
        changes["solver"] = "orthogonal_transfer"
    elif case == "kernel tree":
        changes |= {"solver": "transfer", "params": {"kernel": "rbf"}}
    elif case == "costs":
        changes = {"solver": "crammer_singer", "params": {"costs": {"x": {"a2": 9.0}, "b1": {"x": 0.5}}}}
    elif case == "costs along a tree":
        changes |= {"solver": "crammer_singer", "params": {"costs": "tree"}}
    elif case == "decisions by cost":
        candidates = [{"solver": "centroids"}]
        changes = {"solver": "auto", "params": {"candidates": candidates, "costs": {"x": {"a2": 9.0}}}, "refit": False}
    elif case == "paths as sets":
        changes["solver"] = "hm3"
    trained(session, **changes)
    version = models.version(session, "m")
    found = evaluated(session, part=part)
    measures = reported(found)
    shared = set(version.metrics[part]) & set(measures)
    assert {"error", "micro_f1", "macro_f1", "weighted_f1"} <= shared
    assert ("cost" in shared) == ("cost" in case)
    assert ("least_cost" in shared) == (case == "decisions by cost")
    if case == "costs along a tree":
        assert measures["cost"] == pytest.approx(version.metrics[part]["tree_loss"])
    for name in shared:
        assert measures[name] == pytest.approx(version.metrics[part][name], abs=1e-6), name
    for level, values in enumerate(version.levels.get(part, []), 1):
        of_level = reported(found, level)
        for name, value in values.items():
            assert of_level["micro_f1" if name == "f1" else name] == pytest.approx(value, abs=1e-6), (level, name)
    assert (found.version, found.version_sha256, found.part) == (1, version.sha256, part)
    assert found.dataset_sha256 == version.dataset_sha256
    assert found.hierarchy_sha256 == version.hierarchy_sha256
    assert (found.unknown_rows, found.unknown_labels) == (0, 0)
    assert found.propensities is not None
    assert {"mrr", "accuracy@5", "ndcg@10", "psp@3", "precision@1", "recall@3"} <= set(measures)
    for each in (each for each in found.measures if each.name != "calibration_error"):
        assert each.low is not None
        assert each.high is not None
        assert each.low <= each.high
    labels = evaluations.labels(session, found.id, order="-support").labels
    assert [each.support for each in labels] == sorted((each.support for each in labels), reverse=True)


def test_labels_that_the_model_does_not_have_are_counted_told_and_wrong(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset(rows_of(["x", "y", "z"]))
    dataset(rows_of(["x", "y", "strange", "odd"], 40, seed=6), name="others")
    trained(session)
    found = evaluated(session, dataset="others")
    assert (found.part, found.n_rows) == ("all", 40)
    assert (found.unknown_rows, found.unknown_labels, found.unknown_named) == (20, 2, ["odd", "strange"])
    assert found.n_labels == 5
    table = {each.label: each for each in evaluations.labels(session, found.id).labels}
    assert (table["odd"].known, table["odd"].support, table["odd"].named, table["odd"].recall) == (False, 10, 0, 0.0)
    measures = reported(found)
    right = sum(each.recall * each.support for each in table.values())
    assert measures["error"] == pytest.approx(1 - right / 40)
    assert measures["error"] >= 0.5
    pairs = evaluations.confusions(session, found.id).pairs
    assert sum(pair.n_rows for pair in pairs) == round(40 * measures["error"])
    assert {pair.true for pair in pairs} >= {"odd", "strange"}
    with pytest.raises(InvalidInput, match="no such part"):
        submitted(session, dataset="others", part="test")


def test_the_files_own_split_is_taken_and_texts_get_the_features_of_the_model(
    session: Session, dataset: Callable[..., str]
) -> None:
    lines = ["label,split,text"]
    lines += [
        f"{'food' if i % 4 < 2 else 'tool'},{'test' if i % 5 == 0 else 'train'},{TEXTS[i % 4]}" for i in range(40)
    ]
    trained_on = dataset("\n".join(lines) + "\n", format="csv")
    trained(session)
    found = evaluated(session)
    assert (found.part, found.n_rows) == ("test", 8)
    assert reported(found)["error"] == 0.0
    assert evaluated(session, part="train").n_rows == 32
    assert evaluated(session, part="all", resamples=0).measures[0].low is None
    dataset(rows_of(["food", "tool"]), name="numbers")
    with pytest.raises(InvalidInput) as refused:
        submitted(session, dataset="numbers")
    assert "reads texts" in refused.value.errors[0].detail
    datasets.delete(session, trained_on, force=True)
    id = submitted(session, dataset="numbers")
    run(id)
    job = jobs.get(session, id)
    assert job.error is not None
    assert (job.state, job.error.code) == ("failed", "invalid_input")
    assert "reads texts" in job.error.detail


def test_a_flat_model_is_measured_along_a_tree_on_request(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(rows_of(["x", "a2", "b1"]))
    hierarchy(EDGES)
    hierarchy([("root", "y"), ("root", "a2")], name="other")
    trained(session)
    found = evaluated(session, hierarchy="tree")
    assert {each.level for each in found.measures} == {0, 1, 2, 3}
    assert reported(found)["tree_loss"] >= 0
    id = submitted(session, hierarchy="other")
    run(id)
    job = jobs.get(session, id)
    assert job.error is not None
    assert "no node for 2 labels of the model's 3: 'b1', 'x'; pass as hierarchy" in job.error.detail


@on_sqlite
@pytest.mark.parametrize("solver", ["weston_watkins", "orthogonal_transfer", "node_svm", "auto"])
def test_another_edition_of_the_tree_measures_the_same_where_it_has_the_same_nodes(
    solver: str, session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    if solver == "node_svm":
        dataset(rows_of([",".join(labels) for labels in SETS]), label_separator=",")
    else:
        dataset(rows_of(["x", "a2", "b1", "a1"]))
    hierarchy(EDGES)
    hierarchy([*reversed(EDGES)], name="later")
    hierarchy([edge for edge in EDGES if edge[1] not in ("a1", "x")], name="without")
    trained(session, solver=solver, hierarchy="tree")
    own, later, without = (evaluated(session, hierarchy=name) for name in ("tree", "later", "without"))
    measures = [(each.name, each.level, each.value) for each in own.measures]
    for other in (later, without):  # labels that it lacks are below the node that they have in the model's tree
        assert [(each.name, each.level) for each in other.measures] == [each[:2] for each in measures]
        assert [each.value for each in other.measures] == pytest.approx([each[2] for each in measures], abs=1e-6)
    assert len({each.hierarchy_sha256 for each in (own, later, without)}) == 3


@on_sqlite
@pytest.mark.parametrize("solver", ["weston_watkins", "orthogonal_transfer"])
def test_versions_along_different_editions_are_compared_along_the_later(
    solver: str, session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(rows_of(["x", "a2", "b1"]))
    dataset(rows_of(["x", "a3", "b1"], seed=6), name="renamed")
    hierarchy(EDGES)
    hierarchy([edge for edge in EDGES if edge[1] != "a2"] + [("a", "a3")], name="later")
    trained(session, solver=solver, hierarchy="tree")
    trained(session, solver=solver, hierarchy="later", dataset="renamed")
    asked = ComparisonRequest(a="1", b="2", dataset="renamed", part="all")
    for sides in (asked, asked.model_copy(update={"a": "2", "b": "1"})):
        for job in comparing.evaluate_both(session, "m", sides):
            run(job.id)
            assert jobs.get(session, job.id).error is None
    assert comparing.evaluate_both(session, "m", asked) == []
    found = comparisons.compare(session, Side("m", "1"), Side("m", "2"), "renamed")
    errors = {each.name: (each.a, each.b) for each in found.measures}
    # the former version cannot answer the renamed label, of a third of the rows
    assert errors["error"][0] >= 0.3 > errors["error"][1]
    first = evaluations.get(session, found.a.evaluation)
    assert reported(first, 1)["error"] < reported(first, 2)["error"]
    # a2 is one more node for the former version
    assert found.left_out == ["mrr"]
    assert "mrr" not in errors
    assert {"tree_loss", "ndcg@3"} <= errors.keys()


@on_sqlite
def test_what_depends_on_the_nodes_is_not_compared_where_a_set_model_has_others(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(rows_of([",".join(labels) for labels in SETS]), label_separator=",")
    hierarchy(EDGES)
    hierarchy([edge for edge in EDGES if edge[1] != "x"], name="later")
    trained(session, solver="node_svm", hierarchy="tree")
    trained(session, solver="node_svm", hierarchy="later", unknown_labels="drop")
    asked = ComparisonRequest(a="1", b="2", part="all")
    for job in comparing.evaluate_both(session, "m", asked):
        run(job.id)
        assert jobs.get(session, job.id).error is None
    found = comparisons.compare(session, Side("m", "1"), Side("m", "2"), part="all")
    assert {*found.left_out} >= {"mrr", "h_sibling", "h_subtree"}
    assert {"error", "h_uniform"} <= {each.name for each in found.measures}
    same = comparisons.compare(session, Side("m", "1"), Side("m", "1"), part="all")
    assert same.left_out == []
    assert "h_subtree" in {each.name for each in same.measures}


def test_a_version_that_names_one_label_is_measured_on_sets(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(rows_of(["x", "a2", "b1"]))
    dataset(rows_of(["x", "a2,x", "b1,strange"], 30), name="sets", label_separator=",")
    hierarchy(EDGES)
    for options in ({}, {"hierarchy": "tree"}):
        trained(session, **options)
        found = evaluated(session, dataset="sets")
        measures = reported(found)
        assert (found.unknown_rows, found.unknown_labels) == (10, 1)
        # the model names one label, and two thirds of the rows have two
        assert measures["error"] >= 2 / 3
        assert measures["accuracy@1"] > measures["recall@1"] > 0


@on_sqlite
@pytest.mark.parametrize("solver", ["orthogonal_transfer", "node_svm"])
def test_an_evaluation_that_was_interrupted_goes_on_and_finds_the_same(
    solver: str,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    hierarchy: Callable[..., str],
    interrupt: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sets = solver == "node_svm"
    dataset(
        rows_of([",".join(labels) for labels in SETS] if sets else ["x", "a2", "b1"]),
        **({"label_separator": ","} if sets else {}),
    )
    hierarchy(EDGES)
    monkeypatch.setattr(evaluating, "MOST_ROWS", 4)
    with database() as session:
        trained(session, solver=solver, hierarchy="tree")
        whole = evaluated(session, part="all")
        id = submitted(session, part="all")
        with monkeypatch.context():
            interrupt(6)
            run(id)
            assert jobs.get(session, id).state == "queued"
            session.rollback()
            checkpoint = session.get(tables.Checkpoint, id)
            assert checkpoint is not None
            assert 0 < checkpoint.step < 60
            session.rollback()
        monkeypatch.setattr(lanes, "drain_requested", lambda: False)
        run(id)
        assert jobs.get(session, id).attempt == 2
        assert evaluations.get(session, id).measures == whole.measures
        assert evaluations.get(session, id).rows_sha256 != ""
        assert not files().path(f"jobs/{id}").exists()


@on_sqlite
def test_a_crash_before_the_last_commit_leaves_nothing_and_the_evaluation_is_made_once(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(rows_of(["x", "y", "z"]))
    add = evaluations.add

    def crash(*arguments: Any) -> None:
        add(*arguments)
        raise Crash

    with database() as session:
        trained(session)
        id = submitted(session)
        with monkeypatch.context() as patch:
            patch.setattr(evaluations, "add", crash)
            with pytest.raises(Crash):
                run(id)
        assert session.scalars(select(tables.Evaluation)).all() == []
        session.rollback()
        expire(session, id)
        run(id)
        assert evaluations.page(session).items[0].id == id
        assert sweeping.tidy(session, files()) == [f"evaluations/{id}.1"]
        assert files().path(f"evaluations/{id}.2").exists()


@on_sqlite
def test_a_cancelled_evaluation_stops_between_blocks(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset(rows_of(["x", "y", "z"]))
    monkeypatch.setattr(evaluating, "MOST_ROWS", 4)
    with database() as session:
        trained(session)
        id = submitted(session, part="all")
        matrix, blocks = evaluating.EvaluatedRows.matrix, []

        def cancelling(self: Any, begin: int, end: int) -> Any:
            blocks.append(begin)
            if len(blocks) == 3:
                jobs.cancel(session, id)
            return matrix(self, begin, end)

        monkeypatch.setattr(evaluating.EvaluatedRows, "matrix", cancelling)
        monkeypatch.setattr("workers.running.job_context._STEP_SECONDS", 0.0)
        run(id)
        assert jobs.get(session, id).state == "cancelled"
        assert len(blocks) == 3
        assert evaluations.page(session).items == []


def test_versions_are_compared_on_the_rows_that_both_were_evaluated_on(
    session: Session, dataset: Callable[..., str]
) -> None:
    dataset(rows_of(["x", "y", "z"], 90, shift=0.8))
    trained(session)
    trained(session, params={"C": 1e-4}, seed=1)
    trained(session, model="other", solver="one_vs_rest")
    aliases.set_alias(session, "m", "best", 1)
    with pytest.raises(NotFound, match="were not evaluated on the same part"):
        comparisons.compare(session, Side("m", "1"), Side("m", "2"))
    first = evaluated(session, part="all", alias="best")
    assert first.version == 1
    with pytest.raises(NotFound, match="were not evaluated on the same part"):
        comparisons.compare(session, Side("m", "1"), Side("m", "2"))
    evaluated(session, part="test", version=2)
    with pytest.raises(NotFound, match="were not evaluated on the same part"):
        comparisons.compare(session, Side("m", "1"), Side("m", "2"))
    second = evaluated(session, part="all", version=2)
    found = comparisons.compare(session, Side("m", "best"), Side("m", "2"), "digits", "all", seed=3)
    assert (found.a.evaluation, found.b.evaluation, found.n_rows) == (first.id, second.id, 90)
    row = session.get(tables.Evaluation, first.id)
    arrays = [files().load_arrays(f"evaluations/{id}.1")[0] for id in (first.id, second.id)]
    assert row is not None
    session.rollback()
    right = [array["error"] == 0 for array in arrays]
    test = mcnemar(*right)
    assert found.mcnemar.model_dump() == pytest.approx(test._asdict())
    measures = {each.name: each for each in found.measures}
    assert {"error", "mrr", "accuracy@3", "ndcg@5"} <= set(measures)
    due = paired_bootstrap(arrays[0]["mrr"].astype(float), arrays[1]["mrr"].astype(float), seed=3)
    assert measures["mrr"].difference == pytest.approx(due.difference)
    assert measures["mrr"].p_value == due.p_value
    assert measures["error"].a == pytest.approx(reported(first)["error"])
    assert (found.a.params["C"], found.b.params["C"]) == (1.0, 1e-4)
    assert found.a.solver == found.b.solver
    tables_ = [evaluations.labels(session, id).labels for id in (first.id, second.id)]
    of_a, of_b = ({each.label: each for each in table} for table in tables_)
    moved = {label for label in of_a if of_a[label].f1 != of_b[label].f1}
    assert moved
    assert {each.label for each in found.labels} == moved
    for each in found.labels:
        assert (each.f1_a, each.f1_b, each.support) == (of_a[each.label].f1, of_b[each.label].f1, 30)
    sizes = [abs(each.difference) for each in found.labels]
    assert sizes == sorted(sizes, reverse=True)
    # test parts of other seeds have some rows in common
    evaluated(session, part="test", version=1)
    shared = comparisons.compare(session, Side("m", "1"), Side("m", "2"), part="test")
    assert 0 < shared.n_rows < 18
    assert shared.labels == []
    evaluated(session, part="all", model="other")
    assert comparisons.compare(session, Side("m", "1"), Side("other", "1")).b.model == "other"


def test_evaluations_are_listed_by_model_version_and_dataset(session: Session, dataset: Callable[..., str]) -> None:
    dataset(rows_of(["x", "y", "z"]))
    dataset(rows_of(["x", "y", "z"], 30), name="more")
    trained(session)
    trained(session)
    every = [
        evaluated(session, resamples=0, version=version, dataset=name).id
        for version in (1, 2)
        for name in ("digits", "more")
    ][::-1]
    assert [each.id for each in evaluations.page(session).items] == every
    assert [each.id for each in evaluations.page(session, model="m", version=1).items] == every[2:]
    assert [each.id for each in evaluations.page(session, dataset="more").items] == every[::2]
    first = evaluations.page(session, page_size=3)
    assert [each.id for each in evaluations.page(session, 3, first.next_page_token).items] == every[3:]
    with pytest.raises(InvalidInput, match="give the model, too"):
        evaluations.page(session, version=1)
    with pytest.raises(NotFound):
        evaluations.get(session, "0" * 32)


def test_an_evaluation_outlives_its_dataset_without_what_came_of_it(
    session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    dataset(rows_of(["x", "a2", "b1"]))
    dataset(rows_of(["x", "a2", "b1"], 30), name="more")
    hierarchy(EDGES)
    trained(session, hierarchy="tree")
    first = evaluated(session, dataset="more")
    datasets.delete(session, "digits", force=True)
    hierarchies.delete(session, "tree", force=True)
    second = evaluated(session, dataset="more")
    assert first.propensities is not None
    assert second.propensities is None
    assert "psp@1" not in reported(second)
    assert (first.hierarchy_sha256 is None, second.hierarchy_sha256) == (False, None)
    datasets.delete(session, "more")
    assert evaluations.get(session, second.id).dataset is None


def test_what_is_not_there_is_told_when_it_is_asked_for(session: Session, dataset: Callable[..., str]) -> None:
    dataset(rows_of(["x", "y"]))
    with pytest.raises(NotFound, match="model"):
        submitted(session)
    trained(session)
    with pytest.raises(NotFound, match="version 7"):
        submitted(session, version=7)
    with pytest.raises(NotFound, match="alias"):
        submitted(session, alias="best")
    with pytest.raises(NotFound, match="dataset"):
        submitted(session, dataset="none")
    with pytest.raises(ValueError, match="not both"):
        EvaluateRequest(kind="evaluate", model="m", dataset="digits", version=1, alias="best")
    id = submitted(session)
    with pytest.raises(Conflict, match="uses the dataset"):
        datasets.delete(session, "digits", force=True)
    assert jobs.cancel(session, id).state == "cancelled"
    assert jobs.retry(session, id).state == "queued"


def test_a_model_that_tells_probabilities_is_measured_by_them(session: Session, dataset: Callable[..., str]) -> None:
    dataset(rows_of(["x", "y", "z"], 90))
    dataset(rows_of(["x", "y", "z", "odd"], 60, seed=8), name="more")
    trained(session, solver="auto")
    found = evaluated(session, dataset="more")
    measures = reported(found)
    assert found.reliability is not None
    assert sum(each.n_rows for each in found.reliability) == 60
    right = sum(each.n_rows * (each.accuracy or 0.0) for each in found.reliability)
    assert right / 60 == pytest.approx(1 - measures["error"])
    assert measures["log_loss"] > 0
    assert 0 < measures["brier"] <= 2
    assert 0 <= measures["calibration_error"] <= 1
    trained(session, model="plain")
    assert evaluated(session, model="plain").reliability is None
