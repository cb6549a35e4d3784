"""Copies with fewer and shorter weights: what they answer, how they are written, and which models have none."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.linear_model import LinearModel
from solvers.core.model import Model
from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.core.stored_models import load_model
from solvers.hierarchical.learnt_trees.label_tree_model import LabelTreeModel
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import AnyFloats
from solvers.numerics.predicted_scores import by_dense
from solvers.output_codes.code_model import LinearCodeModel
from solvers.selection.pool_model import PoolModel

RNG = np.random.default_rng(3)
N_FEATURES, N_CLASSES = 40, 6
TREE = Taxonomy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d"), ("b", "e"), ("b", "f")])
FEATURES = np.arange(0, N_FEATURES, 2)
W = RNG.standard_normal((len(FEATURES), N_CLASSES)).astype(np.float32)
INTERCEPT = RNG.standard_normal(N_CLASSES)
X = sp.random(30, N_FEATURES, density=0.4, format="csr", random_state=5)


def _models() -> list[Model]:
    linear = LinearModel(TREE.names, N_FEATURES, FEATURES, W, INTERCEPT)
    owner = np.array([0, 1, 0, 1, 1, 0], np.int32)
    with_constant = np.concatenate([W, INTERCEPT[None].astype(np.float32)])
    blocks = [np.ascontiguousarray(with_constant[:, owner == rank]) for rank in (0, 1)]
    rows = np.append(FEATURES, N_FEATURES)
    taxonomy = TaxonomyModel(TREE, N_FEATURES, FEATURES, W, INTERCEPT)
    return [
        linear,
        SparseLinearModel(TREE.names, sp.csr_matrix(sp.random(N_FEATURES, N_CLASSES, 0.5, random_state=1)), INTERCEPT),
        ShardedLinearModel(TREE.names, N_FEATURES, rows, owner, blocks, 1.0),
        taxonomy,
        LinearCodeModel(TREE.names, N_FEATURES, FEATURES, W, np.eye(N_CLASSES), INTERCEPT),
        PoolModel([linear, linear], np.array([0.5, 1.0])),
        SubtreeModel(TREE, taxonomy, "path"),
        LabelTreeModel(
            TREE.names,
            sp.csr_matrix(sp.random(N_FEATURES, 1 + N_CLASSES, 0.5, random_state=2, dtype=np.float32)),
            INTERCEPT.astype(np.float32).repeat(2)[: 1 + N_CLASSES],
            np.array([-1, *[0] * N_CLASSES], np.int32),
            np.arange(-1, N_CLASSES, dtype=np.int32),
        ),
    ]


MODELS = pytest.mark.parametrize("model", _models(), ids=lambda model: model.kind)


def _all(W: AnyFloats) -> AnyFloats:
    return W


def _below(W: AnyFloats, least: float) -> AnyFloats:
    return np.where(np.abs(W) < least, W.dtype.type(0), W)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("*.npy"))


@MODELS
def test_half_precision_answers_nearly_the_same_from_its_files_and_one_row_as_many(
    model: Model, tmp_path: Path
) -> None:
    model.smaller(_all, half=True).save(tmp_path / "m")
    stored, _ = load_model(tmp_path / "m", verify=True)
    scores = stored.scores(X)
    np.testing.assert_allclose(scores, model.scores(X), atol=0.02)
    assert (scores != model.scores(X)).any()
    if stored.scores_rows_alone:
        single = np.array([stored.score_one(row.indices, row.data) for row in X])
        np.testing.assert_array_equal(single, scores)
    stored.save(tmp_path / "again")
    assert _size(tmp_path / "again") == _size(tmp_path / "m")
    assert load_model(tmp_path / "again")[0].scores(X).tobytes() == scores.tobytes()


@MODELS
@pytest.mark.parametrize("half", [False, True])
def test_pruned_weights_are_written_sparse_and_answer_as_a_model_with_zeros(
    model: Model, half: bool, tmp_path: Path
) -> None:
    model.save(tmp_path / "whole")
    model.smaller(partial(_below, least=1.8), half).save(tmp_path / "m")
    stored, _ = load_model(tmp_path / "m", verify=True)
    assert not (tmp_path / "m" / "W.npy").exists()
    assert _size(tmp_path / "m") < _size(tmp_path / "whole")
    pruned = model.smaller(partial(_below, least=1.8), half=False)
    np.testing.assert_allclose(stored.scores(X), pruned.scores(X), atol=0.02 if half else 1e-6)


def test_few_zeros_leave_weights_dense() -> None:
    made = LinearModel(TREE.names, N_FEATURES, FEATURES, W).smaller(partial(_below, least=0.1), half=False)
    assert isinstance(made, LinearModel)
    assert (made.W == 0).any()


def test_dense_half_precision_stays_so_in_memory_and_a_sparse_one_tells_what_it_takes(tmp_path: Path) -> None:
    linear = LinearModel(TREE.names, N_FEATURES, FEATURES, W)
    dense, sparse = linear.smaller(_all, half=True), linear.smaller(partial(_below, least=1.8), half=True)
    assert isinstance(dense, LinearModel)
    assert dense.W.dtype == np.float16
    assert isinstance(sparse, SparseLinearModel)
    assert sparse.W.dtype == np.float32
    assert sparse.nbytes == sum(array.nbytes for array in (sparse.W.data, sparse.W.indices, sparse.W.indptr))
    assert sparse.nonzero_weights == pytest.approx((np.abs(W) >= 1.8).sum() / (N_FEATURES * N_CLASSES))


def test_loops_read_every_number_of_half_precision() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = every[np.isfinite(every)][:, None]
    X = sp.csr_matrix(sp.eye_array(len(halves)))
    np.testing.assert_array_equal(by_dense(X, halves), halves.astype(np.float32))


def test_a_tree_is_gone_down_by_half_precision() -> None:
    whole = TaxonomyModel(TREE, N_FEATURES, FEATURES, W, INTERCEPT)
    made = whole.smaller(_all, half=True)
    wide = TaxonomyModel(TREE, N_FEATURES, FEATURES, made.W.astype(np.float32), made.intercept)
    for found, expected in zip(made.descend(X), wide.descend(X), strict=True):
        np.testing.assert_array_equal(found, expected)
    tops = [made.top(row.indices, row.data)[0][0] for row in X]
    np.testing.assert_array_equal(tops, made.predict(X))


def test_weights_beyond_half_precision_and_models_without_weights_are_refused() -> None:
    with pytest.raises(ValueError, match="half precision ends at 65504"):
        LinearModel(["a", "b"], 1, np.arange(1), np.array([[7e4, 0]])).smaller(_all, half=True)
    with pytest.raises(ValueError, match="half precision ends at 65504"):
        LinearModel(["a", "b"], 1, np.arange(1), np.array([[-7e4, 0]])).smaller(_all, half=True)
    plain = LinearModel(["a", "b"], 1, np.arange(1), np.ones((1, 2)))
    with pytest.raises(ValueError, match="a linear model has no feature weights to compress"):
        Model.smaller(plain, _all, half=True)
