"""Rows of a file are chosen by the languages of their texts, at import and at an append."""

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from asking import TestClient, problem
from working import run, upload

from app.formats.table import Parsed, Texts
from app.store.languages import in_languages

ENGLISH = ["The committee discussed the annual budget of the library", "Where can I find books about old ships?"]
FINNISH = ["Mistä löydän kirjoja vanhoista laivoista ja satamista?", "Kirjaston aukioloajat muuttuvat ensi viikolla"]
GERMAN = ["Die Bibliothek ist am Sonntag wegen Umbauarbeiten geschlossen", "Wo finde ich Bücher über alte Schiffe?"]
ROWS = [
    *({"text": text, "label": "en", "id": f"e{at}"} for at, text in enumerate(ENGLISH)),
    *({"text": text, "label": "fi", "id": f"f{at}"} for at, text in enumerate(FINNISH)),
    *({"text": text, "label": "de", "id": f"g{at}"} for at, text in enumerate(GERMAN)),
    {"text": "1984 - 2001", "label": "years", "id": "n"},
]
CONTENT = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode()


def texts_of(texts: list[str]) -> Texts:
    encoded = [text.encode() for text in texts]
    return Texts(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)]).astype(np.int64))


def rows_of(client: TestClient, dataset: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = client.get(f"/api/v1/datasets/{dataset}/rows").json()["rows"]
    return rows


@pytest.mark.parametrize(
    ("languages", "labels"),
    [(("en",), ["en", "en", "years"]), (("fi", "de"), ["de", "de", "fi", "fi", "years"]), (("sv",), ["years"])],
)
def test_texts_in_other_languages_are_left_out_and_those_without_letters_stay(
    languages: tuple[str, ...], labels: list[str]
) -> None:
    names = sorted({row["label"] for row in ROWS})
    y = np.array([names.index(row["label"]) for row in ROWS], np.int32)
    parsed = Parsed("text", names, y, texts=texts_of([row["text"] for row in ROWS]))
    found = in_languages(parsed, languages)
    assert sorted(found.labels[at] for at in found.y) == labels
    assert found.n_other_languages == len(ROWS) - len(labels)
    assert found.origins is None
    with pytest.raises(ValueError, match="no text is in sv or da"):
        in_languages(replace(parsed, y=y[:2], texts=texts_of(ENGLISH)), ("sv", "da"))
    with pytest.raises(ValueError, match="unknown languages: qq; known are"):
        in_languages(parsed, ("qq",))


def test_short_texts_are_in_the_language_of_the_others_if_that_is_probable() -> None:
    chance = random.Random(0)
    technical = ["TCP", "socket", "timeout", "memory", "kernel", "null pointer", "exception", "SQL", "index", "scan"]
    technical += ["disk quota", "cache", "header", "parsing", "error", "thread pool", "stack trace", "packet", "router"]
    texts = [" ".join(chance.sample(technical, 3)) for _ in range(100)] + FINNISH * 5
    y = np.repeat(np.array([0, 1], np.int32), [100, 10])
    parsed = Parsed("text", ["short", "long"], y, texts=texts_of(texts))
    english, finnish = (in_languages(parsed, (language,)) for language in ("en", "fi"))
    assert english.labels == ["short"]
    assert english.n_rows >= 95
    assert (finnish.labels, finnish.n_rows) == (["long"], 10)


def test_an_import_keeps_the_rows_of_a_language_and_counts_the_others(client: TestClient) -> None:
    made = upload(client, "questions", CONTENT, "jsonl", languages=["fi", "de"])
    assert (made["state"], made["n_rows"]) == ("ready", 5), made["error"]
    assert [row["id"] for row in rows_of(client, "questions")] == ["f0", "f1", "g0", "g1", "n"]
    warnings = client.get("/api/v1/datasets/questions/statistics").json()["warnings"]
    assert {
        "code": "rows_in_other_languages",
        "detail": "2 rows were left out by languages: texts in other languages",
    } in warnings
    more = client.post(
        "/api/v1/datasets/questions/rows", params={"format": "jsonl", "languages": "en"}, content=CONTENT
    )
    run(more.json()["id"])
    warnings = client.get("/api/v1/datasets/questions/statistics").json()["warnings"]
    assert "4 rows were left out by languages: texts in other languages" in [each["detail"] for each in warnings]
    assert [row["id"] for row in rows_of(client, "questions")] == ["f0", "f1", "g0", "g1", "n", "e0", "e1", "n"]


@pytest.mark.parametrize(
    ("content", "format", "languages", "detail"),
    [
        (CONTENT, "jsonl", "qq", "unknown languages: qq"),
        (json.dumps(ROWS[0]).encode(), "jsonl", "fi", "no text is in fi"),
        (b"label,x\na,1\nb,2\n", "csv", "en", "the rows have no texts"),
    ],
)
def test_a_choice_that_is_not_possible_is_refused(
    client: TestClient, content: bytes, format: str, languages: str, detail: str
) -> None:
    failed = upload(client, "wrong", content, format, languages=languages)
    assert failed["state"] == "failed"
    assert detail in failed["error"]["errors"][0]["detail"]


@pytest.mark.parametrize("format", ["svmlight", "npz", "xmc"])
def test_formats_without_texts_have_no_languages(client: TestClient, format: str) -> None:
    params = {"name": "wrong", "format": format, "languages": "en"}
    refused = client.post("/api/v1/datasets", params=params, content=b"a 1:1")
    assert problem(refused, 422)["errors"][0]["detail"] == f"{format}: it has no texts"
