"""What held-out rows promise along a label tree, beside own calculations on 2,000 rows that no training has seen."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sqlalchemy.orm import Session, sessionmaker
from test_predicting import submitted, trained

from app.jobs import service as jobs
from app.predictions import batch_predictions
from app.predictions.batch_predictions import plan
from app.predictions.commands import sure_sentences
from app.predictions.model_cache import LoadedModel, ModelCache
from app.predictions.schemas import BatchPredictRequest, SureRows
from app.reviews.service import _promised
from workers.job_kinds.predicting import about
from workers.tasks import run

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

BRANCHES, LEAVES, N_TRAIN, N_NEW = 4, 3, 600, 2000
NODES = [f"b{branch}{leaf}" for branch in range(BRANCHES) for leaf in range(LEAVES)]
EDGES = [*(("root", f"b{branch}") for branch in range(BRANCHES)), *((leaf[:2], leaf) for leaf in NODES)]
CANDIDATES = {"candidates": [{"solver": "weston_watkins"}], "folds": 3}


def _rows(n: int, seed: int, n_labels: int = 1) -> tuple[str, list[set[str]]]:
    """Rows as svmlight, with branches that are easier to see than leaves, and the nodes of each row."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(len(NODES), 8))
    branches = np.repeat(np.random.default_rng(1).normal(size=(BRANCHES, 8)), LEAVES, axis=0)
    lines, truth = [], []
    for _ in range(n):
        own = random.choice(len(NODES), size=random.integers(1, n_labels + 1), replace=False)
        values = (0.8 * centres + 1.2 * branches)[own].sum(axis=0) + 0.9 * random.normal(size=8)
        lines.append(",".join(NODES[at] for at in own) + "".join(f" {j + 1}:{v:.5f}" for j, v in enumerate(values)))
        truth.append({NODES[at] for at in own} | {NODES[at][:2] for at in own})
    return "\n".join(lines) + "\n", truth


class _Asked:
    """A job's answers to the new rows."""

    def __init__(self, session: Session, database: sessionmaker[Session], truth: list[set[str]], **asked: Any) -> None:
        id = submitted(session, dataset="new", **asked)
        run(id)
        job = jobs.get(session, id)
        assert job.error is None
        assert job.result is not None
        assert job.result.sure is not None
        self.sure: SureRows = job.result.sure
        self.said = " ".join(sure_sentences(self.sure))
        self.rows: list[dict[str, Any]] = pq.read_table(batch_predictions.of_job(session, id).path).to_pylist()
        self.truth, cache = truth, ModelCache(database, 1 << 30)
        self.loaded: LoadedModel = cache.get(("default", "m", None, None))
        self.planned = plan(
            session, cache, BatchPredictRequest.model_validate({"dataset": "new", "model": "m"} | asked)
        )
        self.about = dict(about(self.loaded.version, BatchPredictRequest(dataset="new", model="m"), self.sure, 0))

    def right(self, answers: list[str | None]) -> Iterator[bool]:
        """Whether an answer is the true label or above it, of the rows that have one."""
        pairs = zip(answers, self.truth, strict=True)
        return (answer in truth for answer, truth in pairs if answer is not None)


@pytest.fixture
def branching(session: Session, dataset: Callable[..., str], hierarchy: Callable[..., str]) -> list[set[str]]:
    hierarchy(EDGES)
    dataset(_rows(N_TRAIN, 2)[0], "known")
    new, truth = _rows(N_NEW, 3)
    dataset(new, "new")
    trained(session, dataset="known", hierarchy="tree", solver="auto", params=CANDIDATES)
    return truth


@pytest.mark.parametrize("level", ["any", "leaves", 1])
def test_precisions_are_of_what_the_level_names(
    session: Session, database: sessionmaker[Session], branching: list[set[str]], level: Any
) -> None:
    found = _Asked(session, database, branching, min_precision=0.8, sure_level=level)
    deepest = [row["label"] if row["sure"] else row["sure_ancestor"] for row in found.rows]
    answers = [row["label"] if row["sure"] else None for row in found.rows] if level == "leaves" else deepest
    right, sure = [*found.right(answers)], found.sure
    assert (sure.counted, sure.n_answered) == ("labels" if level == "leaves" else "nodes", len(right))
    assert sure.answered == pytest.approx(len(right) / N_NEW, abs=0.08)
    assert sure.precision == pytest.approx(np.mean(right), abs=0.05)
    assert sure.lower_bound is not None
    assert np.mean(right) > sure.lower_bound
    assert _held_out(found, level) == pytest.approx((sure.answered, sure.precision))
    assert f"{len(right)} of 2000 rows ({len(right) / N_NEW:.1%}) have a sure {sure.what}" in found.said
    assert (
        f"{sure.answered:.1%} of the held-out rows had a sure {sure.what}; of these, {sure.precision:.1%}" in found.said
    )
    assert found.about[f"Rows with a sure {sure.what}"] == len(right)
    assert found.planned.sure is not None
    assert found.planned.sure.n_answered == round(N_NEW * sure.answered)
    labels = [*found.right([row["label"] if row["sure"] else None for row in found.rows])]
    assert found.planned.sure.n_sure == (None if level == 1 else pytest.approx(len(labels), abs=0.08 * N_NEW))
    promised = _promised(json.loads(sure.model_dump_json()))  # of a queue's sure rows, which have sure labels
    assert promised == (None if level == 1 else pytest.approx(np.mean(labels), abs=0.07))


def _held_out(found: _Asked, level: Any) -> tuple[float, float]:
    """Shares of held-out rows with an answer and of right ones among these, row by row."""
    back_off, threshold = found.loaded.model.back_off, found.sure.threshold
    assert back_off is not None
    answers = []
    for confidence, correct in zip(back_off.confidence, back_off.correct, strict=True):
        levels = {"any": range(back_off.tree.depth), "leaves": [back_off.tree.depth - 1], 1: [0]}[level]
        sure = [at for at in levels if confidence[at] >= threshold]
        answers += [bool(correct[sure[-1]])] if sure else []
    return len(answers) / back_off.n_rows, float(np.mean(answers))


@pytest.mark.parametrize("asked", [{"min_precision": 0.6}, {"min_precision": 0.8}, {"threshold": 0.02}])
def test_sets_along_a_tree_count_sure_nodes(
    session: Session,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    hierarchy: Callable[..., str],
    asked: dict[str, float],
) -> None:
    hierarchy(EDGES)
    dataset(_rows(N_TRAIN, 2, 2)[0], "known", label_separator=",")
    new, truth = _rows(N_NEW, 3, 2)
    dataset(new, "new", label_separator=",")
    trained(session, dataset="known", hierarchy="tree", solver="auto", params={"candidates": [{"solver": "node_svm"}]})
    found = _Asked(session, database, truth, **asked)
    nodes = [_sure_nodes(row) for row in found.rows]
    n_answered, sure = sum(map(bool, nodes)), found.sure
    right = [node in true for own, true in zip(nodes, truth, strict=True) for node in own]
    assert (sure.counted, sure.n_answered) == ("nodes", n_answered)
    assert sure.answered == pytest.approx(n_answered / N_NEW, abs=0.08)
    assert sure.precision == pytest.approx(np.mean(right), abs=0.05)
    assert (
        f"{n_answered} of 2000 rows ({n_answered / N_NEW:.1%}) have a sure node: a label or a node above it"
        in found.said
    )
    assert "of the held-out rows had a sure node; of these nodes, with those above others, " in found.said
    assert (found.about["Rows with a sure node"], found.about["Rows whose labels are all sure"]) == (
        n_answered,
        sum(bool(row["sure"]) and all(row["sure"]) for row in found.rows),
    )
    assert found.planned.sure is not None
    assert (found.planned.sure.n_answered, found.planned.sure.n_sure) == (round(N_NEW * (sure.answered or 0)), None)
    assert _promised(json.loads(sure.model_dump_json())) is None


def _sure_nodes(row: dict[str, Any]) -> set[str]:
    said = {label for label, sure in zip(row["labels"], row["sure"], strict=True) if sure}
    said |= {node for node in row["sure_ancestors"] if node is not None}
    return said | {node[:2] for node in said}
