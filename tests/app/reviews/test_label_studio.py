"""Reviews in Label Studio: rows go out as tasks, and the annotations of its exports come back as decisions."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from asking import TestClient, problem
from sqlalchemy.orm import Session, sessionmaker
from test_reviews import acting, claim, decide, fill, show
from test_sets import fill as fill_sets
from test_sheets import NAMES, Cache, Loaded

from app.errors import Forbidden, InvalidInput, NotFound
from app.hierarchies.version_labels import VersionLabels
from app.reviews import label_studio, queue_files, rows
from app.reviews.schemas import ImportedDecisions
from app.store import db, tables
from app.store.scope import DEFAULT, Scope, confine

Task = dict[str, Any]
PATHS = {"food": ["food"], "bread": ["food", "bread"], "käse & brot": ["food", "käse & brot"], "law": ["law"]}


class Tree(Cache):
    """Knows a version with a hierarchy, whose labels have names that Label Studio must keep apart."""

    def __init__(self) -> None:
        super().__init__()
        shown = {"bread": {"names": {"en": "Bread"}, "notation": "1"}, "käse & brot": {"names": {"en": "<Käse>\u000b"}}}
        self._loaded = Loaded(
            model=SimpleNamespace(classes=tuple(PATHS)),
            tree=SimpleNamespace(names=("food", "law")),
            labels=VersionLabels(shown=shown),
            label_form=lambda label: label,
            path=lambda label: PATHS[label],
        )


class Flat(Cache):
    def __init__(self, known: bool = True) -> None:
        super().__init__(known)
        self._loaded.path = lambda label: None


def written(
    database: sessionmaker[Session], format: Any, cache: Any = None, state: str | None = None, ref: str = "q"
) -> bytes:
    with acting(database, "ann") as session:
        return queue_files.write(session, cache or Flat(), ref, state, format).content


def tasks(database: sessionmaker[Session], cache: Any = None, state: str | None = None) -> list[Task]:
    found: list[Task] = json.loads(written(database, "label-studio", cache, state))
    return sorted(found, key=lambda task: int(task["data"]["row"]))


def configuration(database: sessionmaker[Session], cache: Any = None) -> ElementTree.Element:
    return ElementTree.fromstring(written(database, "label-studio-config", cache))


def result(*labels: str, kind: str = "choices", other: Sequence[str] = (), comment: str = "") -> list[dict[str, Any]]:
    """What Label Studio stores of the choices and texts of a task."""
    item = {"id": "x1", "to_name": "text", "origin": "manual"}
    chosen = [PATHS[label] for label in labels] if kind == "taxonomy" else labels
    found = [item | {"from_name": "label", "type": kind, "value": {kind: chosen}}] if labels else []
    for name, texts in (("other", other), ("comment", [comment] if comment else ())):
        if texts:
            found.append(item | {"from_name": name, "type": "textarea", "value": {"text": list(texts)}})
    return found


def annotation(who: object, *labels: str, at: int = 1, more: dict[str, Any] | None = None, **given: Any) -> Task:
    return {
        "id": 1000 + at,
        "completed_by": who,
        "result": result(*labels, **given),
        "was_cancelled": False,
        "ground_truth": False,
        "created_at": f"2025-03-09T21:52:{at:02}.513742Z",
        "lead_time": 4.2,
    } | (more or {})


def exported(task: Task, *annotations: Task) -> Task:
    """A task as Label Studio exports it in JSON."""
    predictions = [each | {"id": 7, "created_ago": "3 hours"} for each in task["predictions"]]
    return {
        "id": task["data"]["row"] + 500,
        "inner_id": 1,
        "annotations": list(annotations),
        "drafts": [],
        "predictions": predictions,
        "data": task["data"],
        "meta": {},
        "project": 3,
    }


def flattened(task: Task) -> list[Task]:
    """A task as Label Studio exports it in JSON-MIN: a record for each annotation that was not cancelled."""
    found = []
    for each in task["annotations"]:
        record = task["data"] | {"id": task["id"], "annotation_id": each["id"], "created_at": each["created_at"]}
        who = each["completed_by"]
        record |= {"annotator": who["email"] if isinstance(who, dict) else who, "lead_time": each["lead_time"]}
        for item in each["result"]:
            [values] = item["value"].values()
            record[item["from_name"]] = (
                [item["value"]] if item["type"] == "taxonomy" else values[0] if len(values) == 1 else item["value"]
            )
        found += [] if each["was_cancelled"] else [record]
    return found


def read(
    database: sessionmaker[Session],
    file: Path,
    found: Sequence[Task] | str,
    cache: Any = None,
    new_labels: bool = False,
    edits: bool = True,
) -> ImportedDecisions:
    file.write_text(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False), "utf-8")
    with confine(database(), Scope(DEFAULT, "ann", edits=edits)) as session:
        return queue_files.read(session, cache or Flat(), "q", file, new_labels)


def stored(database: sessionmaker[Session]) -> dict[int, Any]:
    with acting(database, "ann") as session:
        return {row.row: row for row in rows.listed(session, "q", 100).rows}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "export.json"


@pytest.fixture
def queue(database: sessionmaker[Session]) -> sessionmaker[Session]:
    fill(database, "q", opinions=1, n_rows=12)
    return database


def test_tasks_have_what_comes_back_and_the_answer_as_the_last_prediction(queue: sessionmaker[Session]) -> None:
    with queue() as session:
        session.get_one(tables.Review, "q" * 32).sure_share = 0.0
        session.get_one(tables.ReviewRow, ("q" * 32, 1)).text = "naïve “text”"
        session.commit()
    decide(queue, "ann", 0, "a")
    found = tasks(queue, state="open")
    assert [task["data"]["row"] for task in found] == list(range(1, 12))
    assert found[0]["data"] == {
        "review": "q" * 32,
        "row": 1,
        "revision": 1,
        "row_id": None,
        "text": "naïve “text”",
    }
    assert found[1]["data"]["text"] == "Row 2"
    predicted = [(each["model_version"], each["score"], each["result"]) for each in found[0]["predictions"]]
    item = {"id": "label", "from_name": "label", "to_name": "text", "type": "choices"}
    assert predicted == [
        ("m/1, alternative 2", 0.3, [item | {"value": {"choices": ["b"]}}]),
        ("m/1", 0.4, [item | {"value": {"choices": ["a"]}}]),
    ]


def test_queues_that_hide_probabilities_have_no_scores_until_a_row_is_decided(queue: sessionmaker[Session]) -> None:
    decide(queue, "ann", 3, "a")
    scored = [task["data"]["row"] for task in tasks(queue) if any("score" in each for each in task["predictions"])]
    assert scored == [3]


def test_rows_of_columns_are_tables_and_sets_have_the_least_probability_as_score(
    database: sessionmaker[Session],
) -> None:
    fill_sets(database)
    with database() as session:
        for row in session.query(tables.ReviewRow):
            row.record = {"Titel": "Bäckerei", "pages": 3, "none": None}
        session.commit()
    found = tasks(database)[0]
    assert found["data"]["record"] == {"Titel": "Bäckerei", "pages": 3}
    assert "text" not in found["data"]
    answer = found["predictions"][-1]
    assert answer["result"][0]["value"] == {"choices": ["a", "b"]}
    assert answer["result"][0]["to_name"] == "record"
    assert answer["score"] == 0.6
    view = configuration(database)
    assert [each.tag for each in view] == ["Table", "Choices", "TextArea", "TextArea"]
    assert view[0].attrib == {"name": "record", "value": "$record"}
    assert view[1].attrib == {"name": "label", "toName": "record", "choice": "multiple"}


def test_few_labels_are_buttons_with_their_names(queue: sessionmaker[Session]) -> None:
    view = configuration(queue)
    assert [each.tag for each in view] == ["Text", "Choices", "TextArea", "TextArea"]
    assert view[1].attrib == {"name": "label", "toName": "text", "choice": "single"}
    assert [each.attrib for each in view[1]] == [{"value": f"{code} {NAMES[code]}", "alias": code} for code in NAMES]
    left = configuration(queue, Flat(known=False))
    assert [each.attrib for each in left[1]] == [{"value": "a", "alias": "a"}, {"value": "b B", "alias": "b"}]


def test_a_hierarchy_is_a_taxonomy_whose_paths_lead_to_the_labels(queue: sessionmaker[Session], file: Path) -> None:
    with queue() as session:
        for row in session.query(tables.ReviewRow):
            row.alternatives = [{"label": "bread", "name": "Bread", "probability": 0.5}]
        session.commit()
    view = configuration(queue, Tree())
    control = view[1]
    assert (control.tag, control.get("maxUsages"), control.get("showFullPath")) == ("Taxonomy", "1", "true")
    assert [(each.get("alias"), [below.attrib for below in each]) for each in control] == [
        ("food", [{"value": "1 Bread", "alias": "bread"}, {"value": "käse & brot <Käse>", "alias": "käse & brot"}]),
        ("law", []),
    ]
    first, second, *_ = tasks(queue, Tree())
    [prediction] = first["predictions"]
    assert prediction["result"][0]["value"] == {"taxonomy": [["food", "bread"]]}
    given = [exported(first, annotation(1, "käse & brot", kind="taxonomy"))]
    given.append(exported(second, annotation(1, "food", kind="taxonomy")))
    assert read(queue, file, given, Tree()).n_decided == 2
    assert [stored(queue)[row].label for row in (0, 1)] == ["käse & brot", "food"]


def test_equal_names_of_siblings_are_told_apart_and_addresses_are_not_shown(queue: sessionmaker[Session]) -> None:
    cache: Any = Flat()
    labels = ("http://example.org/1", "http://example.org/2", "http://example.org/3")
    shown = {label: {"names": {"en": "Bank"}} for label in labels[:2]}
    cache._loaded = Loaded(model=SimpleNamespace(classes=labels), tree=None, labels=VersionLabels(shown=shown))
    cache._loaded.path = lambda label: None
    titles = [each.get("value") for each in configuration(queue, cache)[1]]
    assert titles == ["Bank", f"Bank ({labels[1]})", labels[2]]


def test_many_labels_are_a_list_that_is_searched_and_too_many_are_typed(
    queue: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_studio, "MOST_BUTTONS", 3)
    control = configuration(queue)[1]
    assert (control.tag, len(control)) == ("Taxonomy", 4)
    assert tasks(queue)[0]["predictions"][-1]["result"][0]["value"] == {"taxonomy": [["a"]]}
    monkeypatch.setattr(label_studio, "MOST_LISTED", 3)
    view = configuration(queue)
    assert view[1].get("value") == "The list has 2 of 4 labels. Type others below it."
    assert [each.get("alias") for each in view[2]] == ["a", "b"]


@pytest.mark.parametrize("shape", [lambda task: [task], flattened], ids=["json", "json-min"])
def test_annotations_are_decisions_of_their_annotators(
    queue: sessionmaker[Session], file: Path, shape: Callable[[Task], list[Task]]
) -> None:
    open_ = tasks(queue)
    given = [
        exported(open_[0], annotation(1, "b")),
        exported(open_[1], annotation({"id": 2, "email": "zoë@example.org"}, "0110", comment="schön")),
        exported(open_[2], annotation(1, "a", other=[" Bakers "])),
        exported(open_[3], annotation(1, "zebra")),
        exported(open_[4], annotation(1, "a", "b")),
        exported(open_[5], annotation(1)),
    ]
    found = read(queue, file, [record for task in given for record in shape(task)])
    assert (found.n_rows, found.n_decided, found.n_unchanged, found.n_empty) == (6, 3, 0, 1)
    assert [(each.line, each.row, each.detail) for each in found.problems] == [
        (4, 3, "'zebra' is neither a label nor the name of exactly one; correct the decision, or allow new labels"),
        (5, 4, "the review has one label per row"),
    ]
    now = stored(queue)
    assert [now[row].label for row in range(3)] == ["b", "0110", "0120"]
    assert [now[row].opinions[0].person for row in range(2)] == ["label-studio:1", "label-studio:zoë@example.org"]
    assert now[1].opinions[0].comment == "schön"
    again = read(queue, file, [record for task in given for record in shape(task)], new_labels=True)
    assert (again.n_decided, again.n_unchanged, again.n_problems) == (1, 3, 1)
    assert stored(queue)[3].label == "zebra"


def test_a_cancelled_annotation_skips_and_a_task_without_one_leaves_the_row(
    queue: sessionmaker[Session], file: Path
) -> None:
    first, second, *_ = tasks(queue)
    given = [exported(first, annotation(1, "a", more={"was_cancelled": True})), exported(second)]
    found = read(queue, file, given)
    assert (found.n_decided, found.n_empty, found.n_problems) == (1, 1, 0)
    assert [stored(queue)[row].state for row in (0, 1)] == ["skipped", "open"]
    assert read(queue, file, given).n_unchanged == 1
    # the person decides later, in the same task
    given[0]["annotations"].append(annotation(1, "b", at=2))
    assert read(queue, file, given).n_decided == 1
    assert (stored(queue)[0].state, stored(queue)[0].label) == ("decided", "b")


def test_two_annotators_are_the_two_people_of_a_row_and_a_third_is_the_arbiter(
    database: sessionmaker[Session], file: Path
) -> None:
    fill(database, "q", opinions=2, n_rows=3)
    open_ = tasks(database)
    given = [
        exported(open_[0], annotation(1, "a"), annotation(2, "a", at=2)),
        exported(open_[1], annotation(2, "b", at=2), annotation(1, "a")),
        exported(open_[2], annotation(1, "a")),
    ]
    with pytest.raises(Forbidden, match="editor"):
        read(database, file, given, edits=False)
    assert read(database, file, given).n_decided == 5
    assert [stored(database)[row].state for row in range(3)] == ["decided", "disputed", "open"]
    assert show(database).agreement.n_rows == 2
    # the next export has all of these, the second opinion of the last row, and an arbiter's of the disputed one
    given[2]["annotations"].append(annotation(2, "a", at=3))
    given[1]["annotations"].insert(0, annotation(3, "b", more={"ground_truth": True}))
    found = read(database, file, given)
    assert (found.n_decided, found.n_unchanged, found.n_problems) == (2, 5, 0)
    now = stored(database)
    assert [now[row].label for row in range(3)] == ["a", "b", "a"]
    assert [each.person for each in now[1].opinions if each.arbiter] == ["label-studio:3"]


def test_where_one_opinion_is_wanted_others_must_agree_or_one_be_ground_truth(
    queue: sessionmaker[Session], file: Path
) -> None:
    open_ = tasks(queue)
    given = [
        exported(open_[0], annotation(1, "a"), annotation(2, "a", at=2)),
        exported(open_[1], annotation(1, "a"), annotation(2, "b", at=2)),
        exported(open_[2], annotation(1, "a"), annotation(2, "b", at=2, more={"ground_truth": True})),
    ]
    found = read(queue, file, given, edits=False)
    assert (found.n_rows, found.n_decided, found.n_unchanged) == (5, 3, 1)
    assert [(each.row, each.detail) for each in found.problems] == [(1, "row 1 is decided; claim another row")]
    assert [stored(queue)[row].label for row in range(3)] == ["a", "a", "b"]


def test_rows_that_were_decided_or_claimed_here_meanwhile_are_left_alone(
    database: sessionmaker[Session], file: Path
) -> None:
    fill(database, "q", opinions=2, n_rows=3)
    open_ = tasks(database)
    decide(database, "bob", 0, "b")
    claim(database, "bob", count=1)
    found = read(database, file, [exported(task, annotation(1, "a")) for task in open_])
    assert found.n_decided == 1
    why = {each.row: each.detail for each in found.problems}
    assert why[0].startswith("the row was changed after the file was made")
    assert "'bob' has claimed" in why[2]
    # rows that are exported after a person's opinion take two of annotators at once
    fresh = exported(tasks(database)[0], annotation(1, "a"), annotation(2, "a", at=2))
    assert read(database, file, [fresh]).n_decided == 2
    assert stored(database)[0].label == "a"


def test_sets_are_confirmed_changed_and_empty(database: sessionmaker[Session], file: Path) -> None:
    fill_sets(database)
    open_ = tasks(database)
    given = [
        exported(open_[0], annotation(1, "a", "b")),
        exported(open_[1], annotation(1, "b", other=["millers", "0120"])),
        exported(open_[2], annotation(1)),
    ]
    assert read(database, file, given).n_decided == 3
    now = stored(database)
    assert [now[row].labels for row in range(3)] == [["a", "b"], ["b", "0110", "0120"], []]
    assert read(database, file, [record for task in given for record in flattened(task)]).n_unchanged == 3


def test_tasks_that_were_changed_are_listed(queue: sessionmaker[Session], file: Path) -> None:
    open_ = tasks(queue)
    for at, change in enumerate(({"review": "other"}, {"row": 99}, {"revision": "x"})):
        open_[at]["data"] |= change
    given = [exported(task, annotation(1, "a")) for task in open_[:3]]
    given += [
        exported(open_[3], annotation(1, "a") | {"result": "none"}),
        exported(open_[4], annotation({"id": "\u0000"}, "a")),
        exported(open_[5], annotation(1, "a", comment="\u0000")),
        exported(open_[6], annotation(1, "a") | {"result": [{"from_name": "label", "value": {"choices": [None]}}]}),
        {"data": open_[7]["data"]},
        exported(open_[8], annotation(None, "a")),
    ]
    found = read(queue, file, given)
    assert (found.n_decided, [each.line for each in found.problems]) == (1, list(range(1, 9)))
    details = [each.detail for each in found.problems]
    assert "another review" in details[0]
    assert "number or revision" in details[1]
    assert "number or revision" in details[2]
    assert "result" in details[3]
    assert "annotator" in details[4]
    assert "list of annotations" in details[7]
    assert stored(queue)[8].opinions[0].person == "ann"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('[{"data": {"text": "x"}, "annotations": []}]', "not an export of this review's tasks"),
        ("[]", "not an export of this review's tasks"),
        ('[{"data": {}, ', "cannot be read"),
        ('[{"data": {}, "annotations": []}] and more', "cannot be read"),
        ('{"labels": ["a"]}', "not an export of this review's tasks"),
    ],
)
def test_files_that_are_no_exports_of_a_review_are_refused(
    queue: sessionmaker[Session], file: Path, content: str, fault: str
) -> None:
    with pytest.raises(InvalidInput, match=fault):
        read(queue, file, content)
    with pytest.raises(NotFound):
        written(queue, "label-studio", ref="none")


def test_the_routes_give_tasks_and_configuration_and_take_an_export(client: TestClient) -> None:
    fill(db.sessions(), "q", opinions=1, n_rows=4)
    path = "/api/v1/reviews/q/sheet"
    answer = client.get(path, params={"format": "label-studio", "state": "open"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.headers["content-disposition"] == 'attachment; filename="q-m-1.json"'
    config = client.get(path, params={"format": "label-studio-config"})
    assert (config.headers["content-type"], ElementTree.fromstring(config.content).tag) == ("application/xml", "View")
    problem(client.get(path, params={"format": "pdf"}), 422)
    given = [exported(task, annotation(5, "a")) for task in answer.json()]
    found = client.post("/api/v1/reviews/q/decisions", content=json.dumps(given).encode()).json()
    assert (found["n_decided"], found["n_problems"]) == (4, 0)
    people = client.get("/api/v1/reviews/q").json()["people"]
    assert people == [{"person": "label-studio:5", "n_decided": 4, "n_skipped": 0}]
    problem(client.post("/api/v1/reviews/q/decisions", content=b'[{"data": 1}]'), 422)
