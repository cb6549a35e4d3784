"""Malformed files of every format: each is refused with the line, the column, and a message that says what is wrong."""

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.formats import FORMATS
from app.datasets.schemas import ImportOptions
from app.formats.parsing import parse
from app.formats.table import FormatError


def parquet(**columns: Any) -> bytes:
    stream = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), stream)
    return bytes(stream.getvalue())


def arrow(**columns: Any) -> bytes:
    table, stream = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    return bytes(stream.getvalue())


def npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


EYE = np.eye(2)
SPARSE = {"data": [1.0, 2.0], "indices": [0, 1], "indptr": [0, 1, 2], "shape": [2, 2]}
AB = ["a", "b"]
DATE = pa.array([0, 1], pa.date32())

OAI_ERROR = b"""<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">
<error code="noRecordsMatch">No such
 set</error></OAI-PMH>"""
ARFF = b"@attribute x numeric\n@attribute class {a,b}\n"
ODS_HEAD = b"PK\x03\x04" + b"\0" * 22 + b"\x08\0\0\0mimetypeapplication/vnd.oasis.opendocument.spreadsheet"

# format, content, line, column, message
MALFORMED: list[tuple[str, bytes, int, str | None, str]] = [
    ("svmlight", b"", 1, None, "the file is empty"),
    ("svmlight", b"# nothing\n\n", 1, None, "only blank lines or comments"),
    ("svmlight", b"a 1:1\n1:1\n", 2, None, "begins with the feature '1:1', expected a label"),
    ("svmlight", b"a 1:1\nb 1:x\n", 2, None, "'1:x' has no number after the colon"),
    ("svmlight", b"a 0:1\n", 1, None, "the index of '0:1' is 0, but indices begin at 1; pass zero_based=true"),
    ("svmlight", b"a 2:1 1:1\n", 1, None, "is not greater than the one before it"),
    ("svmlight", b"a 1:inf\n", 1, None, "'1:inf' is not a finite number"),
    ("svmlight", b"a,b 1:1\n3,4 1:1\n", 2, None, "'3,4' is a list of labels"),
    ("svmlight", b"a 1\n", 1, None, "'1' is not index:value"),
    ("svmlight", b"a 1:1 cost:0\n", 1, "cost", "the weight is not positive"),
    ("fasttext", b"", 1, None, "the file is empty"),
    ("fasttext", b"a text\n", 1, None, "no line has a label: labels are words that begin with __label__"),
    ("fasttext", b"__label__a x\n__label__ y\n", 2, "label", "__label__ without a name"),
    ("fasttext", b"__label__a x\n__label__b \xff\n", 2, None, "not valid UTF-8"),
    ("annotations", b"", 1, None, "the file is empty"),
    ("annotations", b'{"a": 1}\n', 1, None, "not a record of Label Studio, doccano or Argilla: its keys are 'a'"),
    ("annotations", b'{"id": 1, "text": "x", "label": ["a"]}\n{"id"\n', 2, None, "not valid JSON at character"),
    ("annotations", b'{"data": {"text": "x"}, "annotations": 1}\n', 1, "annotations", "expected a list of annotations"),
    (
        "annotations",
        b"annotator,annotation_id,lead_time,text\n1,2,3\n",
        2,
        None,
        "3 cells, expected 4 as in the header",
    ),
    ("annotations", b"annotator,annotation_id,lead_time,text\n1,2,3,\xff\n", 2, None, "not valid UTF-8"),
    ("arff", b"", 1, None, "the file has no line @data"),
    ("arff", b"@relation r\nx\n", 2, None, "'x' is not a line of an ARFF header"),
    ("arff", b"@attribute x\n@data\n", 1, "x", "the type is '', expected numeric"),
    ("arff", b"@attribute x numeric\n@data\n", 2, None, "no attribute 'label' among the 1 of the header"),
    ("arff", ARFF + b"@data\n", 1, None, "a header but no rows"),
    ("arff", ARFF + b"@attribute d date\n@data\n", 3, "d", "leave it out with ignore_columns"),
    ("arff", ARFF + b"@data\n1\n", 4, None, "1 values; expected 2, one per attribute"),
    ("arff", ARFF + b"@data\none,a\n", 4, "x", "'one' is not a number"),
    ("arff", ARFF + b"@data\n1,c\n", 4, "class", "'c' is not one of the attribute's 2 values"),
    ("arff", ARFF + b"@data\n1,'a\n", 4, None, "a quote is not closed"),
    ("arff", ARFF + b"@data\n{0 1, 2 a}\n", 4, None, "the index 2 is not between 1 and 1"),
    ("arff", ARFF + b"@data\n{0 1\n", 4, None, "the sparse row has no closing brace"),
    ("arff", ARFF + b"@data\n1,\xff\n", 4, None, "not valid UTF-8"),
    ("archive", b"label,text\na,b\n", 1, None, "the file does not begin like archive"),
    ("archive", b"PK\x03\x04" + b"\0" * 26, 1, None, "the zip archive is damaged or ends too early"),
    ("archive", b"1.txt".ljust(257, b"\0") + b"ustar", 1, None, "the tar archive is damaged or ends too early"),
    ("marc", b"", 1, None, "the file is empty"),
    ("marc", b"label,text\na,b\n", 1, None, "expected the leader of a MARC 21 record"),
    ("marc", b"00026nam a2200025 a 4500\x1e\x1d", 1, None, "the record has no text in 245$abnp, 490$a, 505, 520$ab"),
    ("marc", b"00030nam a2200025 a 4500\x1e\x1d", 1, None, "the leader gives 30 bytes, but the record has 26"),
    ("marc", b"<collection><record><leader/>\n", 2, None, "not XML: no element found"),
    ("dublin_core", b"", 1, None, "not XML: no element found"),
    ("dublin_core", OAI_ERROR, 2, None, "answered with the error noRecordsMatch instead of records: 'No such set'"),
    ("marc", OAI_ERROR, 2, None, "answered with the error noRecordsMatch instead of records: 'No such set'"),
    ("dublin_core", b"<r>\n<record></r>", 2, None, "not XML: mismatched tag, at character 11"),
    ("dublin_core", b"<a/>", 1, None, "the file has no record with a text in title, alternative"),
    (
        "dublin_core",
        b"<records>\n<record><title>x</title></record>\n<record><subject>a</subject></record></records>",
        3,
        None,
        "record 2: no text in title, alternative, name, headline, abstract, description, tableOfContents: name other",
    ),
    ("dublin_core", b"<dc:dc><dc:title>x</dc:title></dc:dc>", 1, None, "not XML: unbound prefix"),
    ("dublin_core", b"<records>\n<record><title>x</title></record>", 2, None, "not XML: no element found"),
    ("jsonld", b"", 1, None, "the file is empty"),
    ("jsonld", b'{"@id": "a", "name": "x"}\n3', 2, None, "expected a JSON object"),
    ("jsonld", b'{"@id": "a", "name": "x"}\n{"name" "y"}', 2, None, "not valid JSON at character 9 of the object: exp"),
    ("jsonld", b'[{"name": "x",\n "about" "y"}]', 2, None, "not valid JSON at character 10 of the line: expecting ':'"),
    ("jsonld", b'{"@graph": []}', 1, None, "the @graph of the document has no records"),
    ("jsonld", b"[ ]", 1, None, "the JSON array has no records"),
    ("jsonld", b'[{"@id": "a", "name": "x"},\n', 2, None, "the JSON array has no end"),
    ("jsonld", b'[{"@id": "a", "name": "x"}, 3]', 1, None, "expected a comma and another object"),
    ("jsonld", b'[{"@id": "a", "name": "x"}]\n[', 2, None, "the JSON array has no end"),
    ("jsonld", b'{"@id": "a", "name": "x"}\n{"@id": "b", "subject": "y"}', 2, None, "record 2 ('b'): no text in title"),
    ("jsonld", b'{"name": "x", "about": {"@id": "_:b0"}}', 1, None, "is the node '_:b0' elsewhere in the file"),
    ("jsonld", b'{"@graph": [{"name": "x"}]', 1, None, "not valid JSON"),
    ("jsonld", b'{"name": "x", "about": [["y"]]}', 1, None, "the key 'about' has a list in a list"),
    ("xmc", b"", 1, None, "expected the numbers of rows, features and labels"),
    ("xmc", b"2 3 2\n0 1:1\n", 1, None, "the first line declares 2 rows; the file has 1"),
    ("xmc", b"1 3 2\n0 3:1\n", 1, None, "the first line declares 3 features; the largest index is 3"),
    ("xmc", b"1 3 2\n2 0:1\n", 1, None, "the label '2' is not a number from 0 to 1"),
    ("xmc", b"2 3 2\n0 0:1\n1 1:x\n", 3, None, "'1:x' has no number after the colon"),
    ("xmc", b"1 0 2\n0 0:1\n", 1, None, "0 features, expected 1 to"),
    ("xmc", b"1 3 2\n", 1, None, "the file has only blank lines or comments"),
    ("jsonl", b'[{"label": "a", "text": "b"}', 1, None, "expected a comma and another object, or the end"),
    ("jsonl", b'[{"label": "a", "text": "b"},\n', 2, None, "the JSON array has no end"),
    ("jsonl", b'[{"label": "a",\n "text": b}]', 2, None, "not valid JSON"),
    ("jsonl", b'[{"label": "a", "text": "b"}, 3]', 1, None, "expected a comma and another object"),
    ("jsonl", b'[{"label": "a", "text": "b"}] x', 1, None, "more text follows the JSON array"),
    ("jsonl", b'[\n{"label": "a", "text": "b"},\n{"label": "a"}\n]', 3, None, "expected text, or features"),
    ("jsonl", b"[]", 1, None, "the file is empty"),
    ("csv", b"", 1, None, "the file is empty"),
    ("csv", b"label,text\n", 1, None, "a header but no rows"),
    ("csv", b"label,x\na,1\nb,two\n", 3, "x", "'two' is not a number"),
    ("csv", b"label,x\na,1\nb,\n", 3, "x", "the cell is empty, expected a number"),
    ("csv", b"label,x\na,1,2\n", 2, None, "3 cells, expected 2 as in the header"),
    ("csv", b'label,text\na,"never closed\n', 2, None, "a quote is never closed"),
    ("csv", b'label,text\na,"one" two\n', 2, None, "text after a closing quote"),
    ("csv", b"label,text,label\n", 1, "label", "two columns are named 'label'"),
    ("csv", b"label,,text\n", 1, None, "column 2 has no name"),
    ("csv", b"class;text\na;b\n", 1, None, "no column 'label' among the 2 columns of the header ('class', 'text')"),
    ("tsv", b"class;text\na;b\n", 1, None, "did you mean delimiter=semicolon?"),
    ("csv", b"label,text,when\na,b,2020\n", 1, "when", "leave columns out with ignore_columns"),
    ("csv", b"label,text,split\na,b,dev\n", 2, "split", "the split is 'dev', expected train, test or validation"),
    ("csv", b"label,text\nGr\xfcn,b\n", 2, None, "not valid UTF-8"),
    ("csv", b"label,text\n,b\n", 2, "label", "the label is empty"),
    ("csv", b"\xff\xfel\0a\0b\0e\0l\0", 1, None, "pass encoding=utf-16"),
    (
        "csv",
        b"red apple,fruit\nleek,vegetable\n",
        1,
        None,
        "if the first line is a row, write the columns' names before",
    ),
    ("csv", b"\n<!DOCTYPE html><html>\n", 1, None, "the file is a web page, not a table"),
    ("tsv", b"<HTML lang=en>\n", 1, None, "the file is a web page, not a table"),
    ("xlsx", b"PK\x03\x04" + b"\0" * 26, 1, None, "a zip archive without a workbook"),
    ("csv", b"PAR1....", 1, None, "begins like parquet, not like csv"),
    ("tsv", b"label,text\na,b\n", 1, None, "did you mean delimiter=comma?"),
    ("tsv", b"fish\t<http://a> <http://b>\n", 1, None, "is it an Annif corpus, which has no header?"),
    ("tsv", b"label\tx\na\t1,5\n", 2, "x", "'1,5' is not a number"),
    ("tsv", b"label\tx\na\n", 2, None, "1 cell, expected 2"),
    ("jsonl", b"\n \n", 1, None, "only blank lines"),
    ("jsonl", b'{"label": "a", "text": "b"}\n{"label": "a"\n', 2, None, "not valid JSON at character"),
    ("jsonl", b'{"label": "a", "text": "b"}\n[1]\n', 2, None, "a list, expected an object"),
    ("jsonl", b'{"text": "b"}\n', 1, "label", "the key is missing"),
    ("jsonl", b'{"label": "a", "text": null}\n', 1, "text", "null, expected a string"),
    ("jsonl", b'{"label": "a", "text": "b", "lang": "en"}\n', 1, "lang", "unknown key: 'lang'"),
    ("jsonl", b'{"label": "a", "indices": [1, 1], "values": [1, 2]}\n', 1, "indices", "an index is given twice"),
    ("annif", b"a text without subjects\n", 1, None, "no tab: expected a text, a tab, and URIs"),
    ("annif", b"a\t<u:1>\nb\tu:1\n", 2, "label", "'u:1' is not a list of URIs in angle brackets"),
    ("annif", b"a\t<u:1> <u:2\n", 1, "label", "is not a list of URIs"),
    ("annif", b"\n\n", 1, None, "only blank lines"),
    ("annif", b"papers/1.txt".ljust(257, b"\0") + b"ustar", 1, None, "begins like archive, not like annif"),
    ("parquet", b"PAR1" + b"\0" * 20, 1, None, "not a valid Parquet file"),
    ("parquet", parquet(text=AB), 1, None, "no column 'label' among the 1 columns of the header ('text')"),
    ("parquet", parquet(label=["a", None], text=AB), 2, "label", "the label is empty"),
    ("parquet", parquet(label=[0.5, 1.5], x=[1, 2]), 1, "label", "0.5 is not a whole number; a label is a string, an"),
    ("parquet", parquet(label=AB, x=[1.0, None]), 2, "x", "the number is missing"),
    ("parquet", parquet(label=AB, x=[1.0, float("inf")]), 2, "x", "inf is not a finite number"),
    ("parquet", parquet(label=AB, x=AB), 1, "x", "of type string, expected numbers (leave the column out"),
    ("parquet", parquet(label=AB, when=DATE), 1, "when", "or pass infer_columns)"),
    ("parquet", parquet(label=AB, text=[1, 2]), 1, "text", "of type int64, which cannot be used as text"),
    ("parquet", parquet(label=AB, v=[[1.0], [1.0, 2.0]]), 2, "v", "the list has 2 numbers, expected 1"),
    ("parquet", parquet(label=AB, indices=[[0], [1]], values=[[1.0], []]), 2, None, "1 indices and 0 values"),
    ("parquet", parquet(label=pa.array([], pa.string()), x=pa.array([], pa.int8())), 1, None, "the table has no rows"),
    ("arrow", b"ARROW1\0\0" + b"\0" * 20, 1, None, "not a valid Arrow IPC file"),
    (
        "arrow",
        arrow(label=AB, indices=[[0], [-1]], values=[[1.0], [1.0]]),
        2,
        "indices",
        "not an integer between 0 and",
    ),
    ("arrow", arrow(label=AB, indices=[[0], [1, 1]], values=[[1.0], [1.0, 2.0]]), 2, "indices", "given twice"),
    ("arrow", b"label,x\na,1\n", 1, None, "the file does not begin like arrow"),
    ("npz", b"label,x\na,1\n", 1, None, "the file does not begin like npz"),
    (
        "npz",
        npz(X=EYE),
        1,
        None,
        "no array of labels ('label', 'labels', 'y'); the file has 'X'. Labels may be in a second",
    ),
    ("npz", npz(y=AB), 1, None, "expected X, or texts, or data with indices"),
    ("npz", npz(X=EYE, y=["a"]), 1, "y", "the shape (1,) and type <U1, expected (2,), as many as rows"),
    ("npz", npz(X=[1.0, 2.0], y=AB), 1, "X", "expected (n, n_features) of numbers"),
    ("npz", npz(X=EYE, y=AB, notes=AB), 1, "notes", "1 unknown array: 'notes'"),
    ("npz", npz(X=[[1.0], [np.nan]], y=AB), 2, "column 0", "nan is not a finite number"),
    ("npz", npz(X=EYE, y=[0, 2], label_names=AB), 1, "y", "a label is not between 0 and 1"),
    ("npz", npz(X=EYE, y=AB, weights=[1.0, -1.0]), 2, "weights", "the weight is not positive"),
    ("npz", npz(**{**SPARSE, "indices": [0, 2]}, y=AB), 2, "indices", "an index is not between 0 and 1"),
    ("npz", npz(**{**SPARSE, "indptr": [0, 2, 1]}, y=AB), 1, "indptr", "expected 3 increasing offsets"),
    ("npz", npz(**SPARSE, format="coo", y=AB), 1, "format", "save it with .tocsr()"),
    ("xlsx", b"label,x\na,1\n", 1, None, "the file does not begin like xlsx"),
    ("xlsx", b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml", 1, None, "the workbook is damaged"),
    ("ods", b"label,x\na,1\n", 1, None, "the file does not begin like ods"),
    ("ods", ODS_HEAD, 1, None, "the workbook is damaged"),
    ("csv", gzip.compress(b"label,x\na,1\n", mtime=0)[:-9], 1, None, "the gzip data are damaged or end too early"),
]


@pytest.mark.parametrize(
    ("format", "content", "line", "column", "message"), MALFORMED, ids=[f"{row[0]}: {row[4]}" for row in MALFORMED]
)
def test_a_malformed_file_is_refused_with_line_column_and_message(
    tmp_path: Path, format: str, content: bytes, line: int, column: str | None, message: str
) -> None:
    path = tmp_path / "data"
    path.write_bytes(content)
    with pytest.raises(FormatError) as refused:
        parse(path, format, ImportOptions())
    first = refused.value.errors[0]
    assert (first.row, first.column) == (line, column), first
    assert message in first.detail


def test_every_format_is_in_the_table() -> None:
    missing = set(FORMATS) - {row[0] for row in MALFORMED}
    assert not missing, f"add malformed files of {', '.join(sorted(missing))} to MALFORMED, with the line of each fault"
