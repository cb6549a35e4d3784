"""The formats of hierarchies by name; each file in this folder describes one, as those of datasets do."""

from collections.abc import Mapping
from types import MappingProxyType

from app.descriptions import described
from app.hierarchies.formats.format import Format

FORMATS: Mapping[str, Format] = MappingProxyType(
    {each.name: each for each in sorted(described(__name__, Format), key=lambda each: each.name)}
)
ENDINGS = {ending: each.name for each in FORMATS.values() for ending in each.endings}
_COMPRESSED = (".gz", ".xz", ".zst")


def format_by_name(name: str) -> tuple[str | None, str | None]:
    """The format that a file's name says, None if it says none, and the RDF syntax of SKOS."""
    plain = name.lower()
    for ending in _COMPRESSED:
        plain = plain.removesuffix(ending)
    found = next((ending for ending in ENDINGS if plain.endswith(ending)), None)
    return (None, None) if found is None else (ENDINGS[found], FORMATS[ENDINGS[found]].endings[found])


def formats_of(option: str) -> list[str]:
    """The formats that support an option; empty for an option of all formats."""
    return [name for name, each in FORMATS.items() if option in each.options]
