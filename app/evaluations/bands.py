"""The measures of an evaluation by how many training rows have a label, apart from all others."""

from collections.abc import Iterable
from typing import NamedTuple

from app.evaluations.schemas import Measure

# as solvers.metrics.frequency_bands names them; the command line is installed without it
COLUMNS = ("share", "f1@5", "precision@5", "recall@10", "ndcg@10")
TITLES = {
    "unseen": "none",
    "rows_1": "1",
    "rows_2_to_9": "2 to 9",
    "rows_10_to_99": "10 to 99",
    "rows_100": "100 or more",
}


class BandOfMeasures(NamedTuple):
    """One band; ``measures`` has one for each of ``COLUMNS``."""

    training_rows: str
    measures: tuple[Measure, ...]


class Parted(NamedTuple):
    """The measures of all labels together and of levels; and those by frequency."""

    others: list[Measure]
    bands: list[BandOfMeasures]


def parted(measures: Iterable[Measure]) -> Parted:
    """Take the measures by frequency apart; evaluations of earlier versions have none."""
    given = list(measures)
    by_name = {each.name: each for each in given if each.level == 0}
    bands, taken = [], set[str]()
    for band, title in TITLES.items():
        names = [f"{band}_{measure}" for measure in COLUMNS]
        if all(name in by_name for name in names):
            bands.append(BandOfMeasures(title, tuple(by_name[name] for name in names)))
            taken |= set(names)
    return Parted([each for each in given if each.name not in taken], bands)
