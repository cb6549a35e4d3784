"""The contract of every solver: a generator of steps that its caller drives."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import scipy.sparse as sp
from pydantic import BaseModel, ConfigDict

from solvers.core.certain_answers import Reach
from solvers.core.dual_variables import DualShares
from solvers.core.model import Model
from solvers.core.problem import Problem, ProblemError
from solvers.labels.taxonomy import Taxonomy
from solvers.numerics.array_types import Array, Bools, Floats, Ints, Ints8

State = Mapping[str, Array]

# Of all states: to be raised with every change of the names, shapes or meaning of a state's arrays, in any method, as
# methods train parts by others. A checkpoint says by which format it was written, and is not resumed by another.
STATE_FORMAT = 11


class Params(BaseModel):
    """Parameters of one method; bounds and descriptions become JSON schema, command line and docs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def label_faults(self, known: Iterable[str]) -> Mapping[str, str]:
        """By parameter, what is wrong with it where only the ``known`` labels are there; empty if nothing is."""
        return {}


class ParamsError(ValueError):
    """Parameters that a method does not take.

    Attributes
    ----------
    items : list of (str, str)
        JSON pointer below the parameters (``/C``) and what is wrong there.
    """

    def __init__(self, items: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{pointer[1:]}: {detail}" for pointer, detail in items))
        self.items = items


class Outline(NamedTuple):
    """What is known of a problem before it is prepared.

    Attributes
    ----------
    labels : sequence of str
        Of the training examples.
    n_samples : int
        Training examples, at least.
    n_nodes : int or None
        Of the label tree; None without one.
    """

    labels: Sequence[str]
    n_samples: int
    n_nodes: int | None = None


@dataclass(frozen=True)
class Handles:
    """Which problems a method takes, how it may be run, and whether its steps end in a certified gap.

    ``flat``: one label an example, whether there is a label tree or not; ``tree``: one label an example and a label
    tree; ``multilabel``: sets of labels of a tree; ``graph``: sets of labels of a graph, whose nodes may have several
    parents. ``probabilities``: scores are their logarithms, but for a
    number that is the same for all classes. ``closed_form``: the one step is the optimum up to rounding, so that there
    is no gap to measure.
    """

    flat: bool = True
    tree: bool = False
    multilabel: bool = False
    graph: bool = False
    shards: bool = False
    kernels: bool = False
    certified: bool = True
    closed_form: bool = False
    probabilities: bool = False


@dataclass(frozen=True)
class Step:
    """The progress of a solver after one slice of work of some seconds at most.

    Attributes
    ----------
    epoch : int
        Passes over the data begun so far.
    primal, dual : float
        Objective of the current model and a true lower bound on the optimum; nan where this step has not measured
        them or the method has none.
    violation : float
        Largest violation of the optimality conditions seen in this step; nan where not measured.
    converged : bool
        The stopping rule is met; no step follows.
    state : mapping of str to array
        Live arrays, enough to resume bit-identically: copy or write them before the next step is asked for.
    measures : mapping of str to float
        Other measures of this step, by name: errors on the rows it trains on or holds out, counts.
    setting : str
        What is being trained, of methods that train others: the method and its parameters, as a person reads them.
    fraction : float
        The share of the whole work that is done, by the method's own estimate; nan where it has none.
    milestone : bool
        A part of the work has ended that would be lost without this state: a checkpoint is worth its time.
    right : bool array, shape (n_samples,), optional
        Examples that the model of this step answers with their own class, as far as its measures prove: no
        order of summing its scores gives another class. Of all others nothing is said.
    """

    epoch: int
    primal: float
    dual: float
    violation: float
    converged: bool
    state: State
    measures: Mapping[str, float] = field(default_factory=dict)
    setting: str = ""
    right: Bools | None = None
    fraction: float = math.nan
    milestone: bool = False

    @property
    def gap(self) -> float:
        """Relative duality gap ``(primal - dual) / primal``; nan where a bound was not measured."""
        return relative_gap(self.primal, self.dual)


def within_range(steps: Iterable[Step], certified: bool) -> Iterator[Step]:
    """The steps, as long as their numbers are within the range of floats.

    Raises
    ------
    ProblemError
        An objective is infinite; or a ``certified`` method has converged with no primal, or with an infinite dual.
    """
    for step in steps:
        infinite = step.primal == math.inf or step.dual == math.inf
        if infinite or (step.converged and certified and _half_known(step.primal, step.dual)):
            raise ProblemError(
                f"training has left the range of floats: after {step.epoch} epoch(s) the primal "
                f"objective is {step.primal:g} and the dual is {step.dual:g}; divide the features by "
                "a constant, or lower C"
            )
        yield step


def imprecise(what: str, primal: float, dual: float) -> str:
    """Why training ends where rounding has spoilt its bounds, and the way out."""
    return (
        f"the {what} have lost their precision: the dual {dual:.9g} is above the primal {primal:.9g}; scale the "
        "columns, or use a smaller C"
    )


def _half_known(primal: float, dual: float) -> bool:
    # of training in parts the last step may leave the dual out, or both
    return dual == -math.inf or (math.isnan(primal) and not math.isnan(dual))


P = TypeVar("P", bound=Params)


class Solver(ABC, Generic[P]):
    """One method with its parameters.

    The caller asks for steps as long as it likes, so progress, cancellation, time limits and checkpoints cost a
    solver nothing. The last step is converged, at the method's limit of epochs, or where rounding leaves no way on.

    Parameters
    ----------
    params : Params
        Of the method's own class ``Params``.
    seed : int
        Epoch e draws its randomness from ``[seed, e]``, so that a resumed run repeats the uninterrupted one.
    threads : int
        Threads that the solver may use; the result does not depend on it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    # what is minimised, in TeX; empty of a method that chooses among others
    formula: ClassVar[str] = ""
    paper: ClassVar[str]
    Params: ClassVar[type[Any]]
    handles: ClassVar[Handles]
    # whether it reads the names of classes in texts: the problem then has them, where the vocabulary has
    uses_names: ClassVar[bool] = False
    # of two classes, by how much the score of the true one leads where its loss vanishes
    lead: ClassVar[float] = 1.0
    # what trains it in shards, where ``handles`` says so: MODULE:CLASS of a kind of :mod:`solvers.sharding.shardable`
    shards: ClassVar[str] = ""
    # whether it can go on from its solution at another C: :meth:`at` and :meth:`rescaled` then do what they say
    has_path: ClassVar[bool] = False
    # whether its dual variables can start a training on other rows: :meth:`dual_shares` and :meth:`warm`
    starts_warm: ClassVar[bool] = False
    # whether its gap bounds how far the weights are from the optimum's: :meth:`reach`
    bounds_answers: ClassVar[bool] = False
    # whether all columns of a code can be trained as one problem: :meth:`of_code`
    trains_columns: ClassVar[bool] = False
    # whether its parameters may not fit a label tree: :meth:`check_tree`
    checks_tree: ClassVar[bool] = False
    # whether it chooses among other methods
    chooses: ClassVar[bool] = False
    # what it leaves to other methods: nothing, the search for weak learners, or the machines of a code's columns
    parts: ClassVar[Literal["none", "weak learners", "columns"]] = "none"

    def __init__(self, params: P, *, seed: int = 0, threads: int = 1) -> None:
        self.params = params
        self.seed = seed
        self.threads = threads

    @classmethod
    def admit(cls, problem: Problem) -> None:
        """Raise ProblemError if the method does not take the labels of a problem, or needs a tree that is not there."""
        if problem.labels is not None and not cls.handles.multilabel:
            raise ProblemError(f"{cls.name} needs one label per example; sets of labels were given")
        if problem.taxonomy is None and not cls.handles.flat:
            raise ProblemError(f"{cls.name} needs a label tree: pass hierarchy")
        if problem.labels is None and not (cls.handles.flat or cls.handles.tree):
            raise ProblemError(f"{cls.name} needs sets of labels; one label per example was given")
        if problem.taxonomy is not None and not problem.taxonomy.is_tree:
            if not cls.handles.graph:
                raise ProblemError(f"{cls.name} needs a label tree, but {problem.taxonomy.several_parents}")
            if problem.labels is None:
                raise ProblemError("one label per example was given; a label graph needs sets of labels")

    def check_features(self, problem: Problem) -> None:
        """Raise ProblemError if the largest feature is so large or so small that sums leave the range of floats."""
        least, most = self.feature_range
        X = problem.X
        largest = max(float(X.data.max(initial=0.0)), -float(X.data.min(initial=0.0)))
        if largest > most:
            fault, way_out = f"at most {most:g}", "divide"
        elif 0.0 < largest < least:
            fault, way_out = f"at least {least:g}", "multiply"
        else:
            return
        raise ProblemError(
            f"the largest absolute value of a feature is {largest:.3g}; {self.name} expects {fault}: {way_out} the "
            "features by a constant, or scale the columns"
        )

    def takes_names(self, *, sets: bool, named: bool) -> bool:
        """Whether these parameters have a use for the names of classes.

        Parameters
        ----------
        sets : bool
            Rows have sets of labels.
        named : bool
            Some class has a name; otherwise the classes themselves are taken for names.
        """
        return self.uses_names

    @property
    def takes_kernel_values(self) -> bool:
        """Whether X has a column for each example, and its rows are the kernel's values with all of them."""
        return getattr(self.params, "kernel", None) == "precomputed"

    @property
    def column_scaling(self) -> Literal["standard", "max_abs", "none"]:
        """How columns of very different spreads are scaled where nobody says how; none: only their order counts."""
        return "standard"

    @property
    def feature_range(self) -> tuple[float, float]:
        """Between which numbers the largest feature must be, so that sums of products stay in the range of floats."""
        return 1e-15, 1e15

    @classmethod
    def check_params(cls, params: Any) -> None:
        """Raise ParamsError for what the schema of the parameters alone cannot know, as those of other methods."""

    def check_request(self, outline: Outline) -> None:
        """Raise ParamsError if the parameters do not fit a problem, as far as its outline shows.

        Memory is compared with what the parameters allow alone: the machine that will train is not known here.
        """
        faults = [(f"/{name}", fault) for name, fault in self.params.label_faults(outline.labels).items()]
        if faults:
            raise ParamsError(faults)
        if getattr(self.params, "memory_mb", None) is None:
            return
        n_classes = len(outline.labels) if outline.n_nodes is None or self.handles.flat else outline.n_nodes
        try:
            self.check_memory(outline.n_samples, 0, n_classes)
        except ProblemError as error:
            raise ParamsError([("/memory_mb", str(error))]) from None

    def check_tree(self, tree: Taxonomy) -> None:
        """Raise ParamsError if the parameters do not fit a label tree."""

    @classmethod
    def uncertified(cls, params: Mapping[str, Any], report: Mapping[str, float]) -> str | None:
        """What a training that has not converged leaves uncertified, by its report, and what to do instead.

        None where the gap says it.
        """
        return None

    @property
    def graph_fault(self) -> str | None:
        """Why the method, or these parameters, cannot be trained on a label graph; None where they can."""
        return None if self.handles.graph else f"{self.name} needs a label tree"

    @property
    def shards_fault(self) -> str | None:
        """Why the method, or these parameters, cannot be trained in shards; None where they can."""
        return None if self.handles.shards else f"{self.name} has no shards"

    def check_memory(self, n_samples: int, n_features: int, n_classes: int) -> None:
        """Raise TooLargeError if a problem of that size needs more memory than the parameters allow."""
        return None

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        """What training takes at least, with ``n_features`` that some example has; 0 where a method cannot say it."""
        return 0

    @property
    def weight_bytes(self) -> int:
        """Bytes of one weight of a linear model in training."""
        return 8

    def at(self, C: float) -> Self:
        """The same method with another C; raises TypeError where it has no path in C."""
        raise TypeError(f"{self.name} cannot train a path of values of C")

    def at_tol(self, tol: float) -> Self:
        """The same method with another ``tol``, where that is one of its parameters."""
        other = copy(self)
        other.params = self.params.model_copy(update={"tol": tol})
        return other

    def at_each(self, Cs: Iterable[float]) -> list[Self]:
        """The same method with each of these C, in ascending order, as :meth:`rescaled` starts from a smaller one best.

        At a small C a machine is solved in a few epochs, as most of its dual variables are at their bounds, and many of
        them still are at the next C. One that is given twice counts once; TypeError as above.
        """
        return [self.at(C) for C in sorted(set(Cs))]

    def rescaled(self, problem: Problem, state: State, C: float) -> State:
        """A state to train from, made of one in which this method at another ``C`` has ended; TypeError as above."""
        raise TypeError(f"{self.name} cannot train a path of values of C")

    def without_current(self, problem: Problem, state: State) -> State | None:
        """The state to go on from where the part under way has ended the worker before, by leaving that part out.

        None of a method whose work has no parts that it can do without.
        """
        return None

    def dual_shares(self, problem: Problem, state: State) -> sp.csr_matrix:
        """The dual variables of a state by C times the weight of their example, shape (n_samples, n_classes).

        Raises
        ------
        ProblemError
            The method has none that could start another training, or not for such a problem.
        """
        raise ProblemError(f"{self.name} has no dual variables to start another training from")

    def warm(self, problem: Problem, shares: sp.csr_matrix) -> State:
        """A state to train from, made of dual variables as :meth:`dual_shares` has them; ProblemError as there.

        The optimum is that of the problem, as from any other start; W follows from the dual variables.
        """
        raise ProblemError(f"{self.name} has no dual variables to start a training from")

    def on_all_rows(
        self, former: Problem, state: State, problem: Problem, rows: Ints
    ) -> "tuple[Solver[Any], State | None]":
        """What trains on ``problem`` the model that ``state`` is on ``former``, and the state that it begins from.

        Parameters
        ----------
        former : Problem
            Some of the rows of ``problem``.
        state : mapping of str to array
            Of the last step on it.
        problem : Problem
            Its classes are those of ``former``, and perhaps more.
        rows : int64 array, shape (n_samples,)
            The place of each of the problem's examples in ``former``; -1 of one that is not there.
        """
        if not self.starts_warm:
            return self, None
        try:
            shares = DualShares(self.dual_shares(former, state), former.y, tuple(former.classes))
            return self, self.warm(problem, shares.onto(problem, rows))
        except ProblemError:  # such weights cannot be made from dual variables
            return self, None

    def of_code(self, code: Ints8) -> "Solver[P]":
        """The solver whose steps are those of all columns of a code, and whose linear models score columns.

        Raises
        ------
        TypeError
            The method does not train columns as one problem.
        """
        raise TypeError(f"{self.name} does not train the columns of a code as one problem")

    def chosen(self, state: State) -> Self:
        """The same with the parameters that a training which has ended has chosen, of methods that choose some."""
        return self

    @abstractmethod
    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """Train on ``problem``, from the start or from the ``state`` of an earlier step."""

    @abstractmethod
    def model(self, problem: Problem, state: State) -> Model:
        """The model of ``state``; its arrays are copies."""

    def bare_model(self, problem: Problem, state: State) -> Model:
        """The model of ``state`` without what takes time and only its report says."""
        return self.model(problem, state)

    def reach(self, problem: Problem, state: State, model: Model, primal: float, dual: float) -> Reach | None:
        """How far the model's leads may be from those of the exact optimum; None where the gap does not say it.

        Parameters
        ----------
        problem : Problem
        state : mapping of str to array
            Of a step that has measured both bounds.
        model : Model
            Of this state.
        primal, dual : float
            Of this step.
        """
        return None

    def multiple(self, problem: Problem, state: State) -> float | None:
        """Of the weights that the dual variables make, the model's are this multiple; None where that is not known.

        Parameters
        ----------
        problem : Problem
        state : mapping of str to array
            Of a step that has measured both bounds.
        """
        return None

    def bounds_of_classes(self, problem: Problem, state: State) -> tuple[Floats, Floats] | None:
        """The primal and the dual value of each class, where the problem is a sum of one for each; None elsewhere.

        Parameters
        ----------
        problem : Problem
        state : mapping of str to array
            Of a step that has measured both bounds.
        """
        return None

    def light_model(self, problem: Problem, state: State, share: float) -> Model:
        """The model, where its weights are many perhaps without those below ``share`` of the largest of their class.

        A method has its own where it can make that without all weights in memory a second time.
        """
        return self.bare_model(problem, state)


def relative_gap(primal: float, dual: float) -> float:
    """``(primal - dual) / primal``, 0 where both vanish, nan where either is unknown."""
    if math.isnan(primal) or math.isnan(dual):
        return math.nan
    return float((primal - dual) / primal) if primal > 0 else 0.0
