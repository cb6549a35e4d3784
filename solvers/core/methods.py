"""All methods by name, and their parameters: each method is a class in a file of its own in ``solvers/methods``.

Methods do not import each other, and some train others. So no method is imported by name here: the folder is listed
when the first is asked for.
"""

import difflib
import importlib
import inspect
import math
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from solvers.core.base import Params, ParamsError, Solver

FOLDER = "solvers.methods"
_BOUNDS = {"less_than", "less_than_equal", "greater_than", "greater_than_equal", "finite_number"}


# scikit-learn's names of parameters that have another name here
_ELSEWHERE = {"random_state": "seed", "max_iter": "max_epochs", "n_jobs": "threads"}
# parameters of a training, whatever its method
_NOT_OF_METHODS = ("seed", "threads")


@cache
def all_methods() -> Mapping[str, type[Solver[Any]]]:
    """Every method by its name: adding one is adding a file."""
    found = {}
    for module in pkgutil.iter_modules(importlib.import_module(FOLDER).__path__, f"{FOLDER}."):
        for _, member in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(member, Solver) and not inspect.isabstract(member) and member.__module__ == module.name:
                found[member.name] = member
    return MappingProxyType(found)


def unknown_method(name: str) -> str:
    """What to say of a name that no method has."""
    return f"no solver is called {name!r:.80}{_nearest(name, all_methods())}"


def parse(method: type[Solver[Any]], params: Mapping[str, Any]) -> Params:
    """Check ``params`` against the method's schema and its own checks; raises :class:`ParamsError`."""
    schema: type[Params] = method.Params
    try:
        parsed = schema.model_validate(dict(params))
    except ValidationError as error:
        items = []
        for fault in error.errors(include_url=False, include_context=False):
            path = _path(fault["loc"], params)
            said = fault["msg"].removeprefix("Value error, ")
            detail = (fault["type"] in _BOUNDS and _no_number(fault["input"])) or said
            if fault["type"] == "extra_forbidden":
                detail = f"{method.name} has no such parameter{_nearest(path[0], schema.model_fields)}"
                path[0] = path[0][:80]
            items.append(("/" + "/".join(path), detail))
        raise ParamsError(items) from None
    faults = ((f"/{name}", _fault(given, getattr(parsed, name))) for name, given in params.items())
    items = [(place, fault) for place, fault in faults if fault is not None]
    if items:
        raise ParamsError(items)
    method.check_params(parsed)
    return parsed


def _no_number(given: Any) -> str | None:
    """What is wrong with what lies beyond a bound because it is no number that bounds are for."""
    if isinstance(given, int) or math.isfinite(float(given)):
        return _fault(given, 0.0)
    return "expected a finite number, got infinity" if math.isinf(float(given)) else "expected a number, got NaN"


def _fault(given: Any, kept: Any) -> str | None:
    """What is wrong with a string or a truth value that was read as something else; the description has none so."""
    if not isinstance(given, str | bool) or isinstance(kept, type(given)):
        return None
    expected = "true or false" if isinstance(kept, bool) else "a number such as 0.5"
    return f"expected {expected}, got {'a string' if isinstance(given, str) else 'true or false'}"


def _path(place: Sequence[int | str], params: Mapping[str, Any]) -> list[str]:
    """The keys that lead to a fault; names of alternatives, which pydantic puts between them, are left out."""
    path, value = [str(place[0])], params.get(str(place[0]))
    for part in place[1:]:
        if isinstance(value, Mapping) and part in value:
            path, value = [*path, str(part)[:80].replace("~", "~0").replace("/", "~1")], value[part]
    return path


def _nearest(word: str, known: Iterable[str]) -> str:
    names = list(known)
    if _ELSEWHERE.get(word) in (*names, *_NOT_OF_METHODS):
        return f"; use {_ELSEWHERE[word]}"
    near = difflib.get_close_matches(word.lower(), [name.lower() for name in names], n=1)
    match = [name for name in names if name.lower() in near]
    return f"; did you mean {match[0]!r}?" if match else f"; known are {', '.join(sorted(names))}"
