"""Training a version again from its own lineage, and comparing every array of both."""

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from app.remote.errors import ClientError
from app.remote.jobs import Jobs
from app.remote.models import Models
from app.remote.transport import Transport
from app.schemas.jobs.jobs import TrainRequest
from app.schemas.jobs.reproduction import Reproduction
from app.schemas.operation.health import Health


def reproduce(transport: Transport, model: str, version: int, keep: bool, timeout: float | None) -> Reproduction:
    """Submit the request of a version again, wait, and compare the arrays of model and features by their hashes.

    Raises
    ------
    ClientError
        The dataset or the label tree of the version is gone, or the version is a copy or was trained elsewhere.
    JobFailedError, TimedOutError
        The job did not succeed.
    """
    models, jobs = Models(transport), Jobs(transport)
    found = models.version(model, version)
    if found.copy_of is not None:
        raise ClientError(f"Version {version} is a copy of version {found.copy_of.version}: reproduce that one")
    if found.dataset is None:
        raise ClientError(f"The dataset of version {version} was deleted: there is nothing to train on")
    if found.hierarchy_sha256 is not None and found.hierarchy is None:
        raise ClientError(f"The label tree of version {version} was deleted")
    name = f"{found.model[:110]}.reproduced"
    given = TrainRequest.model_validate(found.request)
    meant = given.model_copy(update={"dataset": found.dataset, "model": name, "hierarchy": found.hierarchy})
    request: dict[str, Any] = {"kind": "train", **meant.model_dump(mode="json", exclude_defaults=True)}
    running = transport.get(Health, f"{transport.url}/healthz").version
    job = jobs.submit(request).wait(timeout)
    assert job.result is not None
    again = job.result.versions[found.point]
    with tempfile.TemporaryDirectory() as folder:
        first, second = (
            _hashes(models, each, number, Path(folder)) for each, number in ((model, version), (name, again))
        )
    if not keep:
        for number in job.result.versions:
            models.delete(name, number)
    return Reproduction(
        model=found.model,
        version=version,
        same=first == second,
        arrays=len(first),
        differing=sorted(each for each in first.keys() | second.keys() if first.get(each) != second.get(each)),
        code_version=found.code_version,
        code_version_now=running,
        job=job.id,
        reproduced_model=name if keep else None,
        reproduced_version=again if keep else None,
    )


def _hashes(models: Models, model: str, version: int, folder: Path) -> dict[str, str]:
    """SHA-256 of every array of a version."""
    path = folder / f"{version}-{model[-20:]}.npz"
    models.export(model, version, path)
    with zipfile.ZipFile(path) as archive:
        files = json.loads(archive.read("archive.json"))["files"]
    path.unlink()
    return {name: file["sha256"] for name, file in files.items() if name.endswith(".npy")}
