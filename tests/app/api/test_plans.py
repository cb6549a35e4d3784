import pytest
from asking import TestClient, problem
from working import SPARSE, upload

PLAN = "/api/v1/jobs/plan"


@pytest.fixture
def letters(client: TestClient) -> str:
    return str(upload(client, "letters", SPARSE, "svmlight")["id"])


def test_a_plan_deals_all_classes_and_queues_nothing(client: TestClient, letters: str) -> None:
    answer = client.post(PLAN, json={"dataset": letters, "model": "a", "solver": "weston_watkins", "shards": 2})
    assert answer.status_code == 200
    plan = answer.json()
    described = client.get(f"/api/v1/datasets/{letters}/statistics").json()
    assert sum(share["classes"] for share in plan["shards"]) == described["n_classes"]
    assert all(share["memory_bytes"] > 0 and share["pool"] is None for share in plan["shards"])
    assert plan["pools"] == 0
    for figure in ("rounds_per_epoch", "bytes_per_epoch", "seconds_per_epoch"):
        assert 0 < plan[figure]["least"] < plan[figure]["most"]
    assert [job["kind"] for job in client.get("/api/v1/jobs").json()["items"]] == ["import"]


def test_a_plan_needs_shards_and_a_job_needs_pools(client: TestClient, letters: str) -> None:
    document = problem(
        client.post(PLAN, json={"dataset": letters, "model": "a", "solver": "weston_watkins"}), 422, "invalid_input"
    )
    assert document["errors"][0]["pointer"] == "/shards"
    document = problem(
        client.post("/api/v1/jobs", json={"dataset": letters, "model": "a", "solver": "weston_watkins", "shards": 2}),
        409,
    )
    assert document["detail"] == "2 shards need as many pools of workers; 0 are running"


def test_methods_whose_shards_train_apart_plan_one_round_an_epoch(client: TestClient, letters: str) -> None:
    body = {"dataset": letters, "model": "a", "shards": 2, "solver": "one_vs_rest"}
    plan = client.post(PLAN, json=body).json()
    assert plan["rounds_per_epoch"] == {"least": 1, "most": 1}
    assert plan["bytes_per_epoch"] == {"least": 96, "most": 96}


def test_a_plan_for_an_output_code_deals_columns(client: TestClient, letters: str) -> None:
    body = {"dataset": letters, "model": "a", "shards": 2, "solver": "output_code", "params": {"code": "all_pairs"}}
    plan = client.post(PLAN, json=body).json()
    k = client.get(f"/api/v1/datasets/{letters}/statistics").json()["n_classes"]
    assert sum(share["classes"] for share in plan["shards"]) == k * (k - 1) // 2
    assert k > 2
    body["params"] = {"matrix": [[1, -1], [-1, 1]]}
    refused = problem(client.post(PLAN, json=body), 422, "invalid_input")
    assert "the code has 2 rows" in refused["errors"][0]["detail"]
