"""Decisions that come back in a file of any form: matched by queue, row and revision, and recorded many at a time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.errors import Conflict, Forbidden, InvalidInput, NotFound, PreconditionFailed
from app.formats.label_names import MAX_LABEL
from app.json_text import fault
from app.predictions.model_cache import ModelCache
from app.reviews import decisions
from app.reviews.label_search import load_if_kept
from app.reviews.rows import caller
from app.reviews.schemas import MAX_LABELS, DecisionRequest, ImportedDecisions, LineProblem
from app.reviews.written_labels import UnknownLabel, WrittenLabels
from app.store import tables
from app.store.db import reading, writing
from app.store.lookup import by_ref
from app.store.scope import scope_of

MOST_DECISIONS = 10_000
_MOST_PROBLEMS = 1000
# decisions of one transaction: others wait for its end to change these rows
_AT_ONCE = 100
_MOST_COMMENT = 2000

R, O = tables.ReviewRow, tables.ReviewOpinion


class Entry(NamedTuple):
    """What a file says of one row.

    Attributes
    ----------
    number : int
        Of the line or task in the file.
    review, row, revision
        The id of the queue, the number of the row, and its revision when the file was made.
    written : str
        One or several labels, names or notations as a person typed them.
    choices : sequence of str
        Labels that were chosen from a list.
    checked : bool
        In queues of sets, the labels are the decision even if they are those that were predicted.
    person : str or None
        Who decided, with a colon, which no key's name has; None: the caller.
    is_truth : bool
        The entry counts instead of those of others where the queue wants one opinion.
    problem : str or None
        Why the entry was not understood.
    """

    number: int
    review: str = ""
    row: int | None = None
    revision: int | None = None
    written: str = ""
    choices: Sequence[str] = ()
    checked: bool = False
    skipped: bool = False
    comment: str | None = None
    person: str | None = None
    is_truth: bool = False
    problem: str | None = None


def record(
    session: Session, cache: ModelCache, ref: str, entries: Iterable[Entry], new_labels: bool
) -> ImportedDecisions:
    """Record the decisions of a file.

    A row that changed after the file was made is left alone. Changes that come from files that name their people do not
    count: such a file holds all that these people decided so far.

    Parameters
    ----------
    new_labels : bool
        Accept labels that the model does not know.

    Raises
    ------
    NotFound
        There is no such queue.
    Forbidden
        A clerk's file names other people, in a queue of two opinions.
    InvalidInput
        The file has too many decisions.
    """
    queue = _load(session, ref)
    known = WrittenLabels(load_if_kept(session, cache, ref), new_labels)
    given = list(entries)
    if queue.n_opinions == 1:
        truths = {each.row for each in given if each.is_truth}
        given = [each for each in given if each.is_truth or each.row not in truths]
    elif any(each.person for each in given):
        scope = scope_of(session)
        if scope is not None and not scope.edits:
            raise Forbidden(
                "A file that names the people who decided requires the editor role if a row has two opinions."
            )
    found: list[tuple[Entry, _Row, DecisionRequest]] = []
    problems: list[LineProblem] = []
    n_empty = 0
    for entry in given:
        try:
            asked = _request(entry, queue, known)
        except (_EntryError, UnknownLabel) as error:
            problems.append(LineProblem(line=entry.number, row=entry.row, detail=str(error)))
            continue
        if asked is None:
            n_empty += 1
        else:
            found.append((entry, *asked))
    n_filled = len(given) - n_empty
    if n_filled > MOST_DECISIONS:
        raise InvalidInput(f"the file has {n_filled:,} decisions; at most {MOST_DECISIONS:,} are allowed: split it")
    n_decided = n_unchanged = 0
    # in the order of rows, in which everyone locks them
    found.sort(key=lambda each: each[1].number)
    for begin in range(0, len(found), _AT_ONCE):
        with writing(session):
            for entry, row, request in found[begin : begin + _AT_ONCE]:
                if _is_known(queue, entry, row, request):
                    n_unchanged += 1
                    continue
                detail = _decide(session, queue, entry, row, request)
                if detail is None:
                    n_decided += 1
                else:
                    problems.append(LineProblem(line=entry.number, row=row.number, detail=detail))
    problems.sort(key=lambda each: each.line)
    return ImportedDecisions(
        n_rows=len(given),
        n_decided=n_decided,
        n_unchanged=n_unchanged,
        n_empty=n_empty,
        n_problems=len(problems),
        problems=problems[:_MOST_PROBLEMS],
    )


def filling(alternatives: Sequence[Mapping[str, Any]], labels: Sequence[str] | None) -> Sequence[str]:
    """The set with which a file is filled: the decision, or before there is one what was predicted."""
    return [each["label"] for each in alternatives if each.get("predicted")] if labels is None else labels


class _EntryError(Exception):
    """What is wrong with an entry."""


class _Opinion(NamedTuple):
    labels: list[str] | None
    comment: str | None


@dataclass
class _Row:
    """What the queue has of a row; ``current``, ``labels`` and ``line`` follow the decisions that are recorded."""

    number: int
    revision: int
    alternatives: list[dict[str, Any]]
    labels: list[str] | None
    line: int | None = None

    def __post_init__(self) -> None:
        self.current = self.revision


@dataclass
class _Queue:
    id: str
    separator: str | None
    n_opinions: int
    caller: str
    rows: Mapping[int, _Row]
    opinions: dict[int, dict[str, _Opinion]]

    def own(self, entry: Entry, row: int) -> _Opinion | None:
        return self.opinions.get(row, {}).get(entry.person or self.caller)


def _load(session: Session, ref: str) -> _Queue:
    with reading(session):
        review = by_ref(session, tables.Review, ref)
        columns = select(R.row, R.revision, R.alternatives, R.labels).where(R.review_id == review.id)
        rows = {each.row: _Row(*each) for each in session.execute(columns)}
        opinions: dict[int, dict[str, _Opinion]] = {}
        said = select(O.row, O.person, O.labels, O.comment).where(O.review_id == review.id)
        for row, person, labels, comment in session.execute(said):
            opinions.setdefault(row, {})[person] = _Opinion(labels, comment)
        return _Queue(review.id, review.label_separator, review.opinions, caller(session), rows, opinions)


def _request(entry: Entry, queue: _Queue, known: WrittenLabels) -> tuple[_Row, DecisionRequest] | None:
    """The row of an entry and its decision; None without a decision. Raises _EntryError and UnknownLabel.

    A decision that the person has made before keeps its comment where the entry has none.
    """
    if entry.problem is not None:
        raise _EntryError(entry.problem)
    checked = entry.checked and queue.separator is not None
    if not (entry.written or entry.choices or entry.comment or entry.skipped or checked):
        return None
    if entry.review != queue.id:
        raise _EntryError("it belongs to another review, or the id of the review was changed")
    row = None if entry.row is None else queue.rows.get(entry.row)
    if row is None or entry.revision is None:
        raise _EntryError("the number or revision of the row was changed; export the row again and decide there")
    comment = entry.comment
    if comment is not None and (len(comment) > _MOST_COMMENT or fault(comment)):
        raise _EntryError(fault(comment) or f"a comment has at most {_MOST_COMMENT} characters")
    own = queue.own(entry, row.number)
    if entry.skipped:
        kept = own.comment if own is not None and own.labels is None else None
        return row, DecisionRequest(skip=True, comment=comment or kept)
    labels = _labels(entry, row, queue, known)
    if own is not None and decisions.same_labels(own.labels, labels):
        return row, DecisionRequest(labels=labels, comment=comment or own.comment)
    if not checked and _is_left(entry, row, labels, queue):
        if comment is None:
            return None
        what = "decide the row" if queue.separator is None else "change the labels, or mark the row as checked"
        raise _EntryError(f"a comment without a decision is not stored; {what}")
    if len(labels) > MAX_LABELS or any(len(label) > MAX_LABEL for label in labels):
        raise _EntryError(f"a label has at most {MAX_LABEL} characters, and a set at most {MAX_LABELS} labels")
    return row, DecisionRequest(labels=labels, comment=comment)


def _labels(entry: Entry, row: _Row, queue: _Queue, known: WrittenLabels) -> list[str]:
    """The labels of an entry; where there is one label per row, a written one replaces the choice."""
    alternatives = [each["label"] for each in row.alternatives]
    if queue.separator is None and entry.written:
        return [known.find(entry.written, alternatives)]
    labels = [known.find(label, alternatives) for label in entry.choices]
    if queue.separator is not None:
        labels += known.find_set(entry.written, alternatives, queue.separator)
    return list(dict.fromkeys(labels))


def _is_left(entry: Entry, row: _Row, labels: Sequence[str], queue: _Queue) -> bool:
    """Whether the labels are those with which the file was filled."""
    if not labels or queue.separator is None:
        return not labels
    fillings = [filling(row.alternatives, row.labels)]
    fillings += [filling(row.alternatives, None)] if entry.revision != row.revision else []
    return any(decisions.same_labels(labels, each) for each in fillings)


def _is_known(queue: _Queue, entry: Entry, row: _Row, request: DecisionRequest) -> bool:
    """Whether the queue has the decision: the person's own, or where there is none, the row's."""
    labels = None if request.skip else request.labels
    own = queue.own(entry, row.number)
    if own is None:
        return row.labels is not None and decisions.same_labels(row.labels, labels)
    return own.comment == request.comment and decisions.same_labels(own.labels, labels)


def _decide(session: Session, queue: _Queue, entry: Entry, row: _Row, request: DecisionRequest) -> str | None:
    opinions = queue.opinions.setdefault(row.number, {})
    only_named = all(":" in person for person in opinions)
    follows = entry.person is not None and (only_named or entry.revision == row.revision)
    # the first of two opinions does not concern the person who gives the second
    n_given = sum(each.labels is not None for each in opinions.values())
    is_second = entry.person is None and 0 < n_given < queue.n_opinions and queue.own(entry, row.number) is None
    expected = row.current if follows or is_second else entry.revision
    try:
        decided = decisions.decide_within(session, queue.id, row.number, request, expected, entry.person)
    except (NotFound, Conflict) as error:
        return str(error)
    except InvalidInput as error:
        return error.errors[0].detail
    except PreconditionFailed:
        if row.line is not None and entry.revision == row.revision:
            return f"line or task {row.line} of the file has decided the row already; delete one of them"
        return "the row was changed after the file was made; download the rows again"
    row.current, row.labels, row.line = decided.revision, decided.labels, entry.number
    opinions[entry.person or queue.caller] = _Opinion(None if request.skip else request.labels, request.comment)
    return None
