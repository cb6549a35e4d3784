"""What a request for a tuning names, resolved once, and all that can be checked of it before it runs."""

from collections import Counter
from typing import Any, NamedTuple

import orjson
from sqlalchemy.orm import Session

from app.datasets.import_options import with_language
from app.datasets.recipe_schemas import TextRecipe, default_recipe
from app.errors import MAX_ITEMS, InvalidInput, Item
from app.jobs.request_schemas import TuneRequest
from app.jobs.training_requests import Resolved, check_further, resolve
from app.jobs.tuning_space import Settings, settings_of, training_of
from app.store import tables
from solvers import registry

# a parameter, and one of the values that its grid has, as JSON
_Value = tuple[str, bytes]


class ResolvedTuning(NamedTuple):
    """What a request names; ``request`` says so of itself what it has left out."""

    dataset: tables.Dataset
    hierarchy: tables.Hierarchy | None
    request: TuneRequest


def resolve_tuning(session: Session, request: TuneRequest) -> ResolvedTuning:
    """Find what a request names and check it; dataset and hierarchy are held to the end of the transaction.

    Raises
    ------
    NotFound
        No such dataset or hierarchy.
    Conflict
        The dataset is not ready.
    InvalidInput
        No settings of a candidate, or none with a value of a grid, can be tried; some that cannot are no fault, and
        their trials say why. Or the measure does not apply to such labels.
    """
    every = settings_of(request)
    first, faults = _check(session, request, every)
    if faults or first is None:
        raise InvalidInput("the space cannot be tried", faults)
    sets = first.statistics.labels_per_row is not None
    usual = "micro_f1" if sets else "accuracy" if request.costs is None else "cost"
    measure = request.measure or usual
    _check_costs(request, measure, first)
    along_tree = measure == "tree_loss" or measure.startswith("hierarchical_")
    needs_tree = along_tree and first.hierarchy is None
    if (measure == "log_loss" and sets) or (measure == "tree_loss" and sets) or needs_tree:
        what = "sets of labels have no probabilities to measure" if measure == "log_loss" else "it needs a hierarchy"
        raise InvalidInput("the measure does not fit the labels", [Item(f"{measure}: {what}", "/measure")])
    if request.folds is not None and request.folds > first.statistics.n_train:
        raise InvalidInput("there are more folds than rows", [Item("give fewer", "/folds")])
    update = {"dataset_version": first.dataset_version, "measure": measure, "texts": _recipes(request, first)}
    return ResolvedTuning(first.dataset, first.hierarchy, _scaled(request.model_copy(update=update), first))


def _check_costs(request: TuneRequest, measure: str, first: Resolved) -> None:
    """Whether the costs are of the dataset's labels, and the measure has what it needs of them."""
    if request.costs is None and (measure in ("cost", "least_cost") or request.other_cost != 1.0):
        name = "measure" if request.other_cost == 1.0 else "other_cost"
        raise InvalidInput("there are no costs", [Item(f"{name} needs costs", f"/{name}")])
    others = sorted({each.solver for each in request.space} - {"auto"})
    if measure == "least_cost" and others:
        detail = f"{others[0]} has no calibrated probabilities: choose the measure cost, or tune auto alone"
        raise InvalidInput("the measure does not fit the methods", [Item(detail, "/measure")])
    if request.costs is None:
        return
    if first.statistics.labels_per_row is not None:
        raise InvalidInput("the costs do not fit the labels", [Item("costs need one label per row", "/costs")])
    priced = {"costs": request.costs, "other_cost": request.other_cost}
    try:
        check_further(first, training_of(request, Settings(0, "auto", priced)))
    except InvalidInput as error:
        items = [Item(item.detail, str(item.pointer).removeprefix("/params")) for item in error.errors]
        raise InvalidInput("the costs do not fit the dataset", items) from None


def _scaled(request: TuneRequest, first: Resolved) -> TuneRequest:
    """The request with the default scaling of numbers, and the parameters that go with it where it names none."""
    if first.scaling is None:
        return request
    space = []
    for candidate in request.space:
        known = registry.SOLVERS[candidate.solver].Params.model_fields
        taken = {*candidate.params, *candidate.grid, *candidate.ranges}
        given = {name: value for name, value in first.scaling.params.items() if name in known and name not in taken}
        space.append(candidate.model_copy(update={"params": {**given, **candidate.params}}))
    return request.model_copy(update={"columns": first.scaling.recipe, "space": space})


def _recipes(request: TuneRequest, resolved: Resolved) -> list[TextRecipe] | None:
    if request.texts is not None:
        return [with_language(recipe, resolved.statistics, f"/texts/{at}") for at, recipe in enumerate(request.texts)]
    if not resolved.holds_texts:
        return None
    n_nodes = 0 if resolved.hierarchy is None else resolved.hierarchy.n_nodes
    # trials are compared on the same features
    solver = "auto" if any(each.solver == "auto" for each in request.space) else request.space[0].solver
    n_labels = max(len(resolved.counts.labels), n_nodes)
    named = any(resolved.takes_names(registry.make(each, {})) for each in {each.solver for each in request.space})
    return [default_recipe(solver, n_labels, resolved.languages_of_names, named=named)]


def _check(session: Session, request: TuneRequest, every: list[Settings]) -> tuple[Resolved | None, list[Item]]:
    """One of the trainings resolved, and what is wrong with candidates of which no settings can be tried.

    So is what is wrong with values of grids that no settings can be tried with, of whatever candidate.
    """
    resolved: dict[str, Resolved] = {}
    able: set[int] = set()
    good: set[_Value] = set()
    faults: dict[int, list[Item]] = {}
    for each in every:
        values = _grid_values(request, each)
        if each.candidate in able and values <= good:
            continue
        training = training_of(request, each)
        try:
            if each.solver in resolved:
                check_further(resolved[each.solver], training)
            else:
                resolved[each.solver] = resolve(session, training, lock=True)
            able.add(each.candidate)
            good |= values
        except InvalidInput as error:
            found = [_moved(request, each, item) for item in error.errors or [Item(error.detail)]]
            faults.setdefault(each.candidate, []).extend(found)
    bad = {
        f"/space/{number}/grid/{name}/{at}"
        for number, candidate in enumerate(request.space)
        for name, values in candidate.grid.items()
        for at, value in enumerate(values)
        if _value(name, value) not in good
    }
    reported = [
        item
        for number, items in faults.items()
        for item in items
        if number not in able or any(f"{item.pointer}/".startswith(f"{place}/") for place in bad)
    ]
    unique = list(Counter((item.detail, item.pointer) for item in reported))
    first = next(iter(resolved.values()), None)
    return first, [Item(detail, pointer) for detail, pointer in unique[:MAX_ITEMS]]


def _grid_values(request: TuneRequest, settings: Settings) -> set[_Value]:
    return {_value(name, settings.params[name]) for name in request.space[settings.candidate].grid}


def _value(name: str, value: Any) -> _Value:
    return name, orjson.dumps(value)


def _moved(request: TuneRequest, settings: Settings, item: Item) -> Item:
    """A fault of one training, at its place in the request."""
    place = f"/space/{settings.candidate}"
    pointer = item.pointer or "/space"
    if pointer.startswith("/params/"):
        candidate, name = request.space[settings.candidate], pointer.split("/")[2]
        part = "grid" if name in candidate.grid else "ranges" if name in candidate.ranges else "params"
        at = f"/{candidate.grid[name].index(settings.params[name])}" if part == "grid" else ""
        pointer = f"{place}/{part}/{name}{at}{pointer.removeprefix(f'/params/{name}')}"
    elif pointer == "/solver":
        pointer = f"{place}/solver"
    elif pointer.startswith("/text"):
        texts, text = request.texts, settings.text
        inner = "" if texts is None or text is None else f"/{texts.index(text)}{pointer.removeprefix('/text')}"
        pointer = f"/texts{inner}"
    return Item(item.detail, pointer)
