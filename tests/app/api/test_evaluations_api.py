from asking import TestClient, problem
from working import run

URL = "/api/v1/jobs"


def evaluate(client: TestClient, **request: object) -> str:
    response = client.post(URL, json={"kind": "evaluate", "resamples": 20, **request})
    assert response.status_code == 202, response.text
    id: str = response.json()["id"]
    run(id)
    return id


def test_an_evaluation_is_asked_for_as_a_job_and_looked_at(models: TestClient) -> None:
    id = evaluate(models, model="letters", dataset="letters", part="all")
    job = models.get(f"{URL}/{id}").json()
    assert (job["kind"], job["state"], job["result"]["evaluation"]) == ("evaluate", "succeeded", id)
    found = models.get(f"/api/v1/evaluations/{id}").json()
    assert (found["model"], found["version"], found["part"], found["n_rows"]) == ("letters", 1, "all", 24)
    error = found["measures"][0]
    assert (error["name"], error["level"], error["value"]) == ("error", 0, 0.0)
    listed = models.get("/api/v1/evaluations", params={"model": "letters", "version": 1, "dataset": "letters"}).json()
    assert [each["id"] for each in listed["items"]] == [id]
    labels = models.get(f"/api/v1/evaluations/{id}/labels", params={"order": "label", "level": 0}).json()
    assert [(each["label"], each["support"], each["f1"]) for each in labels["labels"]] == [
        ("a", 8, 1.0), ("b", 8, 1.0), ("c", 8, 1.0)
    ]  # fmt: skip
    assert models.get(f"/api/v1/evaluations/{id}/labels", params={"level": 2}).json() == {"labels": [], "n_labels": 0}
    assert models.get(f"/api/v1/evaluations/{id}/confusions").json() == {"pairs": []}


def test_versions_are_compared_once_both_are_evaluated(models: TestClient) -> None:
    compare = {"a": "1", "b": "1"}
    document = problem(models.get("/api/v1/models/letters/compare", params=compare), 404, "not_found")
    assert "submit evaluate jobs" in document["detail"]
    evaluate(models, model="letters", dataset="letters", part="all")
    found = models.get("/api/v1/models/letters/compare", params=compare).json()
    assert found["mcnemar"] == {"only_a": 0, "only_b": 0, "exact": 1.0, "mid_p": 1.0}
    assert {each["p_value"] for each in found["measures"]} == {1.0}
    problem(models.get("/api/v1/models/letters/compare", params={"a": "9", "b": "1"}), 404)
    problem(models.get("/api/v1/models/letters/compare", params={"a": "1"}), 422)


def test_a_request_is_checked_by_its_kind(models: TestClient) -> None:
    request = {"kind": "evaluate", "model": "letters", "dataset": "letters"}
    document = problem(models.post(URL, json=request | {"solver": "softmax"}), 422, "invalid_input")
    assert document["errors"][0]["pointer"] == "/solver"
    document = problem(models.post(URL, json=request | {"version": 1, "alias": "a"}), 422)
    assert "not both" in document["errors"][0]["detail"]
    document = problem(models.post(URL, json=request | {"kind": "measure"}), 422)
    assert document["errors"][0]["pointer"] == "/kind"
    problem(models.post(URL, json=request | {"kind": 3}), 422)
    problem(models.post(URL, json=request | {"part": "half"}), 422)
    problem(models.post(URL, json=request | {"model": "none"}), 404)


def test_a_repeated_request_gives_the_first_answer(models: TestClient) -> None:
    request = {"kind": "evaluate", "model": "letters", "dataset": "letters"}
    first, again = (models.post(URL, json=request, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
