"""The protocols of the papers run on small sets, go on from partial results, and make their pages."""

import re
from pathlib import Path

import pytest

from benchmarks.papers import rousu_page
from benchmarks.papers.__main__ import PAPERS, ROOT, make, write
from benchmarks.papers.page import CERTIFIED, Claim, claims
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


def _tables(page: str) -> list[list[dict[str, str]]]:
    """The tables of a page, their rows by header."""
    found: list[list[dict[str, str]]] = []
    header: list[str] = []
    for line in page.splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if not header:
            header = cells
            found.append([])
        elif not set(line) <= set("|- "):
            found[-1].append(dict(zip(header, cells, strict=True)))
    return found


def _page(name: str) -> str:
    return (ROOT / f"docs/papers/{name}.md").read_text()


@pytest.mark.parametrize("name", PAPERS)
def test_every_verdict_has_the_gap_of_its_models_and_none_rests_on_a_large_one(name: str) -> None:
    verdicts = _tables(_page(name))[-1]
    assert verdicts
    for row in verdicts:
        gap = row["largest gap"]
        assert row["here, too?"] in ("yes", "no", "open")
        if re.fullmatch(r"[\d.e+-]+", gap):
            assert (row["here, too?"] == "open") == (float(gap) > CERTIFIED), row
        elif gap != "time of an epoch":
            # a text has the gap of each method; none rests on one that is not known
            each = [re.fullmatch(r"[\w.-]+(?: \d+)? ([\d.e+-]+|none|not measured)", part) for part in gap.split(", ")]
            assert all(each), row
            assert (row["here, too?"] == "open") == any(part is not None and part[1] == "not measured" for part in each)


@pytest.mark.parametrize(
    ("gap", "verdict"),
    [(0.01, "yes"), (0.57, "open"), (float("nan"), "open"), ("CW 0.2", "yes"), ("CW 0.2, X not measured", "open")],
)
def test_a_verdict_is_open_where_a_model_is_not_certified(gap: float | str, verdict: str) -> None:
    assert Claim("says", True, "found", gap).verdict == verdict
    assert f"| says | {verdict} |" in claims([Claim("says", True, "found", gap)])


def test_the_gaps_and_draws_of_rousu_are_those_of_the_data() -> None:
    results = Results.read(ROOT / "benchmarks/data/papers/rousu.csv")
    page = _page("rousu")
    rows = [row for each in _tables(page) for row in each if row.get("") == "here" and "draws" in row]
    shown = {(row["gap"], row["draws"]) for row in rows}
    measured = {
        (f"{float(cell.value):.2g}", str(cell.repetitions))
        for cell in results.cells
        if cell.part == "tables" and cell.measure == "gap"
    }
    assert shown == measured
    draws = {
        name: {cell.repetitions for cell in results.cells if cell[:2] == ("tables", name)} for name in rousu_page.SETS
    }
    for numbers in draws.values():
        assert f"{' or '.join(map(str, sorted(numbers)))} times for" in page


def test_the_largest_gaps_of_alber_and_zhou_are_those_of_the_data() -> None:
    alber = Results.read(ROOT / "benchmarks/data/papers/alber.csv")
    for row in _tables(_page("alber"))[-1]:
        if said := re.match(r"LLW is best where it is hardly constrained \((.+)\)", row["the paper"]):
            gaps = [alber.value("tables", said[1], "lee_lin_wahba", C, "gap") for C in alber.names("tables", "setting")]
            assert float(row["largest gap"]) == pytest.approx(max(gaps), rel=0.05)
    zhou = Results.read(ROOT / "benchmarks/data/papers/zhou.csv")
    worst = [row for row in _tables(_page("zhou"))[-1] if "TREELOSS is by far" in row["the paper"]]
    assert len(worst) == len(zhou.names("t-test", "set"))
    assert all(row["here, too?"] == "no" for row in worst if "imclef07a" in row["the paper"])


def test_the_method_page_has_the_ratios_of_the_paper_page() -> None:
    said = re.search(r"points ([\d.]+) times as fast .* and ([\d.]+) times", _page("crammer-singer"))
    assert said is not None
    page = " ".join((ROOT / "docs/methods/kernel_machines.md").read_text().split())
    assert f"`spoc` is {said[1]} times as fast" in page
    assert f"and {said[2]} times as fast" in page
