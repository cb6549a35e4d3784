"""What the end of a job without success means to others: its error, and the dataset that it was to import."""

from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from app.errors import problem_document
from app.store import tables


def fail_import(session: Session, job_ids: list[str], detail: str, document: dict[str, Any] | None = None) -> None:
    """Fail the datasets whose import ended without success, in the caller's transaction."""
    title = "The dataset was not imported"
    document = document or problem_document("import_ended", title, 409, detail)
    of_jobs = select(tables.Job.dataset_id).where(tables.Job.id.in_(job_ids), tables.Job.kind == "import")
    session.execute(
        update(tables.Dataset)
        .where(tables.Dataset.id.in_(of_jobs), tables.Dataset.state == "importing")
        .values(state="failed", error=document)
        .execution_options(synchronize_session=False)
    )


def worker_lost(losses: int) -> dict[str, Any]:
    """The error of a job that has lost so many workers."""
    detail = (
        f"The job's worker went silent {losses} times. Either it ended, for example because memory ran out, or the "
        "machine was too busy for it to report. See the workers' logs."
    )
    return problem_document("worker_lost", "The job lost its worker too often", 500, detail)


def unreadable() -> dict[str, Any]:
    """The error of a job whose row the database cannot read."""
    detail = (
        "The database cannot read the job's row, so no worker can run it. Submit the job again; the workers' logs have "
        "the database's reason."
    )
    return problem_document("unreadable", "The job cannot be read", 500, detail)
