"""Review queues of sets of labels: made from a job, decided, compared between people, measured, sent as workbooks."""

from pathlib import Path
from typing import Any

import openpyxl
import pytest
from asking import TestClient, problem
from sqlalchemy.orm import Session, sessionmaker
from test_reviews import acting, claim, show
from test_sheets import Cache, columns
from working import run, train, upload

from app.errors import InvalidInput
from app.reviews import decisions, queue_files, rows
from app.reviews.job_rows import certainty
from app.reviews.progress import consistency, interval, interval_of_rows
from app.reviews.schemas import DecisionRequest, ImportedDecisions
from app.reviews.written_labels import UnknownLabel, WrittenLabels
from app.store import tables

GIVEN = (("a", "Ants", 0.9, True), ("b", "Bees", 0.6, True), ("0110", "Millers", 0.3, False))
ALTERNATIVES = [dict(zip(("label", "name", "probability", "predicted"), each, strict=True)) for each in GIVEN]
WORDS = {"food": "oven bread pan", "craft": "loom clay wheel", "law": "court act ruling"}
SETS = (["food"], ["craft"], ["law"], ["craft", "food"], ["food", "law"], [])


@pytest.fixture
def queue(database: sessionmaker[Session]) -> sessionmaker[Session]:
    """A database with the queue q of twelve rows, for which the model predicted the labels a and b."""
    fill(database)
    return database


def fill(database: sessionmaker[Session], opinions: int = 1) -> None:
    given: Any = {"job_id": "0" * 32, "model": "m", "version": 1, "dataset_id": None, "dataset_version": 1}
    given |= {"sure_share": 0.0, "seed": 0, "opinions": opinions, "promised": None, "created_at": 0.0}
    with database() as session:
        session.add(tables.Review(id="q" * 32, name="q", label_separator=",", **given))
        session.flush()
        for row in range(12):
            each = {"row": row, "place": row, "alternatives": ALTERNATIVES, "sure": False}
            session.add(tables.ReviewRow(review_id="q" * 32, state="open", revision=1, **each))
        session.commit()


def decide(database: sessionmaker[Session], person: str, row: int, *labels: str) -> Any:
    with acting(database, person) as session:
        return decisions.decide(session, "q", row, DecisionRequest(labels=[*labels]))


def test_a_set_is_decided_in_any_order_and_may_be_empty(queue: sessionmaker[Session]) -> None:
    [row] = claim(queue, "ann")
    found = decide(queue, "ann", row, "c", " a ", "c")
    assert (found.state, found.label, found.labels, found.opinions[0].labels) == (
        "decided",
        None,
        ["c", "a"],
        ["c", "a"],
    )
    assert [each.predicted for each in found.alternatives] == [True, True, False]
    assert decide(queue, "ann", row, "a", "c").revision == found.revision
    assert decide(queue, "ann", row).labels == []
    with acting(queue, "ann") as session:
        skipped = decisions.decide(session, "q", row, DecisionRequest(skip=True))
        assert (skipped.state, skipped.labels) == ("skipped", None)
        with pytest.raises(InvalidInput) as refused:
            decisions.decide(session, "q", row, DecisionRequest(labels=["a", "b\u0007"]))
        assert [item.pointer for item in refused.value.errors] == ["/labels/1"]


def test_people_agree_on_equal_sets_and_an_arbiter_decides_others(database: sessionmaker[Session]) -> None:
    fill(database, opinions=2)
    for row, mine, others in ((0, "ab", "ba"), (1, "ab", "b"), (2, "", ""), (3, "a", "bc")):
        decide(database, "ann", row, *mine)
        decide(database, "bob", row, *others)
    found = show(database)
    assert (found.states["decided"], found.states["disputed"]) == (2, 2)
    agreement = found.agreement
    assert (agreement.n_rows, agreement.agreed, agreement.kappa) == (4, 0.5, None)
    assert agreement.consistency == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)
    assert decide(database, "eve", 3, "a", "c").labels == ["a", "c"]
    assert show(database).agreement == agreement


def test_kept_and_added_labels_are_counted(queue: sessionmaker[Session]) -> None:
    assert show(queue).measured_precision is None
    for row, labels in enumerate(("ab", "abc", "a", "")):
        decide(queue, "ann", row, *labels)
    found = show(queue).measured_precision
    assert (found.of, found.n_rows, found.n_labels, found.n_right, found.n_added) == ("decided_rows", 4, 8, 5, 1)
    assert (found.precision, found.recall) == (5 / 8, 5 / 6)
    assert found.lower_bound < found.precision < found.upper_bound


def test_labels_of_a_row_that_are_all_right_or_all_wrong_count_as_one() -> None:
    assert interval_of_rows([1, 0, 1, 1, 0], [1] * 5) == pytest.approx(interval(3, 5))
    assert interval_of_rows([4, 0, 4, 4, 0], [4] * 5) == pytest.approx(interval(3, 5))
    assert interval_of_rows([2, 2, 0], [2, 2, 0]) == pytest.approx(interval(2, 2))
    lower, upper = interval_of_rows([3], [5])
    assert lower < 0.02
    assert upper > 0.99
    assert consistency([({"a"}, {"a", "b"}), (set(), set())]) == pytest.approx(5 / 6)


def test_the_expected_f1_of_a_set_is_low_where_its_labels_or_the_others_are_doubtful() -> None:
    assert certainty([], [0.1]) == 0.0
    assert certainty([1.0, 1.0], []) == 1.0
    assert certainty([0.9, 0.5], [0.1]) < certainty([0.9, 0.8], [0.1])
    assert certainty([0.9], [0.5]) < certainty([0.9], [0.1])


def read(database: sessionmaker[Session], file: Path, new_labels: bool = False) -> ImportedDecisions:
    cache: Any = Cache()
    with acting(database, "ann") as session:
        return queue_files.read(session, cache, "q", file, new_labels)


def test_a_workbook_of_sets_is_edited_by_a_person_and_comes_back(queue: sessionmaker[Session], tmp_path: Path) -> None:
    file = tmp_path / "q.xlsx"
    cache: Any = Cache()
    with acting(queue, "ann") as session:
        file.write_bytes(queue_files.write(session, cache, "q", None, "xlsx").content)
    book = openpyxl.load_workbook(file)
    sheet = book["Review"]
    at = columns(sheet)
    assert [sheet.cell(line, at["decision"]).value for line in range(2, 14)] == ["a,b"] * 12
    assert not any(name.startswith("choice") for name in at)

    def put(line: int, **cells: Any) -> int:
        for name, value in cells.items():
            sheet.cell(line, at[name]).value = value
        return int(sheet.cell(line, at["row"]).value)

    right = {
        put(2, decision="a"): ["a"],
        put(3, decision="a,b,millers", comment="names as well"): ["a", "b", "0110"],
        put(4, checked="x"): ["a", "b"],
        put(5, decision=None, checked="x"): [],
        put(6, decision="bees\n110"): ["b", "0110"],
    }
    put(7, decision="b , a")  # the same set: nobody has looked
    put(8, decision=None)
    unknown, alone = put(9, decision="a,zebra"), put(10, comment="what is this?")
    changed = put(11, decision="a")
    decide(queue, "bob", changed, "b")
    decide(queue, "bob", put(12), "b")  # decided meanwhile, and not touched in the file
    book.save(file)
    found = read(queue, file)
    assert (found.n_rows, found.n_decided, found.n_unchanged, found.n_empty) == (12, 5, 0, 4)
    assert [(each.line, each.row) for each in found.problems] == [(9, unknown), (10, alone), (11, changed)]
    assert [each.detail.partition(";")[0] for each in found.problems] == [
        "'zebra' is neither a label nor the name of exactly one",
        "a comment without a decision is not stored",
        "the row was changed after the file was made",
    ]
    with acting(queue, "ann") as session:
        stored = {row.row: row.labels for row in rows.listed(session, "q", 12).rows}
    assert {row: stored[row] for row in right} == right
    again = read(queue, file, new_labels=True)
    assert (again.n_decided, again.n_unchanged) == (1, 5)


def test_names_may_contain_the_separator() -> None:
    loaded = Cache().get(None)
    loaded.labels.shown["b"] = {"names": {"en": "Bees, wild, and wasps"}}
    written = WrittenLabels(loaded, False)
    assert written.find_set("ants, bees, wild, and wasps,, 0110", [], ",") == ["a", "b", "0110"]
    with pytest.raises(UnknownLabel, match="'wild'"):
        written.find_set("ants, wild", [], ",")


def test_what_is_the_name_of_several_labels_or_a_part_of_one_is_refused_with_them() -> None:
    loaded = Cache().get(None)
    loaded.labels.shown["a"] = {"names": {"en": "Insulation (electricity)"}}
    loaded.labels.shown["b"] = {"names": {"en": "Insulation (heat)"}}
    written = WrittenLabels(loaded, False)
    with pytest.raises(UnknownLabel) as refused:
        written.find("insulation", [])
    assert str(refused.value).endswith("; did you mean a (Insulation (electricity)) or b (Insulation (heat))?")
    with pytest.raises(UnknownLabel, match=r"allow new labels$"):
        written.find("in", [])


@pytest.fixture
def job(client: TestClient) -> str:
    """A prediction job over 24 rows with sets of labels; the model has no probabilities."""
    lines = ["text,label"]
    for number in range(24):
        labels = SETS[number % len(SETS)]
        words = [word for label in labels for word in WORDS[label].split()] or ["nothing"]
        lines.append(f"{' '.join(words)} {number},{';'.join(labels)}")
    dataset = upload(client, "sets", "\n".join(lines).encode(), "csv", label_separator=";")
    assert dataset["state"] == "ready", dataset
    trained = train(client, "sets", "m", solver="node_svm", params={"C": 1.0})
    assert trained["state"] == "succeeded", trained
    asked = {"kind": "predict", "model": "m", "dataset": "sets", "top_k": 3}
    id: str = client.post("/api/v1/jobs", json=asked).json()["id"]
    run(id)
    assert client.get(f"/api/v1/jobs/{id}").json()["state"] == "succeeded"
    return id


def test_all_rows_of_a_job_over_sets_are_decided_and_appended_as_sets(client: TestClient, job: str) -> None:
    made = client.post("/api/v1/reviews", json={"name": "q", "job": job})
    assert made.status_code == 201, made.text
    assert (made.json()["n_rows"], made.json()["label_separator"]) == (24, ";")
    rows = client.get("/api/v1/reviews/q/rows").json()["rows"]
    assert not any(each["predicted"] for each in rows[0]["alternatives"]), "rows without a label come first"
    assert {len(row["alternatives"]) for row in rows} == {3}
    several = next(row for row in rows if sum(each["predicted"] for each in row["alternatives"]) == 2)
    at = f"/api/v1/reviews/q/decisions/{several['row']}"
    assert client.put(at, json={"labels": ["law", "new"], "new_labels": True}).json()["labels"] == ["law", "new"]
    empty = client.put(f"/api/v1/reviews/q/decisions/{rows[0]['row']}", json={"labels": []}).json()
    assert (empty["state"], empty["label"], empty["labels"]) == ("decided", None, [])
    problem(client.put(at, json={"labels": ["law"], "skip": True}), 422)
    run(client.post("/api/v1/reviews/q/append", json={}).json()["id"])
    last = client.get("/api/v1/datasets/sets/rows", params={"offset": 24}).json()["rows"]
    assert {row["text"]: sorted(row["labels"]) for row in last} == {
        several["text"]: ["law", "new"],
        rows[0]["text"]: [],
    }
