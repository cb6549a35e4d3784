"""Hooks that the site's generator calls while it builds: outside pages, links, formulas."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs_site.formulas import drawn
from docs_site.links import OUTSIDE, relinked

ROOT = Path(__file__).parents[1]
_FETCHED = re.compile(r"""<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)=["']?(https?://[^"'\s>]*)""")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Expand folders in the navigation to their pages, by name."""
    config.nav = _expanded(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages whose files are outside the folder of documentation, and the pictures of results."""
    for source, place in OUTSIDE.items():
        files.append(File.generated(config, place, content=(ROOT / source).read_text()))
    for picture in sorted((ROOT / "benchmarks" / "results" / "pictures").glob("*.png")):
        files.append(File.generated(config, f"results/pictures/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Correct links to pages outside the folder of documentation."""
    return relinked(markdown, page.file.src_uri)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw formulas."""
    return drawn(html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Refuse a page that would fetch scripts, styles or pictures from other servers."""
    fetched = _FETCHED.search(output)
    if fetched:
        raise PluginError(f"{page.file.src_uri} would fetch {fetched[1]} from another server")
    return output


def _expanded(items: list[Any], docs: Path) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            found.append(
                {title: _expanded(inner, docs) if isinstance(inner, list) else inner for title, inner in item.items()}
            )
        elif item.endswith("/"):
            names = sorted(file.name for file in (docs / item).glob("*.md") if file.name != "index.md")
            found += [item + name for name in names]
        else:
            found.append(item)
    return found
