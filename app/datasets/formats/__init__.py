"""The dataset formats by name; each file in this folder describes one, or a few that are read alike.

Adding a format is adding a file. Clients and schemas load these files, so a file imports the libraries that read data
only within its functions, or names a function of another module.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from app.datasets.formats.format import Format
from app.descriptions import described

FORMATS: Mapping[str, Format] = MappingProxyType(
    {each.name: each for each in sorted(described(__name__, Format), key=lambda each: each.name)}
)
# names of formats by extension
EXTENSIONS: dict[str, str] = {extension: each.name for each in FORMATS.values() for extension in each.extensions}


def most_specific(fitting: Iterable[Format]) -> list[Format]:
    """Formats without those of which another one is a special case."""
    found = list(fitting)
    return [each for each in found if not each.general] or found
