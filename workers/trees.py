"""The label tree that a job trains along."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import Conflict
from app.schemas.jobs import TrainRequest
from app.services import hierarchies
from app.store import tables
from app.store.db import reading
from solvers.labels.taxonomy import Taxonomy
from workers.lease_heartbeat import LeaseHeartbeat


def label_tree(heartbeat: LeaseHeartbeat, job_id: str, request: TrainRequest) -> Taxonomy | None:
    """The tree of the job's hierarchy, None where it names none; raises Conflict where that was deleted."""
    if request.hierarchy is None:
        return None
    id = heartbeat.read(lambda session: hierarchy_id(session, job_id))
    tree = None if id is None else heartbeat.read(lambda session: hierarchies.taxonomy(session, id))
    if tree is None:
        raise Conflict("the hierarchy was deleted")
    return tree


def hierarchy_id(session: Session, job_id: str) -> str | None:
    """The id of a job's hierarchy, as long as it is there."""
    with reading(session):
        return session.scalars(select(tables.Job.hierarchy_id).where(tables.Job.id == job_id)).one()
