"""``python -m docs_site.generate``: write the parts of reference pages that are made from the code.

A page marks such a part by two comments, ``<!-- generated: settings -->`` and ``<!-- end of settings -->``.
"""

import re
from collections.abc import Callable
from pathlib import Path

from docs_site.commands import commands
from docs_site.equations import equations
from docs_site.parameters import parameters
from docs_site.routes import routes
from docs_site.settings import settings
from docs_site.shapes import formats, hierarchy_formats, shapes

DOCS = Path(__file__).parents[1] / "docs"
PAGES: dict[str, tuple[str, Callable[[], str]]] = {
    "reference/settings.md": ("settings", settings),
    "reference/cli.md": ("commands", commands),
    "reference/api.md": ("routes", routes),
    "reference/parameters.md": ("parameters", parameters),
    "reference/formats.md": ("formats", formats),
    "reference/hierarchies.md": ("hierarchy-formats", hierarchy_formats),
    "reference/file-shapes.md": ("shapes", shapes),
    "explanation/mathematics/equations.md": ("equations", equations),
}


def generated(page: str) -> str:
    """The page with its generated part replaced.

    Raises
    ------
    ValueError
        If the page does not mark the part.
    """
    name, make = PAGES[page]
    begin, end = f"<!-- generated: {name} -->", f"<!-- end of {name} -->"
    text = (DOCS / page).read_text()
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"{page} has no part between {begin} and {end}")
    return pattern.sub(lambda _: f"{begin}\n\n{make().strip()}\n\n{end}", text)


if __name__ == "__main__":
    for each in PAGES:
        (DOCS / each).write_text(generated(each))
