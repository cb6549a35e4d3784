"""H-M3 against the algorithm of its paper: conditional gradient steps on chunks of examples."""

import numpy as np
import pytest
from training import machine

from benchmarks.papers.conditional_gradient import ConditionalGradient
from benchmarks.papers.label_sets import Shape, generated, split

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(("loss", "scaling"), [("symmetric", "uniform"), ("hierarchical", "subtree")])
def test_conditional_gradient_on_chunks_comes_to_the_same_optimum(several: bool, loss: str, scaling: str) -> None:
    tree, X, labels = generated(Shape(9, 3, several), 80, seed=1)
    examples = split(tree, X, labels, 40, (30, 30), seed=0)
    algorithm = ConditionalGradient(examples.train, 0.7, scaling, hierarchical=loss == "hierarchical")
    gaps = [algorithm.gap]
    for _ in range(400):
        algorithm.chunk()
        gaps.append(algorithm.gap)
    params = {"C": 0.7, "loss": loss, "scaling": scaling, "labelings": "all", "tol": 1e-5, "max_epochs": 5000}
    method = machine("hm3", **params)
    *_, last = method.steps(examples.train)
    assert last.converged
    # each lower bound is below the other's objective, and both are near
    assert algorithm.dual <= last.primal * (1 + 1e-9)
    assert last.dual <= algorithm.primal * (1 + 1e-9)
    assert 0 <= gaps[-1] < 0.02 < gaps[0]
    assert algorithm.dual == pytest.approx(last.dual, rel=5e-3)
    model = method.model(examples.train, last.state)
    wrong = (model.predict_sets(examples.X) != examples.labels).getnnz(axis=1) > 0
    assert abs(algorithm.error(examples.X, examples.labels) - float(np.mean(wrong))) <= 0.1
