"""Training jobs from the request to the model's version."""

from collections.abc import Callable

from sqlalchemy.orm import Session, sessionmaker

from app.schemas.jobs import TrainRequest
from app.services import jobs, models
from app.store.files import files
from solvers.model import load_model
from workers.tasks import run


def test_a_job_ends_with_a_version_that_can_be_traced(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset_id = dataset()
    with database() as session:
        request = TrainRequest(dataset="digits", model="m", params={"C": 0.5, "tol": 1e-3}, seed=3)
        job = jobs.submit(session, request)
        assert job.state == "queued"
        run(job.id)
        job = jobs.get(session, job.id)
        assert (job.state, job.error) == ("succeeded", None)
        assert job.result is not None
        assert (job.result.model, job.result.version) == ("m", 1)
        version = models.version(session, "m")
        steps = jobs.steps(session, job.id).steps
    assert [step.number for step in steps] == list(range(len(steps)))
    assert (steps[-1].gap, steps[-1].epoch) == (version.gap, version.epochs)
    assert version.converged
    assert version.gap is not None
    assert version.gap <= 1e-3
    assert (version.dataset, version.job, version.seed, version.params["C"]) == (dataset_id, job.id, 3, 0.5)
    assert version.n_train == 48
    assert set(version.metrics) == {"train", "test"}
    assert version.metrics["test"]["error"] < version.metrics["test"]["majority_error"]
    with database() as session:
        folder = models.artefact(session, version.id)
    model, details = load_model(folder / "model", verify=True)
    assert model.classes == ("class0", "class1", "class2")
    assert details["dataset_sha256"] == version.dataset_sha256
    assert not files().path(f"jobs/{job.id}").exists()
