"""Review queues: rows from a coding job, claims, decisions, disputes, progress."""

import threading
from typing import Any

import pytest
from asking import TestClient, bearer, problem
from sqlalchemy.orm import Session, sessionmaker
from working import run, train, upload

from app import short_cache
from app.errors import Conflict, InvalidInput, PreconditionFailed
from app.reviews import decisions, job_rows, rows, service
from app.reviews.progress import cohens_kappa, interval
from app.reviews.schemas import ClaimRequest, DecisionRequest
from app.store import tables
from app.store.scope import DEFAULT, Scope, confine

ALTERNATIVES = [{"label": "a", "name": None, "probability": 0.4}, {"label": "b", "name": "B", "probability": 0.3}]
TITLES = {"0110": "miller", "0120": "baker", "0210": "driver", "0220": "pilot"}
WORDS = ("flour", "truck", "bread", "plane", "head", "young", "old", "senior", "first", "second")


@pytest.fixture
def queue(database: sessionmaker[Session]) -> sessionmaker[Session]:
    """A database with the queue q of 60 rows, of which every tenth is a sure one."""
    fill(database, "q", opinions=1)
    return database


def fill(database: sessionmaker[Session], name: str, opinions: int, n_rows: int = 60) -> None:
    given: Any = {"job_id": "0" * 32, "model": "m", "version": 1, "dataset_id": None, "dataset_version": 1}
    given |= {"sure_share": 0.1, "seed": 0, "opinions": opinions, "promised": 0.95, "created_at": 0.0}
    with database() as session:
        session.add(tables.Review(id=name * 32, name=name, **given))
        session.flush()
        for row in range(n_rows):
            each = {"row": row, "place": n_rows - row, "alternatives": ALTERNATIVES, "sure": row % 10 == 0}
            session.add(tables.ReviewRow(review_id=name * 32, state="open", revision=1, **each))
        session.commit()


def acting(database: sessionmaker[Session], person: str) -> Session:
    return confine(database(), Scope(DEFAULT, person))


def claim(database: sessionmaker[Session], person: str, review: str = "q", **more: Any) -> list[int]:
    with acting(database, person) as session:
        return [row.row for row in rows.claim(session, review, ClaimRequest(**more))]


def decide(database: sessionmaker[Session], person: str, row: int, label: str | None, review: str = "q") -> Any:
    with acting(database, person) as session:
        request = DecisionRequest(label=label, skip=label is None)
        return decisions.decide(session, review, row, request)


def show(database: sessionmaker[Session], review: str = "q") -> Any:
    with database() as session:
        return service.get(session, review)


def test_a_decision_with_a_label_that_no_dataset_can_have_is_refused(queue: sessionmaker[Session]) -> None:
    claim(queue, "ann")
    with pytest.raises(InvalidInput) as refused:
        decide(queue, "ann", 59, "a\u0007")
    assert [item.pointer for item in refused.value.errors] == ["/label"]
    assert show(queue).states["decided"] == 0


@pytest.mark.parametrize("same_person", [False, True])
def test_no_two_claims_get_the_same_row(queue: sessionmaker[Session], same_person: bool) -> None:
    found: list[list[int]] = [[] for _ in range(6)]
    start = threading.Barrier(6)

    def work(place: int) -> None:
        start.wait()
        while got := claim(queue, "ann" if same_person else f"person{place}", count=2):
            found[place] += got

    threads = [threading.Thread(target=work, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    given = [row for rows in found for row in rows]
    assert len(given) == len(set(given))
    # a claim that finds only rows that others lock at that moment gets none of them
    assert sorted(given + claim(queue, "last", count=60)) == list(range(60))


def test_claims_come_in_order_and_an_expired_lease_frees_its_rows(queue: sessionmaker[Session]) -> None:
    assert claim(queue, "ann", count=3) == [59, 58, 57]
    assert claim(queue, "bob", count=1) == [56]
    assert show(queue).states == {"open": 56, "claimed": 4, "decided": 0, "disputed": 0, "skipped": 0}
    with queue() as session:
        session.get_one(tables.ReviewRow, ("q" * 32, 58)).lease_until = 1.0
        session.commit()
    assert show(queue).states["claimed"] == 3
    assert claim(queue, "bob", count=1) == [58]


def test_a_decision_repeats_changes_and_is_undone(queue: sessionmaker[Session]) -> None:
    [row] = claim(queue, "ann")
    with pytest.raises(Conflict, match="'ann' has claimed row 59"):
        decide(queue, "bob", row, "b")
    first = decide(queue, "ann", row, "a")
    assert (first.state, first.label, first.revision, first.claimed_by) == ("decided", "a", 2, None)
    assert decide(queue, "ann", row, "a") == first
    with pytest.raises(Conflict, match="row 59 is decided"):
        decide(queue, "bob", row, "b")
    assert decide(queue, "ann", row, "b").label == "b"
    with acting(queue, "ann") as session:
        with pytest.raises(PreconditionFailed, match="the row has revision 3; If-Match names 2"):
            decisions.decide(session, "q", row, DecisionRequest(label="a"), if_match=2)
        undone = decisions.undo(session, "q", row, if_match=3)
        assert (undone.state, undone.label, undone.opinions) == ("open", None, [])
        assert decisions.undo(session, "q", row, if_match=3) == undone
    assert claim(queue, "bob") == [row]


def test_nobody_undoes_what_others_decided_or_skipped(queue: sessionmaker[Session]) -> None:
    first, second = claim(queue, "ann", count=2)
    decide(queue, "ann", first, "a")
    decide(queue, "ann", second, None)
    with acting(queue, "bob") as session:
        with pytest.raises(Conflict, match="you have not decided row 59, but 'ann'"):
            decisions.undo(session, "q", first)
        with pytest.raises(Conflict, match="you have not skipped row 58, but 'ann'"):
            decisions.undo(session, "q", second)
        assert decisions.undo(session, "q", 3).state == "open"


def test_skipped_rows_are_claimed_on_request(queue: sessionmaker[Session]) -> None:
    [row] = claim(queue, "ann")
    assert decide(queue, "ann", row, None).state == "skipped"
    assert claim(queue, "ann") == [58]
    assert claim(queue, "bob", state="skipped") == [row]
    assert decide(queue, "bob", row, "a").state == "decided"
    people = [(each.person, each.n_decided, each.n_skipped) for each in show(queue).people]
    assert people == [("ann", 0, 1), ("bob", 1, 0)]


def test_two_people_disagree_and_a_third_one_decides(database: sessionmaker[Session]) -> None:
    fill(database, "t", opinions=2, n_rows=3)
    for person, labels in (("ann", "aab"), ("bob", "abb")):
        for row, label in zip(claim(database, person, "t", count=3), labels, strict=True):
            shown = decide(database, person, row, label, "t")
            if person == "ann":
                assert (shown.state, [each.person for each in shown.opinions]) == ("open", ["ann"])
        assert claim(database, person, "t") == []
    found = show(database, "t")
    assert found.states["decided"] == 2
    assert found.states["disputed"] == 1
    assert (found.agreement.n_rows, found.agreement.agreed) == (3, 2 / 3)
    assert found.agreement.kappa == pytest.approx(0.4)
    assert claim(database, "ann", "t", state="disputed") == []
    assert claim(database, "eve", "t", state="disputed") == [1]
    settled = decide(database, "eve", 1, "c", "t")
    assert (settled.state, settled.label) == ("decided", "c")
    assert [(each.person, each.arbiter) for each in settled.opinions][-1] == ("eve", True)
    assert show(database, "t").agreement == found.agreement


def test_the_precision_of_sure_rows_is_measured_with_an_interval(queue: sessionmaker[Session]) -> None:
    assert show(queue).measured_precision is None
    for row in range(60):
        decide(queue, "ann", row, "b" if row in (0, 5) else "a")
    found = show(queue)
    measured = found.measured_precision
    assert (found.promised_precision, measured.n_rows, measured.n_right) == (0.95, 6, 5)
    assert (measured.lower_bound, measured.upper_bound) == pytest.approx((0.3588, 0.9958), abs=1e-4)


def test_intervals_and_kappa_at_their_ends() -> None:
    assert interval(0, 10) == pytest.approx((0.0, 0.3085), abs=1e-4)
    assert interval(10, 10) == pytest.approx((0.6915, 1.0), abs=1e-4)
    assert cohens_kappa([("a", "a"), ("a", "a")]) is None
    assert cohens_kappa([("a", "b"), ("b", "a")]) == -1.0


@pytest.fixture
def job(client: TestClient) -> str:
    """A prediction job over 40 rows with a threshold that some of them reach."""
    lines = [f'{{"text": "{title} {word}", "label": "{label}"}}\n' for label, title in TITLES.items() for word in WORDS]
    assert upload(client, "jobs", "".join(lines).encode(), "jsonl")["state"] == "ready"
    asked = {"solver": "auto", "params": {"candidates": [{"solver": "weston_watkins"}], "folds": 2}}
    assert train(client, "jobs", "m", **asked)["state"] == "succeeded"
    return predicted(client, threshold=0.0)


def predicted(client: TestClient, **more: Any) -> str:
    asked = {"kind": "predict", "model": "m", "dataset": "jobs", "top_k": 3} | more
    response = client.post("/api/v1/jobs", json=asked)
    assert response.status_code == 202, response.text
    id: str = response.json()["id"]
    run(id)
    assert client.get(f"/api/v1/jobs/{id}").json()["state"] == "succeeded"
    return id


def test_a_queue_has_the_unsure_rows_of_a_job_and_a_seeded_share_of_the_sure_ones(
    client: TestClient, job: str, secrets: dict[str, str]
) -> None:
    def rows(name: str, **more: Any) -> list[dict[str, Any]]:
        response = client.post("/api/v1/reviews", json={"name": name, **more})
        assert response.status_code == 201, response.text
        found = client.get(f"/api/v1/reviews/{name}/rows", params={"page_size": 30}).json()
        rest: list[dict[str, Any]] = []
        if found.get("next_place") is not None:
            rest = client.get(f"/api/v1/reviews/{name}/rows", params={"after": found["next_place"]}).json()["rows"]
        return [*found["rows"], *rest]

    sampled = rows("some", job=job, sure_share=0.25, seed=3)
    assert len(sampled) == 10
    assert all(row["sure"] is None for row in sampled)
    assert sampled == rows("same", job=job, sure_share=0.25, seed=3)
    assert sampled != rows("others", job=job, sure_share=0.25, seed=4)
    unsure = rows("all", job=predicted(client, min_precision=0.9999))
    assert len(unsure) == 40
    said = [row["alternatives"][0]["probability"] for row in unsure]
    assert said == sorted(said)
    assert all(row["text"].split()[0] in TITLES.values() and len(row["alternatives"]) == 3 for row in unsure)
    fault = problem(client.post("/api/v1/reviews", json={"name": "all", "job": job, "sure_share": 1.0}), 409)
    assert fault["detail"] == "a review is named 'all' already; choose another name"
    viewer = bearer(secrets["viewer"])
    assert client.post("/api/v1/reviews/all/claim", json={}, headers=viewer).status_code == 403
    [claimed] = client.post("/api/v1/reviews/all/claim", json={"count": 1}).json()["rows"]
    at = f"/api/v1/reviews/all/decisions/{claimed['row']}"
    response = client.put(at, json={"label": "0110"}, headers={"If-Match": '"1"'})
    assert response.json()["sure"] is False
    assert (response.status_code, response.headers["ETag"], response.json()["state"]) == (200, '"2"', "decided")
    problem(client.put(at, json={"label": "0120"}, headers={"If-Match": '"1"'}), 412)
    problem(client.put(at, json={}), 422)
    assert client.delete(at).json()["state"] == "open"
    assert client.delete("/api/v1/reviews/all").status_code == 204
    problem(client.get("/api/v1/reviews/all"), 404)


def test_at_a_level_the_rows_with_a_sure_node_there_are_sure_and_their_precision_is_not_measured(
    client: TestClient,
) -> None:
    edges = "parent,child\nroot,01\nroot,02\n" + "".join(f"{label[:2]},{label}\n" for label in TITLES)
    client.post("/api/v1/hierarchies", params={"name": "tree", "format": "csv"}, content=edges.encode())
    lines = [f'{{"text": "{title} {word}", "label": "{label}"}}\n' for label, title in TITLES.items() for word in WORDS]
    upload(client, "jobs", "".join(lines).encode(), "jsonl")
    asked = {"solver": "auto", "params": {"candidates": [{"solver": "weston_watkins"}], "folds": 2}}
    assert train(client, "jobs", "m", hierarchy="tree", **asked)["state"] == "succeeded"
    rows = [f'{{"text": "{text}"}}\n' for text in ("miller flour", "pilot plane", "nothing of this")]
    upload(client, "new", "".join(rows).encode(), "jsonl", unlabelled="true")
    job = predicted(client, dataset="new", threshold=0.8, sure_level=1)
    made = client.post("/api/v1/reviews", json={"name": "q", "job": job}).json()
    assert (made["n_rows"], made["sure_level"], made["promised_precision"]) == (1, 1, None)
    assert client.get("/api/v1/reviews/q/rows").json()["rows"][0]["row"] == 2
    client.post("/api/v1/reviews", json={"name": "all", "job": job, "sure_share": 1.0})
    decided = client.put("/api/v1/reviews/all/decisions/0", json={"label": "0120"}).json()
    assert (decided["sure"], decided["alternatives"][0]["label"]) == (True, "0110")
    assert client.get("/api/v1/reviews/all").json()["measured_precision"] is None
    assert "not measured for sure nodes at level 1" in client.get("/reviews/all").text


def test_jobs_that_no_queue_can_be_made_of_are_refused_with_the_reason(client: TestClient, job: str) -> None:
    def reason(job: str) -> str:
        [fault] = problem(client.post("/api/v1/reviews", json={"name": "n", "job": job}), 422)["errors"]
        assert fault["pointer"] == "/job"
        detail: str = fault["detail"]
        return detail

    assert reason(job).startswith("all rows of the job are sure")
    assert "format=parquet" in reason(predicted(client, threshold=0.5, format="csv"))
    assert "min_precision or threshold" in reason(predicted(client))


@pytest.mark.usefixtures("job")
def test_decided_rows_are_appended_to_the_dataset_of_the_model_once(client: TestClient) -> None:
    client.post("/api/v1/reviews", json={"name": "q", "job": predicted(client, min_precision=0.9999)})
    rows = client.post("/api/v1/reviews/q/claim", json={"count": 3}).json()["rows"]
    problem(client.post("/api/v1/reviews/q/append", json={}), 409, "conflict")
    new = {"label": "0999", "new_labels": True}
    for row in rows[:2]:
        assert client.put(f"/api/v1/reviews/q/decisions/{row['row']}", json=new).status_code == 200
    before = client.get("/api/v1/datasets/jobs").json()
    response = client.post("/api/v1/reviews/q/append", json={})
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    after = client.get("/api/v1/datasets/jobs").json()
    assert (after["version"], after["n_rows"]) == (before["version"] + 1, before["n_rows"] + 2)
    last = client.get("/api/v1/datasets/jobs/rows", params={"offset": before["n_rows"]}).json()["rows"]
    assert {(row["label"], row["text"]) for row in last} == {("0999", row["text"]) for row in rows[:2]}
    detail = problem(client.post("/api/v1/reviews/q/append", json={}), 409, "conflict")["detail"]
    assert detail == "no decided row is left to append; decide rows first, or name another dataset"
    at = f"/api/v1/reviews/q/decisions/{rows[0]['row']}"
    assert "correct the label there" in problem(client.put(at, json={"label": "0110"}), 409)["detail"]
    problem(client.delete(at), 409)
    client.put(f"/api/v1/reviews/q/decisions/{rows[2]['row']}", json={"label": "0110"})
    run(client.post("/api/v1/reviews/q/append", json={"dataset": "jobs"}).json()["id"])
    assert client.get("/api/v1/datasets/jobs").json()["n_rows"] == before["n_rows"] + 3


@pytest.mark.usefixtures("job")
def test_labels_that_the_model_does_not_know_are_refused_and_codes_get_their_zeros_back(client: TestClient) -> None:
    client.post("/api/v1/reviews", json={"name": "q", "job": predicted(client, min_precision=0.9999)})
    [row] = client.post("/api/v1/reviews/q/claim", json={}).json()["rows"]
    at = f"/api/v1/reviews/q/decisions/{row['row']}"
    [refused] = problem(client.put(at, json={"label": "nope"}), 422)["errors"]
    assert refused["pointer"] == "/label"
    assert refused["detail"] == (
        "'nope' is neither a label nor the name of exactly one; correct the decision, or allow new labels"
    )
    [refused] = problem(client.put(at, json={"labels": ["nope"]}), 422)["errors"]
    assert refused["pointer"] == "/labels/0"
    assert client.put(at, json={"label": "110"}).json()["label"] == "0110"
    assert client.put(at, json={"label": "210", "new_labels": True}).json()["label"] == "0210"
    assert client.put(at, json={"label": "nope", "new_labels": True}).json()["label"] == "nope"
    assert client.put(at, json={"skip": True}).json()["state"] == "skipped"
    problem(client.put("/api/v1/reviews/q/decisions/999", json={"label": "nope"}), 404)


@pytest.mark.usefixtures("job")
def test_appended_rows_keep_their_ids_and_correct_the_rows_that_the_dataset_has(client: TestClient) -> None:
    def appended(name: str, texts: str, label: str) -> dict[str, Any]:
        upload(client, name, texts.encode(), "csv", unlabelled="true")
        job = predicted(client, dataset=name, min_precision=0.9999)
        client.post("/api/v1/reviews", json={"name": name, "job": job})
        for row in client.get(f"/api/v1/reviews/{name}/rows").json()["rows"]:
            at = f"/api/v1/reviews/{name}/decisions/{row['row']}"
            assert client.put(at, json={"label": label}).status_code == 200
        id = client.post(f"/api/v1/reviews/{name}/append", json={}).json()["id"]
        run(id)
        done = client.get(f"/api/v1/jobs/{id}").json()
        assert done["state"] == "succeeded"
        result: dict[str, Any] = done["result"]
        return result

    def last() -> list[tuple[str, str, str]]:
        rows = client.get("/api/v1/datasets/jobs/rows", params={"offset": n_rows}).json()["rows"]
        return [(row["id"], row["text"], row["label"]) for row in rows]

    n_rows = client.get("/api/v1/datasets/jobs").json()["n_rows"]
    first = appended("may", "id,text\n007,miller bread\n,baker flour\n009,pilot plane\n", "0110")
    assert first["warning"] is None
    assert last() == [("007", "miller bread", "0110"), ("", "baker flour", "0110"), ("009", "pilot plane", "0110")]
    second = appended("june", "id,text\n007,miller bread\n009,driver truck\n,baker flour\n", "0120")
    assert second["warning"] == (
        "1 row was in the dataset already, with the same id and content: it has the decided labels there; "
        "1 id of the new rows, such as '009', is in the dataset already. To undo the append, delete "
        f"rows {n_rows + 3} to {n_rows + 4} of the new version"
    )
    assert last() == [
        ("007", "miller bread", "0120"),
        ("", "baker flour", "0110"),
        ("009", "pilot plane", "0110"),
        ("009", "driver truck", "0120"),
        ("", "baker flour", "0120"),
    ]
    corrections = {"corrections": [{"id": "007", "delete": True}]}
    assert client.post("/api/v1/datasets/jobs/corrections", json=corrections).status_code == 202


@pytest.mark.parametrize("kept", [{"number_columns": "price", "category_columns": "brand", "missing": "keep"}, {}])
def test_appended_rows_of_a_table_have_all_its_columns(client: TestClient, kept: dict[str, Any]) -> None:
    """Texts are apart, though people read them joined; missing values are missing. Other columns may be left out."""
    columns = kept | {"text_columns": ["title", "body"]} | ({} if kept else {"ignore_columns": ["price", "brand"]})
    goods = [("red apple", "fruit"), ("green pear", "fruit"), ("deep pan", "kitchen"), ("sharp knife", "kitchen")] * 10
    lines = [f"{at},{title},from a shop,{at}.5,acme,{label}\n" for at, (title, label) in enumerate(goods)]
    upload(client, "goods", f"id,title,body,price,brand,label\n{''.join(lines)}".encode(), "csv", **columns)
    asked = {"solver": "auto", "params": {"candidates": [{"solver": "weston_watkins"}], "folds": 2}}
    assert train(client, "goods", "m", **asked)["state"] == "succeeded"
    new = f"id,title,body,price,brand\n90,sharp apple,half a pound,2.25,acme\n91,red pan,,,\n{lines[1]}"
    new = new.replace(",fruit", "")
    upload(client, "new", new.encode(), "csv", unlabelled="true", **columns)
    job = predicted(client, dataset="new", min_precision=0.9999)
    client.post("/api/v1/reviews", json={"name": "q", "job": job, "sure_share": 1.0})
    others = [{"price": 2.25, "brand": "acme"}, {"price": None, "brand": None}, {"price": 1.5, "brand": "acme"}]
    shown = sorted(client.get("/api/v1/reviews/q/rows").json()["rows"], key=lambda row: row["row"])
    assert [row["record"] for row in shown] == (others if kept else [None] * 3)
    for row in shown:
        at = f"/api/v1/reviews/q/decisions/{row['row']}"
        assert client.put(at, json={"label": "kitchen"}).status_code == 200
    id = client.post("/api/v1/reviews/q/append", json={}).json()["id"]
    run(id)
    result = client.get(f"/api/v1/jobs/{id}").json()["result"]
    assert result["warning"].startswith("1 row was in the dataset already, with the same id and content")
    rows = client.get("/api/v1/datasets/goods/rows", params={"offset": len(goods)}).json()["rows"]
    texts = [{"title": "sharp apple", "body": "half a pound"}, {"title": "red pan", "body": ""}]
    assert [row["record"] for row in rows] == [
        each | (other if kept else {}) for each, other in zip(texts, others[:2], strict=True)
    ]
    assert client.get("/api/v1/datasets/goods/rows", params={"offset": 1}).json()["rows"][0]["label"] == "kitchen"


def test_rows_of_named_numbers_are_shown_and_appended(client: TestClient) -> None:
    rows = "".join(f"{at % 7},{at % 2},0,{'odd' if at % 2 else 'even'}\n" for at in range(40))
    upload(client, "parity", f"size,rest,none,label\n{rows}".encode(), "csv")
    asked = {"solver": "auto", "params": {"candidates": [{"solver": "weston_watkins"}], "folds": 2}}
    assert train(client, "parity", "m", **asked)["state"] == "succeeded"
    upload(client, "new", b"size,rest,none\n3,1,0\n4,0,0\n", "csv", unlabelled="true")
    job = predicted(client, dataset="new", min_precision=0.9999, top_k=2)
    client.post("/api/v1/reviews", json={"name": "q", "job": job, "sure_share": 1.0})
    record = {"size": 3.0, "rest": 1.0, "none": 0.0}
    response = client.put("/api/v1/reviews/q/decisions/0", json={"label": "odd"})
    assert (response.json()["text"], response.json()["record"]) == (None, record)
    run(client.post("/api/v1/reviews/q/append", json={}).json()["id"])
    [row] = client.get("/api/v1/datasets/parity/rows", params={"offset": 40}).json()["rows"]
    assert (row["label"], row["features"]) == ("odd", [[0, 3.0], [1, 1.0]])


def test_claimed_rows_are_given_back_by_the_person_who_has_them(queue: sessionmaker[Session]) -> None:
    assert claim(queue, "ann", count=3) == [59, 58, 57]
    with acting(queue, "bob") as session:
        rows.release(session, "q", [59, 58, 3])
    assert claim(queue, "bob", count=1) == [56]
    with acting(queue, "ann") as session:
        rows.release(session, "q", [59, 57])
    assert claim(queue, "bob", count=2) == [59, 57]


def test_who_undoes_a_decision_can_keep_the_row(queue: sessionmaker[Session]) -> None:
    [row] = claim(queue, "ann")
    decide(queue, "ann", row, "a")
    with acting(queue, "ann") as session:
        undone = decisions.undo(session, "q", row, minutes=5.0)
    assert (undone.state, undone.claimed_by) == ("claimed", "ann")
    assert claim(queue, "bob") == [58]
    assert decide(queue, "ann", row, "b").label == "b"


def test_nothing_distinguishes_a_sure_row_before_it_is_decided(queue: sessionmaker[Session]) -> None:
    with acting(queue, "ann") as session:
        shown = rows.listed(session, "q", 60).rows
        assert all(row.sure is None and row.alternatives[0].probability is None for row in shown)
        claimed = rows.claim(session, "q", ClaimRequest(count=1))[0]
        assert claimed.alternatives[0].probability is None
    decided = decide(queue, "ann", claimed.row, "a")
    assert (decided.sure, decided.alternatives[0].probability) == (False, 0.4)


def test_sampled_sure_rows_have_random_places_among_the_others() -> None:
    unsure, sampled = [{"row": row} for row in range(20)], [{"row": row} for row in range(20, 40)]
    found = [each["row"] for each in job_rows.scattered(unsure, sampled, 7)]
    assert sorted(found) == list(range(40))
    assert [row for row in found if row < 20] == list(range(20))
    assert 3 <= sum(row >= 20 for row in found[:20]) <= 17
    assert found == [each["row"] for each in job_rows.scattered(unsure, sampled, 7)]
    assert found != [each["row"] for each in job_rows.scattered(unsure, sampled, 8)]


@pytest.mark.usefixtures("job")
def test_labels_are_found_by_words_and_described_by_name(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_cache, "REMEMBERED_SECONDS", 0.0)
    client.post("/api/v1/reviews", json={"name": "q", "job": predicted(client, min_precision=0.9999)})

    def found(**asked: Any) -> list[str]:
        answer = client.get("/api/v1/reviews/q/labels", params=asked)
        assert answer.status_code == 200, answer.text
        return [each["label"] for each in answer.json()["labels"]]

    assert found() == ["0110", "0120", "0210", "0220"]
    assert found(search="02") == ["0210", "0220"]
    assert found(search="miller") == []
    assert found(label=["0220", "0999", "0110"]) == ["0220", "0110"]
    answer = client.get("/api/v1/reviews/q/labels", params={"search": "0", "limit": 1}).json()
    assert (answer["n_labels"], len(answer["labels"])) == (4, 1)
    assert answer["labels"][0] == {"label": "0110", "name": None, "notation": None, "path": []}
    problem(client.get("/api/v1/reviews/none/labels"), 404)
    assert client.delete("/api/v1/models/m").status_code in (200, 204)
    problem(client.get("/api/v1/reviews/q/labels"), 404)


NAMED = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix : <http://example.org/t/> .
:food a skos:Concept ; skos:prefLabel "Food"@en, "Ruoka"@fi .
:bread a skos:Concept ; skos:broader :food ; skos:prefLabel "Bread"@en, "Leipä"@fi .
:soup a skos:Concept ; skos:broader :food ; skos:prefLabel "Soups"@en, "Keitot"@fi .
"""


@pytest.mark.parametrize(("language", "names"), [("fi", ["Leipä", "Ruoka"]), (None, ["Bread", "Food"])])
def test_names_and_paths_are_in_the_language_that_the_job_was_asked_for(
    client: TestClient, language: str | None, names: list[str]
) -> None:
    client.post("/api/v1/hierarchies", params={"name": "voc", "format": "skos"}, content=NAMED.encode())
    rows = [f"{text} {at}\t<http://example.org/t/{text}>" for at in range(8) for text in ("bread", "soup")]
    upload(client, "jobs", "\n".join(rows) + "\n", "annif")
    assert train(client, "jobs", "m", solver="node_svm", hierarchy="voc")["state"] == "succeeded"
    more = {} if language is None else {"language": language}
    made = client.post("/api/v1/reviews", json={"name": "q", "job": predicted(client, **more)}).json()
    assert made["language"] == language
    alternatives = client.get("/api/v1/reviews/q/rows").json()["rows"][0]["alternatives"]
    assert {each["label"]: each["name"] for each in alternatives}["http://example.org/t/bread"] == names[0]
    [found] = client.get("/api/v1/reviews/q/labels", params={"search": "lei"}).json()["labels"]
    assert [found["name"], *found["path"]] == names
    asked = {"search": "lei", "language": "en"}
    assert client.get("/api/v1/reviews/q/labels", params=asked).json()["labels"][0]["path"] == ["Food"]
    page = client.get("/reviews/q").text
    assert ('data-language="fi"' in page) == (language == "fi")
