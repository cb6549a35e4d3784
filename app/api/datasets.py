"""Routes for datasets."""

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api import uploads
from app.api.auth import EDITOR, VIEWER
from app.api.parameters import Db, Once, PageSize, PageToken, Ref
from app.api.paths import DATASETS
from app.api.problems import responses
from app.api.replays import make_once
from app.schemas.datasets import Dataset, DatasetFormat, DatasetRows, DatasetStatistics
from app.schemas.names import Name
from app.schemas.pages import Page
from app.services import datasets, idempotency
from app.services.idempotency import Token, fingerprint
from app.store import tables
from app.store.files import Upload, files

router = APIRouter(prefix=DATASETS, tags=["datasets"])


class Options(NamedTuple):
    """What an upload says of its file."""

    name: str
    format: DatasetFormat
    label_column: str
    weight_column: str | None
    label_separator: str | None


@router.post(
    "",
    status_code=202,
    dependencies=[EDITOR],
    openapi_extra=uploads.SCHEMA,
    responses=responses(400, 401, 403, 409, 413, 415, 422, 503),
)
async def upload_dataset(
    request: Request,
    response: Response,
    name: Annotated[Name, Query(description="Unique; how jobs and URLs call the dataset.")],
    format: DatasetFormat,
    token: Once,
    label_column: Annotated[str, Query(min_length=1, max_length=200, description="Or key of a JSON line.")] = "label",
    weight_column: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=200,
            description="Or key of a JSON line: positive numbers that multiply the losses of their rows. By default no "
            "column, the key weight where it is there, and cost:number in svmlight files.",
        ),
    ] = None,
    label_separator: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=8,
            description="Rows have sets of labels, with this between them; in svmlight files a comma. JSON lines need "
            "none: there sets are lists.",
        ),
    ] = None,
) -> Dataset:
    """Upload a dataset; a job imports it, and finds the faults of its rows."""
    options = Options(name, format, label_column, weight_column, label_separator)
    await run_in_threadpool(_refuse_early, request, token, options)
    upload = await run_in_threadpool(files().upload)
    try:
        await uploads.receive(request, upload)
        return await run_in_threadpool(_register, request, response, token, upload, options)
    finally:
        upload.abort()


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def list_datasets(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Dataset]:
    """Datasets, newest first."""
    return datasets.page(session, page_size, page_token)


@router.get("/{ref}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_dataset(session: Db, ref: Ref) -> Dataset:
    """One dataset by id or name."""
    return datasets.get(session, ref)


@router.get("/{ref}/statistics", dependencies=[VIEWER], responses=responses(401, 404, 409, 422))
def get_statistics(session: Db, ref: Ref) -> DatasetStatistics:
    """Counts over an imported dataset: rows, classes, features."""
    return datasets.statistics(session, ref)


@router.get("/{ref}/rows", dependencies=[VIEWER], responses=responses(401, 404, 409, 422))
def get_rows(
    session: Db,
    ref: Ref,
    offset: Annotated[int, Query(ge=0, lt=2**63)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> DatasetRows:
    """Rows of an imported dataset, shortened for reading."""
    return datasets.rows(session, ref, offset, limit)


@router.delete("/{ref}", status_code=204, dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422))
def delete_dataset(
    session: Db, ref: Ref, force: Annotated[bool, Query(description="Even if models came from it.")] = False
) -> None:
    """Delete a dataset and its files; models that came from it keep its hash."""
    datasets.delete(session, ref, force)


def _refuse_early(request: Request, token: Token | None, options: Options) -> None:
    with request.app.state.sessions() as session:
        if token is None or not idempotency.known(session, token):
            datasets.check_new(session, *options)


def _register(request: Request, response: Response, token: Token | None, upload: Upload, options: Options) -> Dataset:
    upload.finish()
    with request.app.state.sessions() as session:
        dataset = make_once(
            session,
            response,
            token,
            fingerprint("datasets", *(part or "" for part in options), upload.sha256),
            tables.Dataset,
            lambda: datasets.register(
                session,
                options.name,
                options.format,
                upload,
                label_column=options.label_column,
                weight_column=options.weight_column,
                label_separator=options.label_separator,
            ),
            datasets.get,
        )
    response.headers["Location"] = f"{DATASETS}/{dataset.id}"
    return dataset
