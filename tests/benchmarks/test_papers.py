"""The protocols of the papers run on small sets, go on from partial results, and make their pages."""

from pathlib import Path

import pytest

from benchmarks.papers.__main__ import PAPERS, ROOT, make, write
from benchmarks.papers.store import OutOfTimeError, Results, Run, Store
from benchmarks.processes import apart


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_is_run_and_has_its_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLYMARGIN_BENCH_DATA", raising=False)
    results = apart(make, name, "quick", float("inf"), tmp_path)
    assert Results.read(tmp_path / f"{name}.csv").cells == results.cells
    page = (tmp_path / f"{name}.md").read_text()
    # every measure has been found, and every picture that the page shows is drawn
    assert "What agrees, and what does not" in page
    pictures = sorted(path.name for path in (tmp_path / "pictures").glob("*.svg"))
    assert pictures
    assert all(f"](pictures/{picture})" in page for picture in pictures)
    assert "Not run yet" not in page


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_the_committed_page_is_made_of_the_committed_results(name: str, tmp_path: Path) -> None:
    write(name, Results.read(ROOT / f"benchmarks/data/papers/{name}.csv"), tmp_path)
    assert (tmp_path / f"{name}.md").read_text() == (ROOT / f"docs/papers/{name}.md").read_text()
    for picture in (tmp_path / "pictures").glob("*.svg"):
        assert (ROOT / "docs/papers/pictures" / picture.name).stat().st_size < 100 << 10


def test_runs_are_kept_and_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    calls = []

    def compute() -> dict[str, float | list[tuple[float, float]]]:
        calls.append(1)
        return {"error": 10.0 * len(calls), "curve": [(1.0, 2.0 * len(calls)), (2.0, 4.0)]}

    first = Store(path)
    first.run(Run("table", "set", "method", "", 0), compute)
    first.run(Run("table", "set", "method", "", 0), compute)
    later = Store(path, minutes=0.0)
    assert later.run(Run("table", "set", "method", "", 0), compute)["error"] == 10.0
    with pytest.raises(OutOfTimeError, match="table set method"):
        later.run(Run("table", "set", "method", "", 1), compute)
    assert len(calls) == 1


def test_repetitions_have_mean_and_deviation_and_are_read_again(tmp_path: Path) -> None:
    store = Store(None)
    for seed, error in enumerate((1.0, 3.0)):
        found = {"error": error, "curve": [(1.0, error), (2.0, 4.0)]}
        store.run(Run("table", "set", "method", "C", seed), lambda found=found: found)
    store.note("data", "set", source="generated", n=7)
    store.means().write(tmp_path / "results.csv")
    results = Results.read(tmp_path / "results.csv")
    assert results.cell("table", "set", "method", "C", "error", ".1f") == "2.0 ± 1.4"
    assert results.curve("table", "set", "method", "C", "curve") == [(1.0, 2.0), (2.0, 4.0)]
    assert results.text("data", "set", "source") == "generated"
    assert results.value("data", "set", "", "", "n") == 7.0
    assert results.repetitions("table") == 2
    assert results.cell("table", "set", "other", "C", "error") == ""
