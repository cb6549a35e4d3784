"""Models in shards answer as the same weights in one piece, from memory and from disk."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.sharded_linear_model import ShardedLinearModel
from solvers.core.stored_models import load_model


def model(bias, n_features=7, k=5, every=True):
    rng = np.random.default_rng(3)
    features = np.arange(n_features) if every else np.array([0, 2, 5])
    features = np.append(features, n_features) if bias else features
    owner = np.array([1, 0, 1, 2, 0], np.int32)
    blocks = [rng.normal(size=(len(features), int((owner == rank).sum()))).astype(np.float32) for rank in range(3)]
    return ShardedLinearModel(tuple("abcde"), n_features, features, owner, blocks, bias)


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_scores_are_those_of_the_model_in_one_piece(bias, every, tmp_path):
    sharded = model(bias, every=every)
    sharded.report = {"nonzero_duals": 0.5}
    sharded.save(tmp_path / "model", {"job": "1"})
    loaded, details = load_model(tmp_path / "model", verify=True)
    assert isinstance(loaded, ShardedLinearModel)
    assert details == {"job": "1"}
    assert loaded.report == sharded.report
    assert sorted(path.name for path in (tmp_path / "model").glob("W*")) == ["W-0.npy", "W-1.npy", "W-2.npy"]
    X = sp.random(20, 7, 0.4, format="csr", random_state=0)
    whole = sharded.gathered()
    np.testing.assert_allclose(loaded.scores(X), whole.scores(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(loaded.predict(X), whole.predict(X))
    for i in range(20):
        row = X[i]
        one = loaded.score_one(row.indices, row.data)
        np.testing.assert_allclose(one, whole.score_one(row.indices, row.data), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="X has 6 features; the model has 7"):
        loaded.scores(X[:, :6])
