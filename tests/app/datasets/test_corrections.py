"""Labels that were wrong are corrected, as a new version of the dataset."""

import os
from typing import Any

from asking import TestClient, problem
from working import run, upload

from app.jobs.service import retry
from app.store import db
from app.store.files import files

ROWS = b"label,x,y\n" + b"a,1,0\nb,0,1\n" * 3
SETS = b'{"text": "one", "label": ["a", "b"]}\n{"text": "two", "label": ["b"]}\n{"text": "none", "label": []}\n'


def correct(client: TestClient, ref: str, *corrections: dict[str, Any]) -> Any:
    return client.post(f"/api/v1/datasets/{ref}/corrections", json={"corrections": list(corrections)})


def labels(client: TestClient, ref: str) -> list[Any]:
    rows = client.get(f"/api/v1/datasets/{ref}/rows").json()["rows"]
    return [row["labels"] if row["label"] is None else row["label"] for row in rows]


def test_a_correction_makes_a_version_that_shares_all_but_the_labels(client: TestClient) -> None:
    dataset = upload(client, "rows", ROWS, "csv")
    client.post("/api/v1/datasets/rows/rows", content=b"label,x,y\nc,5,5\n")
    run(client.get("/api/v1/jobs").json()["items"][0]["id"])
    answer = correct(client, "rows", {"row": 0, "labels": [" d "]}, {"row": 6, "labels": ["a"], "before": ["c"]})
    assert answer.status_code == 202
    run(answer.json()["id"])
    job = client.get(answer.headers["location"]).json()
    assert (job["kind"], job["state"], job["result"]["dataset_version"]) == ("correct", "succeeded", 3)
    assert job["result"]["warning"] == "1 new label: 'd'"
    assert labels(client, "rows") == ["d", "b", "a", "b", "a", "b", "a"]
    found = client.get("/api/v1/datasets/rows").json()
    assert (found["version"], found["n_rows"], found["n_classes"]) == (3, 7, 3)  # of c there is no row any more
    newest, middle, _ = client.get("/api/v1/datasets/rows/versions").json()
    assert newest["sha256"] != middle["sha256"]
    first, _, last = sorted(
        files().path(f"datasets/{dataset['id']}").glob("arrays-*"), key=lambda path: path.stat().st_ctime_ns
    )
    assert os.path.samefile(first / "data.npy", last / "data.npy")
    assert (last / "data-1.npy").exists()
    files().check(str(last.relative_to(files().root)))


def test_labels_that_the_dataset_merges_are_merged_in_new_rows_and_corrections_too(client: TestClient) -> None:
    rows = b"label,x,y\n" + b"Tools,1,0\nTools,1,0\ntools,2,1\nb,0,1\n"
    client.post("/api/v1/datasets", params={"name": "rows", "merge_labels": "case"}, content=rows)
    run(client.get("/api/v1/jobs").json()["items"][0]["id"])
    assert labels(client, "rows") == ["Tools", "Tools", "Tools", "b"]
    client.post("/api/v1/datasets/rows/rows", content=b"label,x,y\nTOOLS,5,5\nB,1,1\n")
    run(client.get("/api/v1/jobs").json()["items"][0]["id"])
    assert labels(client, "rows")[4:] == ["Tools", "b"]
    run(correct(client, "rows", {"row": 3, "labels": ["tools"]}, {"row": 0, "labels": ["New"]}).json()["id"])
    assert labels(client, "rows") == ["New", "Tools", "Tools", "Tools", "Tools", "b"]
    problem(correct(client, "rows", {"row": 1, "labels": ["TOOLS"]}), 409, "conflict")


def test_sets_of_labels_are_corrected_row_by_row(client: TestClient) -> None:
    upload(client, "sets", SETS, "jsonl")
    answer = correct(client, "sets", {"row": 0, "labels": []}, {"row": 2, "labels": ["c", "b"]})
    run(answer.json()["id"])
    assert labels(client, "sets") == [[], ["b"], ["b", "c"]]
    assert client.get("/api/v1/datasets/sets/rows").json()["rows"][2]["text"] == "none"


def test_what_does_not_fit_is_pointed_at_and_nothing_is_changed(client: TestClient) -> None:
    upload(client, "rows", ROWS, "csv")
    bad = [{"row": 9, "labels": ["a"]}, {"row": 1, "labels": []}, {"row": 1, "labels": ["\u0007"]}]
    faults = problem(correct(client, "rows", *bad), 422, "invalid_input")["errors"]
    assert [each["pointer"] for each in faults] == [
        "/corrections/0/row", "/corrections/1/labels", "/corrections/2/row", "/corrections/2/labels/0"
    ]  # fmt: skip
    problem(correct(client, "rows", {"row": 0, "labels": ["a"]}), 409)
    reported = problem(correct(client, "rows", {"row": 0, "labels": ["b"], "before": ["c"]}), 409)
    assert "other labels: a" in reported["detail"]
    problem(correct(client, "none", {"row": 0, "labels": ["b"]}), 404)
    assert client.get("/api/v1/datasets/rows").json()["version"] == 1


def test_one_version_is_made_at_a_time_and_a_cancelled_correction_can_be_tried_again(client: TestClient) -> None:
    upload(client, "rows", ROWS, "csv")
    id = correct(client, "rows", {"row": 0, "labels": ["b"]}).json()["id"]
    assert "correcting rows" in problem(correct(client, "rows", {"row": 1, "labels": ["a"]}), 409)["detail"]
    client.post(f"/api/v1/jobs/{id}/cancel")
    with db.sessions()() as session:
        retry(session, id)
    run(id)
    assert labels(client, "rows")[:2] == ["b", "b"]


NAMED = b"id,text,label\n007,red apple,fruit\n008,green leek,fruit\n009,blue sea,water\n007, red apple ,water\n"


def test_a_correction_by_id_or_text_replaces_all_rows_that_have_it(client: TestClient) -> None:
    upload(client, "named", NAMED, "csv", id_column="id")
    given = [{"id": "008", "labels": ["vegetable"]}, {"text": "red apple", "labels": ["pome"]}]
    run(correct(client, "named", *given).json()["id"])
    assert labels(client, "named") == ["pome", "vegetable", "water", "pome"]
    run(correct(client, "named", {"id": "007", "labels": ["fruit"], "before": ["pome"]}).json()["id"])
    assert labels(client, "named") == ["fruit", "vegetable", "water", "fruit"]


def test_ids_and_texts_that_no_row_has_and_rows_named_twice_are_pointed_at(client: TestClient) -> None:
    upload(client, "named", NAMED, "csv", id_column="id")
    bad = [
        {"id": "7", "labels": ["a"]}, {"text": "red", "labels": ["a"]},
        {"id": "007", "labels": ["a"]}, {"row": 3, "labels": ["a"]},
    ]  # fmt: skip
    faults = problem(correct(client, "named", *bad), 422, "invalid_input")["errors"]
    assert [(each["pointer"], each["detail"]) for each in faults] == [
        ("/corrections/0/id", "no row has the id '7'"),
        ("/corrections/1/text", "no row has the text 'red'"),
        ("/corrections/3/row", "row 3 is given twice"),
    ]
    both = problem(correct(client, "named", {"row": 1, "id": "008", "labels": ["a"]}), 422)["errors"][0]
    assert "got row, id" in both["detail"]
    upload(client, "rows", ROWS, "csv")
    faults = problem(correct(client, "rows", {"id": "1", "labels": ["a"]}), 422)["errors"]
    assert faults[0]["detail"] == "rows of this dataset have no ids"


def delete(**named: Any) -> dict[str, Any]:
    return {"delete": True} | named


def test_rows_are_deleted_by_number_id_and_text_in_the_next_version_alone(client: TestClient) -> None:
    dataset = upload(client, "named", NAMED, "csv", id_column="id")
    answer = correct(client, "named", delete(text="red apple"), {"id": "008", "labels": ["vegetable"]})
    assert answer.status_code == 202, answer.text
    run(answer.json()["id"])
    found = client.get("/api/v1/datasets/named/rows").json()["rows"]
    assert [(row["row"], row["id"], row["text"], row["label"]) for row in found] == [
        (0, "008", "green leek", "vegetable"), (1, "009", "blue sea", "water")
    ]  # fmt: skip
    assert client.get("/api/v1/datasets/named").json()["n_rows"] == 2
    newest, first = client.get("/api/v1/datasets/named/versions").json()
    assert (newest["n_rows"], newest["n_deleted"], first["n_rows"], first["n_deleted"]) == (2, 2, 4, 0)
    assert client.get("/api/v1/datasets/named/statistics").json()["deleted_rows"] == 2
    assert client.get(answer.headers["location"]).json()["request"]["deleted_rows"] == 2
    # the first version keeps its rows
    assert len(list(files().path(f"datasets/{dataset['id']}").glob("arrays-*"))) == 2
    run(correct(client, "named", delete(id="009")).json()["id"])
    assert labels(client, "named") == ["vegetable"]
    assert client.get("/api/v1/datasets/named/statistics").json()["deleted_rows"] == 3


def test_rows_of_sets_and_of_numbers_are_deleted_with_what_they_hold(client: TestClient) -> None:
    upload(client, "sets", SETS, "jsonl")
    run(correct(client, "sets", delete(row=0)).json()["id"])
    assert labels(client, "sets") == [["b"], []]
    assert client.get("/api/v1/datasets/sets").json()["n_classes"] == 1
    upload(client, "rows", ROWS, "csv")
    client.post("/api/v1/datasets/rows/rows", params={"part": "test"}, content=b"label,x,y\nc,5,6\nd,7,8\n")
    run(client.get("/api/v1/jobs").json()["items"][0]["id"])
    run(correct(client, "rows", delete(row=1), delete(row=6)).json()["id"])
    rows = client.get("/api/v1/datasets/rows/rows").json()["rows"]
    assert [(row["label"], row["split"]) for row in rows] == [
        ("a", "train"), ("a", "train"), ("b", "train"), ("a", "train"), ("b", "train"), ("d", "test")
    ]  # fmt: skip
    assert rows[5]["features"] == [[0, 7.0], [1, 8.0]]
    client.post("/api/v1/datasets/rows/rows", content=b"label,x,y\ne,9,9\n")
    run(client.get("/api/v1/jobs").json()["items"][0]["id"])
    assert labels(client, "rows") == ["a", "a", "b", "a", "b", "d", "e"]
    assert [each["n_deleted"] for each in client.get("/api/v1/datasets/rows/versions").json()] == [0, 2, 0, 0]


def test_a_deletion_with_labels_and_one_of_all_rows_are_refused(client: TestClient) -> None:
    upload(client, "rows", ROWS, "csv")
    [fault] = problem(correct(client, "rows", delete(row=0, labels=["b"])), 422)["errors"]
    assert fault["pointer"] == "/corrections/0/labels"
    assert "cannot be combined" in fault["detail"]
    [fault] = problem(correct(client, "rows", {"row": 0}), 422)["errors"]
    assert fault["pointer"] == "/corrections/0/labels"
    fault = problem(correct(client, "rows", *(delete(row=row) for row in range(6))), 422)
    assert "no row would be left" in fault["detail"]
    problem(correct(client, "rows", delete(row=0, before=["b"])), 409)
    assert client.get("/api/v1/datasets/rows").json()["version"] == 1


def test_a_row_number_of_an_earlier_version_names_the_same_row_after_a_deletion(client: TestClient) -> None:
    upload(client, "rows", b"label,x,y\na,1,0\nb,0,1\nc,2,2\nb,0,2\n", "csv")
    run(correct(client, "rows", delete(row=1)).json()["id"])
    faults = problem(
        correct(client, "rows", {"row": 1, "version": 1, "labels": ["a"]}, {"row": 9, "version": 1, "labels": ["a"]}),
        422,
    )["errors"]
    assert [each["detail"] for each in faults] == [
        "row 1 of version 1 was deleted", "row 9 does not exist: the dataset has the rows 0 to 3"
    ]  # fmt: skip
    [fault] = problem(correct(client, "rows", {"row": 1, "version": 3, "labels": ["a"]}), 422)["errors"]
    assert fault["pointer"] == "/corrections/0/version"
    run(correct(client, "rows", {"row": 3, "version": 1, "labels": ["d"], "before": ["b"]}).json()["id"])
    assert labels(client, "rows") == ["a", "c", "d"]


def test_the_audit_log_says_how_many_rows_were_corrected_and_deleted(client: TestClient) -> None:
    dataset = upload(client, "rows", ROWS, "csv")
    correct(client, "rows", delete(row=0), {"row": 1, "labels": ["a"]})
    entries = client.get("/api/v1/audit", params={"thing": "rows"}).json()["items"]
    [entry] = [each for each in entries if each["what"] == "corrections"]
    assert (entry["thing"], entry["name"]) == (dataset["id"], "rows")
    assert (entry["before"], entry["after"]) == (None, {"rows": 1, "deleted_rows": 1})
