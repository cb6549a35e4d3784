"""Labels that the label tree lacks: refused, dropped or kept, counted and listed."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from sqlalchemy.orm import Session, sessionmaker

from app.errors import InvalidInput
from app.evaluations.schemas import EvaluateRequest
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.store.corpus import Corpus
from solvers.labels.taxonomy import Taxonomy
from workers.phases.splitting import known_labels
from workers.tasks import run

TREE = Taxonomy.from_edges([("root", "a"), ("a", "b")])


def corpus(rows: list[list[str]] | list[str]) -> Corpus:
    sets = [[row] if isinstance(row, str) else row for row in rows]
    labels = sorted({label for row in sets for label in row})
    y = np.array([labels.index(label) for row in sets for label in row], np.int32)
    indptr = None if isinstance(rows[0], str) else np.concatenate([[0], np.cumsum([len(row) for row in sets])])
    return Corpus("sparse", labels, y, None, (), None, None, label_indptr=indptr)


def names(found: Corpus) -> list[list[str]]:
    assert found.label_indptr is not None
    y, at = found.y.tolist(), found.label_indptr.tolist()
    return [[found.labels[label] for label in y[begin:end]] for begin, end in pairwise(at)]


def test_unknown_labels_of_sets_are_dropped_and_rows_without_any_other_are_lost() -> None:
    found = known_labels(corpus([["a", "x"], ["x"], ["b"], [], ["y", "b", "x"]]), TREE, "drop")
    assert names(found.corpus) == [["a"], [], ["b"], [], ["b"]]
    assert found.lost is not None
    assert found.lost.tolist() == [False, True, False, False, False]
    assert dict(found.unknown) == {"x": 3, "y": 1}
    assert found.report == {"labels_dropped": 4.0, "rows_dropped": 1.0}


def test_kept_labels_are_children_of_the_top() -> None:
    given = corpus([["a", "x"], ["b"]])
    found = known_labels(given, TREE, "keep")
    assert found.tree is not None
    assert set(found.tree.edges) == {("root", "a"), ("root", "x"), ("a", "b")}
    assert found.corpus is given
    assert found.report == {"labels_kept": 1.0}


def test_nothing_changes_where_all_labels_are_known_or_are_refused() -> None:
    given = corpus(["a", "b", "x"])
    assert known_labels(given, TREE, "refuse").corpus is given
    assert not known_labels(corpus(["a", "b"]), TREE, "drop").report


@pytest.mark.parametrize(
    ("rule", "n_classes", "report"),
    [("drop", 2, {"labels_dropped": 10.0, "rows_dropped": 10.0}), ("keep", 3, {"labels_kept": 10.0})],
)
def test_a_job_counts_and_lists_unknown_labels(
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    hierarchy: Callable[..., str],
    rule: str,
    n_classes: int,
    report: dict[str, float],
) -> None:
    lines = [f"{'abx'[i % 3]} 1:{i % 3} 2:{(i % 3) ** 2} 3:{i / 30}" for i in range(30)]
    dataset("\n".join(lines) + "\n")
    hierarchy([("root", "a"), ("root", "b")])
    request = {"dataset": "digits", "hierarchy": "tree", "model": "m", "solver": "weston_watkins"}
    with database() as session:
        with pytest.raises(InvalidInput):
            jobs.submit(session, TrainRequest.model_validate(request))
        job = jobs.submit(session, TrainRequest.model_validate({**request, "unknown_labels": rule}))
        run(job.id)
        assert jobs.get(session, job.id).error is None
        version = models.version(session, "m")
        assert version.n_classes == n_classes
        assert {name: version.report[name] for name in report} == report
        assert models.selection(session, "m", 1).unknown_labels == {"x": 10}
        asked = EvaluateRequest(kind="evaluate", model="m", dataset="digits", part="test")
        evaluation = jobs.submit(session, asked)
        run(evaluation.id)
        assert jobs.get(session, evaluation.id).error is None
