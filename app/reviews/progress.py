"""What is known of a queue: progress, work per person, agreement, and the precision of sure rows."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
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
    n_decided = func.count(O.labels)
    query = select(O.person, n_decided, func.count() - n_decided).where(O.review_id == review_id)
    found = session.execute(query.group_by(O.person).order_by(O.person))
    return [PersonCount(person=person, n_decided=decided, n_skipped=skipped) for person, decided, skipped in found]


def agreement(session: Session, review: tables.Review) -> Agreement | None:
    """How far the two people of each row agree; arbiters do not count."""
    query = select(O.row, O.labels).where(O.review_id == review.id, O.labels.is_not(None), O.arbiter.is_(False))
    given: dict[int, list[list[str]]] = defaultdict(list)
    for row, labels in session.execute(query.order_by(O.row, O.person)):
        given[row].append(labels or [])
    pairs = [(set(both[0]), set(both[1])) for both in given.values() if len(both) > 1]
    if not pairs:
        return None
    agreed = sum(first == second for first, second in pairs) / len(pairs)
    if review.label_separator is not None:
        return Agreement(n_rows=len(pairs), agreed=agreed, kappa=None, consistency=consistency(pairs))
    kappa = cohens_kappa([(min(first), min(second)) for first, second in pairs])
    return Agreement(n_rows=len(pairs), agreed=agreed, kappa=kappa)


def consistency(pairs: Sequence[tuple[Set[str], Set[str]]]) -> float:
    """The mean inter-indexer consistency 2 |A and B| / (|A| + |B|) of rows (Rolling 1981); two empty sets have 1.

    Parameters
    ----------
    pairs : sequence of (set of str, set of str)
        The labels that the first and the second person gave to each row; at least one row.
    """
    sizes = [len(first) + len(second) for first, second in pairs]
    common = [2.0 * len(first & second) for first, second in pairs]
    return sum(both / size if size else 1.0 for both, size in zip(common, sizes, strict=True)) / len(pairs)


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


def asked_of_job(session: Session, review: tables.Review) -> Mapping[str, Any]:
    """The request of the job of a queue; empty where the job is gone."""
    job = session.get(tables.Job, review.job_id)
    return {} if job is None else job.request


def sure_level(session: Session, review: tables.Review) -> int | None:
    """The level of the label tree whose nodes alone are sure; None where sure rows have sure labels."""
    level = asked_of_job(session, review).get("sure_level")
    return level if isinstance(level, int) else None


def measured(session: Session, review: tables.Review) -> MeasuredPrecision | None:
    """How many of the predicted labels of sure rows people kept; of all decided rows in sets without a sure share.

    None, too, where nodes at one level are sure: a person may give another label below the same node.
    """
    if sure_level(session, review) is not None:
        return None
    everything = review.label_separator is not None and review.sure_share == 0
    wanted = [R.state == "decided", R.review_id == review.id, *([] if everything else [R.sure.is_(True)])]
    n_labels, n_right, n_given = [], [], 0
    for alternatives, labels in session.execute(select(R.alternatives, R.labels).where(*wanted)):
        predicted = {each["label"] for at, each in enumerate(alternatives) if each.get("predicted", at == 0)}
        n_labels.append(len(predicted))
        n_right.append(len(predicted.intersection(labels)))
        n_given += len(labels)
    n, right = sum(n_labels), sum(n_right)
    if n == 0:
        return None
    lower, upper = interval_of_rows(n_right, n_labels)
    return MeasuredPrecision(
        of="decided_rows" if everything else "sure_rows",
        n_rows=len(n_labels),
        n_labels=n,
        n_right=right,
        n_added=n_given - right,
        precision=right / n,
        lower_bound=lower,
        upper_bound=upper,
        recall=right / n_given if n_given else None,
    )


def interval_of_rows(n_right: Sequence[int], n_labels: Sequence[int]) -> tuple[float, float]:
    """The interval of 95 % of the share of right labels, where the labels of one row are not independent.

    It is the exact one at the number of independent labels that would have the same variance (Korn and Graubard 1998).
    Where all rows have the same share of right labels, each row counts as one label.

    Parameters
    ----------
    n_right, n_labels : sequence of int, shape (n_rows,)
        The right ones and all labels of each row; at least one label in all.
    """
    right, labels = np.array(n_right, np.float64), np.array(n_labels, np.float64)
    right, labels = right[labels > 0], labels[labels > 0]
    n = labels.sum()
    share = right.sum() / n
    variance = ((right - share * labels) ** 2).sum() / n**2
    effective = float(min(n, share * (1 - share) / variance)) if variance > 0 else float(len(labels))
    return interval(float(share * effective), effective)


def interval(n_right: float, n: float) -> tuple[float, float]:
    """The exact interval of 95 % of a proportion (Clopper and Pearson 1934); the counts need not be whole."""
    lower = 0.0 if n_right <= 0 else float(betaincinv(n_right, n - n_right + 1, _TAIL))
    upper = 1.0 if n_right >= n else float(betaincinv(n_right + 1, n - n_right, 1.0 - _TAIL))
    return lower, upper
