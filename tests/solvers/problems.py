"""Small problems, and every objective written down a second time for a general convex solver."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from solvers.boosting.boosting import Boosting
from solvers.boosting.weak_learners.stumps_model import StumpsModel
from solvers.core.base import Solver, Step
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.hierarchical.subtree_model import SubtreeModel
from solvers.hierarchical.taxonomy_model import TaxonomyModel
from solvers.labels.taxonomy import Taxonomy
from solvers.output_codes.code_families import make
from solvers.registry import SOLVERS


def small(n: int = 50, d: int = 12, k: int = 5, seed: int = 0, density: float = 0.4) -> Problem:
    """A random sparse problem in which every class has an example and labels have something to do with X."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=density, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    y = np.argmax(X @ rng.standard_normal((d, k)) + rng.standard_normal((n, k)), axis=1)
    y[:k] = np.arange(k)
    return Problem.check(X, y)


def small_tree(names: Sequence[str]) -> Taxonomy:
    """A label tree for these classes: leaves on all levels, an inner node that is a class, one that has one child."""
    edges = [("root", "a"), ("a", "b")]
    for c, name in enumerate(names):
        edges.append((("root", "a", "b", names[0], names[0])[c % 5] if c else "root", name))
    return Taxonomy.from_edges(edges)


def random_tree(rng: np.random.Generator, n_nodes: int) -> Taxonomy:
    """A tree of any shape, its nodes named by their numbers."""
    parents = np.sort([-1] + [int(rng.integers(-1, i)) for i in range(1, n_nodes)])
    tree = Taxonomy.from_parents([str(i) for i in range(n_nodes)], parents)
    return Taxonomy(tuple(map(str, range(n_nodes))), tree.parent)


def random_graph(rng: np.random.Generator, n_nodes: int, share: float = 0.3) -> Taxonomy:
    """A label graph of any shape: every earlier node is a parent of a later one with this probability."""
    edges = []
    for i in range(n_nodes):
        above = np.flatnonzero(rng.random(i) < share).tolist()
        if not above and i and rng.random() < 0.5:
            above = [int(rng.integers(i))]
        edges += [(f"n{k}", f"n{i}") for k in above] or [("root", f"n{i}")]
    return Taxonomy.from_graph([edges[at] for at in rng.permutation(len(edges))])


def parents_of(tree: Taxonomy) -> list[list[int]]:
    """The parents of every node but the root, as the edges have them."""
    number = {name: node for node, name in enumerate(tree.names)}
    above: list[list[int]] = [[] for _ in tree.names]
    for parent, child in tree.edges:
        if parent in number:
            above[number[child]].append(number[parent])
    return above


def random_sets(rng: np.random.Generator, tree: Taxonomy, n: int, share: float = 0.6) -> NDArray[np.bool_]:
    """Closed sets (n, n_nodes): a node is in with this probability if its parents are."""
    return cut_off(tree, rng.random((n, tree.n_nodes)) < share)


def cut_off(tree: Taxonomy, sets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Sets without the nodes whose parents are not all in; the array itself."""
    for j, above in enumerate(parents_of(tree)):
        sets[:, j] &= sets[:, above].all(axis=1)
    return sets


def closed_sets(tree: Taxonomy) -> NDArray[np.bool_]:
    """All closed sets of a small tree or graph, shape (n_sets, n_nodes)."""
    every = np.array(list(itertools.product([False, True], repeat=tree.n_nodes)))
    return every[(every == cut_off(tree, every.copy())).all(axis=1)]


def small_sets(n: int = 30, d: int = 8, n_nodes: int = 7, seed: int = 0, *, graph: bool = False) -> Problem:
    """A random problem of sets of labels, some of them empty, that have something to do with X."""
    rng = np.random.default_rng(seed)
    tree = random_graph(rng, n_nodes) if graph else random_tree(rng, n_nodes)
    X = sp.random(n, d, density=0.5, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    F = X @ rng.standard_normal((d, n_nodes)) + 0.5 * rng.standard_normal((n, n_nodes))
    return Problem.check_sets(X, cut_off(tree, F > -0.3), tree)


class OnTree:
    """A solver of methods that need a label tree, which gives a problem one where it has none."""

    def __init__(self, solver: Solver[Any]) -> None:
        self.solver = solver

    def steps(self, problem: Problem, state: Any = None) -> Iterator[Step]:
        return self.solver.steps(with_tree(problem), state)

    def model(self, problem: Problem, state: Any) -> Model:
        return self.solver.model(with_tree(problem), state)


def with_tree(problem: Problem) -> Problem:
    """The problem with a small label tree, unless it has one."""
    return problem if problem.taxonomy else replace(problem, taxonomy=small_tree(problem.classes))


def settings(name: str, **params: Any) -> dict[str, Any]:
    """The parameters as the method takes them.

    A kernel machine is made linear, and knows no precision but float64; a composite has that of its base method. A
    method with a closed form is given no parameter that it lacks.
    Boosting corrects all weights, so that it reaches the optimum, and is given no parameter that its kind lacks.
    """
    if issubclass(SOLVERS[name], Boosting):
        # each round of the first solves for all weights afresh: with less loss it takes a third of the rounds
        given = {"C": 20.0 if name == "multiboost" else 100.0, "tau_max": 50, "bins": "exact"} | params
        if not SOLVERS[name].handles.certified:
            # on separable examples the loss vanishes and the scores grow without end
            given |= {"tol": 0.05, "max_epochs": min(100, given.get("max_epochs", 500))}
        return {key: value for key, value in given.items() if key in SOLVERS[name].Params.model_fields}
    if name == "label_trees":
        params = {"bias": 0.0} | params
    if SOLVERS[name].handles.closed_form:
        # without steps there is neither a tolerance nor a limit of epochs
        given = {"kernel": "linear"} | {key: value for key, value in params.items() if key != "dtype"}
        return {key: value for key, value in given.items() if key in SOLVERS[name].Params.model_fields}
    if name == "hard_margin":
        params = {key: value for key, value in params.items() if key not in ("C", "dtype")}
    if not SOLVERS[name].handles.flat:
        params.pop("dtype", None)
    if SOLVERS[name].handles.kernels:
        params = {"kernel": "linear"} | {key: value for key, value in params.items() if key != "dtype"}
    if SOLVERS[name].parts == "columns" and "dtype" in params:
        params = params | {"base_params": {"dtype": params.pop("dtype")}}
    return params


def last_of(steps: Iterator[Step]) -> Step:
    """The last step of a training."""
    *_, last = steps
    return last


def path_ends(made: Solver[Any], problem: Problem, Cs: Sequence[float], first: int = 0, start: Any = None) -> list[Any]:
    """Of every machine on a path in C: the machine, its last step, and a copy of the state that it began from."""
    ends: list[Any] = []
    for at in made.at_each(Cs)[first:]:
        if ends:
            start = at.rescaled(problem, ends[-1][1].state, ends[-1][0].params.C)
        before = None if start is None else {key: np.array(value) for key, value in start.items()}
        ends.append((at, last_of(at.steps(problem, start)), before))
    return ends


def check_path(made: Solver[Any], problem: Problem, Cs: Sequence[float]) -> tuple[int, int]:
    """A path in C has true bounds; the epochs that it takes, and those of its points alone."""
    ends, alone = path_ends(made, problem, Cs), [last_of(made.at(C).steps(problem)) for C in sorted(Cs)]
    assert [at.params.C for at, _, _ in ends] == sorted(Cs)
    for (_, end, _), other in zip(ends, alone, strict=True):
        assert end.converged
        assert end.dual <= other.primal * (1 + 1e-6)
        assert other.dual <= end.primal * (1 + 1e-6)
    return sum(end.epoch for _, end, _ in ends), sum(other.epoch for other in alone)


def linear_map(model: Model) -> NDArray[np.float64]:
    """W (k, d) of a model whose scores are linear, or its parts' are, whatever it keeps, without its intercept."""
    if isinstance(model, SubtreeModel):
        return linear_map(model.parts)
    return np.asarray(model.scores(sp.identity(model.n_features, format="csr")) - intercept(model)).T


def intercept(model: Model) -> NDArray[np.float64]:
    """The scores (k,) of an example without features."""
    return np.asarray(model.scores(sp.csr_matrix((1, model.n_features)))[0])


def shape_of(model: Model, problem: Problem) -> NDArray[np.float64]:
    """What a model says, one row a class: W if its scores are linear, else the scores of X less their mean."""
    if isinstance(model, StumpsModel):
        F = np.asarray(model.scores(problem.X)).T
        return F - F.mean(axis=0)
    if isinstance(model, TaxonomyModel | SubtreeModel):
        return linear_map(model)[model.tree.find(problem.classes)]
    return linear_map(model)


def _margins(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, cp.Expression]:
    """W (k, d) and the margin violations (n, k), zero in the column of the true class."""
    W = cp.Variable((k, X.shape[1]))
    F = X @ W.T
    own = cp.sum(cp.multiply(F, np.eye(k)[y]), axis=1, keepdims=True)
    return W, cp.multiply(cp.pos(1 - own @ np.ones((1, k)) + F), 1 - np.eye(k)[y])


def weston_watkins(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, list[cp.Expression]]:
    W, M = _margins(X, y, k)
    return W, [cp.sum(M[i]) for i in range(len(y))]


def crammer_singer(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, list[cp.Expression]]:
    W, M = _margins(X, y, k)
    return W, [cp.max(M[i]) for i in range(len(y))]


# cheap, dear and free mistakes among five classes, and all others at 2.5
COSTS = {"costs": {"0": {"1": 9.0, "2": 0.5}, "3": {"4": 0.0, "0": 4.0}, "4": {"3": 6.0}}, "other_cost": 2.5}


def cost_table(k: int) -> NDArray[np.float64]:
    """COSTS as a matrix, shape (k, k)."""
    L = np.full((k, k), COSTS["other_cost"])
    np.fill_diagonal(L, 0.0)
    for label, answers in COSTS["costs"].items():
        for answer, cost in answers.items():
            L[int(label), int(answer)] = cost
    return L


def costly(largest: bool, slack: bool = False):
    """The largest violation of the margins that costs are, or the sum of all; or of violations times costs."""

    def losses(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, list[cp.Expression]]:
        W, L = cp.Variable((k, X.shape[1])), cost_table(k)
        F = X @ W.T
        wrong = [[q for q in range(k) if q != c] for c in y]
        pairs = list(enumerate(zip(y, wrong, strict=True)))
        if slack:
            M = [cp.multiply(L[c, q], cp.pos(1 - F[i, int(c)] + F[i, q])) for i, (c, q) in pairs]
        else:
            M = [cp.pos(L[c, q] - F[i, int(c)] + F[i, q]) for i, (c, q) in pairs]
        return W, [cp.max(each) if largest else cp.sum(each) for each in M]

    return losses


def one_vs_rest(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, list[cp.Expression]]:
    W = cp.Variable((k, X.shape[1]))
    M = cp.pos(1 - cp.multiply(2 * np.eye(k)[y] - 1, X @ W.T))
    return W, [cp.sum(M[i]) for i in range(len(y))]


def softmax(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, list[cp.Expression]]:
    W = cp.Variable((k, X.shape[1]))
    F = X @ W.T
    return W, [cp.log_sum_exp(F[i]) - F[i, int(c)] for i, c in enumerate(y)]


def one_vs_rest_squared(
    X: NDArray[np.float64], y: NDArray[np.int32], k: int
) -> tuple[cp.Variable, list[cp.Expression]]:
    W = cp.Variable((k, X.shape[1]))
    M = cp.pos(1 - cp.multiply(2 * np.eye(k)[y] - 1, X @ W.T))
    return W, [cp.sum_squares(M[i]) for i in range(len(y))]


def absolute(own, other, own_share, other_share, shared):
    """The machines with absolute margins under sum_c w_c = 0, written as W = B V with a basis B of that subspace."""

    def losses_of(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, list[cp.Expression]]:
        W = cp.Variable((k, X.shape[1]))
        F = X @ (W - np.ones((k, k)) @ W / k).T
        E = np.eye(k)[y]
        margin = own(k) * E + other * (1 - E)
        share = own_share * E + other_share * (1 - E)
        M = cp.multiply(share, cp.pos(margin - cp.multiply(2 * E - 1, F)))
        return W, [(cp.max if shared else cp.sum)(M[i]) for i in range(len(y))]

    return losses_of


def output_code(family: str, squared: bool = False):
    """The binary machines of a code's columns, V (n_columns, d)."""

    def losses_of(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, list[cp.Expression]]:
        code = make(family, k)
        V = cp.Variable((code.shape[1], X.shape[1]))
        M = cp.multiply(cp.pos(1 - cp.multiply(code[y], X @ V.T)), np.abs(code[y]))
        return V, [(cp.sum_squares if squared else cp.sum)(M[i]) for i in range(len(y))]

    return losses_of


def output_code_of_pairs(family: str):
    """The same with two weight vectors a column, one for each side: (2 n_columns, d)."""

    def losses_of(X: NDArray[np.float64], y: NDArray[np.int32], k: int) -> tuple[cp.Variable, list[cp.Expression]]:
        code = make(family, k)
        U = cp.Variable((2 * code.shape[1], X.shape[1]))
        V = U[code.shape[1] :] - U[: code.shape[1]]
        M = cp.multiply(cp.pos(1 - cp.multiply(code[y], X @ V.T)), np.abs(code[y]))
        return U, [cp.sum(M[i]) for i in range(len(y))]

    return losses_of


def decoded(family: str):
    """W (k, d) from the machines of the columns."""

    def shown(V: NDArray[np.float64], k: int) -> NDArray[np.float64]:
        code = make(family, k)
        n_columns = code.shape[1]
        return code @ (V if len(V) == n_columns else V[n_columns:] - V[:n_columns]) / n_columns

    return shown


def one(k: int) -> float:
    return 1.0


ORACLES = {
    "weston_watkins": (weston_watkins, {}),
    "crammer_singer": (crammer_singer, {}),
    "weston_watkins, costs": (costly(largest=False), COSTS),
    "crammer_singer, costs": (costly(largest=True), COSTS),
    "weston_watkins, losses times costs": (costly(largest=False, slack=True), {**COSTS, "cost_scaling": "slack"}),
    "crammer_singer, losses times costs": (costly(largest=True, slack=True), {**COSTS, "cost_scaling": "slack"}),
    "one_vs_rest": (one_vs_rest, {}),
    "lee_lin_wahba": (absolute(one, 1, 0, 1, False), {}),
    "maximum_margin_regression": (absolute(one, 1, 1, 0, False), {}),
    "absolute_maximum": (absolute(one, 1, 0, 1, True), {}),
    "absolute_sum": (absolute(one, 1, 1, 1, False), {}),
    "absolute_total": (absolute(one, 1, 1, 1, True), {}),
    "reinforced": (absolute(lambda k: k - 1, 1, 0.5, 0.5, False), {}),
    "lee_lin_wahba, block ascent": (absolute(one, 1, 0, 1, False), {"algorithm": "ascent"}),
    "maximum_margin_regression, block ascent": (absolute(one, 1, 1, 0, False), {"algorithm": "ascent"}),
    "absolute_sum, block ascent": (absolute(one, 1, 1, 1, False), {"algorithm": "ascent"}),
    "reinforced, block ascent": (absolute(lambda k: k - 1, 1, 0.5, 0.5, False), {"algorithm": "ascent"}),
    "reinforced, own class weighs little": (absolute(lambda k: k - 1, 1, 0.2, 0.8, False), {"g": 0.2}),
    "softmax": (softmax, {}),
    "spoc": (crammer_singer, {}),
    "kernel_weston_watkins": (weston_watkins, {}),
    "kernel_lee_lin_wahba": (absolute(one, 1, 0, 1, False), {}),
    "one_vs_rest, squared hinge": (one_vs_rest_squared, {"loss": "squared_hinge"}),
    "output_code": (output_code("one_vs_rest"), {}),
    "output_code, all pairs": (
        output_code("all_pairs"),
        {"code": "all_pairs", "decoding": "inner_product"},
    ),
    "output_code, exhaustive, squared hinge": (
        output_code("exhaustive", squared=True),
        {"code": "exhaustive", "base_params": {"loss": "squared_hinge"}},
    ),
    "output_code, one by one": (
        output_code_of_pairs("sparse_random"),
        {"code": "sparse_random", "base": "crammer_singer", "decoding": "inner_product"},
    ),
    "continuous_code, features": (crammer_singer, {"inputs": "features"}),
    "continuous_code, features, l1": (crammer_singer, {"inputs": "features", "norm": "l1"}),
}
# what makes W (k, d) of the variables, where they are others
SHOWN = {
    "output_code": decoded("one_vs_rest"),
    "output_code, all pairs": decoded("all_pairs"),
    "output_code, exhaustive, squared hinge": decoded("exhaustive"),
    "output_code, one by one": decoded("sparse_random"),
}
# the norm in the objective, where it is not half the squared length
NORMS = {"continuous_code, features, l1": lambda W: cp.sum(cp.abs(W))}
# methods with parts whose answers do not scale with X, made ones that scale
SCALING = {"continuous_code": {"inputs": "features"}}


def optimum(
    name: str,
    problem: Problem,
    C: float,
    bias: float = 0.0,
    class_weight: dict[str, float] | Literal["balanced"] | None = None,
) -> tuple[float, NDArray[np.float64]]:
    """The optimal value and W (k, d) of an objective, by an interior point method; with a bias W is (k, d + 1)."""
    losses_of, _ = ORACLES[name]
    shown = SHOWN.get(name, lambda W, k: W)
    X, weights = problem.X.toarray(), problem.weights.copy()
    if bias > 0:
        X = np.hstack([X, np.full((len(X), 1), bias)])
    for c, label in enumerate(problem.classes):
        mine = problem.y == c
        if class_weight == "balanced":
            weights[mine] *= problem.weights.sum() / (problem.n_classes * problem.weights[mine].sum())
        elif class_weight is not None:
            weights[mine] *= class_weight.get(label, 1.0)
    W, losses = losses_of(X, problem.y, problem.n_classes)
    weighted = cp.sum(cp.multiply(weights, cp.hstack(losses)))
    norm = NORMS.get(name, lambda W: 0.5 * cp.sum_squares(W))
    task = cp.Problem(cp.Minimize(norm(W) + C * weighted))
    value = task.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return float(value), np.asarray(shown(W.value, problem.n_classes))


BOOSTED: dict[str, dict[str, Any]] = {"multiboost_cw": {"tau_max": 200}, "multiboost": {}}


def boosted_optimum(problem: Problem, C: float) -> tuple[float, NDArray[np.float64]]:
    """The optimal value of multi-class boosting over all stumps, and the margins (n, k) there."""
    X, k = problem.X.toarray(), problem.n_classes
    columns = [np.ones(len(X))]
    for x in X.T:
        values = np.unique(x)
        columns += [np.where(x <= cut, 1.0, -1.0) for cut in (values[:-1] + values[1:]) / 2]
    H = np.unique(columns, axis=0).T
    w = cp.Variable((H.shape[1], k))
    F, own = H @ w, np.eye(k)[problem.y]
    margins = cp.sum(cp.multiply(F, own), axis=1, keepdims=True) @ np.ones((1, k)) - F
    i, q = np.nonzero(1 - own)
    losses = cp.sum(cp.multiply(problem.weights[i], cp.exp(-margins[i, q])))
    task = cp.Problem(cp.Minimize(cp.sum(cp.abs(w)) + C / ((k - 1) * problem.weights.sum()) * losses))
    value = task.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return float(value), np.asarray(margins.value)


def _fixed(K_of):
    """Half the trace of W' K W, for K that the tree alone decides."""

    def norm(W: cp.Variable, tree: Taxonomy, K: NDArray[np.float64]) -> list[tuple[cp.Expression, ...]]:
        root = np.linalg.cholesky(K_of(tree)).T
        return [(0.5 * cp.sum_squares(root @ W),)]

    return norm


def _towards_parents(tree: Taxonomy, own: float) -> NDArray[np.float64]:
    """``own |w_i|^2`` for every node, and ``|w_i - w_parent(i)|^2``, where the root's w is 0 if ``own`` is."""
    K = own * np.eye(tree.n_nodes)
    for i, above in enumerate(tree.parent.tolist()):
        e = np.eye(tree.n_nodes)[i] - (np.eye(tree.n_nodes)[above] if above >= 0 else 0.0)
        if above >= 0 or own == 0:
            K += np.outer(e, e)
    return K


def _orthogonal(W: cp.Variable, tree: Taxonomy, K: NDArray[np.float64]) -> list[tuple[cp.Expression, ...]]:
    """The largest of the quadratic forms with all signs of the couplings, for each subtree below the root."""
    parts = []
    for top in tree.children(-1):
        mine = [i for i in range(tree.n_nodes) if tree.path(i)[0] == top]
        part = K[np.ix_(mine, mine)]
        pairs = np.argwhere(np.tril(part, -1))
        forms = []
        for signs in itertools.product([-1.0, 1.0], repeat=len(pairs)):
            signed = part.copy()
            for (i, j), sign in zip(pairs, signs, strict=True):
                signed[i, j] = signed[j, i] = sign * part[i, j]
            forms.append(0.5 * cp.sum_squares(np.linalg.cholesky(signed).T @ W[mine]))
        parts.append(tuple(forms))
    return parts


# what a machine over a label tree regularises by: sums of largest forms; and how its pairs are made
TREES = {
    "orthogonal_transfer": (_orthogonal, "path"),
    "transfer": (_fixed(lambda tree: _towards_parents(tree, 1.0)), "path"),
    "hierarchical_multiclass": (_fixed(lambda tree: np.eye(tree.n_nodes)), "levels"),
    "tree_loss": (_fixed(lambda tree: _towards_parents(tree, 0.0)), "all"),
    "flat_multiclass": (_fixed(lambda tree: np.eye(tree.n_nodes)), "leaves"),
}


def coupling_of(tree: Taxonomy, alpha: float) -> NDArray[np.float64]:
    """K of equation 6, dense."""
    K = np.zeros((tree.n_nodes, tree.n_nodes))
    for i in range(tree.n_nodes):
        for a in tree.path(i):
            K[i, a] = K[a, i] = alpha if i != a else tree.subtree_size[i]
    return K


def tree_pairs(kind: str, tree: Taxonomy, y: int, classes: Sequence[int]) -> list[list[tuple[int, int, float]]]:
    """The losses of an example: for each the pairs (node, rival, scale)."""
    if kind == "all":
        return [[(y, j, float(tree.distance(y, j))) for j in range(tree.n_nodes) if j != y]]
    if kind == "leaves":
        return [[(y, j, 1.0) for j in sorted({*tree.leaves.tolist(), *classes}) if j != y]]
    levels = []
    for i in tree.path(y).tolist():
        siblings = [j for j in tree.children(int(tree.parent[i])) if j != i]
        levels.append([(i, j, 1.0) for j in siblings])
    return levels if kind == "levels" else [[pair for level in levels for pair in level]]


def tree_optimum(
    name: str, problem: Problem, C: float, alpha: float = 0.5, tol: float = 1e-9
) -> tuple[float, NDArray[np.float64]]:
    """The optimal value and W (n_nodes, d) of a machine over a label tree, by an interior point method."""
    tree = problem.taxonomy
    assert tree is not None
    norm, kind = TREES[name]
    W = cp.Variable((tree.n_nodes, problem.n_features))
    F = problem.X.toarray() @ W.T
    losses, bounds = [], []
    nodes = problem.nodes().tolist()
    for k, y in enumerate(nodes):
        for pairs in tree_pairs(kind, tree, y, nodes):
            if pairs:
                violations = [scale * (1 - F[k, i] + F[k, j]) for i, j, scale in pairs]
                losses.append(cp.max(cp.hstack([0.0, *violations])))
                bounds.append(C * problem.weights[k])
    omega = sum(cp.maximum(*forms) if len(forms) > 1 else forms[0] for forms in norm(W, tree, coupling_of(tree, alpha)))
    task = cp.Problem(cp.Minimize(omega + cp.sum(cp.multiply(np.array(bounds), cp.hstack(losses)))))
    value = task.solve(solver="CLARABEL", tol_gap_rel=tol, tol_gap_abs=tol, tol_feas=tol)
    return float(value), np.asarray(W.value)


def cost_objective(name, problem, L, C, W, scaling="margin"):
    """The objective of weights (k, d) of crammer_singer or weston_watkins, by the matrix L of all costs."""
    F = problem.X @ W.T
    at = np.arange(len(F))
    behind, costs = F - F[at, problem.y][:, None], L[problem.y]
    M = np.maximum(costs + behind, 0.0) if scaling == "margin" else costs * np.maximum(1.0 + behind, 0.0)
    M[at, problem.y] = 0.0
    losses = M.max(axis=1) if name == "crammer_singer" else M.sum(axis=1)
    return 0.5 * (W**2).sum() + C * losses.sum()
