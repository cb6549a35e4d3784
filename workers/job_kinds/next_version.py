"""Start and end of jobs that create a dataset's next version."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from app.datasets import append_sources
from app.datasets import versions as dataset_versions
from app.datasets.statistics_schemas import DatasetStatistics
from app.errors import Conflict
from app.jobs.leases import Lease
from app.store import tables
from app.store.db import db_now
from app.store.files import Files
from workers.job_kinds.importing import summary
from workers.running.job_context import JobContext


def newest_version(context: JobContext, store: Files) -> tuple[tables.DatasetVersion, str]:
    """The version to start from, and the path of the job's file; raises Conflict if either was deleted."""
    lease = context.lease
    dataset = context.read(lambda session: session.get(tables.Dataset, lease.dataset_id))
    base = None
    if dataset is not None:
        number = dataset.version
        base = context.read(lambda session: dataset_versions.find(session, lease.dataset_id, number))
    if base is None:
        raise Conflict("the dataset was deleted")
    source = append_sources.path_of(base.dataset_id, lease.request)
    if not store.exists(source):
        raise Conflict("the file with the rows has been deleted; upload it again")
    return base, source


def folder_of(lease: Lease) -> str:
    """The folder in which this attempt writes its arrays."""
    return f"datasets/{lease.dataset_id}/arrays-{lease.job_id}-{lease.attempt}"


def delete_other_attempts(store: Files, lease: Lease) -> None:
    """Delete the files of other attempts of the job."""
    own = folder_of(lease).rpartition("/")[2]
    for name in store.names(f"datasets/{lease.dataset_id}"):
        if f"arrays-{lease.job_id}-" in name and name != own:
            store.delete(f"datasets/{lease.dataset_id}/{name}")


@dataclass(frozen=True)
class NextVersion:
    """A version that is written, and is to be added in the transaction that ends its job.

    Attributes
    ----------
    base : DatasetVersion
        The one before.
    warning : str or None
        For the job's result.
    """

    base: tables.DatasetVersion
    lease: Lease
    sha256: str
    path: str
    kind: str
    statistics: DatasetStatistics
    warning: str | None = None

    def add(self, session: Session) -> dict[str, Any]:
        """Add it, and return the job's result; raises Conflict if another job has created the next version."""
        D, base, lease, statistics = tables.Dataset, self.base, self.lease, self.statistics
        number, size = base.number + 1, D.size_bytes + lease.request["size_bytes"]
        values = {"version": number, "sha256": self.sha256, "size_bytes": size}
        newest = update(D).where(D.id == lease.dataset_id, D.version == base.number).returning(D.id)
        reported = newest.values(**summary(self.kind, self.path, statistics), **values)
        if session.scalars(reported).one_or_none() is None:
            raise Conflict("another job has changed the dataset meanwhile; start this job again")
        session.add(
            tables.DatasetVersion(
                dataset_id=lease.dataset_id,
                number=number,
                job_id=lease.job_id,
                sha256=self.sha256,
                path=self.path,
                n_rows=statistics.n_rows,
                n_train=statistics.n_train,
                statistics=statistics.model_dump(mode="json"),
                created_at=db_now(),
            )
        )
        warned = {} if self.warning is None else {"warning": self.warning}
        return {"dataset": lease.dataset_id, "dataset_version": number, **warned}
