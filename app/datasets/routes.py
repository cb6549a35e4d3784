"""Routes for datasets."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from app.access.authentication import CLERK, EDITOR, VIEWER
from app.datasets import rows as dataset_rows
from app.datasets import service as datasets
from app.datasets import upload_routes as uploads
from app.datasets import versions as dataset_versions
from app.datasets.appending import append, check_append
from app.datasets.corrections import correct_labels
from app.datasets.schemas import (
    CorrectionsRequest,
    Dataset,
    DatasetRows,
    DatasetVersion,
    FromUpload,
    NewDataset,
    NewRows,
    ProposedColumns,
    TableSample,
)
from app.datasets.statistics_schemas import DatasetStatistics
from app.datasets.upload_routes import Received, Replay
from app.hierarchies import examples
from app.http.bodies import Body
from app.http.parameters import DATASETS, V1, Db, Once, PageSize, PageToken, Ref, opened, point_to
from app.http.problems import responses
from app.jobs import previews
from app.jobs import service as jobs
from app.jobs.plan_schemas import FeaturePreview, PreviewRequest
from app.jobs.schemas import Job
from app.schemas import Page
from app.store import tables
from app.store.idempotency import fingerprint, idempotent

router = APIRouter(prefix=DATASETS, tags=["datasets"])

# how a file arrives is no part of the request that an Idempotency-Key identifies
_UPLOAD_FIELDS = set(FromUpload.model_fields)


def _new_dataset(request: Request, replay: Replay, new: Annotated[NewDataset, Query()]) -> NewDataset:
    if not replay:
        with opened(request) as session:
            datasets.check_new(session, new)
    return new


def _new_rows(request: Request, replay: Replay, ref: Ref, new: Annotated[NewRows, Query()]) -> NewRows:
    if not replay:
        with opened(request) as session:
            check_append(session, ref, new)
    return new


@router.post(
    "", status_code=202, dependencies=[CLERK], openapi_extra=uploads.SCHEMA, responses=responses(404, 409, 413, 415)
)
def upload_dataset(
    session: Db,
    response: Response,
    token: Once,
    new: Annotated[NewDataset, Depends(_new_dataset)],
    file: Annotated[Received, uploads.received_after(_new_dataset)],
) -> Dataset:
    """Upload a dataset; a job imports it and reports faulty rows."""
    print_ = fingerprint("datasets", new.model_dump_json(exclude=_UPLOAD_FIELDS), file.upload.sha256)
    with idempotent(session, token, print_, tables.Dataset) as before:
        dataset = datasets.get(session, before) if before else datasets.register(session, new, file.upload)
    point_to(response, f"{DATASETS}/{dataset.id}", before)
    return dataset


@router.post(
    "/{ref}/rows",
    status_code=202,
    dependencies=[EDITOR],
    openapi_extra=uploads.SCHEMA,
    responses=responses(409, 413, 415),
)
def append_rows(
    session: Db,
    response: Response,
    token: Once,
    ref: Ref,
    new: Annotated[NewRows, Depends(_new_rows)],
    file: Annotated[Received, uploads.received_after(_new_rows)],
) -> Job:
    """Append a file's rows to a dataset; the job makes its next version, and earlier versions stay unchanged."""
    print_ = fingerprint("rows", ref, new.model_dump_json(exclude=_UPLOAD_FIELDS), file.upload.sha256)
    with idempotent(session, token, print_, tables.Job) as before:
        job = jobs.get(session, before) if before else append(session, ref, new, file.upload)
    point_to(response, f"{V1}/jobs/{job.id}", before)
    return job


@router.post("/{ref}/corrections", status_code=202, dependencies=[EDITOR], responses=responses(409))
def correct_dataset_labels(
    session: Db,
    response: Response,
    token: Once,
    ref: Ref,
    body: Body[CorrectionsRequest],
) -> Job:
    """Correct the labels of rows, or delete rows; the job makes the next version, and earlier ones stay unchanged."""
    print_ = fingerprint("corrections", ref, body.model_dump_json())
    with idempotent(session, token, print_, tables.Job) as before:
        job = jobs.get(session, before) if before else correct_labels(session, ref, body)
    point_to(response, f"{V1}/jobs/{job.id}", before)
    return job


@router.get("/{ref}/versions", dependencies=[VIEWER])
def list_dataset_versions(session: Db, ref: Ref) -> list[DatasetVersion]:
    """List all versions of a dataset, newest first."""
    return dataset_versions.listed(session, ref)


@router.post("/example", status_code=202, dependencies=[EDITOR], responses=responses(409))
def make_example(session: Db) -> Dataset:
    """Get the example dataset, created if missing: docstrings by module, with a hierarchy of the modules."""
    return examples.docstrings(session)


@router.post("/columns", dependencies=[CLERK], openapi_extra=uploads.SAMPLE, responses=responses(413, 415))
def propose_columns(sample: Annotated[TableSample, Query()], content: uploads.Content) -> ProposedColumns:
    """Propose a role for each column of a table; nothing is stored.

    Send the first 256 KiB of a CSV, TSV or JSON lines file, or a whole Parquet file, Arrow file or workbook of at most
    4 MiB.
    """
    return datasets.propose(content, sample)


@router.get("", dependencies=[VIEWER])
def list_datasets(
    session: Db,
    page_size: PageSize = 100,
    page_token: PageToken = None,
    old_failures: Annotated[
        bool, Query(description="Include datasets whose import failed more than a day ago.")
    ] = False,
) -> Page[Dataset]:
    """Datasets, newest first."""
    return datasets.page(session, page_size, page_token, old_failures)


@router.get("/{ref}", dependencies=[VIEWER])
def get_dataset(session: Db, ref: Ref) -> Dataset:
    """One dataset by id or name."""
    return datasets.get(session, ref)


@router.get("/{ref}/statistics", dependencies=[VIEWER], responses=responses(409))
def get_statistics(
    session: Db,
    ref: Ref,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> DatasetStatistics:
    """Counts over an imported dataset: rows, features, and a page of its classes."""
    return dataset_rows.statistics(session, ref, offset, limit)


@router.get("/{ref}/rows", dependencies=[VIEWER], responses=responses(409))
def get_rows(
    session: Db,
    ref: Ref,
    offset: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    limit: Annotated[int, Query(ge=1, le=dataset_rows.MAX_ROWS)] = 20,
    whole: Annotated[
        bool, Query(description=f"Return whole rows, at most {dataset_rows.MAX_WHOLE_ROWS} of them.")
    ] = False,
) -> DatasetRows:
    """Rows of an imported dataset, shortened."""
    return dataset_rows.rows(session, ref, offset, limit, whole)


@router.post("/{ref}/preview", dependencies=[VIEWER], responses=responses(409))
def preview_features(session: Db, ref: Ref, body: Body[PreviewRequest]) -> FeaturePreview:
    """Preview the features of one row under a job's recipe, fitted on a sample of the training rows."""
    return previews.preview(session, ref, body)


@router.get(
    "/{ref}/errors",
    dependencies=[VIEWER],
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
def get_error_report(session: Db, ref: Ref) -> Response:
    """Faulty rows of a failed import as CSV: line, column, fault; at most 100,000."""
    return Response(datasets.error_report(session, ref), media_type="text/csv")


@router.delete("/{ref}", status_code=204, dependencies=[CLERK], responses=responses(409))
def delete_dataset(
    session: Db,
    ref: Ref,
    force: Annotated[bool, Query(description="Delete even if models were trained on it.")] = False,
) -> None:
    """Delete a dataset and its files; models trained on it keep its hash."""
    datasets.delete(session, ref, force)
