"""Coding jobs: the columns of the input, what is sure, and files that spreadsheets open."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interrupting import Crash, expire
from sqlalchemy.orm import Session, sessionmaker
from test_predicting import predicted, submitted, trained

from app.datasets import corrections
from app.datasets import service as datasets
from app.datasets.schemas import CorrectionsRequest, LabelCorrection, NewDataset
from app.jobs import service as jobs
from app.predictions import batch_predictions
from app.predictions.batch_predictions import plan
from app.predictions.model_cache import ModelCache
from app.predictions.schemas import BatchPredictRequest
from app.store.files import files
from workers.job_kinds import predicting
from workers.tasks import run

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

TITLES = {"0110": "miller", "0120": "baker", "0210": "driver", "0220": "pilot"}
HEADER = "code,title,branch\n"
ROWS = [
    ("0011", "bread baker", "=1+1"),
    ("0012", "truck driver", "-5"),
    ("0013", "a pilot, senior", "@home"),
    ("0014", "flour miller", "\tx"),
    ("0015", "singer", "007"),
]
ANSWERS = ["label", "notation", "name", "probability", "sure", "sure_ancestor"]
SECOND = ["label_2", "name_2", "probability_2", "label_3", "name_3", "probability_3"]


@pytest.fixture
def coded(session: Session, dataset: Callable[..., str]) -> str:
    """A model with probabilities of four codes, which have leading zeros."""
    lines = [
        json.dumps({"text": f"{title} {word}", "label": label})
        for label, title in TITLES.items()
        for word in ("flour", "truck", "bread", "plane", "head", "young", "old", "senior", "first", "second")
    ]
    dataset("\n".join(lines) + "\n", "jobs", format="jsonl")
    trained(session, dataset="jobs", solver="auto", params={"candidates": [{"solver": "weston_watkins"}], "folds": 2})
    return "m"


def written(rows: list[tuple[str, ...]] = ROWS, header: str = HEADER) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return header + text.getvalue()


def uploaded(session: Session, content: bytes | str, name: str = "rows", format: Any = "csv", **options: Any) -> str:
    upload = files().upload()
    upload.write(content.encode() if isinstance(content, str) else content)
    given = {"for_model": "m", "text_columns": ("title",)} | options
    shown = datasets.register(session, NewDataset(name=name, format=format, **given), upload)
    assert shown.job is not None
    run(shown.job)
    assert datasets.get(session, shown.id).error is None
    return shown.id


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    header, *rows = csv.reader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
    return header, rows


def test_the_columns_of_the_input_come_first_and_untouched(session: Session, coded: str) -> None:
    uploaded(session, written())
    header, rows = read(predicted(session, dataset="rows", format="csv", top_k=3, min_precision=0.5))
    assert header[:16] == ["code", "title", "branch", *ANSWERS, *SECOND, "model"]
    assert [row[:2] for row in rows] == [[code, title] for code, title, _ in ROWS]
    assert [row[3] for row in rows[:4]] == ["0120", "0210", "0220", "0110"]
    assert {row[header.index("model")] for row in rows} == {"m@1"}
    parquet = pq.read_table(predicted(session, dataset="rows", top_k=3))
    assert parquet.column("branch").to_pylist() == [branch for _, _, branch in ROWS]


def test_rows_keep_their_own_columns_after_a_row_was_deleted_and_beside_blank_rows(
    session: Session, coded: str
) -> None:
    uploaded(session, written([ROWS[0], ("", "", ""), *ROWS[1:]]))
    assert [row[0] for row in read(predicted(session, dataset="rows", format="csv"))[1]] == [row[0] for row in ROWS]
    request = CorrectionsRequest(corrections=[LabelCorrection(row=1, delete=True)])
    run(corrections.correct_labels(session, "rows", request).id)
    found = read(predicted(session, dataset="rows", format="csv"))[1]
    assert [(row[0], row[3]) for row in found[:3]] == [("0011", "0120"), ("0013", "0220"), ("0014", "0110")]


def test_rows_keep_their_own_columns_where_those_of_other_languages_were_left_out(session: Session, coded: str) -> None:
    english = "the miller works with the flour that the farmers bring to the mill every morning"
    finnish = "mylläri jauhaa viljaa, jonka maanviljelijät tuovat joka aamu vanhalle myllylle"
    uploaded(session, written([("1", finnish, "fi"), ("2", english, "en")]), languages=("en",))
    header, rows = read(predicted(session, dataset="rows", format="csv"))
    assert (header[0], [row[0] for row in rows]) == ("text", [english])


def test_cells_that_spreadsheets_read_as_formulas_are_guarded_in_csv_and_numbers_are_not(
    session: Session, coded: str
) -> None:
    uploaded(session, written())
    path = predicted(session, dataset="rows", format="csv", bom=True)
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert [row[2] for row in read(path)[1]] == ["'=1+1", "-5", "'@home", "'\tx", "007"]


def test_several_numbers_in_a_cell_are_no_formula_and_stay_numbers(session: Session, coded: str) -> None:
    uploaded(session, written([("0016", "old singer", "-1.5;-2e-3"), ("0017", "pilot", "-1;=2")]))
    path = predicted(session, dataset="rows", format="csv")
    assert [row[2] for row in read(path)[1]] == ["-1.5;-2e-3", "'-1;=2"]


def test_a_column_of_the_input_that_answers_have_too_is_renamed(session: Session, coded: str) -> None:
    uploaded(session, "label,title,input.label,model,id\nx,bread baker,y,z,7\n")
    id = submitted(session, dataset="rows", format="csv")
    run(id)
    header, rows = read(batch_predictions.of_job(session, id).path)
    assert header[:6] == ["input.input.label", "title", "input.label", "input.model", "id", "label"]
    assert rows[0][:6] == ["x", "bread baker", "y", "z", "7", "0120"]
    assert rows[0][header.index("model")] == "m@1"
    result = jobs.get(session, id).result
    assert result is not None
    assert result.columns == header


def test_values_of_json_lines_keep_their_types(session: Session, coded: str) -> None:
    rows = [{"title": "bread baker", "n": 1, "tags": ["a"], "code": "01"}, {"title": "pilot", "code": "02"}]
    uploaded(session, "".join(json.dumps(row) + "\n" for row in rows), format="jsonl")
    lines = predicted(session, dataset="rows", format="jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [{key: line[key] for key in row} for line, row in zip(found, rows, strict=True)] == rows
    assert "n" not in found[1]
    table = pq.read_table(predicted(session, dataset="rows")).to_pylist()
    assert (table[0]["n"], table[0]["tags"], table[0]["code"], table[1]["n"]) == ("1", '["a"]', "01", None)


COLUMNS: dict[str, pa.Array] = {
    "view": pa.array(["=1+1", "b"], pa.string_view()),
    "levels": pa.array(["=1+1", "b"]).dictionary_encode(),
    "half": pa.array(np.array([0.1, 2], np.float16)),
    "money": pa.array([Decimal("7.00"), None], pa.decimal128(9, 2)),
    "moment": pa.array([datetime(2024, 1, 31, 12, tzinfo=UTC), None], pa.timestamp("ns", "Europe/Berlin")),
    "hour": pa.array([time(9, 30), None]),
    "lasted": pa.array([timedelta(1), None]),
    "bytes": pa.array([b"\xff", b"b"]),
    "byte_view": pa.array([b"x", None], pa.binary_view()),
    "list": pa.array([["a"], None]),
    "struct": pa.array([{"a": 1}, None]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())),
    "large": pa.array([9007199254740993, None]),
    "nothing": pa.nulls(2),
}


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl", "xlsx"])
def test_columns_of_every_type_of_arrow_are_kept(session: Session, coded: str, format: str) -> None:
    pq.write_table(pa.table({"title": pa.array(["bread baker", "truck driver"]), **COLUMNS}), content := io.BytesIO())
    uploaded(session, content.getvalue(), format="parquet")
    path = predicted(session, dataset="rows", format=format)
    if format == "csv":
        header, rows = read(path)
        assert [rows[0][header.index(name)] for name in ("view", "levels")] == ["'=1+1"] * 2
        assert rows[0][header.index("large")] == "9007199254740993"
    elif format == "parquet":
        assert pq.read_table(path).num_rows == 2
    elif format == "jsonl":
        row = json.loads(path.read_text().splitlines()[0])
        assert (row["view"], row["bytes"], row["large"]) == ("=1+1", "/w==", 9007199254740993)


def test_rows_that_were_appended_have_their_columns_too(session: Session, coded: str) -> None:
    from app.datasets.appending import append
    from app.datasets.schemas import NewRows

    uploaded(session, written())
    upload = files().upload()
    upload.write(written([("0016", "old driver", "x")]).encode())
    run(append(session, "rows", NewRows(format="csv"), upload).id)
    header, rows = read(predicted(session, dataset="rows", format="csv"))
    assert header[:3] == ["code", "title", "branch"]
    assert rows[5][:4] == ["0016", "old driver", "x", "0210"]
    assert len(read(predicted(session, dataset="rows", dataset_version=1, format="csv"))[1]) == 5


def test_without_inputs_rows_have_their_ids(session: Session, coded: str) -> None:
    uploaded(session, written(), id_column="code")
    header, rows = read(predicted(session, dataset="rows", format="csv", inputs=False))
    assert header[:2] == ["id", "label"]
    assert [row[0] for row in rows] == [code for code, _, _ in ROWS]


def test_a_workbook_has_sheets_for_the_sure_and_the_others_with_drop_downs(session: Session, coded: str) -> None:
    uploaded(session, written())
    id = submitted(session, dataset="rows", format="xlsx", top_k=3, threshold=0.6)
    run(id)
    assert jobs.get(session, id).error is None
    book = openpyxl.load_workbook(batch_predictions.of_job(session, id).path)
    assert book.sheetnames == ["Sure", "To review", "Model"]
    sure, review, model = (list(sheet.values) for sheet in book)
    assert sure[0][:4] == ("code", "title", "branch", "label")
    result = jobs.get(session, id).result
    assert result is not None
    assert result.sure is not None
    assert (len(sure) - 1, len(review) - 1) == (result.sure.n_sure, 5 - (result.sure.n_sure or 0))
    every = {row[0]: row for row in sure[1:] + review[1:]}
    assert {code: row[2] for code, row in every.items()} == {code: branch for code, _, branch in ROWS}
    assert every["0011"][3] == "0120"
    sheet = book["Sure"]
    assert (sheet.freeze_panes, sheet["D2"].data_type, sheet["D2"].number_format) == ("A2", "s", "@")
    (rule,) = sheet.data_validations.dataValidation
    begin, end = rule.formula1.replace("$", "").split(":")
    choices = [cell.value for cell in sheet[begin:end][0]]
    assert str(rule.sqref).startswith("D2")
    assert choices == [sure[1][sure[0].index(name)] for name in ("label", "label_2", "label_3")]
    assert dict(model)["Model"] == "m"
    assert len(str(dict(model)["SHA-256"])) == 64


def test_a_workbook_is_read_with_its_codes(session: Session, coded: str) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["code", "title", "hours", None])
    for at, (code, title, _) in enumerate(ROWS):
        sheet.append([code, title, at + 0.5 if at else 40])
    content = io.BytesIO()
    book.save(content)
    uploaded(session, content.getvalue(), format=None)
    header, rows = read(predicted(session, dataset="rows", format="csv"))
    assert header[:4] == ["code", "title", "hours", "label"]
    assert [row[0] for row in rows] == [code for code, _, _ in ROWS]
    assert [row[2] for row in rows[:2]] == ["40", "1.5"]
    assert [row[3] for row in rows[:2]] == ["0120", "0210"]


def test_a_job_says_how_many_rows_are_sure_and_what_held_out_rows_promise(
    session: Session, database: sessionmaker[Session], coded: str
) -> None:
    uploaded(session, written())
    id = submitted(session, dataset="rows", format="jsonl", min_precision=0.6)
    run(id)
    result = jobs.get(session, id).result
    assert result is not None
    assert result.sure is not None
    lines = [json.loads(line) for line in batch_predictions.of_job(session, id).path.read_text().splitlines()]
    assert result.sure.n_sure == sum(line["sure"] for line in lines)
    assert result.sure.asked == 0.6
    request = BatchPredictRequest(model="m", dataset="rows", min_precision=0.6)
    planned = plan(session, ModelCache(database, 1 << 30), request)
    assert planned.sure is not None
    assert (planned.n_rows, planned.sure.precision) == (5, result.sure.precision)
    assert planned.sure.n_sure == round(5 * (planned.sure.answered or 0))


def test_along_a_tree_the_sure_ancestor_is_above_the_label_and_with_a_level_at_it(
    session: Session, database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> None:
    hierarchy([("root", "01"), ("root", "02"), *((label[:2], label) for label in TITLES)])
    words = ("flour", "truck", "bread", "plane", "head", "young", "old", "senior", "first", "second")
    lines = [{"text": f"{title} {word}", "label": label} for label, title in TITLES.items() for word in words]
    dataset("\n".join(map(json.dumps, lines)) + "\n", "jobs", format="jsonl")
    params = {"candidates": [{"solver": "weston_watkins"}], "folds": 2}
    trained(session, dataset="jobs", hierarchy="tree", solver="auto", params=params)
    uploaded(session, written())
    id = submitted(session, dataset="rows", format="jsonl", threshold=0.2, sure_level=1)
    run(id)
    result = jobs.get(session, id).result
    assert result is not None
    assert result.sure is not None
    answers = [json.loads(line) for line in batch_predictions.of_job(session, id).path.read_text().splitlines()]
    assert {(row["sure"], row["sure_ancestor"]) for row in answers} == {(False, row["label"][:2]) for row in answers}
    assert (result.sure.n_sure, result.sure.n_at_level, result.sure.levels) == (0, 5, [5, 0])
    request = BatchPredictRequest(model="m", dataset="rows", threshold=0.2, sure_level=1)
    planned = plan(session, ModelCache(database, 1 << 30), request).sure
    assert planned is not None
    assert (planned.n_sure, planned.n_at_level, planned.precision) == (None, 5, result.sure.precision)


def test_where_no_threshold_reaches_the_precision_no_row_is_sure(session: Session, coded: str) -> None:
    uploaded(session, written())
    id = submitted(session, dataset="rows", format="xlsx", min_precision=0.9999)
    run(id)
    result = jobs.get(session, id).result
    assert result is not None
    assert result.sure is not None
    assert (result.sure.n_sure, result.sure.threshold) == (0, None)
    assert len(list(openpyxl.load_workbook(batch_predictions.of_job(session, id).path)["Sure"].values)) == 1


def test_a_worker_that_dies_while_it_joins_the_pieces_leaves_no_file_and_another_ends_the_job(
    session: Session, coded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded(session, written())
    monkeypatch.setattr(predicting, "PART_ROWS", 2)
    whole = predicted(session, dataset="rows", format="csv").read_bytes()
    id = submitted(session, dataset="rows", format="csv")
    at = predicting.Inputs.at

    def dies(self: Any, rows: Any) -> Any:
        if rows[0] == 2:
            raise Crash
        return at(self, rows)

    monkeypatch.setattr(predicting.Inputs, "at", dies)
    with pytest.raises(Crash):
        run(id)
    assert not files().path(batch_predictions.path_of(id, "csv")).exists()
    monkeypatch.setattr(predicting.Inputs, "at", at)
    expire(session, id)
    run(id)
    assert jobs.get(session, id).attempt == 2
    assert batch_predictions.of_job(session, id).path.read_bytes() == whole


def test_a_job_warns_of_rows_that_the_version_was_trained_on(session: Session, coded: str) -> None:
    uploaded(session, written([("1", "baker truck", "-"), ("2", "pilot first", "-"), ("3", "first pilot", "-")]))
    id = submitted(session, dataset="rows", format="xlsx")
    run(id)
    result = jobs.get(session, id).result
    assert result is not None
    assert result.n_trained_on == 2
    assert result.warning is not None
    assert result.warning.startswith("2 of 3 rows are in the training data of this version")
    about = dict(openpyxl.load_workbook(batch_predictions.of_job(session, id).path)["Model"].values)
    assert about["Rows in its training data"] == 2
    uploaded(session, written([("3", "first pilot", "-")]), "others")
    new = submitted(session, dataset="others")
    datasets.delete(session, "jobs", force=True)
    again = submitted(session, dataset="rows")
    for id, known in ((new, None), (again, None)):
        run(id)
        result = jobs.get(session, id).result
        assert result is not None
        assert (result.n_trained_on, result.warning) == (known, None)


def test_a_job_warns_of_rows_of_which_the_model_knows_no_word(session: Session, coded: str) -> None:
    uploaded(session, written([("1", "zzz", "-"), ("2", "baker", "-"), ("3", "", "-")]))
    id = submitted(session, dataset="rows")
    run(id)
    result = jobs.get(session, id).result
    assert result is not None
    assert result.warning is not None
    assert "The model knows no word in the text of 2 rows" in result.warning


@pytest.mark.parametrize(("refit", "own_split"), [(True, False), (False, False), (True, True)])
def test_rows_that_were_held_out_count_as_training_rows_where_the_served_model_has_them(
    session: Session, dataset: Callable[..., str], refit: bool, own_split: bool
) -> None:
    parts = ("train", "train", "train", "test", "validation")
    rows = [
        {"text": f"{title} {word}", "label": label, **({"split": part} if own_split else {})}
        for label, title in TITLES.items()
        for part, word in zip(parts, ("flour", "truck", "bread", "plane", "head"), strict=True)
    ]
    dataset("\n".join(map(json.dumps, rows)) + "\n", "jobs", format="jsonl")
    trained(session, dataset="jobs", test_fraction=0.4, refit=refit)
    id = submitted(session, dataset="jobs")
    run(id)
    result = jobs.get(session, id).result
    assert result is not None
    assert result.n_trained_on == (20 if refit and not own_split else 12)
