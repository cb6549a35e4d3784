"""The pages of results are what their data give, and every benchmark has a page."""

import re
from pathlib import Path

import pytest

from benchmarks import dots, questions, results, tables

FOLDER = Path(results.__file__).parent
ABOUT = dict.fromkeys(tables.KEYS, "x") | {"command": "python -m benchmarks.bench_gap --runs 3"}


@pytest.fixture(autouse=True)
def whole_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(results.TRIALS, raising=False)


def test_pages_are_what_the_data_give() -> None:
    for name, text in results.pages().items():
        assert (FOLDER / name).read_text() == text, f"{name}: run python -m benchmarks.results"


def test_every_benchmark_has_one_page_and_every_table_a_benchmark() -> None:
    named = [name for page in questions.PAGES for name in page.benchmarks]
    assert sorted(named) == sorted(path.stem for path in FOLDER.glob("bench_*.py"))
    for path in tables.DATA.glob("*.csv"):
        table = tables.read(path)
        assert table.benchmark in named, path
        assert path.stem == table.name


def test_links_and_pictures_of_the_pages_are_there() -> None:
    for name, text in results.pages().items():
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            assert ((FOLDER / name).parent / target).exists(), target


def test_a_table_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [["a, b", 1.5], ['"quoted"', "-"]]
    table = tables.table(ABOUT | {"title": "Time: of a set, in %"}, ["set, or sets", "s"], rows)
    assert table.name == "time-of-a-set-in"
    tables.keep(table, tmp_path, tmp_path / "history")
    assert tables.read_all(tmp_path) == [table]
    assert table.rows == (("a, b", "1.5"), ('"quoted"', "-"))
    assert table.benchmark == "bench_gap"


def test_a_newer_run_moves_the_one_before_into_the_history(tmp_path: Path) -> None:
    for commit, value in (("abc with changes", 1), ("abc with changes", 2), ("def", 3)):
        tables.keep(tables.table(ABOUT | {"commit": commit}, ["s"], [[value]]), tmp_path, tmp_path / "history")
    assert [one.rows for one in tables.read_all(tmp_path)] == [(("3",),)]
    assert [one.rows for one in tables.read_all(tmp_path / "history")] == [(("2",),)]
    assert [path.name for path in (tmp_path / "history").iterdir()] == ["x.x-abc.csv"]


def test_dots_are_the_numbers_of_all_tables_whose_titles_begin_so(tmp_path: Path) -> None:
    made = [
        tables.table(ABOUT | {"title": f"Errors: {name}"}, ["who", "%"], [["a", value], ["b", "-"], ["c", "7"]])
        for name, value in (("one", "10%"), ("two", "1,200"))
    ]
    picture = questions.Dots("errors", "Errors: ", "", "who", "%", "errors", 1.0, ("a", "b"))
    assert dots.points(picture, made) == [("one", "a", 10.0), ("two", "a", 1200.0)]
    assert 0 < dots.draw(picture, made, tmp_path).stat().st_size < 60 << 10


def test_every_picture_has_dots() -> None:
    for page in questions.PAGES:
        for picture in page.pictures:
            assert dots.points(picture, results.tables()), picture.name
            assert (dots.PICTURES / f"{picture.name}.png").stat().st_size < 60 << 10
