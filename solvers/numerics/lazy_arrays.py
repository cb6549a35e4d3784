"""Arrays that are made when they are asked for."""

from collections.abc import Callable, Iterator, Mapping

from solvers.numerics.array_types import Array


class Lazy(Mapping[str, Array]):
    """Arrays by name, made when they are asked for; valid as long as what they are made of."""

    def __init__(self, makers: Mapping[str, Callable[[], Array]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Array:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


class Parts(Mapping[str, Array]):
    """Several mappings of arrays as one: the array ``a`` of the part ``p`` is called ``p.a``."""

    def __init__(self, parts: Mapping[str, Mapping[str, Array]]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> Array:
        part, _, array = name.partition(".")
        return self._parts[part][array]

    def __iter__(self) -> Iterator[str]:
        return (f"{part}.{array}" for part, arrays in self._parts.items() for array in arrays)

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))


def part_of(arrays: Mapping[str, Array], part: str) -> dict[str, Array]:
    """One part of what :class:`Parts` has put together, under its own names; empty where there is none."""
    return {name.partition(".")[2]: arrays[name] for name in arrays if name.partition(".")[0] == part}
