"""Which folders of files the rows name, and whether they are what was written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.store import tables
from app.store.db import reading
from app.store.files import MANIFEST, Files


@dataclass(frozen=True)
class NamedFolder:
    """A folder that a row names: ``what`` is the row in words, ``may_vanish`` of checkpoints, which are replaced."""

    path: str
    what: str
    may_vanish: bool = False


def named_folders(session: Session) -> list[NamedFolder]:
    """The folders of all datasets, versions, evaluations and checkpoints, as one transaction sees them."""
    V, M = tables.ModelVersion, tables.Model
    with reading(session):
        found = [
            NamedFolder(f"datasets/{row.id}", f"dataset {row.name}")
            for row in session.execute(select(tables.Dataset.id, tables.Dataset.name).order_by(tables.Dataset.id))
        ]
        versions = select(V.path, V.number, M.name).join(M, M.id == V.model_id).order_by(V.id)
        found += [NamedFolder(row.path, f"model {row.name} version {row.number}") for row in session.execute(versions)]
        evaluations = select(tables.Evaluation.id, tables.Evaluation.path).order_by(tables.Evaluation.id)
        found += [NamedFolder(row.path, f"evaluation {row.id}") for row in session.execute(evaluations)]
        checkpoints = select(tables.Checkpoint.job_id, tables.Checkpoint.path).order_by(tables.Checkpoint.job_id)
        found += [
            NamedFolder(row.path, f"checkpoint of job {row.job_id}", True) for row in session.execute(checkpoints)
        ]
    return found


def faults(files: Files, folder: NamedFolder, *, hashes: bool) -> Iterator[str]:
    """What is wrong with a folder: arrays that are not there, or with ``hashes`` not what was written."""
    sizes = files.sizes(folder.path)
    if not sizes:
        if not folder.may_vanish:
            yield f"{folder.what}: {folder.path} is missing"
        return
    for within in sorted(path.removesuffix(f"/{MANIFEST}") for path in sizes if path.endswith(f"/{MANIFEST}")):
        try:
            missing = _missing(files, within, sizes, hashes)
        except (OSError, ValueError, KeyError) as error:
            missing = str(error)
        if missing:
            yield f"{folder.what}: {missing}"
    if folder.path.startswith("models/") and f"{folder.path}/model/{MANIFEST}" not in sizes:
        yield f"{folder.what}: {folder.path}/model has no {MANIFEST}"


def _missing(files: Files, within: str, sizes: Mapping[str, int], hashes: bool) -> str | None:
    if hashes:
        files.check(within)
        return None
    for name in files.manifest(within)["arrays"]:
        if f"{within}/{name}.npy" not in sizes:
            return f"array {name} of {within} is missing"
    return None
