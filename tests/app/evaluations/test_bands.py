"""Measures by training rows, apart from the others."""

from app.evaluations.bands import COLUMNS, TITLES, parted
from app.evaluations.schemas import Measure
from solvers.metrics.frequency_bands import BANDS, MEASURES


def measure(name: str, level: int = 0) -> Measure:
    return Measure(name=name, level=level, value=0.5, low=None, high=None)


def test_names_are_those_of_the_measures() -> None:
    assert MEASURES == COLUMNS
    assert [band.name for band in BANDS] == list(TITLES)


def test_bands_are_apart_from_other_measures() -> None:
    others = [measure("error"), measure("ndcg@10"), measure("ndcg@10", 1)]
    of_band = [measure(f"rows_1_{name}") for name in COLUMNS]
    found = parted([*others, *of_band])
    assert found.others == others
    assert [(band.training_rows, list(band.measures)) for band in found.bands] == [("1", of_band)]
    assert parted(others).bands == []
