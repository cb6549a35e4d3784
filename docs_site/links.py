"""Links between files of the repository become links between pages of the site."""

import posixpath
import re

from benchmarks.questions import PAGES

# Files outside docs/ that are pages of the site, by their place there.
OUTSIDE = {
    "benchmarks/RESULTS.md": "results.md",
    "benchmarks/history/index.md": "results/history.md",
    **{f"benchmarks/results/{page.name}.md": f"results/{page.name}.md" for page in PAGES},
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")


def relinked(text: str, page: str) -> str:
    """The Markdown of a page with its relative links as the site has them.

    Parameters
    ----------
    text : str
        As it is in the repository.
    page : str
        The page's path in the site's folder of sources.
    """
    sources = {place: source for source, place in OUTSIDE.items()}
    source = sources.get(page, f"docs/{page}")

    def link(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        place = OUTSIDE.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        if place is None:
            return found[0]
        return posixpath.relpath(place, posixpath.dirname(page) or ".") + (found[2] or "")

    return _LINK.sub(link, text)
