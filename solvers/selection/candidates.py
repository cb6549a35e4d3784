"""What is tried: methods with fixed parameters, each for one C after the other, or at one setting alone."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from solvers.core.base import Params, ParamsError, Solver
from solvers.core.methods import all_methods, parse, unknown_method
from solvers.core.problem import Problem, ProblemError
from solvers.numerics.array_types import Floats
from solvers.selection.sets.own_labels import has_own_inner

# label trees of many branches are tried where classes are many, softmax regression and naive Bayes where they are few
MANY_CLASSES, FEW_CLASSES = 200, 100
# of fewer rows chance may take naive Bayes alone, which has no certificate
FEW_ROWS = 2000
# kernels where features are few and the kernel matrix is not too large
FEW_FEATURES, MOST_KERNEL_ROWS = 1000, 20_000
# of more rows a share is enough to rank widths and values of C, and the best alone is tried on all
SKETCH_ROWS = 4000
MOST_RIDGE_ROWS = 6000
# conjugate gradients on dense weights of all nodes: beyond it they take long, and have not been the best
MOST_RLS_BYTES = 1 << 30
# of more nodes the Markov tree takes the longest, and has been the worst
FEW_NODES = 200
# of as many labels of sets without a tree, some are enough to rank methods and values of C
MANY_LABELS = 2000
# of one search, all combinations of all grids counted
MOST_TRIALS = 1000
# part of the log loss; where a larger C has gained so much, no smaller one is tried
CLEARLY = 0.002


class Candidate(BaseModel):
    """A method that is tried with fixed parameters, and with each of some values of others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    solver: str = Field(max_length=64, description="Name of the method; auto is not allowed.")
    params: dict[str, Any] = Field(default={}, description="Parameters of the method, the same in each of its trials.")
    grid: dict[str, list[Any]] = Field(
        default={},
        description="Values to try of other parameters, in every combination. Trials of C start with the first "
        "value given, go up while that improves, and then down if going up did not improve the log "
        "loss by 0.2 %. Each trial starts from the solution of the one before.",
    )


@dataclass(frozen=True)
class Family:
    """A method with fixed parameters, and the values of C to try; none: its own C, or none at all.

    Attributes
    ----------
    params : dict
    Cs : tuple of float
        In the order in which they are tried: the first, those above it, and those below it.
    like : Family, optional
        One with these values of C, tried before: the best one there is the only one that is tried here.
    sketch : "rows", "labels" or None
        Trained on some of the rows, or of the labels of sets, only to choose the one of the rivals to try on all.
    most_bytes : int or None
        Memory that is spent on a trial at most.
    rivals : tuple of Family
        Sketches, ``like`` among them; none is tried here unless the best one of them all is of ``like``.
    flat : bool
        Of sets along a tree: trained on the rows' own labels, each label for itself.
    """

    method: str
    params: dict[str, Any]
    Cs: tuple[float, ...] = ()
    like: "Family | None" = None
    sketch: Literal["rows", "labels"] | None = None
    most_bytes: int | None = None
    rivals: tuple["Family", ...] = ()
    flat: bool = False

    @classmethod
    def path(cls, method: str, params: dict[str, Any], Cs: Sequence[float], like: "Family | None" = None) -> "Family":
        """From the first of the values of C upwards, then from there down."""
        first = Cs[0]
        up, down = (
            sorted({C for C in Cs if sign * C > sign * first}, key=lambda C: abs(C - first)) for sign in (1, -1)
        )
        return cls(method, params, (first, *up, *down), like)

    @property
    def uses_names(self) -> bool:
        """Whether it is trained on all concepts of a vocabulary, with their names."""
        return all_methods()[self.method].uses_names

    def alone(self, place: int) -> "Family":
        """The family of one trial alone."""
        params = self.described(place)["params"]
        return Family(self.method, params, flat=self.flat)

    @property
    def n_trials(self) -> int:
        return max(1, len(self.Cs))

    def solver(self, place: int, *, seed: int, threads: int, **loosely: Any) -> Solver[Any]:
        """The solver of one trial; ``loosely`` takes the place of parameters that are not given, if it has them."""
        method = all_methods()[self.method]
        known = method.Params.model_fields
        params = {name: value for name, value in loosely.items() if name in known} | self.params
        if self.Cs:
            params["C"] = self.Cs[place]
        return method(parse(method, params), seed=seed, threads=threads)

    def described(self, place: int) -> dict[str, Any]:
        """Method and parameters of one trial; ``flat`` where it leaves the tree aside, and what it is a sketch of."""
        found = {"solver": self.method, "params": self.params | ({"C": self.Cs[place]} if self.Cs else {})}
        return found | ({"flat": True} if self.flat else {}) | ({"sketch": self.sketch} if self.sketch else {})

    def named(self, place: int) -> str:
        """The same in words, and that it is a sketch."""
        described = self.described(place)
        method, params = described["solver"], described["params"]
        settings = [
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in params.items()
        ]
        kinds = [f"on some of the {self.sketch}"] * bool(self.sketch) + ["without the tree"] * self.flat
        return ", ".join([method, *settings, *kinds])


def families_of(candidates: Sequence[Candidate]) -> list[Family]:
    """The families of candidates.

    Raises
    ------
    ParamsError
        A method is not known or cannot be tried, or does not take its parameters; or the trials are too many.
    """
    n_trials = sum(math.prod(len(values) for values in candidate.grid.values()) for candidate in candidates)
    if n_trials > MOST_TRIALS:
        what = f"{n_trials:,} trials are asked for, of all combinations of the grids; at most {MOST_TRIALS:,} are made"
        raise ParamsError([("/candidates", what)])
    found: list[Family] = []
    faults: list[tuple[str, str]] = []
    for number, candidate in enumerate(candidates):
        try:
            found.extend(_families(candidate))
        except ParamsError as error:
            faults.extend((f"/candidates/{number}{pointer}", what) for pointer, what in error.items)
    if faults:
        raise ParamsError(faults)
    return found


def _families(candidate: Candidate) -> list[Family]:
    method, grid = all_methods().get(candidate.solver), candidate.grid
    if method is None or not can_be_tried(method):
        what = unknown_method(candidate.solver) if method is None else f"{candidate.solver} cannot be tried"
        raise ParamsError([("/solver", what)])
    empty = [(f"/grid/{name}", "no values are given") for name, values in grid.items() if not values]
    if empty:
        raise ParamsError(empty)
    has_path = "C" in grid and "C" in method.Params.model_fields
    names = [name for name in grid if name != "C" or not has_path]
    found = []
    for values in itertools.product(*(grid[name] for name in names)):
        params = candidate.params | dict(zip(names, values, strict=True))
        try:
            path = [_weight(parse(method, params | {"C": C})) for C in grid["C"]] if has_path else []
            parse(method, params)
        except ParamsError as error:
            raise ParamsError([(_place(pointer, candidate), what) for pointer, what in error.items]) from None
        found.append(Family.path(candidate.solver, params, path) if path else Family(candidate.solver, params))
    return found


def _weight(params: Params) -> float:
    C = params.model_dump()["C"]
    if C is None:
        raise ParamsError([("/C", "expected a number, got null")])
    return float(C)


def can_be_tried(method: type[Solver[Any]]) -> bool:
    """Whether a method can be a candidate: it scores classes rather than nodes, or learns sets of labels."""
    return not method.chooses and (method.handles.multilabel or (method.handles.flat and not method.handles.tree))


def check_families(problem: Problem, families: Sequence[Family]) -> None:
    """Raise ProblemError if a method is for sets of labels and the problem has one label an example, or vice versa."""
    for family in families:
        method = all_methods()[family.method]
        method.admit(problem)
        if problem.labels is None and method.handles.tree:
            raise ProblemError(f"{family.method} needs sets of labels; one label per example was given")


def default_families(problem: Problem, *, named: bool = False) -> list[Family]:
    """What is tried where the user names nothing; the quick ones first.

    Label trees that are learnt, halved and, of many classes, with many branches, as well; of a few classes they are
    machines with the squared hinge, one class against the rest, whose losses make better probabilities than their
    scores. Crammer and Singer's machine, centroids, softmax regression and naive Bayes of few classes; kernel machines
    where features are few and dense. For sets of labels machines at the nodes, ridge regression, where rows are not too
    many with a kernel, too, and of few nodes the Markov tree. Where rows have inner nodes as their own labels,
    machines of own labels without the tree, too. Of many labels some rank the settings, and the best is tried on all.
    Where concepts are ``named``, a ranker of all of them.
    """
    if problem.labels is not None:
        families = _families_of_sets(problem)
        if has_many_labels(problem):
            families = _sketched(families, "labels")
        return [*families[:1], Family("subjects", {}), *families[1:]] if named else families
    n, d = problem.X.shape
    unit, k = typical_weight(problem), problem.n_classes
    dense = problem.X.nnz > 0.2 * n * d
    text = not dense and bool((problem.X.data >= 0).all())
    Cs = _times(unit, 1, 3, 0.3, 0.1, 0.03)
    if k > 2:
        first = Family.path("label_trees", {}, Cs)
    else:
        first = Family.path("one_vs_rest", {"loss": "squared_hinge", "bias": 1.0}, Cs)
    families = [first]
    if not dense:
        # on dense rows it takes the longest, and kernel machines are better
        families.append(Family.path("crammer_singer", {"bias": 1.0}, Cs, first))
        if k <= FEW_CLASSES:
            families.append(Family.path("softmax", {"bias": 1.0}, _times(unit, 10)))
    if text:
        families.append(Family("centroids", {}))
        if k <= FEW_CLASSES and n >= FEW_ROWS:
            families.append(Family("complement_naive_bayes", {}))
    if k > MANY_CLASSES:
        families.append(Family.path("label_trees", {"clustering": "kmeans"}, Cs, first))
    if dense and d <= FEW_FEATURES and n <= MOST_KERNEL_ROWS:
        families += _kernel_families(typical_gamma(problem), sketched=n > 2 * SKETCH_ROWS)
    return families


def has_many_labels(problem: Problem) -> bool:
    """Whether settings are ranked on some of the labels of sets; labels of a tree depend on each other."""
    return problem.n_classes >= MANY_LABELS and problem.tree.depth == 1


def _kernel_families(gamma: float, *, sketched: bool) -> list[Family]:
    kernels = [{"kernel": "rbf", "gamma": width * gamma, "bias": 1.0} for width in (0.3, 1.0, 3.0, 10.0)]
    families = [Family.path("spoc", kernel, (1.0, 10.0)) for kernel in kernels]
    if not sketched:
        return families
    return _sketched(families, "rows")


def _sketched(families: Sequence[Family], sketch: Literal["rows", "labels"]) -> list[Family]:
    """Sketches of families, and after them the families themselves, of which the best setting alone is tried."""
    made: dict[int, Family] = {}
    for family in families:
        like = next((made[id(other)] for other in families if other is family.like), None)
        made[id(family)] = replace(family, sketch=sketch, like=like)
    sketches = tuple(made.values())
    return [*sketches, *(replace(family, like=made[id(family)], rivals=sketches) for family in families)]


def _families_of_sets(problem: Problem) -> list[Family]:
    unit = typical_weight(problem)
    linear = {"loss": "squared_hinge", "bias": 1.0}
    families = [Family.path("node_svm", linear, _times(unit, 0.03, 0.1, 0.3, 1, 0.01))]
    if problem.n_samples <= MOST_RIDGE_ROWS:
        gamma = typical_gamma(problem)
        Cs = (1.0, 3.0, 10.0, 0.3, 0.1)
        first = Family.path("kernel_ridge", {"gamma": 4.0 * gamma}, Cs)
        families.append(first)
        for width in (1.0, 2.0, 8.0):
            families.append(Family.path("kernel_ridge", {"gamma": width * gamma}, Cs, first))
    ridge = Family.path("hierarchical_rls", {"bias": 1.0}, _times(unit, 0.1, 1))
    families.append(replace(ridge, most_bytes=MOST_RLS_BYTES))
    if problem.n_classes <= FEW_NODES:
        families.append(Family.path("hm3", {"bias": 1.0}, _times(unit, 1)))
    if has_own_inner(problem):
        families.append(replace(families[0], flat=True))
    return families


def typical_weight(problem: Problem) -> float:
    """The power of ten nearest to 1 by the mean squared length of the rows: 1 where they have length 1.

    Multiplying the rows by a number is the same as multiplying C by its square.
    """
    X = problem.X
    square = float(X.multiply(X).sum() / X.shape[0])
    return 10.0 ** round(-math.log10(square)) if square > 0 else 1.0


def _times(unit: float, *values: float) -> tuple[float, ...]:
    return tuple(float(f"{unit * value:.6g}") for value in values)


def typical_gamma(problem: Problem) -> float:
    """1 by the mean squared distance of two rows."""
    X = problem.X
    mean = np.asarray(X.mean(axis=0)).ravel()
    spread = float(X.multiply(X).sum() / X.shape[0] - (mean**2).sum())
    return 1.0 / max(2.0 * spread, 1e-12)


def _place(pointer: str, candidate: Candidate) -> str:
    return f"/grid{pointer}" if pointer.split("/")[1] in candidate.grid else f"/params{pointer}"


class Trial(NamedTuple):
    """A family, the place of its C, and the number among all trials, those that are left out included."""

    family: Family
    place: int
    number: int


def best_of(results: Floats) -> int:
    """The trial with the largest measure, of equals the one with the least log loss; ``results`` as of ``is_due``."""
    equal = np.flatnonzero(results[:, 0] == np.nanmax(results[:, 0]))
    return int(equal[np.nanargmax(results[equal, 1])])


def is_due(trial: Trial, trials: Sequence[Trial], results: Floats) -> bool:
    """Whether a trial may lead to something better than those before it.

    Parameters
    ----------
    trials : sequence of Trial
        All of them, by their numbers.
    results : float64 array, shape (n_trials, 2)
        The measure that counts and the negative log loss of each; nan of those that were not made.
    """
    like = trial.family.like
    if like is not None:
        rivals = [other for other in trials if other.family in (trial.family.rivals or (like,))]
        found = results[[other.number for other in rivals]]
        if not np.isnan(found[:, 0]).all():
            best = rivals[best_of(found)]
            return best.family == like and best.place == trial.place
    if trial.place == 0:
        return True
    before = results[trial.number - trial.place : trial.number]
    if np.isnan(before[0, 0]):
        # left out
        return False
    first, last, C = trial.family.Cs[0], trial.family.Cs[trial.place - 1], trial.family.Cs[trial.place]
    if C < first <= last:
        peak = np.nanmax(before, axis=0)
        return not bool(peak[0] > before[0, 0] and peak[1] > (1.0 - CLEARLY) * before[0, 1])
    return trial.place == 1 or bool((before[-1] > np.nanmax(before[:-1], axis=0)).any())
