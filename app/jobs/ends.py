"""What the end of a job without success means to others: its error, and the dataset that it was to import."""

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.store import tables


def fail_import(session: Session, job_ids: list[str], detail: str, document: dict[str, Any] | None = None) -> None:
    """Fail the datasets whose import ended without success, in the caller's transaction."""
    document = document or {
        "type": "urn:polymargin:problem:import_ended",
        "title": "The dataset was not imported",
        "status": 409,
        "code": "import_ended",
        "detail": detail,
        "errors": [],
    }
    of_jobs = select(tables.Job.dataset_id).where(tables.Job.id.in_(job_ids), tables.Job.kind == "import")
    session.execute(
        update(tables.Dataset)
        .where(tables.Dataset.id.in_(of_jobs), tables.Dataset.state == "importing")
        .values(state="failed", error=document)
        .execution_options(synchronize_session=False)
    )


def worker_lost(losses: int) -> dict[str, Any]:
    """The error of a job that has lost so many workers."""
    return {
        "type": "urn:polymargin:problem:worker_lost",
        "title": "The job lost its worker too often",
        "status": 500,
        "code": "worker_lost",
        "detail": f"The job's worker went silent {losses} times. Either it ended, for example because memory ran out, "
        "or the machine was too busy for it to report. See the workers' logs.",
        "errors": [],
    }


def unreadable() -> dict[str, Any]:
    """The error of a job whose row the database cannot read."""
    return {
        "type": "urn:polymargin:problem:unreadable",
        "title": "The job cannot be read",
        "status": 500,
        "code": "unreadable",
        "detail": "The database cannot read the job's row, so no worker can run it. Submit the job again; the workers' "
        "logs have the database's reason.",
        "errors": [],
    }
