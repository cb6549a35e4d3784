import itertools
from pathlib import Path

import pytest

from app.datasets.schemas import ImportOptions
from app.formats.parsing import parse
from app.formats.table import Parsed


def read(folder: Path, content: str, **options: str) -> Parsed:
    path = folder / "data.txt"
    path.write_text(content, encoding="utf-8")
    return parse(path, "fasttext", ImportOptions.model_validate(options))


def sets(parsed: Parsed) -> list[list[str]]:
    assert parsed.label_indptr is not None
    bounds = parsed.label_indptr.tolist()
    return [[parsed.labels[at] for at in parsed.y[i:j]] for i, j in itertools.pairwise(bounds)]


def test_labels_anywhere_in_a_line_make_sets(tmp_path: Path) -> None:
    parsed = read(tmp_path, "__label__b __label__a red  apple\n\nno label\ndeep __label__a sea")
    assert sets(parsed) == [["a", "b"], [], ["a"]]
    assert parsed.texts is not None
    assert list(parsed.texts) == ["red apple", "no label", "deep sea"]


@pytest.mark.parametrize(("options", "single"), [({}, True), ({"label_separator": " "}, False)])
def test_one_label_in_every_line_makes_one_label_a_row(tmp_path: Path, options: dict[str, str], single: bool) -> None:
    parsed = read(tmp_path, "__label__baking-soda a\n__label__héllo b\n", **options)
    assert parsed.labels == ["baking-soda", "héllo"]
    assert (parsed.label_indptr is None) == single
    assert parsed.y.tolist() == [0, 1]
