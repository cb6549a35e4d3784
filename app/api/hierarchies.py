"""Routes for hierarchies."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy.orm import Session

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.parameters import Db, Once, PageSize, PageToken, Ref, point_to
from app.api.common.paths import HIERARCHIES
from app.api.common.problems import responses
from app.api.datasets import uploads
from app.api.datasets.uploads import Check
from app.schemas.common.names import NAME_PATTERN
from app.schemas.common.pages import Page
from app.schemas.hierarchies.editions import Change, Changes
from app.schemas.hierarchies.hierarchies import Hierarchy, HierarchyNodes, NewHierarchy, RetiredLabels
from app.services.common.idempotency import fingerprint, once
from app.services.hierarchies import editions, hierarchies, hierarchy_nodes
from app.store import tables
from app.store.files import Upload

router = APIRouter(prefix=HIERARCHIES, tags=["hierarchies"])


@router.post(
    "",
    status_code=201,
    dependencies=[EDITOR],
    openapi_extra=uploads.SCHEMA,
    responses=responses(400, 401, 403, 409, 413, 415, 422, 507),
)
async def upload_hierarchy(
    request: Request, response: Response, token: Once, new: Annotated[NewHierarchy, Query()]
) -> Hierarchy:
    """Upload a label tree or vocabulary, plain or compressed; what keeps it from being one is reported by line."""

    def keep(session: Session, upload: Upload, check: Check) -> tuple[Hierarchy, bool]:
        # before the transaction, which keeps other writers waiting
        vocabulary = hierarchies.read(upload, new, check)
        print_ = fingerprint("hierarchies", new.model_dump_json(exclude_defaults=True), upload.sha256)
        return once(
            session,
            token,
            print_,
            tables.Hierarchy,
            lambda: hierarchies.register(session, new.name, new.format, vocabulary),
            hierarchies.get,
        )

    hierarchy, replayed = await uploads.take(request, token, lambda session: hierarchies.check_new(session, new), keep)
    point_to(response, f"{HIERARCHIES}/{hierarchy.id}", replayed)
    return hierarchy


@router.get("", dependencies=[VIEWER], responses=responses(401, 422))
def list_hierarchies(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Hierarchy]:
    """Hierarchies, newest first."""
    return hierarchies.page(session, page_size, page_token)


@router.get("/{ref}", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_hierarchy(session: Db, ref: Ref) -> Hierarchy:
    """One hierarchy by id or name, with its counts."""
    return hierarchies.get(session, ref)


@router.get("/{ref}/nodes", dependencies=[VIEWER], responses=responses(401, 404, 409, 422))
def get_nodes(
    session: Db,
    ref: Ref,
    parent: Annotated[
        str | None,
        Query(min_length=1, max_length=1000, description="Only the children of this node; root: of the top."),
    ] = None,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    search: Annotated[
        str | None,
        Query(min_length=1, max_length=1000, description="Only nodes with this in a name, in any language and case."),
    ] = None,
    dataset: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="Id or name: count its rows, node by node.")
    ] = None,
) -> HierarchyNodes:
    """Nodes of a hierarchy, level by level, with what is said of their labels."""
    return hierarchy_nodes.nodes(session, ref, parent, offset, limit, search, dataset)


@router.get("/{ref}/retired", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_retired(
    session: Db,
    ref: Ref,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> RetiredLabels:
    """Deprecated labels without a place in the tree, and what replaces them."""
    return hierarchies.retired(session, ref, offset, limit)


@router.get("/{ref}/changes", dependencies=[VIEWER], responses=responses(401, 404, 422))
def get_changes(
    session: Db,
    ref: Ref,
    since: Annotated[str, Query(pattern=NAME_PATTERN, description="The earlier edition, by id or name.")],
    change: Annotated[Change | None, Query(description="Only changes of this kind.")] = None,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Changes:
    """What is different from another edition of the same vocabulary, label by label, by id."""
    return editions.changes(session, ref, since, change, offset, limit)


@router.delete("/{ref}", status_code=204, dependencies=[EDITOR], responses=responses(401, 403, 404, 409, 422, 507))
def delete_hierarchy(
    session: Db, ref: Ref, force: Annotated[bool, Query(description="Even if models came from it.")] = False
) -> None:
    """Delete a hierarchy; models that came from it keep their own copy of the tree, and its hash."""
    hierarchies.delete(session, ref, force)
