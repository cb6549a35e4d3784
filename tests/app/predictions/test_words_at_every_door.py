"""Sentences of fifty languages, in every Unicode form, are read alike at every door."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from asking import TestClient, problem
from languages import SENTENCES
from working import answers, run, scripted_answers, train, upload

from app.remote_classifier import RemoteClassifier

LANGUAGES, TEXTS = list(SENTENCES), list(SENTENCES.values())
RECIPE = {"min_df": 1, "min_word_length": 1, "ngram_max": 2, "char_ngrams": [2, 3]}


def disguised(text: str, at: int) -> str:
    """The same words as they may be typed elsewhere: decomposed or composed, with characters that nobody sees."""
    form: Any = ("NFD", "NFC")[at % 2]
    return "\ufeff" + unicodedata.normalize(form, text).replace(" ", " \u2060")


ASKED = [disguised(text, at) for at, text in enumerate(TEXTS)]


@pytest.fixture
def trained(client: TestClient) -> TestClient:
    rows = [{"text": text, "label": name, "split": "train"} for name, text in SENTENCES.items()]
    lines = "".join(json.dumps(row) + "\n" for row in rows * 2)
    columned = "".join(json.dumps(row | {"n": 1.0}) + "\n" for row in rows * 2)
    assert upload(client, "texts", lines.encode(), "jsonl")["state"] == "ready"
    made = upload(client, "tables", columned.encode(), "jsonl", number_columns="n", missing="keep")
    assert made["state"] == "ready", made
    for name in ("texts", "tables"):
        job = train(client, name, name, text=RECIPE)
        assert job["state"] == "succeeded", job["error"]
    return client


def test_fifty_languages_are_read_alike_at_every_door(trained: TestClient, tmp_path: Path) -> None:
    assert len(TEXTS) >= 50
    client = trained
    known = answers(client, "texts", {"instances": [{"text": text} for text in TEXTS]})["predictions"]
    scores = [pytest.approx(one["score"], rel=1e-4, abs=1e-5) for one in known]
    assert [one["label"] for one in known] == LANGUAGES
    assert all(one["known_terms"] > 3 for one in known)

    asked = [{"text": text} for text in ASKED]
    found = answers(client, "texts", {"instances": asked, "explain": 5})["predictions"]
    assert [(one["label"], one["known_terms"]) for one in found] == [
        (one["label"], one["known_terms"]) for one in known
    ]
    assert [one["score"] for one in found] == scores
    for text, one in zip(ASKED, found, strict=True):
        terms = [term for step in one["explanation"] for term in step["lifted_by"]]
        assert terms
        assert all(0 <= begin < end <= len(text) for term in terms for begin, end in term["spans"])
    records = [{"record": {"text": text, "n": 1.0}} for text in ASKED]
    found = answers(client, "tables", {"instances": records})["predictions"]
    assert [(one["label"], one["known_terms"]) for one in found] == [
        (one["label"], one["known_terms"]) for one in known
    ]

    for text, name in zip(ASKED[::10], LANGUAGES[::10], strict=True):
        nearest = client.post("/api/v1/models/texts/nearest", json={"instance": {"text": text}, "label": name}).json()
        assert nearest["rows"][0]["similarity"] == pytest.approx(1.0)

    _files(client, scores)
    _protocols(client)
    assert scripted_answers(client, "texts", ASKED, tmp_path) == (LANGUAGES, scores)
    for format in ("onnx", "skops"):
        refused = client.get(f"/api/v1/models/texts/versions/1/export?format={format}")
        assert "the archive has a script that does" in problem(refused, 422)["errors"][0]["detail"]


def _files(client: TestClient, scores: list[Any]) -> None:
    rows = "".join(json.dumps({"text": text, "label": "en"}) + "\n" for text in ASKED)
    upload(client, "asked", rows.encode(), "jsonl")
    body = {"kind": "predict", "model": "texts", "dataset": "asked", "format": "jsonl"}
    job = client.post("/api/v1/jobs", json=body).json()["id"]
    run(job)
    lines = [json.loads(line) for line in client.get(f"/api/v1/jobs/{job}/predictions").text.splitlines()]
    assert [line["label"] for line in lines] == LANGUAGES
    assert [line["score"] for line in lines] == scores
    assert all(line["known_terms"] > 3 for line in lines)


def _protocols(client: TestClient) -> None:
    frame = {"dataframe_split": {"columns": ["text"], "data": [[text] for text in ASKED]}}
    found = client.post("/mlflow/texts/invocations", json=frame).json()["predictions"]
    assert [one["label"] if isinstance(one, dict) else one for one in found] == LANGUAGES
    inputs = [{"name": "text", "datatype": "BYTES", "shape": [len(ASKED)], "data": ASKED}]
    outputs = client.post("/v2/models/texts/infer", json={"inputs": inputs}).json()["outputs"]
    assert next(one for one in outputs if one["name"] == "labels")["data"] == LANGUAGES
    documents = {"documents": [{"text": text} for text in ASKED]}
    batch = client.post("/v1/projects/texts/suggest-batch", json=documents, params={"limit": 1}).json()
    assert [one["results"][0]["label"] for one in batch] == LANGUAGES
    choices = "".join(f'<Choice value="{name}"/>' for name in LANGUAGES)
    config = f'<View><Text name="t" value="$body"/><Choices name="c" toName="t">{choices}</Choices></View>'
    tasks = {"tasks": [{"data": {"body": text}} for text in ASKED], "label_config": config}
    results = client.post("/label-studio/texts/predict", json=tasks).json()["results"]
    assert [one["result"][0]["value"]["choices"] for one in results] == [[name] for name in LANGUAGES]


def test_the_estimator_reads_them_alike(wired: None, secrets: dict[str, str]) -> None:
    given: dict[str, Any] = {"url": "http://127.0.0.1", "api_key": secrets["editor"], "options": {"text": RECIPE}}
    classifier = RemoteClassifier("m", solver="weston_watkins", **given).fit(TEXTS * 2, LANGUAGES * 2)
    assert classifier.predict(ASKED).tolist() == LANGUAGES
