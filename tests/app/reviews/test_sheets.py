"""Reviews as spreadsheets: rows go out, people edit them, and their decisions come back."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openpyxl
import pytest
from asking import TestClient, problem
from sqlalchemy.orm import Session, sessionmaker
from test_reviews import acting, claim, decide, fill, show

from app.errors import InvalidInput, NotFound
from app.hierarchies.version_labels import VersionLabels
from app.reviews import queue_files, rows
from app.reviews.schemas import ImportedDecisions
from app.store import db, tables

NAMES = {"a": "Ants", "b": "Bees", "0110": "Millers", "0120": "Bakers"}


class Loaded(SimpleNamespace):
    """In place of a version in memory."""

    __hash__ = object.__hash__


class Cache:
    """Knows the labels of one version, or of none."""

    def __init__(self, known: bool = True) -> None:
        shown = {label: {"names": {"en": name}} for label, name in NAMES.items()}
        labels = VersionLabels(shown=shown, replaced={"0119": "0110"})
        self._loaded = Loaded(
            model=SimpleNamespace(classes=tuple(NAMES)), tree=None, labels=labels, label_form=lambda label: label
        )
        self._known = known

    def get(self, reference: Any) -> Any:
        if not self._known:
            raise NotFound("no such version")
        return self._loaded


@pytest.fixture
def queue(database: sessionmaker[Session]) -> sessionmaker[Session]:
    fill(database, "q", opinions=1, n_rows=12)
    return database


def made(database: sessionmaker[Session], file: Path) -> Any:
    """The workbook that the service makes."""
    cache: Any = Cache()
    with acting(database, "ann") as session:
        made = queue_files.write(session, cache, "q", None, "xlsx")
    assert made.name == "q-m-1.xlsx"
    file.write_bytes(made.content)
    return openpyxl.load_workbook(file)


def read(
    database: sessionmaker[Session], file: Path, known: bool = True, new_labels: bool = False
) -> ImportedDecisions:
    cache: Any = Cache(known)
    with acting(database, "ann") as session:
        return queue_files.read(session, cache, "q", file, new_labels)


def columns(sheet: Any) -> dict[str, int]:
    return {cell.value: cell.column for cell in sheet[1]}


def test_the_first_of_two_opinions_does_not_outdate_the_file_of_the_other_person(
    database: sessionmaker[Session], tmp_path: Path
) -> None:
    fill(database, "q", opinions=2, n_rows=3)
    file = tmp_path / "q.xlsx"
    book = made(database, file)
    sheet = book["Review"]
    for line in range(2, 5):
        sheet.cell(line, columns(sheet)["decision"]).value = "a"
    book.save(file)
    rows = [int(sheet.cell(line, columns(sheet)["row"]).value) for line in range(2, 5)]
    decide(database, "bob", rows[0], "b")
    decide(database, "bob", rows[1], "a")
    decide(database, "eve", rows[1], "a")
    found = read(database, file)
    assert (found.n_decided, found.n_unchanged) == (2, 1)
    with acting(database, "ann") as session:
        assert [session.get_one(tables.ReviewRow, ("q" * 32, row)).state for row in rows] == [
            "disputed",
            "decided",
            "open",
        ]


def test_a_second_line_of_a_row_is_refused_with_the_number_of_the_first(
    queue: sessionmaker[Session], tmp_path: Path
) -> None:
    file = tmp_path / "q.xlsx"
    book = made(queue, file)
    sheet = book["Review"]
    sheet.cell(2, columns(sheet)["decision"]).value = "a"
    sheet.append([cell.value for cell in sheet[2]])
    sheet.cell(sheet.max_row, columns(sheet)["decision"]).value = "b"
    book.save(file)
    found = read(queue, file)
    assert found.n_decided == 1
    assert [each.detail for each in found.problems] == [
        "line or task 2 of the file has decided the row already; delete one of them"
    ]


def test_a_workbook_is_edited_by_a_person_and_comes_back(queue: sessionmaker[Session], tmp_path: Path) -> None:
    file = tmp_path / "q.xlsx"
    book = made(queue, file)
    sheet = book["Review"]
    at = columns(sheet)
    hidden = {letter for letter, size in sheet.column_dimensions.items() if size.hidden}
    assert {"A", "B", "C"} <= hidden
    assert not any("sure" in str(name) or "probability" in str(name) for name in at)
    [rule] = sheet.data_validations.dataValidation
    assert rule.type == "list"

    def put(line: int, label: Any, comment: str | None = None) -> int:
        sheet.cell(line, at["decision"]).value = label
        sheet.cell(line, at["comment"]).value = comment
        return int(sheet.cell(line, at["row"]).value)

    right = {put(2, "b"): "b", put(3, "bees", "clear"): "b", put(4, " Bakers "): "0120", put(5, 110): "0110"}
    right[put(12, "0119")] = "0110"  # retired
    unknown, alone = put(6, "zebra"), put(7, None, "what is this?")
    foreign = put(8, "a")
    sheet.cell(8, at["review"]).value = "other"
    spoilt = put(9, "a")
    sheet.cell(9, at["revision"]).value = "x"
    changed = put(10, "a")
    decide(queue, "bob", changed, "b")
    taken = put(11, "a")
    claim(queue, "bob", count=12)
    for row in (*right, unknown):
        free(queue, row)
    # a note of one's own at the right, another sheet in front, lines in another order
    sheet.cell(1, sheet.max_column + 1).value = "my notes"
    book.create_sheet("Totals", 0)["A1"] = "rows"
    book.save(file)
    found = read(queue, file)
    assert (found.n_rows, found.n_decided, found.n_unchanged, found.n_empty) == (12, 5, 0, 1)
    why = {each.row: (each.line, each.detail) for each in found.problems}
    assert set(why) == {unknown, alone, foreign, spoilt, changed, taken}
    assert why[unknown] == (
        6,
        "'zebra' is neither a label nor the name of exactly one; correct the decision, or allow new labels",
    )
    assert why[alone][1].startswith("a comment without a decision")
    assert "another review" in why[foreign][1]
    assert "revision of the row was changed" in why[spoilt][1]
    assert "changed after the file was made" in why[changed][1]
    assert "'bob' has claimed" in why[taken][1]
    with acting(queue, "ann") as session:
        stored = {row.row: row for row in rows.listed(session, "q", 12).rows}
    assert {row: stored[row].label for row in right} == right
    assert stored[changed].label == "b"
    again = read(queue, file, new_labels=True)
    assert (again.n_decided, again.n_unchanged) == (1, 5)
    assert show(queue).states["decided"] == 7


def free(database: sessionmaker[Session], row: int) -> None:
    with acting(database, "bob") as session:
        rows.release(session, "q", [row])


def test_a_csv_file_with_semicolons_does_as_well(queue: sessionmaker[Session], tmp_path: Path) -> None:
    sheet = made(queue, tmp_path / "q.xlsx").active
    at = columns(sheet)
    lines = ["review;row;revision;decision"]
    for line in (2, 3):
        lines.append(";".join(str(sheet.cell(line, at[name]).value) for name in ("review", "row", "revision")) + ";a")
    (tmp_path / "q.csv").write_text("\ufeff" + "\r\n".join(lines))
    assert read(queue, tmp_path / "q.csv", known=False).n_decided == 2


def test_files_that_are_no_spreadsheets_of_a_review_are_refused(queue: sessionmaker[Session], tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(["row", "label"])
    book.save(tmp_path / "other.xlsx")
    (tmp_path / "broken.xlsx").write_bytes(b"PK\x03\x04 nothing")
    (tmp_path / "latin.csv").write_bytes("review;décision".encode("latin-1"))
    for name, fault in (
        ("other.xlsx", "not a spreadsheet of this review"),
        ("broken.xlsx", "the workbook cannot be read"),
        ("latin.csv", "the file cannot be read"),
    ):
        with pytest.raises(InvalidInput, match=fault):
            read(queue, tmp_path / name)


def test_the_routes_give_the_workbook_and_take_it_back(client: TestClient) -> None:
    fill(db.sessions(), "q", opinions=1, n_rows=4)
    answer = client.get("/api/v1/reviews/q/sheet", params={"state": "open"})
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="q-m-1.xlsx"'
    book = openpyxl.load_workbook(io.BytesIO(answer.content))
    sheet = book.active
    sheet.cell(2, columns(sheet)["decision"]).value = "a"
    sheet.cell(3, columns(sheet)["decision"]).value = "new"
    stream = io.BytesIO()
    book.save(stream)
    found = client.post("/api/v1/reviews/q/decisions", content=stream.getvalue()).json()
    assert (found["n_decided"], found["n_problems"]) == (1, 1)
    found = client.post("/api/v1/reviews/q/decisions", params={"new_labels": True}, content=stream.getvalue()).json()
    assert (found["n_decided"], found["n_unchanged"], found["n_problems"]) == (1, 1, 0)
    problem(client.post("/api/v1/reviews/none/decisions", content=b"x"), 404)
    problem(client.post("/api/v1/reviews/q/decisions", content=b"a,b\n1,2\n"), 422)
