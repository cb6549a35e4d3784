"""Routes for datasets."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from sqlalchemy.orm import Session

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.bodies import JsonBody
from app.api.common.parameters import Db, Once, PageSize, PageToken, Ref, point_to
from app.api.common.paths import DATASETS, V1
from app.api.common.problems import responses
from app.api.common.queued import queue_once
from app.api.datasets import uploads
from app.api.datasets.uploads import Check
from app.schemas.common.pages import Page
from app.schemas.datasets.datasets import CorrectionsRequest, Dataset, DatasetRows, DatasetVersion, NewDataset, NewRows
from app.schemas.datasets.statistics import DatasetStatistics
from app.schemas.datasets.uploads import FromUpload
from app.schemas.jobs.jobs import Job
from app.schemas.jobs.previews import FeaturePreview, PreviewRequest
from app.services.common.idempotency import fingerprint, once
from app.services.datasets import dataset_rows, dataset_versions, datasets
from app.services.datasets.appending import append, check_append
from app.services.datasets.corrections import correct_labels
from app.services.hierarchies import examples
from app.services.jobs import jobs, previews
from app.store import tables
from app.store.files import Upload

router = APIRouter(prefix=DATASETS, tags=["datasets"])

# how a file came says nothing of what is asked
_WAYS = set(FromUpload.model_fields)
_corrections = JsonBody(CorrectionsRequest)
_preview = JsonBody(PreviewRequest)


@router.post(
    "",
    status_code=202,
    dependencies=[EDITOR],
    openapi_extra=uploads.SCHEMA,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 507),
)
async def upload_dataset(
    request: Request, response: Response, token: Once, new: Annotated[NewDataset, Query()]
) -> Dataset:
    """Upload a dataset; a job imports it, and finds the faults of its rows."""

    def keep(session: Session, upload: Upload, _check: Check) -> tuple[Dataset, bool]:
        print_ = fingerprint("datasets", new.model_dump_json(exclude=_WAYS), upload.sha256)
        return once(
            session, token, print_, tables.Dataset, lambda: datasets.register(session, new, upload), datasets.get
        )

    dataset, replayed = await uploads.take(request, token, lambda session: datasets.check_new(session, new), keep, new)
    point_to(response, f"{DATASETS}/{dataset.id}", replayed)
    return dataset


@router.post(
    "/{ref}/rows",
    status_code=202,
    dependencies=[EDITOR],
    openapi_extra=uploads.SCHEMA,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 507),
)
async def append_rows(
    request: Request, response: Response, token: Once, ref: Ref, new: Annotated[NewRows, Query()]
) -> Job:
    """Append a file's rows to a dataset; the job makes its next version, and the one before stays what it was."""

    def keep(session: Session, upload: Upload, _check: Check) -> tuple[Job, bool]:
        print_ = fingerprint("rows", ref, new.model_dump_json(exclude=_WAYS), upload.sha256)
        return once(session, token, print_, tables.Job, lambda: append(session, ref, new, upload), jobs.get)

    job, replayed = await uploads.take(request, token, lambda session: check_append(session, ref, new), keep, new)
    point_to(response, f"{V1}/jobs/{job.id}", replayed)
    return job


@router.post(
    "/{ref}/corrections",
    status_code=202,
    dependencies=[EDITOR],
    openapi_extra=_corrections.schema,
    responses=responses(400, 401, 403, 404, 409, 413, 415, 422, 507),
)
def correct_dataset_labels(
    session: Db,
    response: Response,
    token: Once,
    ref: Ref,
    body: Annotated[CorrectionsRequest, Depends(_corrections)],
) -> Job:
    """Give rows the labels that are right; the job makes the next version, and the one before stays what it was."""
    asked = "corrections", ref, body.model_dump_json()
    return queue_once(session, response, token, asked, lambda: correct_labels(session, ref, body))


@router.get("/{ref}/versions", dependencies=[VIEWER], responses=responses(401, 404, 422))
def list_dataset_versions(session: Db, ref: Ref) -> list[DatasetVersion]:
    """All versions of a dataset, newest first."""
    return dataset_versions.listed(session, ref)


@router.post("/example", status_code=202, dependencies=[EDITOR], responses=responses(401, 403, 409, 422, 507))
def make_example(session: Db) -> Dataset:
    """The example to begin with, made where it is not there: docstrings by module, and a hierarchy of the modules."""
    return examples.docstrings(session)


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def list_datasets(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Dataset]:
    """Datasets, newest first."""
    return datasets.page(session, page_size, page_token)


@router.get("/{ref}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_dataset(session: Db, ref: Ref) -> Dataset:
    """One dataset by id or name."""
    return datasets.get(session, ref)


@router.get("/{ref}/statistics", dependencies=[VIEWER], responses=responses(401, 404, 409, 422))
def get_statistics(
    session: Db,
    ref: Ref,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> DatasetStatistics:
    """Counts over an imported dataset: rows, features, and a page of its classes."""
    return dataset_rows.statistics(session, ref, offset, limit)


@router.get("/{ref}/rows", dependencies=[VIEWER], responses=responses(401, 404, 409, 422))
def get_rows(
    session: Db,
    ref: Ref,
    offset: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    limit: Annotated[int, Query(ge=1, le=dataset_rows.MAX_ROWS)] = 20,
    whole: Annotated[
        bool, Query(description=f"Nothing is shortened; {dataset_rows.MAX_WHOLE_ROWS} rows at the most are given then.")
    ] = False,
) -> DatasetRows:
    """Rows of an imported dataset, shortened for reading."""
    return dataset_rows.rows(session, ref, offset, limit, whole)


@router.post(
    "/{ref}/preview",
    dependencies=[VIEWER],
    openapi_extra=_preview.schema,
    responses=responses(400, 401, 404, 409, 413, 415, 422, 503),
)
def preview_features(session: Db, ref: Ref, body: Annotated[PreviewRequest, Depends(_preview)]) -> FeaturePreview:
    """The features that a job's recipe makes of one row, fitted on a sample of the training rows."""
    return previews.preview(session, ref, body)


@router.get(
    "/{ref}/errors",
    dependencies=[VIEWER],
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}, **responses(401, 404, 422)},
)
def get_error_report(session: Db, ref: Ref) -> Response:
    """All faulty rows of a dataset that could not be imported, as CSV: line, column, fault; at most 100,000."""
    return Response(datasets.error_report(session, ref), media_type="text/csv")


@router.delete("/{ref}", status_code=204, dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422, 507))
def delete_dataset(
    session: Db, ref: Ref, force: Annotated[bool, Query(description="Even if models came from it.")] = False
) -> None:
    """Delete a dataset and its files; models that came from it keep its hash."""
    datasets.delete(session, ref, force)
