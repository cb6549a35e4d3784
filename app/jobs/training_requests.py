"""What a training request names, resolved once, and all that can be checked of it before it runs."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from app.datasets import kernel_values
from app.datasets import versions as dataset_versions
from app.datasets.import_options import languages_of_names, with_language
from app.datasets.number_scaling import DefaultScaling, default_scaling
from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe, default_recipe
from app.datasets.rows import class_counts, version_statistics
from app.datasets.statistics_schemas import DatasetStatistics
from app.errors import InvalidInput, Item
from app.hierarchies.label_checks import check_labels
from app.hierarchies.nodes import taxonomy
from app.jobs.schemas import TrainRequest
from app.models import row_kinds, warm_starts
from app.store import tables
from app.store.corpus import ClassCounts
from app.store.lookup import by_ref
from solvers import registry
from solvers.core.base import Outline, ParamsError, Solver
from solvers.labels.taxonomy import Taxonomy
from solvers.sharding.shardable import Shardable, shardable


@dataclass(frozen=True, eq=False)
class Resolved:
    """What a request names, after all checks but that of the workers.

    Attributes
    ----------
    dataset, hierarchy : rows
        None: the request names no hierarchy.
    dataset_version : int
        The resolved version.
    solver : Solver
        With the request's parameters.
    statistics : DatasetStatistics
        With the classes that are listed.
    counts : ClassCounts
        Of all classes.
        Of the dataset.
    warm_start : str or None
        The version to begin from, as MODEL@NUMBER.
    certain_rows : str or None
        The version of the dataset whose answers end the training, as ID@NUMBER.
    text : TextRecipe or None
        The request's, with a language in the place of auto; None: it has none.
    scaling : DefaultScaling or None
        How numbers are scaled where the request does not say it; None: as the request says, or not at all.
    tree : Taxonomy or None
        Of the hierarchy, where the solver checks it and no labels are added.
    """

    dataset: tables.Dataset
    dataset_version: int
    hierarchy: tables.Hierarchy | None
    solver: Solver[Any]
    statistics: DatasetStatistics
    counts: ClassCounts
    warm_start: str | None = None
    certain_rows: str | None = None
    text: TextRecipe | None = None
    scaling: DefaultScaling | None = None
    tree: Taxonomy | None = None

    @property
    def default_text(self) -> TextRecipe:
        """The recipe of texts where the request has none."""
        return default_recipe(
            self.solver.name,
            max(len(self.counts.labels), 0 if self.hierarchy is None else self.hierarchy.n_nodes),
            self.languages_of_names,
            named=self.takes_names(self.solver),
            fields=self.dataset.kind == "table" or self._n_text_columns < 2,
        )

    @property
    def languages_of_names(self) -> tuple[str, ...]:
        """The languages in which names of the hierarchy's labels are sought in texts, the main one first."""
        report = None if self.hierarchy is None else self.hierarchy.report
        return languages_of_names(self.statistics, (report or {}).get("languages") or {})

    def takes_names(self, solver: Solver[Any]) -> bool:
        """Whether a solver has a use for the names of the hierarchy's labels."""
        named = self.hierarchy is not None and bool((self.hierarchy.report or {}).get("languages"))
        return solver.takes_names(sets=self.statistics.labels_per_row is not None, named=named)

    def scaled(self, request: TrainRequest) -> TrainRequest:
        """The request with the default scaling of the dataset's numbers, and the parameters that go with it."""
        if self.scaling is None:
            return request
        update = {"columns": self.scaling.recipe, "params": {**self.scaling.params, **request.params}}
        return request.model_copy(update=update)

    @property
    def shardable(self) -> Shardable:
        """The solver with what class shards ask of it; only where the request is for shards."""
        return shardable(self.solver)

    @property
    def holds_texts(self) -> bool:
        """Whether rows have a text, alone or beside other columns."""
        return self.dataset.kind == "text" or self._n_text_columns > 0

    @property
    def _n_text_columns(self) -> int:
        return sum(column.role == "text" for column in self.statistics.columns or [])


def resolve(session: Session, request: TrainRequest, *, lock: bool = False) -> Resolved:
    """Find what a request names and check it.

    Parameters
    ----------
    lock : bool
        Hold the dataset and the hierarchy to the end of the transaction.

    Raises
    ------
    NotFound
        No such dataset or hierarchy.
    Conflict
        The dataset is not ready.
    InvalidInput
        Unknown solver or parameters, or a dataset that the request cannot be trained on.
    """
    # such a request has a tol, which other methods would refuse as unknown
    if request.until_certain is not None and request.solver in registry.SOLVERS:
        _check_certain(registry.SOLVERS[request.solver], request)
    if request.certain_rows is not None and request.until_certain is None:
        fault = "give until_certain, too: the share of the rows that need a certain answer"
        raise InvalidInput("these rows end no training", [Item(fault, "/certain_rows")])
    if request.every_c is not None and request.solver in registry.SOLVERS:
        _check_every_c(registry.SOLVERS[request.solver], request)
    solver = solver_of(request)
    _check_options(solver, request)
    dataset, hierarchy = by_ref(session, tables.Dataset, request.dataset, lock=lock), None
    if request.hierarchy is not None:
        hierarchy = by_ref(session, tables.Hierarchy, request.hierarchy, lock=lock)
    version = dataset_versions.resolve_version(session, dataset, request.dataset_version)
    statistics = version_statistics(version)
    start = warm_starts.resolve(session, request, solver, dataset, version.number)
    resolved = Resolved(dataset, version.number, hierarchy, solver, statistics, class_counts(version), start)
    if hierarchy is not None and solver.checks_tree and request.unknown_labels != "keep":
        resolved = replace(resolved, tree=taxonomy(session, hierarchy.id))
    _check_dataset(session, request, resolved)
    if request.certain_rows is not None:
        resolved = replace(resolved, certain_rows=_certain_rows(session, request.certain_rows, dataset, version))
    if request.columns is None:
        resolved = replace(resolved, scaling=default_scaling(dataset.kind, statistics, solver))
        resolved = replace(resolved, solver=solver_of(resolved.scaled(request)))
    if request.text is None:
        return resolved
    return replace(resolved, text=with_language(request.text, statistics))


def solver_of(request: TrainRequest) -> Solver[Any]:
    """The solver of a request; raises InvalidInput where it, or a parameter, is not known."""
    try:
        return registry.make(request.solver, request.params, seed=request.seed, threads=request.threads)
    except registry.UnknownSolverError as error:
        raise InvalidInput("the solver is not known", [Item(str(error), "/solver")]) from None
    except ParamsError as error:
        raise InvalidInput("the solver does not have these parameters", _items(error)) from None


def _check_options(solver: Solver[Any], request: TrainRequest) -> None:
    """Whether the method takes what the request asks for beside the parameters."""
    if request.path is not None:
        if not solver.has_path:
            raise InvalidInput("the solver follows no path", [Item(f"{solver.name} has no path in C", "/path")])
        if "C" in request.params:
            raise InvalidInput("C is given twice", [Item("give C or a path of Cs, not both", "/params/C")])
    fault = solver.shards_fault
    if request.shards is not None and fault is not None:
        raise InvalidInput("the solver is not trained in shards", [Item(fault, "/shards")])
    if request.shards is not None and request.refit:
        fault = (
            "a model in class shards cannot be trained once more on all rows: leave refit out or set it to false, set "
            "test_fraction to 0 to train on all rows, or leave shards out"
        )
        raise InvalidInput("refit needs a job without shards", [Item(fault, "/refit")])
    if request.shards is not None and request.path is not None:
        raise InvalidInput("a path runs in one worker", [Item("give shards or a path, not both", "/shards")])


def _check_certain(solver: type[Solver[Any]], request: TrainRequest) -> None:
    """Whether the gap of the method says which answers are certain, and one worker can look at all of them."""
    fault = None
    if not solver.bounds_answers:
        fault = f"{solver.name} has no gap that bounds its answers; linear flat machines have one, as weston_watkins"
    elif request.shards is not None:
        fault = "give shards or until_certain, not both"
    elif request.path is not None:
        fault = "give a path or until_certain, not both"
    if fault is not None:
        raise InvalidInput("stopping by answers is not available for this training", [Item(fault, "/until_certain")])


def _certain_rows(session: Session, named: str, trained: tables.Dataset, version: tables.DatasetVersion) -> str:
    """The dataset whose answers end a training, as ID@NUMBER; raises NotFound, Conflict or InvalidInput."""
    ref, _, number = named.partition("@")
    pointer = "/certain_rows"
    dataset = by_ref(session, tables.Dataset, ref)
    rows = dataset_versions.resolve_version(session, dataset, int(number) if number else None, pointer)
    row_kinds.require_alike(trained, version, dataset, rows, pointer)
    return f"{dataset.id}@{rows.number}"


def _check_every_c(solver: type[Solver[Any]], request: TrainRequest) -> None:
    """Whether the gap of the method bounds its answers at every C, and nothing else says at which C to train."""
    fault = None
    others = [name for name in ("path", "until_certain", "shards", "warm_start") if getattr(request, name) is not None]
    if not (solver.has_path and solver.bounds_answers):
        fault = f"{solver.name} has no gap between two values of C; linear flat machines have one, as weston_watkins"
    elif "C" in request.params:
        fault = "give every_c or the parameter C, not both"
    elif others:
        fault = f"give every_c or {others[0]}, not both"
    if fault is not None:
        raise InvalidInput("training for every C is not available for this training", [Item(fault, "/every_c")])


def _check_dataset(session: Session, request: TrainRequest, resolved: Resolved) -> None:
    """Whether the dataset can be trained on as the request says."""
    solver, statistics = resolved.solver, resolved.statistics
    counts = resolved.counts
    trained = counts.named(counts.train > 0)
    if request.shards is not None:
        most = resolved.shardable.most_shards(len(trained))
        if request.shards > most:
            fault = f"{request.shards} shards for {most} {resolved.shardable.trains}; each needs at least one"
            raise InvalidInput("the dataset cannot be trained in this number of shards", [Item(fault, "/shards")])
    if statistics.n_features == 0:
        raise InvalidInput("the dataset cannot be trained on", [Item("it has no features", "/dataset")])
    sets = statistics.labels_per_row is not None
    check_labels(session, solver, request, counts, resolved.hierarchy, sets=sets)
    check_outline(resolved, solver, 1.0 if statistics.n_test else 1.0 - request.test_fraction)
    if solver.takes_kernel_values:
        kernel_values.check(resolved.dataset.kind, statistics, request.columns)
    if request.text is not None and not resolved.holds_texts:
        raise InvalidInput("the request does not fit the dataset", [Item("the dataset contains no texts", "/text")])
    check_columns(resolved.dataset.kind, request.columns)


def check_columns(kind: str | None, recipe: ColumnRecipe | None) -> None:
    """Raise InvalidInput where a recipe is of columns that a dataset of this kind does not have."""
    if recipe is not None and kind == "text":
        raise InvalidInput(
            "the request does not fit the dataset", [Item("the dataset contains only texts", "/columns")]
        )


def check_further(resolved: Resolved, request: TrainRequest) -> None:
    """Raise InvalidInput where other parameters of the same solver do not fit the dataset of a request."""
    solver = solver_of(request)
    check_outline(resolved, solver)
    if solver.takes_kernel_values:
        kernel_values.check(resolved.dataset.kind, resolved.statistics, request.columns)


def check_outline(resolved: Resolved, solver: Solver[Any], part: float = 1.0) -> None:
    """Raise InvalidInput where a solver's parameters do not fit a dataset, of whose rows a part is trained on."""
    statistics, counts = resolved.statistics, resolved.counts
    trained = counts.named(counts.train > 0)
    n_nodes = len(counts.labels) if statistics.labels_per_row is not None else None
    if resolved.hierarchy is not None:
        n_nodes = resolved.hierarchy.n_nodes
    try:
        solver.check_request(Outline(trained, max(len(trained), int(statistics.n_train * part)), n_nodes))
        if resolved.tree is not None:
            solver.check_tree(resolved.tree)
    except ParamsError as error:
        raise InvalidInput("the parameters do not fit the dataset", _items(error)) from None


def _items(error: ParamsError) -> list[Item]:
    return [Item(detail, f"/params{pointer}") for pointer, detail in error.items]
