"""Routes of suggested rows and wrong labels."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.access.authentication import VIEWER
from app.curation import service as curation
from app.curation import wrong_labels
from app.curation.schemas import SuggestedRows, WrongLabels
from app.http.parameters import V1, Db, Id
from app.http.problems import responses

router = APIRouter(prefix=f"{V1}/jobs", tags=["curation"])

_Offset = Annotated[int, Query(ge=0, lt=2**31)]
_Limit = Annotated[int, Query(ge=1, le=curation.MAX_SHOWN)]


@router.get("/{id}/suggested-rows", dependencies=[VIEWER], responses=responses(409))
def list_suggested_rows(session: Db, id: Id, offset: _Offset = 0, limit: _Limit = 20) -> SuggestedRows:
    """List the rows that a job suggests to label, with the reason, the margin and the alternatives of each."""
    return curation.suggested_rows(session, id, offset, limit)


@router.get("/{id}/wrong-labels", dependencies=[VIEWER], responses=responses(409))
def list_wrong_labels(session: Db, id: Id, offset: _Offset = 0, limit: _Limit = 20) -> WrongLabels:
    """List the labels that a job found to be probably wrong, the most suspect first, with the evidence."""
    return wrong_labels.wrong_labels(session, id, offset, limit)
