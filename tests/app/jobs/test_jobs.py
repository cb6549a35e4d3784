import math

import pytest
from asking import TestClient, problem
from working import SPARSE, run, train, upload

JOBS = "/api/v1/jobs"

# what a result has beside its model
RESULT = {
    "dataset": None,
    "dataset_version": None,
    "evaluation": None,
    "predictions": None,
    "target": None,
    "n_rows": None,
    "n_judged": None,
    "n_confident": None,
    "sure": None,
    "columns": None,
    "n_trained_on": None,
    "not_refit": None,
    "stopped": None,
    "unconverged": None,
    "warning": None,
    "trial": None,
    "measures": {},
}


@pytest.fixture
def letters(client: TestClient) -> str:
    return str(upload(client, "letters", SPARSE, "svmlight")["id"])


@pytest.mark.parametrize(
    ("request_", "pointer", "words"),
    [
        ({"solver": "weston_watkin"}, "/solver", "weston_watkins"),
        ({"params": {"c": 1}}, "/params/c", "'C'"),
        ({"params": {"C": 0}}, "/params/C", "greater than 0"),
        ({"params": {"C": -1}}, "/params/C", "greater than 0"),
        ({"params": {"C": "much"}}, "/params/C", "number"),
        ({"threads": 0}, "/threads", "greater than"),
        ({"test_fraction": 1}, "/test_fraction", "less than 1"),
        ({"text": {"min_df": 2}}, "/text", "no texts"),
    ],
)
def test_a_request_that_cannot_be_trained_says_where_it_is_wrong(
    client: TestClient, letters: str, request_: dict[str, object], pointer: str, words: str
) -> None:
    document = problem(
        client.post(JOBS, json={"dataset": letters, "model": "a", "solver": "weston_watkins", **request_}),
        422,
        "invalid_input",
    )
    assert document["errors"][0]["pointer"] == pointer
    assert words in document["errors"][0]["detail"]
    assert [job["kind"] for job in client.get(JOBS).json()["items"]] == ["import"]


def test_an_unknown_dataset_is_not_found(client: TestClient) -> None:
    problem(client.post(JOBS, json={"dataset": "none", "model": "a", "solver": "weston_watkins"}), 404, "not_found")


def test_a_dataset_of_one_class_is_refused(client: TestClient) -> None:
    upload(client, "one", b"a 1:1\na 2:1\n", "svmlight")
    document = problem(client.post(JOBS, json={"dataset": "one", "model": "a", "solver": "weston_watkins"}), 422)
    assert "at least two" in document["errors"][0]["detail"]


def test_a_label_of_test_rows_alone_counts_unless_it_shall_be_refused(client: TestClient) -> None:
    table = b"label,split,x\na,train,1\nb,train,2\na,train,3\nb,train,2\nc,test,1\na,test,1\n"
    dataset = upload(client, "seen", table, "csv")
    assert dataset["state"] == "ready", dataset
    asked = {"dataset": "seen", "model": "a", "solver": "weston_watkins", "unseen_labels": "refuse"}
    document = problem(client.post(JOBS, json=asked), 422)
    assert document["errors"][0]["pointer"] == "/unseen_labels"
    assert "'c'" in document["errors"][0]["detail"]
    assert train(client, "seen", "a")["state"] == "succeeded"
    assert client.get("/api/v1/models/a").json()["latest"]["metrics"]["test"]["error"] >= 0.5


def test_a_job_is_shown_from_its_queue_to_its_model(client: TestClient, letters: str) -> None:
    response = client.post(
        JOBS, json={"dataset": "letters", "model": "abc", "solver": "weston_watkins", "params": {"C": 0.5}}
    )
    job = response.json()
    assert response.headers["location"] == f"{JOBS}/{job['id']}"
    assert (job["state"], job["dataset"], job["attempt"]) == ("queued", letters, 0)
    assert [item["id"] for item in client.get(f"{JOBS}?state=queued").json()["items"]] == [job["id"]]
    run(job["id"])
    job = client.get(f"{JOBS}/{job['id']}").json()
    assert (job["state"], job["attempt"]) == ("succeeded", 1)
    assert job["result"] == RESULT | {"model": "abc", "version": 1, "versions": [1]}
    steps = client.get(f"{JOBS}/{job['id']}/steps").json()["steps"]
    assert [step["number"] for step in steps] == list(range(len(steps)))
    assert all(math.isfinite(step["primal"]) for step in steps[-1:])
    tail = client.get(f"{JOBS}/{job['id']}/steps", params={"after": 0, "limit": 1}).json()["steps"]
    assert tail == steps[1:2]
    problem(client.post(f"{JOBS}/{job['id']}/cancel"), 409, "conflict")
    problem(client.post(f"{JOBS}/{job['id']}/retry"), 409, "conflict")


def test_a_cancelled_job_may_be_tried_again(client: TestClient, letters: str) -> None:
    job = client.post(JOBS, json={"dataset": "letters", "model": "abc", "solver": "weston_watkins"}).json()["id"]
    assert client.post(f"{JOBS}/{job}/cancel").json()["state"] == "cancelled"
    run(job)
    assert client.get(f"{JOBS}/{job}").json()["state"] == "cancelled"
    assert client.post(f"{JOBS}/{job}/retry").json()["state"] == "queued"
    run(job)
    assert client.get(f"{JOBS}/{job}").json()["state"] == "succeeded"


def test_a_queued_job_tells_its_place_and_is_changed_and_found_by_tags(client: TestClient, letters: str) -> None:
    request = {"dataset": letters, "model": "abc", "solver": "weston_watkins", "tags": {"team": "a"}}
    first, second = (client.post(JOBS, json=request).json()["id"] for _ in range(2))
    assert client.get(f"{JOBS}/{second}").json()["queue"]["position"] == 2
    changed = client.patch(f"{JOBS}/{second}", json={"priority": "high", "tags": {"team": None, "night": "1"}}).json()
    assert (changed["priority"], changed["tags"], changed["queue"]["position"]) == ("high", {"night": "1"}, 1)
    assert [job["id"] for job in client.get(f"{JOBS}?tag=team=a").json()["items"]] == [first]
    run(first)  # a message is for whichever is the first
    assert client.get(f"{JOBS}/{second}").json()["state"] == "succeeded"
    assert client.get(f"{JOBS}/{first}/log").json() == {"lines": []}
    problem(client.patch(f"{JOBS}/{second}", json={"priority": "low"}), 409, "conflict")
    problem(client.patch(f"{JOBS}/{second}", json={"priority": "urgent"}), 422)
    problem(client.get(f"{JOBS}/{second}/log?after=x"), 422)


def test_an_unknown_job_or_state_is_refused(client: TestClient) -> None:
    for path in ("", "/steps", "/events"):
        problem(client.get(f"{JOBS}/none{path}"), 404, "not_found")
    for action in ("cancel", "retry"):
        problem(client.post(f"{JOBS}/none/{action}"), 404, "not_found")
    problem(client.get(f"{JOBS}?state=sleeping"), 422)


def test_a_path_is_submitted_and_its_versions_are_shown(client: TestClient) -> None:
    upload(client, "letters", SPARSE, "svmlight")
    job = train(client, "letters", "m", path=[1.0, 0.1], params={"tol": 1e-3})
    assert job["result"] == RESULT | {"model": "m", "version": 2, "versions": [1, 2]}
    shown = client.get("/api/v1/models/m/versions").json()["items"]
    assert [(item["version"], item["point"], item["params"]["C"]) for item in shown] == [(2, 1, 1.0), (1, 0, 0.1)]
    points = [step["point"] for step in client.get(f"/api/v1/jobs/{job['id']}/steps").json()["steps"]]
    assert set(points) == {0, 1}
    for path in ([], [0], [1, 1]):
        refused = client.post(
            "/api/v1/jobs", json={"dataset": "letters", "model": "m", "solver": "weston_watkins", "path": path}
        )
        assert problem(refused, 422)["errors"][0]["pointer"].startswith("/path")
