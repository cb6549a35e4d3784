"""Whether the training of a version has reached its optimum and has learnt anything and, where it has not, why."""

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.plurals import counted, gap_text
from app.store import tables
from solvers.registry import SOLVERS

V = tables.ModelVersion
_MOST_NAMED = 3


def unconverged(row: tables.ModelVersion) -> str | None:
    """Why the training of a version ended before its optimum, and what to do; None where it reached the optimum.

    None, too, of methods without a certificate, of which the number of rounds is a setting, of smaller copies, and of
    versions that adopted an edition.
    """
    method = SOLVERS.get(row.solver)
    derived = row.copy_of is not None or row.edition_of is not None
    if row.converged or derived or (method is not None and not method.handles.certified):
        return None
    most, tol = row.params.get("max_epochs"), row.params.get("tol")
    gap = "with no measured gap" if row.gap is None else f"with a relative gap of {gap_text(row.gap)}"
    wanted = "" if tol is None else f"; tol is {tol:g}"
    detail = None if method is None or row.report is None else method.uncertified(row.params, row.report)
    if detail is not None:
        return f"training ended after {counted(row.epochs, 'epoch')}, {gap}{wanted}. {detail}"
    if most is not None and row.epochs >= most:
        ended = f"training ended after {counted(row.epochs, 'epoch')}, the most that max_epochs allows, {gap}{wanted}"
        return f"{ended}. Raise max_epochs, scale the columns, or use a smaller C."
    return f"training was stopped after {counted(row.epochs, 'epoch')}, before it converged, {gap}{wanted}."


def unlearnt(metrics: Mapping[str, Mapping[str, float]]) -> str | None:
    """Why a model is no better than one without features, by its answers to training rows; None where it is.

    Parameters
    ----------
    metrics : mapping
        Part, measure, value.
    """
    train = metrics.get("train", {})
    error, of_constant = train.get("error"), train.get("majority_error")
    advice = "Check that the features belong to the labels, and that they differ between rows; then try a larger C."
    if error is not None and of_constant is not None and error >= of_constant:
        return (
            f"The model has learnt nothing: its error on the training rows is {error:.1%}, and always answering the "
            f"most frequent label has {of_constant:.1%}. {advice}"
        )
    if train.get("micro_f1") == 0.0:
        return f"The model has learnt nothing: it predicts no label of any training row. {advice}"
    return None


def unconverged_of_job(session: Session, job_id: str) -> str | None:
    """The same of the versions that a job has published; None where all reached their optimum."""
    rows = session.scalars(select(V).where(V.job_id == job_id).order_by(V.point)).all()
    found = [(row.number, reason) for row in rows if (reason := unconverged(row)) is not None]
    if len(rows) == 1 and found:
        return found[0][1]
    more = len(found) - _MOST_NAMED
    named = [f"version {number}: {reason}" for number, reason in found[:_MOST_NAMED]]
    return " ".join(named + ([f"So {more} more versions."] if more > 0 else [])) or None
