"""Bodies of predictions that are kept in tests/corpus: each is answered or refused, and so is what becomes of them."""

from pathlib import Path

import pytest
from asking import JSON, TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BODIES = [path.read_bytes() for path in sorted((Path(__file__).parents[2] / "corpus" / "predictions").iterdir())]
MODELS = ("letters", "foods", "shapes")
PIECES = [
    b"",
    b'"',
    b",",
    b":",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"-1",
    b"1e999",
    b"NaN",
    b"9" * 30,
    b"\\ud800",
    b"\x00",
    b"\xff",
]


def _ask(models: TestClient, model: str, body: bytes) -> None:
    answer = models.post(f"/api/v1/models/{model}/predict", content=body, headers=JSON)
    assert answer.status_code in (200, 400, 422), (body[:500], answer.text[:500])
    answer.json()


def test_kept_bodies_are_answered_or_refused(models: TestClient) -> None:
    for model in MODELS:
        for body in BODIES:
            _ask(models, model, body)


@pytest.mark.slow
def test_what_becomes_of_kept_bodies_by_chance_is_answered_or_refused(models: TestClient) -> None:
    @settings(max_examples=600, suppress_health_check=list(HealthCheck))
    @given(
        model=st.sampled_from(MODELS),
        body=st.sampled_from(BODIES),
        edits=st.lists(
            st.tuples(st.integers(0, 300), st.integers(0, 8), st.sampled_from(PIECES) | st.binary(max_size=2)),
            max_size=4,
        ),
    )
    def ask(model: str, body: bytes, edits: list[tuple[int, int, bytes]]) -> None:
        for at, length, piece in edits:
            place = at % (len(body) + 1)
            body = body[:place] + piece + body[place + length :]
        _ask(models, model, body)

    ask()
