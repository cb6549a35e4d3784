"""The problem document of the error that ended a job."""

from typing import Any

import structlog

from app.errors import InvalidInput, PolymarginError, problem_document
from app.features.base import FitError
from app.store.failures import explained
from solvers.core.base import ParamsError
from solvers.core.problem import ProblemError
from solvers.registry import UnknownSolverError

_log = structlog.get_logger("polymargin.worker")


def explain(error: Exception, job_id: str) -> dict[str, Any]:
    """The problem document of an error; messages that may quote data go only to the log."""
    if isinstance(error, PolymarginError):
        return error.document()
    if isinstance(error, FitError | ProblemError | ParamsError | UnknownSolverError):
        return InvalidInput(str(error)).document()
    if isinstance(error, MemoryError):
        return problem_document("out_of_memory", "Memory ran out", 500, "the worker does not have enough memory for it")
    found = explained(error)
    if found is not None:
        _log.warning("storage_failed", job_id=job_id, code=found.code, error=str(error)[:200])
        return found.document()
    if isinstance(error, OSError):
        _log.exception("files_failed", job_id=job_id)
        detail = f"a file could not be read or written: {error.strerror or type(error).__name__}"
        return problem_document("files", "The data folder failed", 500, detail)
    _log.exception("job_crashed", job_id=job_id, error=type(error).__name__)
    return problem_document("internal", "Internal error", 500, f"see the worker's log for job {job_id}")


def out_of_time() -> dict[str, Any]:
    """The error of a job that reached its time limit without a result."""
    detail = "the time limit was over before the job had come to its end; try it again with a longer one"
    return problem_document("time_limit", "The time limit has been reached", 409, detail)


def budget_over() -> dict[str, Any]:
    """The error of a trial that had no time left in the budget of its tuning."""
    detail = "the budget of the tuning was over before the trial was measured"
    return problem_document("budget_over", "The budget is used up", 409, detail)
