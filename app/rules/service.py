"""Rules that train a model again: made, shown, switched off and deleted."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import delete as sql_delete
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.datasets.versions import resolve_version
from app.errors import Conflict, InvalidInput, Item
from app.jobs import training_requests
from app.jobs.schemas import TrainRequest, stored_request
from app.models import aliases
from app.models.service import model_row, version_row
from app.rules import runs as rule_runs
from app.rules.cron import next_moment
from app.rules.schemas import Promotion, Rule, RuleRequest
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.lookup import by_ref, newest, require_owner, to_schema

R = tables.Rule
# of one workspace: each sweep of each worker looks at all of them
_MOST = 1000


def create(session: Session, request: RuleRequest) -> Rule:
    """Make a rule after checking all that can be checked before it starts.

    Raises
    ------
    NotFound
        No such model, dataset or hierarchy.
    Forbidden
        The promotion's alias is protected and the key may not promote to it.
    Conflict
        The name is taken, the workspace has as many as it may, or the dataset is not ready or was deleted.
    InvalidInput
        The schedule or zone is none, the model cannot be trained so, or nothing could be compared for the promotion.
    """
    taken = Conflict(f"a rule is called {request.name!r} already")
    with writing(session):
        if session.scalars(select(R.id).where(R.name == request.name)).first() is not None:
            raise taken
        if session.scalars(select(func.count()).select_from(R)).one() >= _MOST:
            raise Conflict(f"the workspace has {_MOST:,} rules; no more are allowed. Delete some")
        model = model_row(session, request.model)
        latest = version_row(session, model.id)
        dataset_ref = request.dataset or (request.training and request.training.dataset) or latest.dataset_id
        if dataset_ref is None:
            raise Conflict("the dataset of the latest version was deleted; name another")
        dataset = by_ref(session, tables.Dataset, dataset_ref)
        feedback = request.feedback or request.feedback_rows is not None
        if request.promote is not None:
            aliases.require_promotes(session, request.promote.alias)
        now: float = session.scalars(select(db_now())).one()
        row = R(
            id=new_id(),
            name=request.name,
            model_id=model.id,
            dataset_id=dataset.id,
            training=_training(session, request, latest, dataset.id, model.name),
            warm=request.warm,
            cron=request.cron,
            time_zone=request.time_zone,
            feedback=feedback,
            feedback_rows=request.feedback_rows,
            promote=_promotion(session, request.promote, dataset),
            enabled=True,
            due_at=None if request.cron is None else next_moment(request.cron, request.time_zone, now),
            created_at=now,
        )
        session.add(row)
        try:
            session.flush()
        except IntegrityError:
            named = select(R.id).where(R.name == request.name)
            session.rollback()
            if session.scalars(named).first() is None:
                raise  # something that the rule names was deleted at this moment
            raise taken from None
        return _show(session, [row])[0]


def get(session: Session, ref: str) -> Rule:
    """A rule by id or name; raises NotFound."""
    with reading(session):
        return _show(session, [by_ref(session, R, ref)])[0]


def page(session: Session, page_size: int = 100, page_token: str | None = None) -> Page[Rule]:
    """Rules, newest first."""
    with reading(session):
        rows, token = newest(session, R, select(R), page_size, page_token)
        return Page[Rule](items=_show(session, rows), next_page_token=token)


def of_model(session: Session, model_id: str, limit: int = 100) -> list[Rule]:
    """The newest rules of a model."""
    with reading(session):
        query = select(R).where(R.model_id == model_id).order_by(R.id.desc()).limit(limit)
        return _show(session, session.scalars(query).all())


def set_enabled(session: Session, ref: str, enabled: bool) -> Rule:
    """Switch a rule on or off; times that passed while it was off are not made up for.

    Raises
    ------
    NotFound
        There is none.
    Forbidden
        Another key made it, or it promotes to a protected alias and the key may not.
    """
    with writing(session):
        row = by_ref(session, R, ref, lock=True)
        require_owner(session, row)
        if enabled and row.promote is not None:
            aliases.require_promotes(session, row.promote["alias"])
        if enabled and not row.enabled and row.cron is not None:
            row.due_at = next_moment(row.cron, row.time_zone, session.scalars(select(db_now())).one())
        row.enabled = enabled
        session.flush()
        return _show(session, [row])[0]


def delete(session: Session, ref: str) -> None:
    """Delete a rule with the list of its runs; jobs that it has begun go on.

    Raises
    ------
    NotFound
        There is none.
    Forbidden
        Another key made it.
    """
    with writing(session):
        row = by_ref(session, R, ref, lock=True)
        require_owner(session, row)
        session.execute(sql_delete(tables.RuleRun).where(tables.RuleRun.rule_id == row.id))
        session.delete(row)


def _training(
    session: Session, request: RuleRequest, latest: tables.ModelVersion, dataset_id: str, model: str
) -> dict[str, Any]:
    """The request of each training, checked against the dataset as it is now."""
    given = request.training or _as_trained(_followed(session, request.promote, latest))
    change = {"dataset": dataset_id, "dataset_version": None, "model": model, "warm_start": None}
    asked = given.model_copy(update=change | ({"keep_duals": True} if request.warm else {}))
    training_requests.resolve(session, asked)
    return asked.model_dump(mode="json")


def _followed(session: Session, promote: Promotion | None, latest: tables.ModelVersion) -> tables.ModelVersion:
    """The latest version, or another point of the path that it ended, where the promotion's alias names that."""
    A, V = tables.Alias, tables.ModelVersion
    if promote is None:
        return latest
    query = select(V).join(A, A.version_id == V.id)
    of_path = query.where(A.model_id == latest.model_id, A.name == promote.alias, V.job_id == latest.job_id)
    return session.scalars(of_path).one_or_none() or latest


def _as_trained(version: tables.ModelVersion) -> TrainRequest:
    """The request that trained the version; of a path in C, for the C of the version alone."""
    asked = stored_request(version.request)
    if asked.path is None:
        return asked
    return asked.model_copy(update={"path": None, "params": {**asked.params, "C": version.params["C"]}})


def _promotion(session: Session, promote: Promotion | None, trained_on: tables.Dataset) -> dict[str, Any] | None:
    """The promotion with its dataset resolved, whose rows no training sees."""
    if promote is None:
        return None
    dataset = trained_on if promote.dataset is None else by_ref(session, tables.Dataset, promote.dataset)
    rows = resolve_version(session, dataset, None)
    split = rows.n_train < rows.n_rows
    if not split and (dataset.id == trained_on.id or promote.part not in (None, "all")):
        detail = "it has no test part of its own; name a dataset that has, or whose rows are all held out"
        raise InvalidInput("the versions could not be compared", [Item(detail, "/promote/dataset")])
    if dataset.id == trained_on.id and promote.part not in (None, "test"):
        detail = "versions can only be compared on the test part of the dataset that they are trained on"
        raise InvalidInput("the versions could not be compared", [Item(detail, "/promote/part")])
    return {**promote.model_dump(mode="json"), "dataset": dataset.id}


def _show(session: Session, rows: Sequence[tables.Rule]) -> list[Rule]:
    models = _names(session, {row.model_id for row in rows})
    latest = rule_runs.latest(session, rows)
    return [
        to_schema(Rule, row, model=models[row.model_id], dataset=row.dataset_id, latest_run=latest.get(row.id))
        for row in rows
    ]


def _names(session: Session, ids: set[str]) -> Mapping[str, str]:
    query = select(tables.Model.id, tables.Model.name).where(tables.Model.id.in_(ids))
    return {row.id: row.name for row in session.execute(query)}
