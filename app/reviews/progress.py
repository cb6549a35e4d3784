"""What is known of a queue: progress, work per person, agreement, and the precision of sure rows."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from scipy.special import betaincinv
from sqlalchemy import and_, case, func, select
from sqlalchemy.orm import Session

from app.reviews.schemas import Agreement, MeasuredPrecision, PersonCount, State
from app.store import tables
from app.store.db import db_now

R, O = tables.ReviewRow, tables.ReviewOpinion
_TAIL = 0.025


def states(session: Session, review_id: str) -> dict[State, int]:
    """How many rows are in each state; a live lease makes an open row a claimed one."""
    claimed = and_(R.state == "open", R.lease_until.is_not(None), R.lease_until > db_now())
    state = case((claimed, "claimed"), else_=R.state).label("state")
    query = select(state, func.count().label("n")).where(R.review_id == review_id).group_by(state)
    found: dict[str, int] = {each.state: each.n for each in session.execute(query)}
    names: tuple[State, ...] = ("open", "claimed", "decided", "disputed", "skipped")
    return {name: found.get(name, 0) for name in names}


def people(session: Session, review_id: str) -> list[PersonCount]:
    """What each person did, by name."""
    n_decided = func.count(O.label)
    query = select(O.person, n_decided, func.count() - n_decided).where(O.review_id == review_id)
    found = session.execute(query.group_by(O.person).order_by(O.person))
    return [PersonCount(person=person, n_decided=decided, n_skipped=skipped) for person, decided, skipped in found]


def agreement(session: Session, review_id: str) -> Agreement | None:
    """How far the two people of each row agree; arbiters do not count."""
    query = select(O.row, O.label).where(O.review_id == review_id, O.label.is_not(None), O.arbiter.is_(False))
    given: dict[int, list[str]] = defaultdict(list)
    for row, label in session.execute(query.order_by(O.row, O.person)):
        given[row].append(str(label))
    pairs = [(labels[0], labels[1]) for labels in given.values() if len(labels) > 1]
    if not pairs:
        return None
    agreed = sum(first == second for first, second in pairs) / len(pairs)
    return Agreement(n_rows=len(pairs), agreed=agreed, kappa=cohens_kappa(pairs))


def cohens_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Agreement beyond chance, 1 at most; None where both gave one and the same label to all.

    Parameters
    ----------
    pairs : sequence of (str, str)
        The labels that the first and the second person gave to each row.
    """
    n = len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    chance = sum(first[label] * second[label] for label in first) / n**2
    observed = sum(one == other for one, other in pairs) / n
    return None if chance == 1.0 else (observed - chance) / (1.0 - chance)


def measured(session: Session, review_id: str) -> MeasuredPrecision | None:
    """How many of the sure rows that people decided have the label that the model predicted."""
    sure = R.state == "decided", R.sure.is_(True), R.review_id == review_id
    decided = session.execute(select(R.alternatives, R.label).where(*sure)).all()
    if not decided:
        return None
    n, n_right = len(decided), sum(given[0]["label"] == label for given, label in decided)
    lower, upper = interval(n_right, n)
    return MeasuredPrecision(n_rows=n, n_right=n_right, precision=n_right / n, lower_bound=lower, upper_bound=upper)


def interval(n_right: int, n: int) -> tuple[float, float]:
    """The exact interval of 95 % of a proportion (Clopper and Pearson 1934)."""
    lower = 0.0 if n_right == 0 else float(betaincinv(n_right, n - n_right + 1, _TAIL))
    upper = 1.0 if n_right == n else float(betaincinv(n_right + 1, n - n_right, 1.0 - _TAIL))
    return lower, upper
