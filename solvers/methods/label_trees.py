"""One-vs-rest machines along label trees that are learnt, averaged over several trees.

    minimise  sum over nodes v, children u of v   1/2 |w_u|^2 + C sum_{i below v} max(0, 1 - s_iu w_u' x_i)^2

    score(c) = log mean over trees of exp(- sum over the nodes u from below the root to c of max(0, 1 - w_u' x)^2)

with s_iu = +1 where the class of i is below u and -1 where it is below a sibling of u.

Each tree divides the classes by clustering their centroids. In every node the children are separated by machines
with the squared hinge that are trained on the node's own rows alone: classes are compared with those like them, which
is what makes it better than one machine against all the rest where classes are many and have few rows (Prabhu et al.
2018; Khandagale et al. 2020). The trees are fixed before training, so the objective is convex, and is certified.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from pydantic import Field

from solvers.core.base import Handles, Solver, State, Step
from solvers.core.machine import Machine
from solvers.core.memory import refuse
from solvers.core.methods import all_methods
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.hierarchical.learnt_trees.clustering import LabelTree, centroids, learn_tree
from solvers.hierarchical.learnt_trees.driver import Trained, nodes_of, train_nodes
from solvers.hierarchical.learnt_trees.label_tree_model import LabelTreeModel
from solvers.linear.driver.params import AscentParams

# the weights as they are trained, in a checkpoint or put together, and in the model
MODEL_COPIES = 3


class LabelTreesParams(AscentParams):
    """Parameters of :class:`LabelTrees`."""

    bias: float = Field(
        default=1.0, ge=0, allow_inf_nan=False, description=AscentParams.model_fields["bias"].description
    )
    clustering: Literal["balanced", "kmeans"] = Field(
        default="balanced",
        description="How to divide a set of classes: balanced 2-means halves it, kmeans makes up to `branches` parts.",
    )
    trees: int = Field(
        default=3, ge=1, le=100, description="Number of trees to average, each with its own first centres."
    )
    branches: int = Field(
        default=100, ge=2, le=10_000, description="Maximum number of children of a node, with kmeans."
    )
    most_leaves: int = Field(
        default=100, ge=2, le=100_000, description="Sets of at most this many classes are not divided."
    )


class LabelTrees(Machine[LabelTreesParams]):
    """Machines in the nodes of learnt label trees."""

    name = "label_trees"
    title = "Learnt label trees"
    formula = r"\sum_u \Big( \tfrac12 \|w_u\|^2 + C \sum_{i \in \mathrm{parent}(u)} (1 - s_{iu} w_u^\top x_i)_+^2 \Big)"
    paper = "Prabhu et al. 2018; Khandagale et al. 2020"
    handles = Handles(flat=True)
    Params = LabelTreesParams
    # the weights of each node are sparse, and its dual variables are not kept
    has_path = False

    def train(self, problem: Problem, state: State | None) -> Iterator[Step]:
        def check(n_bytes: int) -> None:
            refuse(f"{self.name} with {problem.n_classes:,} classes", MODEL_COPIES * n_bytes, self.params.memory_mb)

        trees = self._learn(problem) if state is None else self._kept(state)
        nodes = nodes_of(trees, problem.y, problem.n_classes)
        trained = Trained(trees) if state is None else Trained.resumed(trees, nodes, problem.n_features, state)
        return train_nodes(problem, trained, nodes, self._machine(), check)

    def _machine(self) -> Solver[Any]:
        method = all_methods()["one_vs_rest"]
        shared = {name: getattr(self.params, name) for name in ("C", "tol", "max_epochs", "dtype")}
        params = method.Params(loss="squared_hinge", **shared)
        return method(params, seed=self.seed, threads=self.threads)

    def _learn(self, problem: Problem) -> list[LabelTree]:
        params, k = self.params, problem.n_classes
        # of sets of few classes all trees would be the same
        n_trees = params.trees if k > params.most_leaves else 1
        centers = centroids(problem.X, problem.y, k, problem.weights)
        rngs = [np.random.default_rng([self.seed, tree]) for tree in range(n_trees)]
        return [learn_tree(centers, params.clustering, params.branches, params.most_leaves, rng) for rng in rngs]

    def _kept(self, state: State) -> list[LabelTree]:
        parent, label = np.asarray(state["parent"]), np.asarray(state["label"])
        begins = np.append(np.flatnonzero(parent < 0), len(parent))
        return [LabelTree(parent[begin:end], label[begin:end]) for begin, end in pairwise(begins.tolist())]

    def rescale(self, problem: Problem, state: State, ratio: float) -> State:
        raise TypeError(f"{self.name} cannot train a path of values of C")

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        """Of the root: a block of weights, and of dual variables, for its children."""
        most = self.params.branches if self.params.clustering == "kmeans" else 2
        children = n_classes if n_classes <= self.params.most_leaves else min(most, n_classes)
        return 8 * children * (n_samples + n_features)

    def nonzero_duals(self, problem: Problem, state: State) -> float:
        return np.nan

    def fitted(self, problem: Problem, state: State) -> Model:
        trees = self._kept(state)
        nodes = nodes_of(trees, problem.y, problem.n_classes)
        trained = Trained.resumed(trees, nodes, problem.n_features, state)
        begins = np.cumsum([0, *(len(tree.parent) for tree in trees)])
        parent = np.concatenate(
            [np.where(tree.parent < 0, -1, tree.parent + begin) for tree, begin in zip(trees, begins, strict=False)]
        ).astype(np.int32)
        label = np.concatenate([tree.label for tree in trees])
        W = trained.merged(nodes, len(parent))
        return LabelTreeModel(problem.classes, W, np.zeros(len(parent), np.float32), parent, label)
