"""What holds of a service whatever has happened to it, once its jobs are over."""

import time
from collections import Counter

from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.jobs.schemas import FINAL_STATES
from app.operation import sweep as sweeping
from app.store import tables
from app.store.files import files
from solvers.core.stored_models import load_model

PATIENCE_SECONDS = 60.0


def broken(database: sessionmaker[Session], acknowledged: list[str]) -> list[str]:
    """What does not hold, in words.

    An acknowledged job has ended, in one state; a job has made each of its versions once; every artefact is what was
    written, by its SHA-256; an alias points to a version that is there; no file is left that no row names.

    A worker removes a job's files after the transaction that ends the job, and later where it has to ask whether that
    was done: they are waited for.

    Parameters
    ----------
    acknowledged : list of str
        Ids of jobs that an answer has named.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while left := _left(database):
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return _wrong(database, acknowledged) + [f"{path} is left" for path in left]


def _left(database: sessionmaker[Session]) -> list[str]:
    """Files that no row names."""
    store = files()
    with database() as session:
        left = sweeping.orphans(session, store)
    incoming = [f"incoming/{path.name}" for path in store.path("incoming").glob("*")]
    hidden = [path.relative_to(store.root) for path in store.root.rglob(".*")]
    # marks and locks of copies of objects stay
    temporary = [str(path) for path in hidden if path.parts[0] not in (".copies", ".locks")]
    return sorted({*left, *incoming, *temporary})


def _wrong(database: sessionmaker[Session], acknowledged: list[str]) -> list[str]:
    """What rows and artefacts are not as they must be."""
    wrong, store = [], files()
    with database() as session:
        states = {row.id: row.state for row in session.scalars(select(tables.Job))}
        versions = list(session.scalars(select(tables.ModelVersion)))
        pointed_to = list(session.scalars(select(tables.Alias.version_id)))
        data = list(session.scalars(select(tables.Dataset).where(tables.Dataset.state == "ready")))
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
        load_model(store.local(f"{version.path}/model"), verify=True)
    there = {version.id for version in versions if version.deleted_at is None}
    wrong += [f"an alias points to {id}, which is not there" for id in pointed_to if id not in there]
    return wrong
