"""Models on disk and in use."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.linear_model import LinearModel
from solvers.core.sparse_linear_model import SparseLinearModel
from solvers.core.stored_models import ModelError, load_model
from solvers.selection.later_places import LaterPlaces
from solvers.selection.pool_model import PoolModel


@pytest.fixture
def model() -> LinearModel:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((4, 5)).astype(np.float32)
    return LinearModel(["a", "b", "ü", "d", "e"], 9, np.array([1, 3, 4, 8]), W)


def test_a_saved_model_scores_the_same_bits(model, tmp_path):
    digest = model.save(tmp_path / "m", {"gap": 0.01})
    X = sp.random(20, 9, density=0.5, random_state=1, format="csr")
    for mmap in (True, False):
        loaded, details = load_model(tmp_path / "m", mmap=mmap, verify=True)
        assert loaded.classes == model.classes
        assert details == {"gap": 0.01}
        np.testing.assert_array_equal(loaded.scores(X), model.scores(X))
    assert len(digest) == 64


def test_saving_again_replaces_the_whole_folder(model, tmp_path):
    model.save(tmp_path / "m")
    LinearModel(["x", "y"], 1, np.array([0]), np.ones((1, 2))).save(tmp_path / "m")
    assert load_model(tmp_path / "m")[0].classes == ("x", "y")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_changed_bytes_and_strange_folders_are_refused(model, tmp_path):
    model.save(tmp_path / "m")
    path = tmp_path / "m" / "W.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"W\.npy does not match"):
        load_model(tmp_path / "m", verify=True)
    (tmp_path / "m" / "manifest.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(ModelError, match="another version"):
        load_model(tmp_path / "m")
    with pytest.raises(ModelError, match="no readable manifest"):
        load_model(tmp_path)


def test_no_array_is_ever_unpickled(model, tmp_path):
    model.save(tmp_path / "m")
    np.save(tmp_path / "m" / "W.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        load_model(tmp_path / "m", mmap=False)


def test_one_sparse_example_scores_like_its_matrix_row(model):
    indices, values = np.array([0, 3, 8], np.int32), np.array([2.0, -1.0, 0.5])
    X = sp.csr_matrix((values, (np.zeros(3, int), indices)), shape=(1, 9))
    np.testing.assert_allclose(model.score_one(indices, values), model.scores(X)[0], rtol=1e-6)
    best, scores = model.top(indices, values, 3)
    order = np.argsort(-model.scores(X)[0])
    assert best.tolist() == order[:3].tolist()
    np.testing.assert_array_equal(scores, model.score_one(indices, values)[best])
    assert model.top(indices, values, 99)[0].tolist() == order.tolist()


def pool(*members):
    return PoolModel(members, np.linspace(0.5, 1.5, len(members)))


@pytest.mark.parametrize("k", [1, 3])
def test_many_rows_have_the_bits_of_one(model, k):
    X = sp.random(40, 9, density=0.5, random_state=2, format="csr")
    sparse = SparseLinearModel(model.classes, sp.csr_matrix(model.coef.T))
    later = PoolModel([model, sparse], np.array([0.5, 1.5]), later=LaterPlaces(np.array([2.0, 0.1])))
    for each in (model, sparse, pool(model), pool(model, sparse), later):
        for row, (best, scores) in zip(X, each.top_rows(X, k), strict=True):
            alone = each.top(row.indices, row.data, k)
            np.testing.assert_array_equal(best, alone[0])
            np.testing.assert_array_equal(scores, alone[1])


def test_predictions_do_not_depend_on_the_chunk(model):
    X = sp.random(50, 9, density=0.5, random_state=1, format="csr")
    np.testing.assert_array_equal(model.predict(X), model.predict(X, chunk_bytes=100))
    np.testing.assert_array_equal(model.predict(X), (X @ model.coef.T).argmax(axis=1))
    with pytest.raises(ValueError, match="8 features; the model has 9"):
        model.scores(X[:, :8])


def test_equal_scores_are_told_in_the_order_of_the_classes():
    model = LinearModel("abcd", 1, np.array([0]), np.array([[1.0, 2.0, 2.0, 2.0]]))
    assert model.top(np.array([0], np.int32), np.array([1.0]), 2)[0].tolist() == [1, 2]
    assert model.top(np.array([], np.int32), np.array([]), 3)[0].tolist() == [0, 1, 2]
