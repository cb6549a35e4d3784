"""What each column of a table is proposed to be, from the beginning of its file."""

import csv
import gzip
import io
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.column_names import labels_by_name
from app.datasets.schemas import ImportOptions, ProposedColumns, TableSample
from app.formats.parsing import parse
from app.formats.proposals import propose_columns
from app.formats.table import FormatError

N_ROWS = 40


def table(header: str, row: str, mark: str = ",", n: int = N_ROWS) -> bytes:
    """A header, and rows of a template in which `{n}` is the row's number and `{k}` is 0, 1 or 2."""
    lines = [header, *(row.format(n=k, k=k % 3) for k in range(n))]
    return ("\n".join(lines).replace("|", mark) + "\n").encode()


def proposed(content: bytes, **options: Any) -> ProposedColumns:
    return propose_columns(content, TableSample(**options))


def roles(found: ProposedColumns) -> dict[str, str]:
    return {column.name: column.role for column in found.columns}


@pytest.mark.parametrize(
    ("header", "row", "expected"),
    [
        ("code|description|town", "0{k}1|the work of a clerk {n}|T{k}", ["label", "text", "category"]),
        ("Kategorie|Titel|Preis", "K{k}|Buch {n}|{n}.5", ["label", "text", "number"]),
        ("Nr|Beschreibung|Klasse", "{n}|ein Stuhl mit Nummer {n}|K{k}", ["id", "text", "label"]),
        ("Catégorie|Résumé|Prix", "c{k}|livre {n}|{n}", ["label", "text", "number"]),
        ("categoría|descripción|país", "c{k}|libro {n}|p{k}", ["label", "text", "category"]),
        ("Luokka|Otsikko|Kieli", "L{k}|kirja {n}|fi{k}", ["label", "text", "category"]),
        ("etykieta|tytuł", "e{k}|tom {n}", ["label", "text"]),
        ("метка|текст", "м{k}|том {n}", ["label", "text"]),
        ("ラベル|title", "ら{k}|book {n}", ["label", "text"]),
        ("id|label|sample_weight|x", "r{n}|a{k}|{n}.5|{n}", ["id", "label", "weight", "number"]),
        ("weight|height|class", "{n}.5|{n}|c{k}", ["number", "number", "label"]),
        ("doc_id|text|label|split", "d{n}|a word {n}|a{k}|train", ["id", "text", "label", "split"]),
        (
            "day|postal_code|Produktkategorie|notes",
            "2026-01-1{k}|0{k}110|c{k}|",
            ["ignored", "category", "label", "ignored"],
        ),
        ("ISCO code|job title", "{k}111|clerk number {n}", ["label", "text"]),
    ],
)
def test_roles_come_from_names_in_several_languages_and_from_values(
    header: str, row: str, expected: Sequence[str]
) -> None:
    row = row.replace("{n}.5|{n}", "1{n}.5|{n}") if "sample_weight" in header else row
    found = proposed(table(header, row))
    assert list(roles(found).values()) == list(expected)
    assert found.doubt is None
    assert all(column.reason for column in found.columns)


def test_the_reason_names_the_marks_of_missing_values() -> None:
    column = proposed(table("label|x", "a{k}|{n}") + b"a0,NA\n").columns[1]
    assert (column.role, column.reason, column.n_missing) == ("number", "numbers; 'NA' is read as a missing value", 1)


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_any_delimiter_is_found(mark: str) -> None:
    found = proposed(table("code|description|town", "c{k}|a text {n}|T{k}", mark), file="a.txt")
    assert list(roles(found)) == ["code", "description", "town"]
    assert found.columns[0].values == ["c0", "c1", "c2", "c0", "c1"]


@pytest.mark.parametrize(
    ("header", "row", "label", "said"),
    [
        ("a|b|c", "{n}|{n}.5|{n}", None, "No column looks like the label"),
        ("size|town|river", "{n}|T{k}|R{k}", None, "No column looks like the label"),
        ("size|town", "{n}|T{k}", "town", "town is the only one with categories"),
        ("category|code|size", "a{k}|b{k}|{n}", "category", "Several columns may be the label: category, code"),
        (
            "code|size",
            "c{n}|{k}",
            "code",
            f"code may be the label, but has {N_ROWS} different values in the first {N_ROWS}",
        ),
        ("subject|size", "a mail about the matter {n}|{n}", None, "No column looks like the label"),
    ],
)
def test_a_label_that_is_not_clear_is_said_to_be_so(header: str, row: str, label: str | None, said: str) -> None:
    found = proposed(table(header, row))
    assert found.label_column == label
    assert found.doubt is not None
    assert said in found.doubt


def test_columns_that_options_name_keep_their_roles() -> None:
    content = table("category|code|size|note", "a{k}|b{k}|{n}|N{k}")
    found = proposed(content, label_column="code", ignore_columns=["note"], category_columns=["size"])
    assert roles(found) == {"category": "category", "code": "label", "size": "category", "note": "ignored"}
    assert found.doubt is None
    unlabelled = proposed(table("label|text", "a{k}|a text {n}"), unlabelled=True)
    assert (roles(unlabelled), unlabelled.doubt) == ({"label": "ignored", "text": "text"}, None)
    with pytest.raises(FormatError, match="no column 'none' among the 4 columns"):
        proposed(content, label_column="none")


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (table("label|text", "a{k}|some words {n}"), {}),
        (table("label|x|z", "a{k}|{n}|{k}"), {}),
        (
            table("code|description|town|price|day|key", "c{k}|some words {n}|T{k}|{n},5|2026-01-1{k}|k{n}", ";"),
            {
                "label_column": "code",
                "id_column": "key",
                "text_columns": ["description"],
                "number_columns": ["price"],
                "category_columns": ["town"],
                "ignore_columns": ["day"],
                "decimal": "comma",
            },
        ),
        (table("label|text|x", "a{k}|some words {n}|{n}") + b"a0,more words,\n",
         {"number_columns": ["x"], "missing": "keep"}),
        (table("label|x|y|z", "a{k}|{n}|{n},5|0{k}", ";") + b"a0;NA;-;NA\na1;?;n/a;01\n",
         {"number_columns": ["x", "y"], "category_columns": ["z"], "decimal": "comma", "missing": "keep",
          "missing_values": ["?", "NA", "-", "n/a"]}),
    ],
    ids=["texts", "numbers", "all kinds", "missing", "marks of missing values"],
)  # fmt: skip
def test_the_proposed_options_are_few_and_read_the_file(
    content: bytes, options: dict[str, Any], tmp_path: Path
) -> None:
    found = proposed(content, file="a.csv")
    assert found.options == options
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    parsed = parse(path, "csv", ImportOptions(**found.options))
    assert parsed.labels == ["a0", "a1", "a2"] or parsed.labels == ["c0", "c1", "c2"]


def test_the_import_infers_the_same_types_as_are_proposed(tmp_path: Path) -> None:
    content = table("label|Titel|town|x|day", "a{k}|Buch {n}|T{k}|{n}|2026-01-1{k}")
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    columns = parse(path, "csv", ImportOptions(infer_columns=True)).columns
    assert columns is not None
    inferred = {**dict.fromkeys(columns.texts, "text"), **dict.fromkeys(columns.numbers, "number")}
    inferred |= {**dict.fromkeys(columns.categories, "category"), **dict.fromkeys(columns.left_out, "ignored")}
    assert inferred | {"label": "label"} == roles(proposed(content))


def test_json_lines_and_arrays_are_shown_row_by_row(tmp_path: Path) -> None:
    lines = b'{"label": ["x"], "text": "t u", "z": 3}\n{"label": ["y"], "text": "t v", "n": [1, 2]}\n{"label": '
    found = proposed(lines, file="a.jsonl")
    assert roles(found) == {"label": "label", "n": "number", "text": "text", "z": "number"}
    assert {column.name: column.values for column in found.columns}["z"] == ["3", ""]
    array = b'[{"label": "x", "z": 3},\n {"label": "y", "z": 4}, {"lab'
    assert roles(proposed(array, file="a.json")) == {"label": "label", "z": "number"}
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"label": "x", "z": 3},\n {"label": "y", "z": 4}]')
    parsed = parse(path, "jsonl", ImportOptions(infer_columns=True))
    assert parsed.feature_names == ["z"]
    with pytest.raises(FormatError, match="each row names its own features"):
        proposed(b'{"label": "x", "features": {"a": 1}}\n', file="a.jsonl")


def test_rows_of_numbers_beside_a_label_need_one_option(tmp_path: Path) -> None:
    rows = [{"label": "ab"[n % 2], "1": n / 2, "2": n, **({"3": 7} if n else {})} for n in range(N_ROWS)]
    content = "\n".join(map(json.dumps, rows)).encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    found = proposed(content, file="a.jsonl")
    assert found.options == {"infer_columns": True, "missing": "keep"}
    parsed = parse(path, "jsonl", ImportOptions(**found.options))
    assert parsed.feature_names == ["1", "2", "3"]
    named = proposed(content, file="a.jsonl", number_columns=["1", "2", "3"])
    assert named.options == {"number_columns": ["1", "2", "3"], "missing": "keep"}
    with pytest.raises(FormatError) as refused:
        parse(path, "jsonl", ImportOptions())
    assert refused.value.errors[0].detail.startswith("2 unknown keys: '1', '2'")


def test_whole_files_of_other_formats_are_read() -> None:
    book, sheet, parquet = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    assert book.active is not None
    for row in [("code", "title"), *((f"c{n % 3}", f"book {n}") for n in range(N_ROWS))]:
        book.active.append(row)
    book.save(sheet)
    columns = pa.table({"code": [f"c{n % 3}" for n in range(N_ROWS)], "title": [f"book {n}" for n in range(N_ROWS)]})
    pq.write_table(columns, parquet)
    for content, format in ((sheet.getvalue(), "xlsx"), (parquet.getvalue(), "parquet")):
        found = proposed(content)
        assert (found.format, roles(found)) == (format, {"code": "label", "title": "text"})


def test_the_beginning_of_a_compressed_file_is_enough() -> None:
    content = b"label,text\n" + b"".join(b"a%d,some words %d\n" % (n % 3, n * 7919 % 10007) for n in range(200_000))
    packed = gzip.compress(content)
    assert roles(proposed(packed[: 256 << 10], file="a.csv.gz")) == {"label": "label", "text": "text"}
    with pytest.raises(FormatError, match="xz data are damaged or end too early"):
        proposed(lzma.compress(content)[:20], file="a.csv.xz")


def test_a_text_in_another_encoding_is_refused_until_it_is_named() -> None:
    content = table("label|text", "ä{k}|größer als {n}")
    latin = content.decode().encode("latin-1")
    with pytest.raises(FormatError, match="line 2: not valid UTF-8"):
        proposed(latin)
    assert proposed(latin, encoding="latin-1").columns[0].values[0] == "ä0"
    cut = content[: content.index("ß".encode()) + 1]
    assert roles(proposed(cut, file="a.csv")) == {"label": "label", "text": "text"}
    wide = b"\xff\xfe" + content.decode().encode("utf-16-le")
    assert proposed(wide[:201], encoding="utf-16").columns[0].values[0] == "ä0"


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (b"\0" * 100, {}, "zero bytes"),
        (b"\n\n", {}, "only blank lines"),
        (b"one\ntwo\n", {}, "not a header with several columns"),
        (b"a,b\n1,2\n", {"format": "svmlight"}, "the format svmlight have no columns"),
        (b"1 1:2 2:3\n", {}, "the format svmlight have no columns"),
        (b"an apple\t<http://x.example/a>\n", {"file": "a.tsv"}, "the format annif have no columns"),
        (b"PK\x03\x04" + bytes(100), {"file": "a.xlsx"}, "archive have no columns"),
        (b"a,b\n1,2\n", {"file": "a.xlsx"}, "does not begin like xlsx"),
        (b",label,text\n0,a,b c\n", {}, "column 1 has no name"),
        (b"label,text,text\na,b,c\n", {}, "two columns are named 'text'"),
        (b"%PDF-1.7", {}, "a PDF document"),
        (b"[", {"file": "a.json"}, "no rows with columns"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, options: dict[str, Any], said: str) -> None:
    with pytest.raises(FormatError, match=said):
        proposed(content, **options)


def test_long_cells_zero_bytes_and_headers_alone_are_no_fault() -> None:
    long = proposed(b"label,text\na," + b"word " * 40_000 + b"\nb,c\x00d\n")
    assert max(len(value) for column in long.columns for value in column.values) == 200
    alone = proposed(b"label,text\n", file="a.csv")
    assert (alone.n_rows, roles(alone)) == (0, {"label": "label", "text": "ignored"})


def test_of_a_wide_table_the_first_columns_and_the_label_are_listed() -> None:
    names = [*(f"x{n}" for n in range(300)), "label"]
    content = ",".join(names).encode() + b"\n" + b"".join(b"1.5," * 300 + b"a%d\n" % (n % 2) for n in range(30))
    found = proposed(content)
    assert (found.n_columns, len(found.columns), found.columns[-1].role) == (301, 201, "label")
    assert found.options == {"infer_columns": True}
    names = ["label", *(f"{n:03}" * 60 for n in range(60))]
    named = proposed(",".join(names).encode() + b"\n" + b"a" + b",1" * 60 + b"\n")
    assert (named.n_columns, len(named.columns), named.options) == (61, 31, {"infer_columns": True})


def test_words_for_labels_come_before_names_that_contain_one() -> None:
    names = ["country_code", "status", "ISCO code", "topic", "Code", "label_id"]
    assert labels_by_name(names) == ["Code", "topic", "ISCO code"]


@pytest.mark.parametrize(
    ("cells", "options", "labels"),
    [
        (["a;b", "b", "c; a", "b;c", "a"], {"label_separator": ";"}, ["a", "b", "c"]),
        (["a|b", "b", "c|a", "b|c", "a"], {"label_separator": "|"}, ["a", "b", "c"]),
        (["a,b", "b", "c,a", "b,c", "a,c,b"], {"label_separator": ","}, ["a", "b", "c"]),
        (["['a', 'b']", "['b']", "['c']"], {"label_lists": "read"}, ["a", "b", "c"]),
        (['["a", "b"]', '["b"]', "[]", '["c"]'], {"label_lists": "read"}, ["a", "b", "c"]),
        (["cooks, head", "cooks, other", "clerks, head", "waiters"], {}, None),
        (["red; or so", "red; or so", "blue"], {}, None),
        (["a;b", "b;c", "b", "a"], {"label_separator": ";"}, ["a", "b", "c"]),
        (["cooks, head", "cooks, other", "clerks, head", "clerks, other", "cooks", "clerks"], {}, None),
        (["a;", "b;", "c;a", "b;c"], {}, None),
    ],
)
def test_cells_with_several_labels_are_recognised(
    cells: list[str], options: dict[str, str], labels: list[str] | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["label", "text"])
        rows.writerows([cell, f"some words {at}"] for at, cell in enumerate(cells * 8))
    found = proposed(path.read_bytes(), file="a.csv")
    assert (found.options, found.doubt, roles(found)["label"]) == (options, None, "label")
    if labels is not None:
        parsed = parse(path, "csv", ImportOptions(**found.options))
        assert parsed.labels == labels
        assert parsed.label_indptr is not None


def test_columns_of_0_and_1_may_be_labels(tmp_path: Path) -> None:
    content = table("text|price|toxic|insult|none", "a few words {n}|{n}.5|1|0|0").replace(b"7.5,1,0", b"7.5,0,1")
    found = proposed(content, file="a.csv")
    assert roles(found) == {"text": "text", "price": "number"} | dict.fromkeys(("toxic", "insult", "none"), "indicator")
    assert found.label_column is None
    assert found.doubt == "No column is named like a label, and 3 columns contain only 0 and 1."
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    for options in (found.options, proposed(content, label_columns=("toxic", "ins*")).options):
        parsed = parse(path, "csv", ImportOptions(**options))
        assert parsed.labels == ["insult", "toxic"]
        assert parsed.texts is not None
    given = proposed(content, file="a.csv", label_columns=("toxic", "ins*"))
    assert (given.doubt, given.options["label_columns"]) == (None, ["toxic", "ins*"])
    assert roles(given)["none"] == "number"
    named = proposed(content.replace(b"text,", b"label,"), file="a.csv")
    assert "indicator" not in roles(named).values()
