"""What holds of a service whatever has happened to it, once its jobs are over."""

from collections import Counter

from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.schemas.jobs import FINAL_STATES
from app.services import sweeping
from app.store import tables
from app.store.files import files
from solvers.core.stored_models import load_model


def broken(database: sessionmaker[Session], acknowledged: list[str]) -> list[str]:
    """What does not hold, in words.

    An acknowledged job has ended, in one state; a job has made each of its versions once; every artefact is what was
    written, by its SHA-256; an alias points to a version that is there; no file is left that no row names.

    Parameters
    ----------
    acknowledged : list of str
        Ids of jobs that an answer has named.
    """
    wrong, store = [], files()
    with database() as session:
        states = {row.id: row.state for row in session.scalars(select(tables.Job))}
        versions = list(session.scalars(select(tables.ModelVersion)))
        pointed_to = list(session.scalars(select(tables.Alias.version_id)))
        data = list(session.scalars(select(tables.Dataset).where(tables.Dataset.state == "ready")))
        left = sweeping.orphans(session, store)
    wrong += [f"job {id} was acknowledged and is gone" for id in acknowledged if id not in states]
    wrong += [f"job {id} is {state}" for id, state in states.items() if state not in FINAL_STATES]
    made = Counter((version.job_id, version.point) for version in versions)
    wrong += [f"job {id} has made version {point} of its path {n} times" for (id, point), n in made.items() if n > 1]
    for path in [*(f"{version.path}/features" for version in versions), *(str(row.path) for row in data)]:
        try:
            store.check(path)
        except (OSError, ValueError) as error:
            wrong.append(f"{path}: {error}")
    for version in versions:
        load_model(store.path(version.path) / "model", verify=True)
    there = {version.id for version in versions if version.deleted_at is None}
    wrong += [f"an alias points to {id}, which is not there" for id in pointed_to if id not in there]
    incoming = [f"incoming/{path.name}" for path in store.path("incoming").glob("*")]
    temporary = [str(path.relative_to(store.root)) for path in store.root.rglob(".*")]
    return wrong + [f"{path} is left" for path in sorted({*left, *incoming, *temporary})]
