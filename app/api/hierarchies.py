"""Routes for hierarchies."""

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api import uploads
from app.api.auth import EDITOR, VIEWER
from app.api.parameters import Db, Once, PageSize, PageToken, Ref
from app.api.paths import HIERARCHIES
from app.api.problems import responses
from app.api.replays import make_once
from app.formats.hierarchies.options import HierarchyOptions
from app.schemas.hierarchies import Hierarchy, HierarchyFormat, HierarchyNodes
from app.schemas.names import Name
from app.schemas.pages import Page
from app.services import hierarchies, idempotency
from app.services.idempotency import Token, fingerprint
from app.store import tables
from app.store.files import Upload, files

router = APIRouter(prefix=HIERARCHIES, tags=["hierarchies"])


class Options(NamedTuple):
    """What an upload says of its file."""

    name: str
    format: HierarchyFormat
    file: HierarchyOptions


@router.post(
    "",
    status_code=201,
    dependencies=[EDITOR],
    openapi_extra=uploads.SCHEMA,
    responses=responses(400, 401, 403, 409, 413, 415, 422, 503),
)
async def upload_hierarchy(
    request: Request,
    response: Response,
    name: Annotated[Name, Query(description="Unique; how jobs and URLs call the hierarchy.")],
    format: Annotated[
        HierarchyFormat,
        Query(
            description="json: nested objects and lists; csv: columns parent and child; lshtc: cat_hier.txt; rcv1: "
            "lines with parent: and child:; paths: one label a line, as comp.sys.mac."
        ),
    ],
    token: Once,
    root: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=1000,
            description="What the file calls the top of the tree. By default root in json and csv, the child of None "
            "in rcv1, and in lshtc the only node without a parent.",
        ),
    ] = None,
    separator: Annotated[
        str, Query(min_length=1, max_length=8, description="Of paths: what stands between their parts.")
    ] = HierarchyOptions.separator,
) -> Hierarchy:
    """Upload a label tree; what keeps it from being one is reported by line."""
    options = Options(name, format, HierarchyOptions(root, separator))
    await run_in_threadpool(_refuse_early, request, token, options)
    upload = await run_in_threadpool(files().upload)
    try:
        await uploads.receive(request, upload)
        return await run_in_threadpool(_register, request, response, token, upload, options)
    finally:
        upload.abort()


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def list_hierarchies(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Hierarchy]:
    """Hierarchies, newest first."""
    return hierarchies.page(session, page_size, page_token)


@router.get("/{ref}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_hierarchy(session: Db, ref: Ref) -> Hierarchy:
    """One hierarchy by id or name, with its counts."""
    return hierarchies.get(session, ref)


@router.get("/{ref}/nodes", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_nodes(
    session: Db,
    ref: Ref,
    parent: Annotated[
        str | None,
        Query(min_length=1, max_length=1000, description="Only the children of this node; root: of the top."),
    ] = None,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> HierarchyNodes:
    """Nodes of a hierarchy, level by level."""
    return hierarchies.nodes(session, ref, parent, offset, limit)


@router.delete("/{ref}", status_code=204, dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422))
def delete_hierarchy(
    session: Db, ref: Ref, force: Annotated[bool, Query(description="Even if models came from it.")] = False
) -> None:
    """Delete a hierarchy; models that came from it keep their own copy of the tree, and its hash."""
    hierarchies.delete(session, ref, force)


def _refuse_early(request: Request, token: Token | None, options: Options) -> None:
    with request.app.state.sessions() as session:
        if token is None or not idempotency.known(session, token):
            hierarchies.check_new(session, options.name, options.format, options.file)


def _register(request: Request, response: Response, token: Token | None, upload: Upload, options: Options) -> Hierarchy:
    name, format, file = options
    # before the transaction, which keeps other writers waiting
    tree = hierarchies.read(upload, format, file)
    with request.app.state.sessions() as session:
        hierarchy = make_once(
            session,
            response,
            token,
            fingerprint("hierarchies", name, format, file.root or "", file.separator, upload.sha256),
            tables.Hierarchy,
            lambda: hierarchies.register(session, name, format, tree),
            hierarchies.get,
        )
    response.headers["Location"] = f"{HIERARCHIES}/{hierarchy.id}"
    return hierarchy
