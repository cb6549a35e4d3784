"""Pages cost the same however much there is behind them: the statements are counted, and the bytes."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from asking import TestClient
from sqlalchemy import event, insert
from sqlalchemy.engine import Engine
from working import upload

from app.store import tables
from app.store.db import sessions

pytestmark = pytest.mark.slow

MOST_BYTES = 250_000
# a key's last use, and what else is written once in a while
SLACK = 3


@contextmanager
def statements() -> Iterator[list[str]]:
    """What SQL is asked meanwhile."""
    found: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        found.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def add_jobs(begin: int, end: int) -> None:
    states = ("succeeded", "failed", "queued", "cancelled")
    rows = [
        {
            "id": f"{k:032x}", "workspace": "default", "kind": "train", "state": states[k % 4], "queue": "general",
            "request": {"kind": "train", "model": f"m{k % 7}", "solver": "auto"}, "attempt": 1, "losses": 0,
            "priority": 0, "created_at": float(k), "started_at": None, "finished_at": None,
        }
        for k in range(begin, end)
    ]  # fmt: skip
    with sessions()() as session:
        session.execute(insert(tables.Job), rows)
        session.commit()


def asked(client: TestClient, path: str) -> tuple[int, int]:
    """Statements and bytes of an answer, after one that fills what is remembered."""
    assert client.get(path).status_code == 200
    with statements() as found:
        answer = client.get(path)
    return len(found), len(answer.content)


def test_ten_thousand_jobs_cost_a_page_no_more_statements_than_four_hundred(client: TestClient) -> None:
    paths = ("/", "/jobs", "/jobs?state=failed", "/api/v1/status")
    add_jobs(0, 400)
    few = [asked(client, path) for path in paths]
    add_jobs(400, 10_000)
    many = [asked(client, path) for path in paths]
    assert all(n <= before + SLACK for (n, _), (before, _) in zip(many, few, strict=True))
    assert max(n for n, _ in many) <= 32 + SLACK
    assert max(size for _, size in many) <= MOST_BYTES
    assert [size for _, size in many] == pytest.approx([size for _, size in few], rel=0.2, abs=1000)


def test_two_thousand_classes_make_no_larger_page_than_a_thousand(client: TestClient) -> None:
    for name, n in (("half", 1000), ("whole", 2000)):
        upload(client, name, b"".join(b"class-%d %d:1\n" % (k, k + 1) for k in range(n)), "svmlight")
    (few, half), (many, whole) = (asked(client, f"/datasets/{name}") for name in ("half", "whole"))
    assert many <= few + SLACK
    assert whole <= 1.05 * half
    assert whole <= MOST_BYTES


def test_a_vocabulary_of_thirty_thousand_nodes_comes_level_by_level(client: TestClient) -> None:
    lines = [f"n{k // 30 if k >= 30 else 'root'},n{k}" for k in range(30_000)]
    content = "parent,child\n" + "\n".join(lines).replace("nroot,", "root,")
    made = client.post("/api/v1/hierarchies", params={"name": "tree", "format": "csv"}, content=content.encode())
    assert made.status_code == 201, made.text
    n, size = asked(client, "/hierarchies/tree")
    assert n <= 15
    assert size <= MOST_BYTES
    n, size = asked(client, "/api/v1/hierarchies/tree/nodes?parent=root")
    assert n <= 10
    assert size <= MOST_BYTES
    n, size = asked(client, "/api/v1/hierarchies/tree/nodes?search=n123")
    assert n <= 10
    assert size <= MOST_BYTES
