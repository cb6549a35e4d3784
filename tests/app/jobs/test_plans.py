import pytest
from asking import TestClient, problem
from sqlalchemy import select
from working import SPARSE, TEXTS, train, upload

from app.jobs import plans
from app.jobs.schemas import TrainRequest, stored_request
from app.store import db, tables
from solvers.sharding.plan import Forecast

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


def test_a_plan_says_where_shards_do_not_pay_and_why(client: TestClient, letters: str) -> None:
    body = {"dataset": letters, "model": "a", "solver": "weston_watkins", "shards": 2}
    plan = client.post(PLAN, json=body).json()
    assert plan["seconds_without_shards"] < plan["seconds_per_epoch"]["least"]
    assert plan["advice"].startswith("Shards do not pay but for memory: an epoch takes about ")
    assert "more epochs on small data" in plan["advice"]


@pytest.mark.parametrize(
    ("seconds", "begins"), [((2.0, 3.0), "Shards do not pay"), ((0.5, 3.0), "Shards may not pay"), ((0.5, 0.9), None)]
)
def test_advice_is_by_the_seconds_of_an_epoch(seconds: tuple[float, float], begins: str | None) -> None:
    least, most = (Forecast([], 10, 1000, each) for each in seconds)
    advice = plans._advice(2, 1.0, least, most)
    assert advice is None if begins is None else str(advice).startswith(begins)


def test_a_plan_without_shards_tells_memory_and_what_earlier_jobs_took(client: TestClient, letters: str) -> None:
    body = {"dataset": letters, "model": "a", "solver": "weston_watkins"}
    plan = client.post(PLAN, json=body).json()
    assert (plan["shards"], plan["rounds_per_epoch"], plan["earlier"]) == ([], None, None)
    assert plan["memory_bytes"] > 0
    train(client, letters, "a", solver="weston_watkins")
    earlier = client.post(PLAN, json=body).json()["earlier"]
    assert earlier["n_jobs"] == 1
    assert 0 <= earlier["seconds"]["least"] == earlier["seconds"]["most"]
    other = client.post(PLAN, json=body | {"solver": "kernel_weston_watkins"}).json()
    assert other["memory_bytes"] > 0
    assert other["earlier"] is None


def test_a_job_in_shards_needs_pools(client: TestClient, letters: str) -> None:
    document = problem(
        client.post("/api/v1/jobs", json={"dataset": letters, "model": "a", "solver": "weston_watkins", "shards": 2}),
        409,
    )
    assert document["detail"] == (
        "2 shards need as many pools of workers; 0 are running. polymargin up --shards 2 starts them"
    )


def test_a_job_in_shards_is_not_trained_once_more_on_all_rows(client: TestClient, letters: str) -> None:
    body = {"dataset": letters, "model": "a", "solver": "weston_watkins", "shards": 2}
    document = problem(client.post(PLAN, json=body | {"refit": True}), 422)
    (fault,) = document["errors"]
    assert fault["pointer"] == "/refit"
    assert "cannot be trained once more on all rows: leave refit out" in fault["detail"]
    assert client.post(PLAN, json=body | {"refit": False}).status_code == 200
    assert not TrainRequest.model_validate(body).refit
    assert TrainRequest.model_validate(body | {"shards": None}).refit
    assert not stored_request(body | {"refit": True}).refit


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


def test_a_recipe_with_lists_of_words_and_languages_is_taken(client: TestClient) -> None:
    upload(client, "foods", TEXTS, "jsonl")
    body = {"dataset": "foods", "model": "a", "text": {"stop_words": ["the"], "lemmas": ["en"], "char_ngrams": [3, 5]}}
    assert client.post(PLAN, json=body).status_code == 200
    body["text"] = {"stop_words": "english"}
    assert client.post(PLAN, json=body).status_code == 200
    for unknown in ("klingon", "auto"):
        body["text"] = {"stop_words": unknown}
        assert problem(client.post(PLAN, json=body), 422)["errors"][0]["pointer"] == "/text/stop_words"
    body["text"] = {"stop_words": ["the", 3]}
    assert problem(client.post(PLAN, json=body), 422)["errors"][0]["pointer"].startswith("/text/stop_words")


@pytest.mark.parametrize("stored", [{}, {"languages": None}])
def test_texts_that_an_earlier_release_imported_have_a_language(client: TestClient, stored: dict[str, None]) -> None:
    words = "the quick brown fox jumps over the lazy dog and then it sleeps in the warm sun for an hour"
    lines = (f'{{"text": "{words[4 * (i % 5) :]} {i}", "label": "{i % 3}"}}\n' for i in range(60))
    upload(client, "tales", "".join(lines).encode(), "jsonl")
    with db.sessions()() as opened, opened.begin():
        for table in (tables.Dataset, tables.DatasetVersion):
            for row in opened.scalars(select(table)):
                row.statistics = {name: of for name, of in row.statistics.items() if name != "languages"} | stored
    body = {"dataset": "tales", "model": "t", "text": {"stop_words": "auto"}}
    assert client.post(PLAN, json=body).status_code == 200
    statistics = client.get("/api/v1/datasets/tales/statistics").json()
    assert statistics["languages"]["shares"][0]["language"] == "en"
    done = train(client, "tales", "t", text={"stop_words": "auto"}, solver="crammer_singer")
    assert done["request"]["text"]["stop_words"] == "en"
    assert client.get("/v1/projects/t").json()["language"] == "en"


def test_a_plan_for_texts_bounds_memory_by_the_features_that_the_recipe_keeps(client: TestClient) -> None:
    rows = b"".join(b'{"text": "word %d", "label": "%d"}\n' % (i, i % 3) for i in range(12))
    upload(client, "notes", rows, "jsonl")
    few, many = (
        client.post("/api/v1/jobs/plan", json={"dataset": "notes", "model": "n", "text": {"max_features": n}}).json()
        for n in (100, 10_000)
    )
    assert 0 < few["memory_bytes"] < many["memory_bytes"]


def test_a_search_over_sets_needs_memory_for_labels_in_use_whatever_the_vocabulary(client: TestClient) -> None:
    rows = "\n".join(f'{{"text": "word{i} word{i % 7}", "label": ["l{i % 5}", "l{i % 3}"]}}' for i in range(40)) + "\n"
    upload(client, "sets", rows.encode(), "jsonl")
    for name, n in (("small", 5), ("large", 20_000)):
        edges = "parent,child\n" + "".join(f"root,l{i}\n" for i in range(n))
        made = client.post("/api/v1/hierarchies", params={"name": name, "format": "csv"}, content=edges.encode())
        assert made.status_code in (201, 202), made.text
    asked = {"dataset": "sets", "model": "m", "solver": "auto"}
    small, large = (
        client.post("/api/v1/jobs/plan", json=asked | {"hierarchy": name}).json() for name in ("small", "large")
    )
    assert small["memory_bytes"] == large["memory_bytes"] > 0
