"""Rules: a model is trained again by time or feedback, measured, and an alias follows unless the test says worse."""

from typing import Any

import pytest
from asking import TestClient, bearer, problem
from sqlalchemy import update
from working import run, upload

from app.jobs import queue as queue_order
from app.rules import service as rules
from app.rules import stages as rule_stages
from app.store import tables
from app.store.db import sessions
from app.store.queue import GENERAL

# rows that no training sees, for which foods has the words
HELD_OUT = b"".join(
    b'{"text": "%s", "label": "%s"}\n' % row
    for row in [(b"red apple", b"fruit"), (b"green leek", b"vegetable"), (b"deep sea", b"water")] * 4
)
# what swaps two labels, often enough to win over the rows that are there
SWAPPED = [("red round apple", "vegetable"), ("green long leek", "fruit")] * 12
# in a leap year
NEVER = "0 0 29 2 *"
PROMOTE = {"alias": "production", "dataset": "held-out"}


def make(client: TestClient, **rule: Any) -> dict[str, Any]:
    response = client.post("/api/v1/rules", json={"name": "nightly", "model": "foods", **rule})
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    assert client.get(response.headers["location"]).json() == made
    return made


def report(client: TestClient, rows: list[tuple[str, str]]) -> None:
    for text, label in rows:
        body = {"instance": {"text": text}, "labels": [label]}
        assert client.post("/api/v1/models/foods/feedback", json=body).status_code == 201


def turn() -> None:
    """One sweep, and no worker."""
    with sessions()() as session:
        rule_stages.turn(session)


def sweep() -> None:
    """Sweeps and workers, until there is nothing to do."""
    for _ in range(5):
        turn()
        with sessions()() as session:
            waiting = queue_order.in_order(session, GENERAL)
        for job in waiting:
            run(job)


def runs(client: TestClient, rule: str = "nightly") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/v1/rules/{rule}/runs").json()["items"]
    return found


def production(client: TestClient) -> int | None:
    aliases = client.get("/api/v1/models/foods").json()["aliases"]
    return next((alias["version"] for alias in aliases if alias["name"] == "production"), None)


def let_time_pass() -> None:
    with sessions()() as session:
        session.execute(update(tables.Rule).values(due_at=1.0))
        session.commit()


def test_a_schedule_trains_on_the_newest_version_as_the_latest_was_and_rests_while_nothing_is_new(
    models: TestClient,
) -> None:
    made = make(models, cron=NEVER)
    assert (made["training"]["solver"], made["training"]["dataset"]) == ("weston_watkins", made["dataset"])
    sweep()
    assert runs(models) == []
    let_time_pass()
    sweep()
    (first,) = runs(models)
    assert (first["cause"], first["outcome"], first["version"], first["dataset_version"]) == ("time", "trained", 2, 1)
    assert models.get(f"/api/v1/jobs/{first['train_job']}").json()["owner"] == "the-admin"
    let_time_pass()
    sweep()
    assert [each["outcome"] for each in runs(models)] == ["nothing_new", "trained"]
    assert models.get("/api/v1/rules/nightly").json()["latest_run"] == runs(models)[0]
    assert models.get("/api/v1/rules").json()["items"][0]["due_at"] > "2026"
    page = models.get("/models/foods").text
    assert "Retraining rules" in page
    assert "nothing new" in page
    assert "Retraining rules" not in models.get("/models/letters").text


@pytest.mark.parametrize(("named", "C"), [(None, 1.0), (2, 0.1), (1, 1.0)])
def test_of_a_path_only_one_point_is_trained_again(models: TestClient, named: int | None, C: float) -> None:
    body = {"dataset": "foods", "model": "foods", "solver": "weston_watkins", "params": {"tol": 0.1}, "path": [0.1, 1]}
    run(models.post("/api/v1/jobs", json=body).json()["id"])
    upload(models, "held-out", HELD_OUT, "jsonl")
    if named is not None:
        models.put("/api/v1/models/foods/aliases/production", json={"version": named})
    made = make(models, promote=PROMOTE, cron=NEVER)
    assert (made["training"]["path"], made["training"]["params"]) == (None, {"tol": 0.1, "C": C})


@pytest.mark.slow
def test_feedback_starts_a_training_that_takes_the_alias_only_if_it_is_not_worse(models: TestClient) -> None:
    upload(models, "held-out", HELD_OUT, "jsonl")
    make(models, name="learn", feedback_rows=2, promote=PROMOTE)
    report(models, [("a yellow apple", "fruit")])
    sweep()
    assert runs(models, "learn") == []
    report(models, [("blue water", "water")])
    sweep()
    (first,) = runs(models, "learn")
    assert (first["cause"], first["outcome"], first["dataset_version"]) == ("feedback", "promoted", 2)
    assert (first["decision"]["reason"], production(models)) == ("first", 2)
    report(models, [("a green apple", "fruit"), ("blue water", "water")])
    sweep()
    second = runs(models, "learn")[0]
    assert (second["decision"]["reason"], second["decision"]["former"], production(models)) == ("not_worse", 2, 3)
    assert (second["decision"]["n_rows"], second["decision"]["accuracy"]) == (12, 1.0)
    report(models, SWAPPED)
    sweep()
    third = runs(models, "learn")[0]
    decision = third["decision"]
    assert (third["outcome"], decision["reason"], production(models)) == ("kept", "worse", 3)
    assert (decision["only_former"], decision["only_new"], decision["former"], decision["version"]) == (8, 0, 3, 4)
    assert decision["accuracy"] == pytest.approx(1 / 3)
    assert decision["p_value"] == pytest.approx(0.5**8)
    entries = [each for each in models.get("/api/v1/audit?thing=learn").json()["items"] if each["what"] == "rule_run"]
    assert [entry["after"]["outcome"] for entry in entries] == ["kept", "promoted", "promoted"]
    assert entries[0]["after"] | decision == entries[0]["after"]
    assert (entries[0]["method"], entries[0]["key"], entries[0]["path"]) == ("RULE", "the-admin", "/api/v1/rules/learn")


@pytest.mark.slow
def test_an_alias_that_was_moved_meanwhile_or_has_too_few_rows_behind_it_stays(models: TestClient) -> None:
    upload(models, "held-out", HELD_OUT, "jsonl")
    make(models, cron=NEVER, promote={**PROMOTE, "min_rows": 13})
    models.put("/api/v1/models/foods/aliases/production", json={"version": 1})
    assert models.post("/api/v1/rules/nightly/runs").status_code == 202
    sweep()
    assert (runs(models)[0]["decision"]["reason"], production(models)) == ("too_few_rows", 1)
    make(models, name="other", cron=NEVER, promote=PROMOTE)
    models.post("/api/v1/rules/other/runs")
    turn()
    run(runs(models, "other")[0]["train_job"])
    turn()
    models.put("/api/v1/models/foods/aliases/production", json={"version": 2}, headers={"If-Match": "*"})
    sweep()
    assert (runs(models, "other")[0]["decision"]["reason"], production(models)) == ("alias_moved", 2)


@pytest.mark.slow
def test_a_run_whose_training_fails_says_why_and_the_rule_may_start_again(models: TestClient) -> None:
    make(models, cron=NEVER)
    started = models.post("/api/v1/rules/nightly/runs").json()
    problem(models.post("/api/v1/rules/nightly/runs"), 409, "conflict")
    turn()
    job = runs(models)[0]["train_job"]
    models.post(f"/api/v1/jobs/{job}/cancel")
    sweep()
    (ended,) = runs(models)
    assert (ended["id"], ended["outcome"]) == (started["id"], "failed")
    assert ended["error"]["detail"] == f"the job {job} was cancelled"
    assert models.delete("/api/v1/datasets/foods?force=true").status_code == 204
    models.post("/api/v1/rules/nightly/runs")
    sweep()
    assert runs(models)[0]["error"]["detail"] == "the dataset of the rule was deleted"


@pytest.mark.slow
def test_a_rule_begins_warm_where_it_can(models: TestClient) -> None:
    make(models, cron=NEVER, warm=True)
    for start in (None, "foods@2"):
        models.post("/api/v1/rules/nightly/runs")
        sweep()
        job = models.get(f"/api/v1/jobs/{runs(models)[0]['train_job']}").json()
        assert (job["request"].get("warm_start"), job["request"]["keep_duals"]) == (start, True)


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"cron": None}, None),
        ({"cron": "61 * * * *"}, "/cron"),
        ({"time_zone": "Nowhere"}, "/time_zone"),
        ({"promote": {"alias": "production"}}, "/promote/dataset"),
        ({"promote": {"alias": "production", "dataset": "letters", "part": "test"}}, "/promote/dataset"),
        ({"promote": {"alias": "no name"}}, "/promote/alias"),
        ({"training": {"dataset": "foods", "model": "m", "solver": "none"}}, "/solver"),
        ({"feedback_rows": 0}, "/feedback_rows"),
    ],
    ids=str,
)
def test_a_rule_that_could_not_work_is_refused(models: TestClient, change: dict[str, Any], pointer: str | None) -> None:
    body = {"name": "r", "model": "foods", "cron": NEVER, **change}
    document = problem(models.post("/api/v1/rules", json=body), 422, "invalid_input")
    assert pointer in [error.get("pointer") for error in document["errors"]] or pointer is None
    assert models.get("/api/v1/rules").json()["items"] == []


def test_a_workspace_has_so_many_rules(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_MOST", 1)
    make(models, cron=NEVER)
    answer = models.post("/api/v1/rules", json={"name": "another", "model": "foods", "cron": NEVER})
    assert problem(answer, 409, "conflict")["detail"].startswith("the workspace has 1 rules")
    assert models.delete("/api/v1/rules/nightly").status_code == 204
    make(models, cron=NEVER)


def test_a_word_for_a_schedule_is_told_which_fields_one_has(models: TestClient) -> None:
    document = problem(models.post("/api/v1/rules", json={"name": "r", "model": "foods", "cron": "nightly"}), 422)
    assert document["errors"][0]["detail"].startswith("1 field given; expected minute, hour, day of the month")


def test_rules_are_switched_off_and_deleted_by_their_owners(models: TestClient, secrets: dict[str, str]) -> None:
    make(models, cron=NEVER)
    problem(models.post("/api/v1/rules", json={"name": "nightly", "model": "foods", "cron": NEVER}), 409)
    editor = bearer(secrets["editor"])
    feedback = {"name": "r", "model": "foods", "feedback_rows": 1}
    assert models.post("/api/v1/rules", json=feedback, headers=editor).json()["owner"] == "the-editor"
    problem(models.patch("/api/v1/rules/nightly", json={"enabled": False}, headers=editor), 403, "forbidden")
    problem(models.delete("/api/v1/rules/nightly", headers=editor), 403, "forbidden")
    assert models.patch("/api/v1/rules/nightly", json={"enabled": False}).json()["enabled"] is False
    let_time_pass()
    assert models.patch("/api/v1/rules/nightly", json={"enabled": True}).json()["due_at"] > "2026"
    sweep()
    assert runs(models) == []
    assert models.delete("/api/v1/rules/nightly").status_code == 204
    problem(models.get("/api/v1/rules/nightly"), 404, "not_found")
