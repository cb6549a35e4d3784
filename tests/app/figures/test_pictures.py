"""What the dashboard draws, as files."""

import pytest
from asking import TestClient, problem
from working import evaluate, train

URL = "/api/v1/figures"


@pytest.mark.slow
def test_every_chart_of_the_pages_is_had_as_svg_and_png(models: TestClient) -> None:
    train(models, "letters", "sure", solver="auto", params={"candidates": [{"solver": "centroids"}], "folds": 2})
    evaluation = evaluate(models, model="sure", dataset="letters", part="all")
    job = models.get("/api/v1/models/sure").json()["latest"]["job"]
    for figure, query in [
        ("job", {"job": job}),
        ("job", {"job": job, "of": "trials"}),
        ("reliability", {"evaluation": evaluation}),
        ("confusions", {"evaluation": evaluation}),
        ("thresholds", {"model": "sure", "version": 1}),
        ("classes", {"dataset": "letters"}),
        ("spread", {"dataset": "letters", "of": "lengths"}),
        ("spread", {"dataset": "letters", "of": "overlap"}),
        ("spread", {"dataset": "letters", "of": "features"}),
    ]:
        svg, png = (models.get(f"{URL}/{figure}", params=query | {"format": format}) for format in ("svg", "png"))
        assert svg.headers["content-type"] == "image/svg+xml", (figure, svg.text)
        assert b"<svg" in svg.content
        assert png.content.startswith(b"\x89PNG")
        assert models.get(f"{URL}/{figure}", params=query).content == svg.content
    problem(models.get(f"{URL}/job", params={"job": "none"}), 404)
    refused = problem(models.get(f"{URL}/spread", params={"dataset": "letters", "of": "labels"}), 409)
    assert "the labels of this dataset are not recorded: each row has one" in refused["detail"]
