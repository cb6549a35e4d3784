"""Every method by its name: adding one is adding a file to methods/."""

import difflib
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from solvers import methods
from solvers.boosting.boosting import Boosting, BoostingParams
from solvers.core.base import Params, Solver
from solvers.core.composite import Composite, CompositeParams


class UnknownSolverError(KeyError):
    """No method has that name; the message names the nearest."""

    def __str__(self) -> str:
        return str(self.args[0])


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


def find(name: str) -> type[Solver[Any]]:
    """The method called ``name``; raises :class:`UnknownSolverError`."""
    try:
        return SOLVERS[name]
    except KeyError:
        raise UnknownSolverError(f"no solver is called {name!r:.80}{_nearest(name, SOLVERS)}") from None


def parse_params(name: str, params: Mapping[str, Any]) -> Params:
    """Check ``params`` against the method's schema; raises :class:`UnknownSolverError` or :class:`ParamsError`."""
    method = find(name)
    schema: type[Params] = method.Params
    try:
        parsed = schema.model_validate(dict(params))
        if issubclass(method, Composite) and isinstance(parsed, CompositeParams):
            _check_base(method, parsed)
        if issubclass(method, Boosting) and isinstance(parsed, BoostingParams):
            _check_weak_learner(method, parsed)
        return parsed
    except ValidationError as error:
        items = []
        for fault in error.errors(include_url=False, include_input=False, include_context=False):
            path = _path(fault["loc"], params)
            detail = fault["msg"]
            if fault["type"] == "extra_forbidden":
                detail = f"{name} has no such parameter{_nearest(path[0], schema.model_fields)}"
                path[0] = path[0][:80]
            items.append(("/" + "/".join(path), detail))
        raise ParamsError(items) from None


def _check_base(composite: type[Composite[Any]], params: CompositeParams) -> None:
    """The parameters of the base method, by its own schema; raises :class:`ParamsError`."""
    try:
        method = find(params.base)
    except UnknownSolverError as error:
        raise ParamsError([("/base", str(error))]) from None
    if not composite.takes(method):
        fault = f"{params.base} cannot be a base method: it takes no flat labels, or has a base method itself"
        raise ParamsError([("/base", fault)])
    has, own = method.Params.model_fields, type(params).model_fields
    lost = [name for name in params.inherited if name not in has and getattr(params, name) != own[name].default]
    if lost:
        raise ParamsError([(f"/{name}", f"{params.base} has no such parameter to hand it on to") for name in lost])
    try:
        parse_params(params.base, params.base_settings(method))
    except ParamsError as error:
        inherited = set(params.inherited) - set(params.base_params)
        raise ParamsError(
            [(at if at.split("/")[1] in inherited else f"/base_params{at}", what) for at, what in error.items]
        ) from None


def _check_weak_learner(boosting: type[Boosting[Any]], params: BoostingParams) -> None:
    """The parameters of the weak learners' method, by its own schema; raises :class:`ParamsError`."""
    name = params.weak_learner
    if name == "tree":
        if params.weak_params:
            raise ParamsError([("/weak_params", "a tree has none; they are those of another method")])
        return
    try:
        taken = boosting.takes(find(name))
    except UnknownSolverError as error:
        raise ParamsError([("/weak_learner", f"{error}; or tree")]) from None
    if not taken:
        raise ParamsError(
            [("/weak_learner", f"{name} cannot be a weak learner: it has parts itself, or takes no labels")]
        )
    try:
        parse_params(name, params.weak_params)
    except ParamsError as error:
        raise ParamsError([(f"/weak_params{at}", what) for at, what in error.items]) from None


def _path(place: Sequence[int | str], params: Mapping[str, Any]) -> list[str]:
    """The keys that lead to a fault; names of alternatives, which pydantic puts between them, are left out."""
    path, value = [str(place[0])], params.get(str(place[0]))
    for part in place[1:]:
        if isinstance(value, Mapping) and part in value:
            path, value = [*path, str(part)[:80].replace("~", "~0").replace("/", "~1")], value[part]
    return path


def _nearest(word: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in names], n=1, cutoff=0.5)
    match = [name for name in names if name.lower() in near]
    return f"; did you mean {match[0]!r}?" if match else f"; known are {', '.join(sorted(names))}"


def _discover() -> dict[str, type[Solver[Any]]]:
    found = {}
    for module in pkgutil.iter_modules(methods.__path__, methods.__name__ + "."):
        for _, member in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(member, Solver) and not inspect.isabstract(member) and member.__module__ == module.name:
                found[member.name] = member
    return found


SOLVERS: Mapping[str, type[Solver[Any]]] = MappingProxyType(_discover())
Composite.methods = SOLVERS
Boosting.methods = SOLVERS
