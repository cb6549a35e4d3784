"""The source files of appends and corrections: counted while they are stored, removed when nothing needs them."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from app.config import settings
from app.jobs.schemas import FINAL_STATES
from app.store import tables
from app.store.db import db_now
from app.store.files import Files, files

J = tables.Job
# jobs that make the next version of a dataset of the newest and a file
KINDS = ("append", "correct")
_OF_APPEND = re.compile(r"source-|\.?arrays-.*-")


def path_of(dataset_id: str, request: Mapping[str, Any]) -> str:
    """The path of a job's source file, by its dataset and request."""
    return f"datasets/{dataset_id}/source-{request['source']}"


def is_kept(dataset_id: str, request: Mapping[str, Any]) -> bool:
    """Whether the source file exists."""
    return files().exists(path_of(dataset_id, request))


def waiting_bytes(session: Session, workspace: str) -> int:
    """Bytes of source files whose rows are in no dataset yet; the rest count with their dataset."""
    query = select(J.dataset_id, J.request).where(J.workspace == workspace, J.state != "succeeded", _needed())
    return sum(
        int(request["size_bytes"]) for dataset_id, request in session.execute(query) if is_kept(dataset_id, request)
    )


def orphans(session: Session, store: Files) -> Iterable[str]:
    """Paths of source files and arrays of appends that neither a job nor a version needs."""
    present = [
        f"datasets/{name}" for name in store.names("datasets", depth=2) if _OF_APPEND.match(name.partition("/")[2])
    ]
    if not present:
        return []
    # In this order: a job that succeeds between the two queries is found by the second.
    jobs = session.execute(select(J.id, J.state, J.dataset_id, J.request).where(_needed())).all()
    kept = set(session.scalars(select(tables.DatasetVersion.path)))
    kept.update(path_of(dataset_id, request) for _, _, dataset_id, request in jobs)
    at_work = {id for id, state, _, _ in jobs if state not in FINAL_STATES}
    return [path for path in present if path not in kept and _job_of(path) not in at_work]


def _needed() -> Any:
    """Appends to existing datasets that are unfinished, succeeded, or recent enough for a retry."""
    recent = J.finished_at > db_now() - settings().keep_checkpoints_seconds
    states = or_(J.state.not_in(sorted(FINAL_STATES)), J.state == "succeeded", recent)
    return J.kind.in_(KINDS) & J.dataset_id.is_not(None) & states


def _job_of(path: str) -> str | None:
    """The job that makes arrays, which are named arrays-<job id>-<attempt>, or .arrays-... while incomplete."""
    name = path.rpartition("/")[2].lstrip(".")
    return name.removeprefix("arrays-").rpartition("-")[0] if name.startswith("arrays-") else None
