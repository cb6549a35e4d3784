"""Routes of review queues."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from app.access.authentication import CLERK, EDITOR, VIEWER
from app.datasets import upload_routes as uploads
from app.datasets.upload_routes import Received
from app.http.bodies import Body
from app.http.parameters import REVIEWS, V1, Db, Once, PageSize, PageToken, Ref, opened, point_to, revision
from app.http.problems import responses
from app.jobs import service as jobs
from app.jobs.schemas import Job
from app.predictions.schemas import LANGUAGE_PATTERN
from app.reviews import decisions, label_search, queue_files, rows
from app.reviews import service as reviews
from app.reviews.decisions import append_decided
from app.reviews.schemas import (
    ClaimedRows,
    ClaimRequest,
    DecidedRowsRequest,
    DecisionRequest,
    FoundLabels,
    ImportedDecisions,
    ReleaseRequest,
    Review,
    ReviewRequest,
    ReviewRow,
    ReviewRowPage,
    SheetFormat,
    State,
)
from app.schemas import Page
from app.store import tables
from app.store.idempotency import fingerprint, idempotent

router = APIRouter(prefix=REVIEWS, tags=["reviews"])

_Row = Annotated[int, Path(ge=0, lt=2**53, description="Number of the row in the dataset, from 0.")]
_Match = Annotated[str | None, Header(description="The revision of the row in double quotes, or absent for any.")]


@router.get("", dependencies=[VIEWER])
def list_reviews(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Review]:
    """List review queues, newest first, with their progress."""
    return reviews.page(session, page_size, page_token)


@router.post("", status_code=201, dependencies=[CLERK], responses=responses(404, 409))
def create_review(response: Response, session: Db, token: Once, body: Body[ReviewRequest]) -> Review:
    """Create a review queue from a prediction job: its rows that are not sure, and a random share of the sure ones."""
    with idempotent(session, token, fingerprint("review", body.model_dump_json()), tables.Review) as before:
        review = reviews.get(session, before) if before else reviews.create(session, body)
    point_to(response, f"{V1}/reviews/{review.name}", before)
    return review


@router.get("/{ref}", dependencies=[VIEWER])
def get_review(session: Db, ref: Ref) -> Review:
    """Get a review queue with its progress, agreement, and the measured precision of sure rows."""
    return reviews.get(session, ref)


@router.delete("/{ref}", status_code=204, dependencies=[EDITOR])
def delete_review(session: Db, ref: Ref) -> None:
    """Delete a review queue with its rows and decisions."""
    reviews.delete(session, ref)


@router.get("/{ref}/rows", dependencies=[VIEWER])
def list_review_rows(
    session: Db,
    ref: Ref,
    page_size: PageSize = 100,
    after: Annotated[int | None, Query(ge=0, lt=2**53, description="`next_place` of the previous page.")] = None,
    state: Annotated[State | None, Query(description="Only rows in this state.")] = None,
) -> ReviewRowPage:
    """List the rows of a review queue, the least sure first."""
    return rows.listed(session, ref, page_size, after, state)


@router.post("/{ref}/claim", dependencies=[CLERK])
def claim_rows(session: Db, ref: Ref, body: Body[ClaimRequest]) -> ClaimedRows:
    """Claim rows for some minutes, the least sure first; no two claims get the same row."""
    return ClaimedRows(rows=rows.claim(session, ref, body))


@router.post("/{ref}/release", status_code=204, dependencies=[CLERK])
def release_rows(session: Db, ref: Ref, body: Body[ReleaseRequest]) -> None:
    """Give claimed rows back before their leases end."""
    rows.release(session, ref, body.rows)


@router.get("/{ref}/labels", dependencies=[VIEWER], responses=responses(409))
def find_review_labels(
    request: Request,
    session: Db,
    ref: Ref,
    search: Annotated[
        str | None,
        Query(min_length=1, max_length=1000, description="Words that a label, its notation or its names contain."),
    ] = None,
    label: Annotated[
        list[str] | None, Query(max_length=100, description="Only these labels, instead of a search.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
    language: Annotated[
        str | None,
        Query(
            pattern=LANGUAGE_PATTERN, max_length=100, description="Language of the names. Default: that of the queue."
        ),
    ] = None,
) -> FoundLabels:
    """Search the labels of the reviewed version by label, notation or name, for a field in which people type."""
    return label_search.find(session, request.app.state.models, ref, search, label or [], limit, language)


@router.get("/{ref}/sheet", dependencies=[VIEWER])
def get_review_sheet(
    request: Request,
    session: Db,
    ref: Ref,
    state: Annotated[State | None, Query(description="Only rows in this state.")] = None,
    format: Annotated[
        SheetFormat,
        Query(
            description="`xlsx` is a workbook with a column for decisions, `label-studio` the rows as tasks with "
            "predictions in Label Studio's JSON, and `label-studio-config` the labeling configuration (XML) for them."
        ),
    ] = "xlsx",
) -> Response:
    """Download the rows as a workbook, or as tasks for Label Studio, to be decided there and sent back."""
    file = queue_files.write(session, request.app.state.models, ref, state, format)
    headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
    return Response(file.content, media_type=file.media_type, headers=headers)


def _reviewed(request: Request, ref: Ref) -> None:
    with opened(request) as session:
        reviews.get(session, ref)


@router.post("/{ref}/decisions", dependencies=[CLERK], openapi_extra=uploads.SCHEMA, responses=responses(413, 415))
def import_review_decisions(
    request: Request,
    session: Db,
    ref: Ref,
    file: Annotated[Received, uploads.received_after(_reviewed)],
    new_labels: Annotated[bool, Query(description="Accept labels that the model does not know.")] = False,
) -> ImportedDecisions:
    """Record the decisions of an edited workbook, a CSV file of it, or Label Studio's export; problems are listed."""
    return queue_files.read(session, request.app.state.models, ref, file.upload.path, new_labels)


@router.put("/{ref}/decisions/{row}", dependencies=[CLERK], responses=responses(409, 412))
def decide_row(
    request: Request,
    session: Db,
    response: Response,
    ref: Ref,
    row: _Row,
    body: Body[DecisionRequest],
    if_match: _Match = None,
) -> ReviewRow:
    """Decide or skip a row, or change your own decision; repeating a decision changes nothing."""
    decided = decisions.decide_known(session, request.app.state.models, ref, row, body, revision(if_match))
    response.headers["ETag"] = f'"{decided.revision}"'
    return decided


@router.post("/{ref}/append", status_code=202, dependencies=[EDITOR], responses=responses(409))
def append_decided_rows(response: Response, session: Db, token: Once, ref: Ref, body: Body[DecidedRowsRequest]) -> Job:
    """Append decided rows to a dataset, each once; the job creates a new dataset version."""
    print_ = fingerprint("decided rows", ref, body.model_dump_json())
    with idempotent(session, token, print_, tables.Job) as before:
        job = jobs.get(session, before) if before else append_decided(session, ref, body)
    point_to(response, f"{V1}/jobs/{job.id}", before)
    return job


@router.delete("/{ref}/decisions/{row}", dependencies=[CLERK], responses=responses(409, 412))
def undo_decision(
    session: Db,
    response: Response,
    ref: Ref,
    row: _Row,
    minutes: Annotated[
        float | None,
        Query(
            ge=0.1, le=1440, description="Minutes for which you claim the row again; if absent, anyone can claim it."
        ),
    ] = None,
    if_match: _Match = None,
) -> ReviewRow:
    """Withdraw your own decision or skip of a row; nothing changes if nobody has decided it."""
    undone = decisions.undo(session, ref, row, revision(if_match), minutes)
    response.headers["ETag"] = f'"{undone.revision}"'
    return undone
