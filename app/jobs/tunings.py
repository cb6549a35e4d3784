"""Tunings: they leave their work to trials, and what those have shown is listed, the best first."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app.errors import Conflict, InvalidInput, Item
from app.jobs import leases
from app.jobs import trials as trial_jobs
from app.jobs.leases import Lease
from app.jobs.request_schemas import LESS_IS_BETTER, HeldOut, Trial, TrialRequest, TuneRequest
from app.jobs.schemas import FINAL_STATES
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading
from app.store.lookup import MAX_PAGE, by_id, to_schema
from solvers.selection.halving import Result, ranked

J = tables.Job


def park(session: Session, lease: Lease, trials: Sequence[TrialRequest]) -> list[str]:
    """Leave the work to new trials, and let the tuning wait for their end, in one transaction; returns their ids.

    A tuning that is being cancelled is cancelled instead, and none are made. Raises Fenced.
    """
    with leases.fenced(session, lease) as state:
        if state == "cancelling":
            leases.end(session, lease, "cancelled")
            return []
        parent = select(J.queue, J.hierarchy_id, J.priority, db_now()).where(J.id == lease.job_id)
        queue, hierarchy_id, priority, now = session.execute(parent).one()
        ids = [new_id() for _ in trials]
        shared = {
            "kind": "trial", "parent_id": lease.job_id, "state": "queued", "queue": queue, "priority": priority,
            "dataset_id": lease.dataset_id, "hierarchy_id": hierarchy_id, "attempt": 0, "losses": 0, "created_at": now,
            "notified_at": now, "workspace": lease.scope.workspace, "owner": lease.scope.owner,
        }  # fmt: skip
        rows = [
            {**shared, "id": id, "request": each.model_dump(mode="json")} for id, each in zip(ids, trials, strict=True)
        ]
        session.execute(insert(J), rows)
        leases.wait_for_trials(session, lease, trial_jobs.WAITING)
        return ids


def results(session: Session, id: str, measure: str) -> dict[tuple[int, int], Result]:
    """What the trials that are over have come to, by number and rung."""
    query = select(J.request, J.result, J.state).where(J.parent_id == id, J.state.in_(sorted(FINAL_STATES)))
    found = {}
    with reading(session):
        for request, result, state in session.execute(query):
            reported = result if state == "succeeded" else None
            each = _result(request, reported, measure)
            found[each.number, each.rung] = each
    return found


def load_request(session: Session, id: str) -> TuneRequest | None:
    """What a tuning was asked for; None where it is over."""
    with reading(session):
        row = session.execute(select(J.request, J.state).where(J.id == id)).one()
    return None if row.state in FINAL_STATES else TuneRequest.model_validate(row.request)


def measured_folds(session: Session, id: str) -> list[dict[str, Any]]:
    """What a trial has shown of the folds that it has measured, by whichever attempt."""
    with reading(session):
        result = session.scalars(select(J.result).where(J.id == id)).one()
    return list((result or {}).get("folds", []))


def trial_lineage(session: Session, id: str, number: int, rung: int) -> dict[str, Any]:
    """Return what a version's lineage stores of its trial: number, job, measures and held-out rows."""
    with reading(session):
        rows = session.execute(select(J.id, J.request, J.result).where(J.parent_id == id, J.state == "succeeded"))
        trial, result = next(
            (row.id, row.result) for row in rows if (row.request["number"], row.request["rung"]) == (number, rung)
        )
    reported = {"trial": number, "rung": rung, "trial_job": trial}
    return {**reported, "measures": result["measures"], "held_out": result["held_out"]}


def failures(session: Session, id: str) -> list[Item]:
    """Why trials have failed, each reason once."""
    query = select(J.error).where(J.parent_id == id, J.error.is_not(None)).order_by(J.id)
    with reading(session):
        reported = [error for error in session.scalars(query) if error is not None]
    reasons = {
        "; ".join([str(error["detail"]), *(str(item["detail"]) for item in error.get("errors", []))])
        for error in reported
    }
    return [Item(reason) for reason in sorted(reasons)]


def trials(session: Session, id: str, page_size: int = 100, page_token: str | None = None) -> Page[Trial]:
    """The leaderboard of a tuning: the best first, then those without a measure yet, then earlier rounds of halving.

    Raises
    ------
    NotFound
        No such job.
    Conflict
        It is no tuning.
    InvalidInput
        The size is out of range, or the token is none that a page gave.
    """
    if not 1 <= page_size <= MAX_PAGE:
        raise InvalidInput(f"page_size must be from 1 to {MAX_PAGE}; got {page_size}")
    begin = _place_of(page_token)
    with reading(session):
        job = by_id(session, tables.Job, id)
        if job.kind != "tune":
            raise Conflict(f"the job is of the kind {job.kind}; only tunings have trials")
        request = TuneRequest.model_validate(job.request)
        rows = session.scalars(select(J).where(J.parent_id == id)).all()
        measure = str(request.measure)
        reported = {
            row.id: _result(row.request, row.result if row.state == "succeeded" else None, measure) for row in rows
        }
        rank = {(each.number, each.rung): place for place, each in enumerate(ranked(reported.values()), 1)}
        latest = {
            number: max(each.rung for each in reported.values() if each.number == number)
            for number in {each.number for each in reported.values()}
        }

        def place(row: tables.Job) -> tuple[int, int, int, int]:
            each = reported[row.id]
            ranked_at = rank.get((each.number, each.rung))
            group = 0 if ranked_at else 1 if each.rung == latest[each.number] else 2
            return group, ranked_at or 0, -each.rung, each.number

        ordered = sorted(rows, key=place)
        shown = [
            _show(row, request, rank.get((reported[row.id].number, reported[row.id].rung)))
            for row in ordered[begin : begin + page_size]
        ]
        more = begin + page_size < len(ordered)
        return Page[Trial](items=shown, next_page_token=_token_of(begin + page_size) if more else None)


def _result(request: Mapping[str, Any], result: Mapping[str, Any] | None, measure: str) -> Result:
    value = None if result is None else result["measures"].get(measure)
    if value is not None and measure in LESS_IS_BETTER:
        value = -value
    return Result(request["number"], request["rung"], value, bool(result and result["complete"]))


def _show(row: tables.Job, request: TuneRequest, rank: int | None) -> Trial:
    asked = TrialRequest.model_validate(row.request)
    result = row.result or {}
    over = row.state == "succeeded"
    measures = result.get("measures", {}) if over else {}
    measure = str(request.measure)
    return to_schema(
        Trial,
        row,
        number=asked.number,
        rung=asked.rung,
        job=row.id,
        rank=rank,
        solver=asked.solver,
        params=asked.params,
        text=asked.text,
        seed=request.seed,
        max_epochs=asked.max_epochs,
        value=measures.get(measure),
        by_fold=[fold["measures"][measure] for fold in result.get("folds", []) if measure in fold["measures"]],
        measures=measures,
        dataset_sha256=result.get("dataset_sha256"),
        held_out=HeldOut.model_validate(result["held_out"]) if "held_out" in result else None,
        seconds=result.get("seconds") if over else None,
        epochs=result.get("epochs") if over else None,
        gap=result.get("gap") if over else None,
        converged=result.get("converged") if over else None,
        stopped=bool(result.get("stopped")),
    )


def _token_of(place: int) -> str:
    return base64.urlsafe_b64encode(f"trial {place}".encode()).decode().rstrip("=")


def _place_of(token: str | None) -> int:
    if not token:
        return 0
    try:
        word, _, place = (
            base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode().partition(" ")
        )
        if word == "trial" and 0 < int(place) < 2**31:
            return int(place)
    except (binascii.Error, ValueError):
        pass
    raise InvalidInput("the page token is invalid", [Item("not a page token", "/page_token")])
