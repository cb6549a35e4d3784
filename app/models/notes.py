"""What people write about models and versions."""

from sqlalchemy.orm import Session

from app.errors import InvalidInput, PreconditionFailed
from app.models.schemas import MAX_TAGS, Model, ModelAbout, ModelVersion, VersionPatch
from app.models.service import get, model_row, show_versions, version_row
from app.store.db import writing


def describe(session: Session, ref: str, about: ModelAbout) -> Model:
    """Change what is said about a model: fields that are not given stay, and null removes one.

    Raises
    ------
    NotFound
        No such model.
    """
    with writing(session):
        model = model_row(session, ref, lock=True)
        session.refresh(model)
        changed = (model.about or {}) | about.model_dump(mode="json", exclude_unset=True)
        model.about = ModelAbout.model_validate(changed).stored
        session.flush()
        return get(session, ref)


def change(session: Session, ref: str, number: int, patch: VersionPatch, if_match: int | None = None) -> ModelVersion:
    """Change tags and notes of a version; the change requires the state that it is based on.

    Parameters
    ----------
    if_match : int, optional
        The revision that the version must have now; None: whatever it has.

    Raises
    ------
    NotFound
        No such model or version.
    PreconditionFailed
        The version has another revision.
    InvalidInput
        There would be too many tags.
    """
    with writing(session):
        row = version_row(session, ref, number, lock=True)
        session.refresh(row)
        if if_match is not None and if_match != row.revision:
            raise PreconditionFailed(f"the version has revision {row.revision}; If-Match names {if_match}")
        tags = {name: value for name, value in {**(row.tags or {}), **(patch.tags or {})}.items() if value is not None}
        if len(tags) > MAX_TAGS:
            raise InvalidInput(f"the version would have {len(tags)} tags; at most {MAX_TAGS} are allowed")
        row.tags = tags
        if patch.notes is not None:
            row.notes = patch.notes
        row.revision += 1
        session.flush()
        return show_versions(session, [row])[0]
