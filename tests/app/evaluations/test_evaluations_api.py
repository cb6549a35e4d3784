from asking import TestClient, problem
from working import evaluate, run, trained

URL = "/api/v1/jobs"


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
    assert models.get(f"/api/v1/evaluations/{id}/confusions").json() == {"pairs": [], "labels": []}


def test_confused_pairs_come_with_how_many_rows_their_labels_have(models: TestClient) -> None:
    # half of the first class's rows are another's, so that one of the two names is wrong of them
    torn = b"".join(b"%s 1:1\n" % label for label in (b"a", b"a", b"b") * 6) + b"c 2:1\n" * 6
    trained(models, "torn", torn, "svmlight")
    found = models.get(f"/api/v1/evaluations/{evaluate(models, model='torn', dataset='torn', part='all')}/confusions")
    assert found.json() == {
        "pairs": [{"level": 0, "true": "b", "predicted": "a", "n_rows": 6}],
        "labels": [
            {"label": "b", "support": 6, "right": 0, "names": {}},
            {"label": "a", "support": 12, "right": 12, "names": {}},
        ],
    }


def test_the_most_wrong_rows_are_told_with_what_was_answered_and_what_was_corrected(models: TestClient) -> None:
    # two rows of c are where those of a are, the second further away from c
    rows = b"a 1:1\n" * 9 + b"c 2:1\n" * 9 + b"c 1:1\nc 1:3\n"
    trained(models, "torn", rows, "svmlight")
    id = evaluate(models, model="torn", dataset="torn", part="all")
    found = models.get(f"/api/v1/evaluations/{id}/mistakes").json()
    assert (found["n_mistakes"], found["dataset"]) == (2, "torn")
    far, near = found["mistakes"]
    assert [(each["row"], each["labels"], each["answered"]) for each in (far, near)] == [
        (19, ["c"], ["a"]), (18, ["c"], ["a"])
    ]  # fmt: skip
    assert far["lead"] > near["lead"] > 0
    assert (far["features"], far["corrected"], far["probability"]) == ([[0, 3.0]], None, None)
    correction = {"row": 19, "labels": ["a"], "before": ["c"]}
    job = models.post("/api/v1/datasets/torn/corrections", json={"corrections": [correction]}).json()
    run(job["id"])
    (again,) = models.get(f"/api/v1/evaluations/{id}/mistakes", params={"limit": 1}).json()["mistakes"]
    assert (again["labels"], again["corrected"]) == (["c"], ["a"])
    problem(models.get("/api/v1/evaluations/none/mistakes"), 404)


def test_terms_that_count_for_a_class_are_told_of_linear_machines(models: TestClient) -> None:
    url = "/api/v1/models/foods/versions/1/terms"
    found = models.get(url, params={"label": "fruit", "limit": 3}).json()
    assert (found["label"], len(found["lifting"])) == ("fruit", 3)
    weights = [each["weight"] for each in found["lifting"]]
    assert weights == sorted(weights, reverse=True)
    assert {"apple", "red"} & {each["feature"] for each in found["lifting"]}
    assert all(each["weight"] < 0 for each in found["lowering"])
    problem(models.get(url, params={"label": "stone"}), 404)
    problem(models.get(url), 422)


def test_versions_are_compared_once_both_are_evaluated(models: TestClient) -> None:
    compare = {"a": "1", "b": "1"}
    document = problem(models.get("/api/v1/models/letters/compare", params=compare), 404, "not_found")
    assert "POST /models/{model}/compare" in document["detail"]
    evaluate(models, model="letters", dataset="letters", part="all")
    found = models.get("/api/v1/models/letters/compare", params=compare).json()
    assert found["mcnemar"] == {"only_a": 0, "only_b": 0, "exact": 1.0, "mid_p": 1.0}
    assert {each["p_value"] for each in found["measures"]} == {1.0}
    version = models.get("/api/v1/models/letters/versions/1").json()
    assert found["a"]["request"] == version["request"]
    evaluation = models.get(f"/api/v1/evaluations/{found['a']['evaluation']}").json()
    assert found["a"]["size_bytes"] == version["size_bytes"] > 0
    assert found["a"]["microseconds_per_row"] == evaluation["microseconds_per_row"] > 0
    page = models.get("/models/letters/compare?a=1&b=1").text
    assert "Size of version 1" in page
    assert "µs per row" in page
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
