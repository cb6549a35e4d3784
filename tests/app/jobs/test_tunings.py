"""Tunings over HTTP: from the request to the leaderboard, page by page, and the dashboard's pages of them."""

from typing import Any

from asking import TestClient, problem
from working import TEXTS, run, upload

SPACE = [{"solver": "weston_watkins", "grid": {"C": [0.1, 1.0]}}]
RECIPES = [{"char_ngrams": [2, 3], "stop_words": ["red"]}]


def _tuned(client: TestClient, **options: Any) -> dict[str, Any]:
    body = {"kind": "tune", "dataset": "texts", "model": "tuned", "space": SPACE, "texts": RECIPES, **options}
    answer = client.post("/api/v1/jobs", json=body)
    assert answer.status_code == 202, answer.text
    job: dict[str, Any] = answer.json()
    while job["state"] not in ("succeeded", "failed"):
        run(job["id"])
        job = client.get(answer.headers["location"]).json()
    return job


def test_a_tuning_is_submitted_and_its_leaderboard_read_page_by_page(client: TestClient) -> None:
    upload(client, "texts", TEXTS, "jsonl")
    job = _tuned(client, folds=2)
    assert (job["state"], job["error"], job["result"]["version"]) == ("succeeded", None, 1)
    trials = f"/api/v1/jobs/{job['id']}/trials"
    every = client.get(trials).json()["items"]
    first = client.get(trials, params={"page_size": 1}).json()
    second = client.get(trials, params={"page_size": 1, "page_token": first["next_page_token"]}).json()
    assert [*first["items"], *second["items"]] == every
    assert second["next_page_token"] is None
    assert [len(each["by_fold"]) for each in every] == [2, 2]
    assert every[0]["text"]["char_ngrams"] == [2, 3]
    problem(client.get(trials, params={"page_token": "nonsense"}), 422, "invalid_input")
    assert client.get(f"/api/v1/jobs/{every[0]['job']}").json()["parent"] == job["id"]
    listed = client.get("/api/v1/jobs", params={"kind": "tune"}).json()["items"]
    assert [each["id"] for each in listed] == [job["id"]]
    imported = client.get("/api/v1/jobs", params={"kind": "import"}).json()["items"][0]["id"]
    problem(client.get(f"/api/v1/jobs/{imported}/trials"), 409, "conflict")
    for path in ("/tune", f"/tune/{job['id']}", f"/jobs/{job['id']}", f"/jobs/{every[0]['job']}"):
        page = client.get(path)
        assert page.status_code == 200, path
        assert job["id"] in page.text
    for of in ("time", "settings"):
        link = f"/api/v1/figures/tuning?job={job['id']}&amp;of={of}&amp;format=svg"
        assert link in client.get(f"/tune/{job['id']}").text
        picture = client.get("/api/v1/figures/tuning", params={"job": job["id"], "of": of})
        assert picture.status_code == 200
        assert b"<svg" in picture.content
    problem(client.get("/api/v1/figures/tuning", params={"job": imported, "of": "time"}), 409, "conflict")


def test_faults_of_a_space_are_told_at_their_places(client: TestClient) -> None:
    upload(client, "texts", TEXTS, "jsonl")
    body = {"kind": "tune", "dataset": "texts", "model": "m"}
    for more, pointer in (
        ({"space": []}, "/space"),
        ({"space": [{"solver": "softmax", "ranges": {"C": {"low": 1, "high": 2}}}]}, None),
        ({"space": [{"solver": "softmax", "params": {"C": 1}, "grid": {"C": [1]}}]}, "/space/0"),
        ({"space": [{"solver": "softmax", "grid": {"C": [-1]}}]}, "/space/0/grid/C/0"),
        ({"space": [{"solver": "softmax", "grid": {"tol": [0.1], "C": [1, 10, -1]}}]}, "/space/0/grid/C/2"),
        (
            {"space": [{"solver": name, "grid": {"C": [1, "x"]}} for name in ("softmax", "one_vs_rest")]},
            "/space/1/grid/C/1",
        ),
        ({"space": [{"solver": "softmax", "grid": {"C": [1.0 + i for i in range(999)], "bias": [0, 1]}}]}, "/space"),
        ({"space": SPACE, "texts": [*RECIPES, {"stop_words": "auto"}]}, "/texts/1/stop_words"),
        ({"space": SPACE, "texts": [{"stop_words": "auto"}, *RECIPES]}, "/texts/0/stop_words"),
    ):
        found = problem(client.post("/api/v1/jobs", json={**body, **more}), 422, "invalid_input")
        assert pointer is None or pointer in [item["pointer"] for item in found["errors"]], found


def test_a_value_that_one_method_takes_may_be_tried_with_all(client: TestClient) -> None:
    upload(client, "texts", TEXTS, "jsonl")
    grid = {"algorithm": ["auto", "newton"]}
    other = {"solver": "one_vs_rest", "params": {"loss": "squared_hinge"}, "grid": grid}
    space = [{"solver": "lee_lin_wahba", "grid": grid}, other]
    body = {"kind": "tune", "dataset": "texts", "model": "m", "space": space}
    assert client.post("/api/v1/jobs", json=body).status_code == 202
