"""New versions of models: the row, its number and its metrics, in the transaction that ends the job."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.access import quotas
from app.store import tables
from app.store.db import db_now, new_id
from app.store.scope import DEFAULT, Scope, scope_of

# the folder of the measured model, beside that of the served one
MEASURED = "measured"
# another transaction may have counted on since this session last saw the row
_FRESH = {"populate_existing": True}


@dataclass(frozen=True)
class Facts:
    """All that is known of a trained model besides its number; the fields are the columns."""

    job_id: str
    dataset_id: str | None
    dataset_sha256: str
    solver: str
    params: dict[str, Any]
    seed: int
    request: dict[str, Any]
    code_version: str
    n_classes: int
    n_features: int
    n_train: int
    epochs: int
    converged: bool
    primal: float | None
    dual: float | None
    gap: float | None
    violation: float | None
    seconds: float
    path: str
    sha256: str
    size_bytes: int
    point: int = 0
    hierarchy_id: str | None = None
    hierarchy_sha256: str | None = None
    report: dict[str, float] = field(default_factory=dict)
    origin: dict[str, Any] | None = None
    copy_of: dict[str, Any] | None = None
    edition_of: dict[str, Any] | None = None
    refit: dict[str, Any] | None = None
    columns: dict[str, Any] | None = None


def add(session: Session, model: str, facts: Facts, metrics: Mapping[str, Mapping[str, float]]) -> int:
    """Add the next version of ``model`` to the caller's transaction and return its number.

    The model's row is made if need be, in the session's workspace, and stays locked until the commit: numbers have no
    gaps and no doubles. Where the job has published this point of its path before, that version's number is returned
    and nothing is added.

    Raises
    ------
    StorageFull
        The session's workspace has no room: jobs that ran at the same time may have filled it.
    """
    published = of_job(session, facts.job_id)
    if facts.point in published:
        return published[facts.point]
    # the caller holds the row of its job, for which requests wait that hold the quota
    quotas.require_room(session, facts.size_bytes, hold=False)
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    scope = scope_of(session) or Scope(DEFAULT)
    row = {
        "id": new_id(),
        "name": model,
        "created_at": db_now(),
        "last_number": 0,
        "workspace": scope.workspace,
        "owner": scope.owner,
    }
    unique = ["workspace", "name"]
    session.execute(dialect.insert(tables.Model).values(row).on_conflict_do_nothing(index_elements=unique))
    named = select(tables.Model).where(tables.Model.name == model, tables.Model.workspace == scope.workspace)
    owner = session.scalars(named.with_for_update(), execution_options=_FRESH).one()
    if owner.last_number and not session.scalar(
        select(tables.ModelVersion.id).where(tables.ModelVersion.model_id == owner.id).limit(1)
    ):
        owner.owner = scope.owner  # all that others had made under the name was removed
    number = owner.last_number = owner.last_number + 1
    version = tables.ModelVersion(id=new_id(), model_id=owner.id, number=number, created_at=db_now(), **asdict(facts))
    session.add(version)
    session.flush()
    session.add_all(
        tables.Metric(version_id=version.id, part=part, name=name, value=value)
        for part, values in metrics.items()
        for name, value in values.items()
    )
    return number


def of_job(session: Session, job_id: str) -> dict[int, int]:
    """The numbers of the versions that a job has published, by the point of its path, in ascending order."""
    V = tables.ModelVersion
    rows = session.execute(select(V.point, V.number).where(V.job_id == job_id).order_by(V.point))
    return {row.point: row.number for row in rows}
