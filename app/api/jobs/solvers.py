"""Routes for the methods that jobs may name."""

import inspect
import sys
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from fastapi import APIRouter
from latex2mathml.converter import convert

from app.api.access.auth import VIEWER
from app.api.common.parameters import Ref
from app.api.common.paths import V1
from app.api.common.problems import responses
from app.errors import NotFound
from app.schemas.jobs.solvers import Handles, SolverInfo, SolverList
from solvers.core.base import Solver
from solvers.registry import SOLVERS, UnknownSolverError, find

router = APIRouter(prefix=f"{V1}/solvers", tags=["solvers"])


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def list_solvers() -> SolverList:
    """Every method, with the JSON schema of its parameters."""
    return SolverList(items=[_info(solver) for _, solver in sorted(SOLVERS.items())])


@router.get("/{name}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_solver(name: Ref) -> SolverInfo:
    """One method by its name."""
    try:
        return _info(find(name))
    except UnknownSolverError as error:
        raise NotFound(str(error)) from None


@lru_cache
def _mathml(formula: str) -> str:
    return str(convert(formula, display="block"))


def _info(solver: type[Solver[Any]]) -> SolverInfo:
    return SolverInfo(
        name=solver.name,
        title=solver.title,
        summary=inspect.getdoc(sys.modules[solver.__module__]) or solver.title,
        formula=solver.formula or None,
        mathml=_mathml(solver.formula) if solver.formula else None,
        paper=solver.paper,
        handles=Handles(**asdict(solver.handles)),
        params_schema=solver.Params.model_json_schema(),
    )
