"""Routes for hierarchies."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from app.access.authentication import EDITOR, VIEWER
from app.datasets import upload_routes as uploads
from app.datasets.upload_routes import Received, Replay
from app.hierarchies import editions
from app.hierarchies import nodes as hierarchy_nodes
from app.hierarchies import service as hierarchies
from app.hierarchies.schemas import Change, Changes, Hierarchy, HierarchyNodes, NewHierarchy, RetiredLabels
from app.http.parameters import HIERARCHIES, Db, Once, PageSize, PageToken, Ref, opened, point_to
from app.http.problems import responses
from app.schemas import NAME_PATTERN, Page
from app.store import tables
from app.store.idempotency import fingerprint, idempotent

router = APIRouter(prefix=HIERARCHIES, tags=["hierarchies"])


def _new_hierarchy(request: Request, replay: Replay, new: Annotated[NewHierarchy, Query()]) -> NewHierarchy:
    if not replay:
        with opened(request) as session:
            hierarchies.check_new(session, new)
    return new


@router.post(
    "", status_code=201, dependencies=[EDITOR], openapi_extra=uploads.SCHEMA, responses=responses(409, 413, 415)
)
def upload_hierarchy(
    session: Db,
    response: Response,
    token: Once,
    new: Annotated[NewHierarchy, Depends(_new_hierarchy)],
    file: Annotated[Received, uploads.received_after(_new_hierarchy)],
) -> Hierarchy:
    """Upload a label tree or vocabulary, plain or compressed; errors are reported by line."""
    # before the transaction, which keeps other writers waiting
    vocabulary = hierarchies.read(file.upload, new, file.require_client)
    print_ = fingerprint("hierarchies", new.model_dump_json(exclude_defaults=True), file.upload.sha256)
    with idempotent(session, token, print_, tables.Hierarchy) as before:
        if before:
            hierarchy = hierarchies.get(session, before)
        else:
            hierarchy = hierarchies.register(session, new.name, new.format, vocabulary)
    point_to(response, f"{HIERARCHIES}/{hierarchy.id}", before)
    return hierarchy


@router.get("", dependencies=[VIEWER])
def list_hierarchies(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Hierarchy]:
    """Hierarchies, newest first."""
    return hierarchies.page(session, page_size, page_token)


@router.get("/{ref}", dependencies=[VIEWER])
def get_hierarchy(session: Db, ref: Ref) -> Hierarchy:
    """One hierarchy by id or name, with its counts."""
    return hierarchies.get(session, ref)


@router.get("/{ref}/nodes", dependencies=[VIEWER], responses=responses(409))
def get_nodes(
    session: Db,
    ref: Ref,
    parent: Annotated[
        str | None,
        Query(min_length=1, max_length=1000, description="Only the children of this node; root: the top level."),
    ] = None,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
    search: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=1000,
            description="Only nodes whose name contains this text, in any language, ignoring case.",
        ),
    ] = None,
    dataset: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="Id or name of a dataset whose rows are counted per node.")
    ] = None,
) -> HierarchyNodes:
    """Nodes of a hierarchy, level by level, with the facts of their labels."""
    return hierarchy_nodes.nodes(session, ref, parent, offset, limit, search, dataset)


@router.get("/{ref}/retired", dependencies=[VIEWER])
def get_retired(
    session: Db,
    ref: Ref,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> RetiredLabels:
    """List deprecated labels without a place in the tree, with their replacements, and excluded labels."""
    return hierarchies.retired(session, ref, offset, limit)


@router.get("/{ref}/changes", dependencies=[VIEWER])
def get_changes(
    session: Db,
    ref: Ref,
    since: Annotated[str, Query(pattern=NAME_PATTERN, description="The earlier edition, by id or name.")],
    change: Annotated[Change | None, Query(description="Only changes of this kind.")] = None,
    offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
) -> Changes:
    """Changes from another edition of the same vocabulary, label by label, matched by id."""
    return editions.changes(session, ref, since, change, offset, limit)


@router.delete("/{ref}", status_code=204, dependencies=[EDITOR], responses=responses(409))
def delete_hierarchy(
    session: Db,
    ref: Ref,
    force: Annotated[bool, Query(description="Delete even if models were trained on it.")] = False,
) -> None:
    """Delete a hierarchy; models trained on it keep their own copy of the tree and its hash."""
    hierarchies.delete(session, ref, force)
