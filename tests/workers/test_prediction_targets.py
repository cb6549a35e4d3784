"""Prediction jobs that write their file to a bucket, too."""

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from sqlalchemy.orm import Session

from app.errors import InvalidInput
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.predictions import batch_predictions
from app.predictions.schemas import BatchPredictRequest
from workers.tasks import run

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def _submitted(session: Session, target: str) -> str:
    request = {"dataset": "digits", "model": "m", "format": "csv", "target": target}
    return jobs.submit(session, BatchPredictRequest.model_validate(request)).id


@on_sqlite
def test_the_file_is_written_to_the_object_and_replaces_one_that_is_there(
    session: Session, dataset: Callable[..., str], bucket: Any, configure: Callable[..., None]
) -> None:
    dataset()
    run(jobs.submit(session, TrainRequest(dataset="digits", model="m", solver="weston_watkins")).id)
    client = boto3.client("s3", endpoint_url=bucket.url)
    client.create_bucket(Bucket="lake")
    client.put_object(Bucket="lake", Key="answers/of november.csv", Body=b"old")
    configure(targets="s3://lake/answers/")
    target = "s3://lake/answers/of%20november.csv"
    job = _submitted(session, target)
    run(job)
    found = jobs.get(session, job)
    assert (found.state, found.error) == ("succeeded", None)
    assert found.result is not None
    assert found.result.target == target
    written = client.get_object(Bucket="lake", Key="answers/of november.csv")["Body"].read()
    assert written == batch_predictions.of_job(session, job).path.read_bytes()
    assert written.startswith(b'"label",')

    configure(targets="s3://pond/")
    nowhere = _submitted(session, "s3://pond/x.csv")
    run(nowhere)
    assert "The object storage answered NoSuchBucket" in str(jobs.get(session, nowhere).error)

    refused = _queued_before(session, configure, target)
    run(refused)
    assert "POLYMARGIN_TARGETS" in str(jobs.get(session, refused).error)


@on_sqlite
def test_the_file_is_written_to_google_cloud_storage(
    session: Session, dataset: Callable[..., str], lake: Any, configure: Callable[..., None]
) -> None:
    dataset()
    run(jobs.submit(session, TrainRequest(dataset="digits", model="m", solver="weston_watkins")).id)
    configure(targets="gs://lake/answers/")
    job = _submitted(session, "gs://lake/answers/of%20november.csv")
    run(job)
    assert jobs.get(session, job).state == "succeeded"
    written = lake.blob("answers/of november.csv").download_as_bytes()
    assert written == batch_predictions.of_job(session, job).path.read_bytes()


def _queued_before(session: Session, configure: Callable[..., None], target: str) -> str:
    configure(targets="s3://lake/answers/")
    job = _submitted(session, target)
    configure(targets="")
    return job


@on_sqlite
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("s3://lake/other/x.csv", "POLYMARGIN_TARGETS"),
        ("s3://lake/answers/../other/x.csv", "no .."),
        ("s3://lake/answers/%2e%2e/x.csv", "no .."),
        ("gs://lake/answers/x.csv", "POLYMARGIN_TARGETS"),
        ("s3://lake/answers/", "expected s3://bucket/key"),
        ("https://lake.example/answers/x.csv", "expected s3://bucket/key"),
        ("answers/x.csv", "expected s3://bucket/key"),
    ],
)
def test_other_addresses_are_refused_with_the_request(
    target: str, message: str, session: Session, configure: Callable[..., None]
) -> None:
    configure(targets="s3://lake/answers/")
    with pytest.raises(InvalidInput) as raised:
        _submitted(session, target)
    (item,) = raised.value.errors
    assert item.pointer == "/target"
    assert message in item.detail
