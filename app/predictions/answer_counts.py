"""What versions answer, counted in memory and added to the database in the background: no request waits for that."""

import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

import structlog
from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from app.store import tables
from app.store.db import db_now, writing

log = structlog.get_logger()

KEPT_DAYS = 90
DAY_SECONDS = 86_400.0
_AT_ONCE = 1000
A, V = tables.AnswerCount, tables.ModelVersion

Kind = Literal["label", "score", "unknown"]
Counts = dict[tuple[Kind, int], int]


class VersionCounts:
    """What one version has answered since this was last taken.

    Parameters
    ----------
    edges : sequence of float, optional
        Where the next bin of scores begins; without them scores are not counted.
    """

    def __init__(self, edges: Sequence[float] | None) -> None:
        self._edges = edges
        self._lock = threading.Lock()
        self._counts: defaultdict[tuple[Kind, int], int] = defaultdict(int)

    def add(self, answers: Iterable[tuple[Any, Any]]) -> None:
        """Count the first of each answer's classes (int array) and scores (float array)."""
        edges = self._edges
        with self._lock:
            counts = self._counts
            for classes, scores in answers:
                counts["label", int(classes[0])] += 1
                if edges is not None:
                    counts["score", bisect_right(edges, float(scores[0]))] += 1

    def add_unknown(self, answers: Iterable[Collection[str]]) -> None:
        """Count the answers of which each had so many values that no training row has."""
        n = sum(1 for unknown in answers if unknown)
        if n:
            with self._lock:
                self._counts["unknown", 0] += n

    def drain(self) -> Counts:
        """Return the counts and reset them."""
        with self._lock:
            taken, self._counts = self._counts, defaultdict(int)
        return taken

    def put_back(self, counts: Counts) -> None:
        """Count what was taken for nothing."""
        with self._lock:
            for key, n in counts.items():
                self._counts[key] += n


class AnswerCounts:
    """The counts of all versions that this process has answered with.

    Parameters
    ----------
    sessions : sessionmaker
    """

    def __init__(self, sessions: sessionmaker[Session]) -> None:
        self._sessions = sessions
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._versions: dict[str, VersionCounts] = {}
        self._let_go: set[str] = set()

    def for_version(self, version_id: str, edges: Sequence[float] | None) -> VersionCounts:
        """Where the answers of a version are counted."""
        with self._lock:
            self._let_go.discard(version_id)
            return self._versions.setdefault(version_id, VersionCounts(edges))

    def let_go(self, version_id: str) -> None:
        """A version is no longer in memory: it is forgotten once nothing is left of it to write."""
        with self._lock:
            self._let_go.add(version_id)

    def write(self) -> None:
        """Add what was counted to the database; what it does not take now is kept for the next time."""
        with self._writing:
            taken = self._take()
            if not taken:
                return
            try:
                with self._sessions() as session:
                    add(session, taken)
            except SQLAlchemyError as error:
                log.warning("answers.not_written", error=type(error).__name__)
                for id, counts in taken.items():
                    self._versions[id].put_back(counts)

    def _take(self) -> dict[str, Counts]:
        with self._lock:
            taken = {id: version.drain() for id, version in self._versions.items()}
            for id in [id for id in self._let_go if not taken.get(id)]:
                self._let_go.discard(id)
                self._versions.pop(id, None)
        return {id: counts for id, counts in taken.items() if counts}


def add(session: Session, taken: Mapping[str, Counts]) -> None:
    """Add counts to those of today, of versions that are still there; those that are too old go."""
    with writing(session):
        today = int((session.scalar(select(db_now())) or 0.0) // DAY_SECONDS)
        present = set(session.scalars(select(V.id).where(V.id.in_(list(taken)))))
        rows = [
            {"version_id": id, "day": today, "kind": kind, "place": place, "n": n}
            for id, counts in taken.items()
            if id in present
            for (kind, place), n in counts.items()
        ]
        insert = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
        for begin in range(0, len(rows), _AT_ONCE):
            new = insert(A).values(rows[begin : begin + _AT_ONCE])
            key = ["version_id", "day", "kind", "place"]
            session.execute(new.on_conflict_do_update(index_elements=key, set_={"n": A.n + new.excluded.n}))
        if present:
            session.execute(delete(A).where(A.version_id.in_(present), A.day < today - KEPT_DAYS))
