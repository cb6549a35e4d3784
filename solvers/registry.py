"""Every method by its name: adding one is adding a file to methods/."""

from collections.abc import Mapping
from typing import Any

from solvers.core.base import Params, Solver
from solvers.core.methods import all_methods, parse, unknown_method

SOLVERS: Mapping[str, type[Solver[Any]]] = all_methods()


class UnknownSolverError(KeyError):
    """No method has that name; the message names the nearest."""

    def __str__(self) -> str:
        return str(self.args[0])


def find(name: str) -> type[Solver[Any]]:
    """The method called ``name``; raises :class:`UnknownSolverError`."""
    try:
        return SOLVERS[name]
    except KeyError:
        raise UnknownSolverError(unknown_method(name)) from None


def make(name: str, params: Mapping[str, Any], *, seed: int = 0, threads: int = 1) -> Solver[Any]:
    """A solver of the method called ``name``; raises as :func:`parse_params`."""
    method = find(name)
    return method(parse(method, params), seed=seed, threads=threads)


def parse_params(name: str, params: Mapping[str, Any]) -> Params:
    """Check ``params`` as the method does; raises :class:`UnknownSolverError` or :class:`ParamsError`."""
    return parse(find(name), params)
