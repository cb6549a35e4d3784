"""The weight of a block of features is large where it says much of the labels, and small where it is noise."""

import numpy as np
import pytest
import scipy.sparse as sp

from solvers.core.problem import Problem
from solvers.labels.label_sets import closed
from solvers.labels.taxonomy import Taxonomy
from solvers.selection.block_weight import chosen_weight

N, K, FEW, MANY = 300, 4, 6, 150


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def made(*, block_is_noise: bool, scale: float = 1.0) -> tuple[Problem, np.ndarray]:
    """Few features with the classes beside many of noise, and the columns of the second part, the block."""
    rng = np.random.default_rng(3)
    y = rng.integers(K, size=N).astype(np.int32)
    telling = unit(rng.normal(size=(K, FEW))[y] + 0.5 * rng.normal(size=(N, FEW)))
    noise = unit(rng.normal(size=(N, MANY)))
    first, block = (telling, noise) if block_is_noise else (noise, telling)
    columns = np.arange(first.shape[1], FEW + MANY)
    return Problem.check(np.hstack([first, scale * block]), y, tuple("abcd")), columns


def test_noise_weighs_least_and_what_tells_the_classes_weighs_most() -> None:
    assert chosen_weight(*made(block_is_noise=True)).weight == 0.25
    found = chosen_weight(*made(block_is_noise=False))
    assert found.weight == 4.0
    assert list(found.log_losses) == [1.0, 2.0, 4.0]
    assert found.log_losses[4.0] < found.log_losses[2.0] < found.log_losses[1.0]


def test_the_choice_is_reproducible_and_leaves_the_problem_as_it_is() -> None:
    given, block = made(block_is_noise=True, scale=0.1)
    before = given.X.copy()
    first, second = chosen_weight(given, block), chosen_weight(given, block)
    assert first == second
    assert (before != given.X).nnz == 0


@pytest.mark.parametrize("block_is_noise", [True, False])
def test_sets_of_labels_have_a_weight_of_their_own(block_is_noise: bool) -> None:
    single, block = made(block_is_noise=block_is_noise)
    tree = Taxonomy.flat(tuple("abcd"))
    nodes = np.array([tree.names.index(single.classes[label]) for label in single.y])
    labels, _ = closed(tree, np.arange(N + 1), nodes)
    sets = Problem.check_sets(single.X, sp.csr_matrix(labels, dtype=bool), tree)
    weight = chosen_weight(sets, block).weight
    assert weight < 1.0 if block_is_noise else weight > 1.0
