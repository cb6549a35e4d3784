"""Exports of annotation tools: the same rows from every shape of them, and records that are left to a person."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.datasets.client import format_of
from app.datasets.schemas import ImportOptions
from app.formats.detection import declared_format
from app.formats.parsing import parse
from app.formats.table import FormatError, Parsed


def read(folder: Path, content: str, name: str = "data", **options: Any) -> Parsed:
    path, given = folder / name, ImportOptions(**options)
    path.write_text(content, encoding="utf-8")
    return parse(path, "annotations", given)


def rows(parsed: Parsed) -> list[tuple[str, str, list[str]]]:
    """Id, text and labels of each row."""
    assert parsed.texts is not None
    assert parsed.ids is not None
    bounds = range(parsed.n_rows + 1) if parsed.label_indptr is None else parsed.label_indptr.tolist()
    sets = [[parsed.labels[at] for at in parsed.y[i:j]] for i, j in itertools.pairwise(bounds)]
    return list(zip(parsed.ids, parsed.texts, sets, strict=True))


def task(id: int, text: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {"id": id, "data": {"text": text}, "annotations": list(annotations), "predictions": []}


def chosen(*choices: str, question: str = "topic", **more: Any) -> dict[str, Any]:
    value = {"choices": list(choices)}
    result = {"value": value, "id": "r", "from_name": question, "to_name": "text", "type": "choices"}
    return {"id": 9, "completed_by": 1, "result": [result], "was_cancelled": False, "lead_time": 3.2, **more}


OF = {"annotator": 1, "created_at": "2024-01-31T10:00:00Z", "updated_at": "2024-01-31T10:00:00Z", "lead_time": 3.2}
MIN_HEADER = '"annotation_id","annotator","created_at","id","lead_time","text","topic","updated_at","was_cancelled"\n'
EXPORTS = {
    "studio.json": json.dumps([task(1, "one", chosen("a")), task(2, "two", chosen("b", "a"))]),
    "min.json": json.dumps(
        [
            {"text": "one", "id": 1, "topic": "a", "annotation_id": 7, **OF},
            {"text": "two", "id": 2, "topic": {"choices": ["b", "a"]}, "annotation_id": 8, **OF},
        ]
    ),
    "studio.csv": f'{MIN_HEADER}7,1,"d",1,3.2,"one","a","d","False"\n'
    '8,1,"d",2,3.2,"two","{""choices"": [""b"", ""a""]}","d","False"\n',
    "doccano.jsonl": '{"id": 1, "text": "one", "label": ["a"], "Comments": []}\n'
    '{"id": 2, "text": "two", "label": ["b", "a"], "Comments": []}\n',
    "argilla.json": json.dumps(
        [
            {"id": id, "status": "completed", "fields": {"text": text}, "metadata": {}, "suggestions": {},
             "responses": {"topic": [{"value": value, "user_id": "u", "status": "submitted"}]}, "vectors": {}}
            for id, text, value in (("1", "one", ["a"]), ("2", "two", ["b", "a"]))
        ]
    ),
    "argilla1.jsonl": '{"id": 1, "text": null, "inputs": {"text": "one"}, "prediction": null, "annotation": ["a"]}\n'
    '{"id": 2, "text": null, "inputs": {"text": "two"}, "prediction": null, "annotation": ["b", "a"]}\n',
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(EXPORTS))
def test_every_export_has_the_same_rows_and_is_recognised(tmp_path: Path, name: str) -> None:
    parsed = read(tmp_path, EXPORTS[name], name)
    assert rows(parsed) == [("1", "one", ["a"]), ("2", "two", ["a", "b"])]
    assert declared_format(tmp_path / name, ImportOptions()) == "annotations"
    assert format_of(tmp_path / name) is None


def test_json_lines_with_lists_of_labels_stay_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 1, "text": "one", "label": ["a"]}\n')
    assert declared_format(path, ImportOptions()) == format_of(path) == "jsonl"
    assert rows(parse(path, "annotations")) == [("1", "one", ["a"])]


def test_a_choice_in_a_taxonomy_is_a_path(tmp_path: Path) -> None:
    value = {"taxonomy": [["Animals", "Cat"], ["Plants"]]}
    result = {"value": value, "from_name": "t", "to_name": "text", "type": "taxonomy"}
    whole = json.dumps([task(1, "x", {"result": [result]})])
    flat = json.dumps([{"text": "x", "id": 1, "t": [value], "annotation_id": 7, **OF}])
    assert rows(read(tmp_path, whole)) == rows(read(tmp_path, flat)) == [("1", "x", ["Animals > Cat", "Plants"])]


def test_cancelled_annotations_do_not_count_and_ground_truth_counts_alone(tmp_path: Path) -> None:
    content = json.dumps(
        [
            task(1, "x", chosen("a"), chosen("b", was_cancelled=True)),
            task(2, "y", chosen("a"), chosen("b", ground_truth=True)),
        ]
    )
    assert [labels for _, _, labels in rows(read(tmp_path, content))] == [["a"], ["b"]]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([task(1, "x", chosen("a")), task(2, "y", chosen("a"), chosen("b"))]),
        f'{MIN_HEADER}7,1,"d",1,3.2,"x\ny","a","d","False"\n8,2,"d",1,3.2,"x\ny","b","d","False"\n',
    ],
)
def test_disagreement_of_annotators_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(FormatError, match="annotators disagree \\('a' and 'b'\\): settle it in the tool"):
        read(tmp_path, content)


def test_annotators_who_agree_make_one_row(tmp_path: Path) -> None:
    content = f'{MIN_HEADER}7,1,"d",1,3.2,"x\ny","a","d","False"\n8,2,"d",1,3.2,"x\ny","a","d","False"\n'
    assert rows(read(tmp_path, content)) == [("1", "x\ny", ["a"])]
    assert rows(read(tmp_path, json.dumps([task(1, "x", chosen("a", "b"), chosen("b", "a"))])))[0][2] == ["a", "b"]


def test_records_without_an_annotation_are_errors_or_left_out(tmp_path: Path) -> None:
    content = "[" + ",\n".join(json.dumps(each) for each in (task(1, "x", chosen("a")), task(2, "y"))) + "]"
    with pytest.raises(FormatError) as refused:
        read(tmp_path, content)
    assert (refused.value.errors[0].row, refused.value.errors[0].cause) == (2, "no_label")
    assert "without_label=leave_out" in refused.value.errors[0].detail
    parsed = read(tmp_path, content, without_label="leave_out")
    assert (rows(parsed), parsed.n_left_out) == ([("1", "x", ["a"])], 1)


def test_several_questions_or_texts_are_named_in_the_refusal(tmp_path: Path) -> None:
    both = chosen("a")
    both["result"] += chosen("z", question="mood")["result"]
    content = json.dumps([task(1, "x", both)])
    with pytest.raises(FormatError, match=re.escape("several questions ('mood', 'topic'): pass label_column")):
        read(tmp_path, content)
    assert read(tmp_path, content, label_column="mood").labels == ["z"]
    two = json.dumps([{"id": 1, "data": {"title": "t", "body": "b"}, "annotations": [chosen("a")]}])
    with pytest.raises(FormatError, match=re.escape("several texts ('body', 'title'): pass text_columns")):
        read(tmp_path, two)
    assert rows(read(tmp_path, two, text_columns=("title", "body")))[0][1] == "t\nb"


def test_a_flat_export_with_another_text_needs_the_question(tmp_path: Path) -> None:
    content = json.dumps([{"review": "x", "id": 1, "mood": "good", "annotation_id": 7, **OF}])
    with pytest.raises(
        FormatError, match=re.escape("pass label_column: the keys that may hold the labels are 'mood', ")
    ):
        read(tmp_path, content)
    assert rows(read(tmp_path, content, label_column="mood")) == [("1", "x", ["good"])]


def test_spans_are_no_labels_of_texts(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="the labels are of spans of the text"):
        read(tmp_path, '{"id": 1, "text": "x y", "label": [[0, 1, "PER"]]}\n')
