"""Jobs on datasets that a model cannot read are refused when they are asked for."""

import pytest
from asking import TestClient, problem
from working import upload

TEXTS = b"label,text\nfruit,a b\nwater,b c\n"


@pytest.mark.parametrize("kind", ["predict", "evaluate"])
def test_a_dataset_of_another_kind_than_the_model_reads_is_refused_at_once(models: TestClient, kind: str) -> None:
    upload(models, "counts", b"fruit 1:1\nwater 2:1\n", "svmlight")
    upload(models, "words", TEXTS, "csv")
    for model, dataset, said in (
        ("foods", "counts", "the model reads texts, and the dataset holds numbers"),
        ("letters", "words", "the model reads numbers, and the dataset holds texts"),
    ):
        refused = problem(models.post("/api/v1/jobs", json={"kind": kind, "model": model, "dataset": dataset}), 422)
        assert refused["errors"] == [{"detail": said, "pointer": "/dataset"}]
    body = {"kind": kind, "model": "foods", "dataset": "words"}
    assert models.post("/api/v1/jobs", json=body).status_code == 202
