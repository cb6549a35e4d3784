"""How many pages and texts of PDF files are cleaned in a second, and what does that add to making features?

    python -m benchmarks.bench_cleaning

The texts are the docstrings of numpy, scipy and scikit-learn. As pages they have a head, a menu, a script, and tags
around words and paragraphs. As texts of PDF files they are set in lines of 60 characters, with words hyphenated at
their ends, and pages of 40 lines with a header and a number. One thread, in processor time; the median of five runs.
"""

import html
import random
import textwrap
import time
from collections.abc import Callable
from html.parser import HTMLParser
from statistics import median

from app.datasets.recipe_schemas import TextRecipe
from app.features.cleaning import Cleaned
from app.features.text import TextFeatures
from app.operation.corpus import docstrings
from benchmarks.results import write

ROUNDS, SEED, MOST = 5, 0, 4000
LINE_CHARACTERS, PAGE_LINES = 60, 40
HEAD = (
    "<!DOCTYPE html><html><head><title>Reference</title><style>p { color: red }</style>"
    '<script>if (a < b) { run(); }</script></head><body><ul class="menu"><li><a href="/">Home</a></li></ul>'
)


def main() -> None:
    plain = [text for text, _ in docstrings()][:MOST]
    rng = random.Random(SEED)
    sources = {"html": [as_page(text, rng) for text in plain], "pdf": [as_pdf(text) for text in plain]}
    rows = []
    for source, texts in sources.items():
        characters = sum(map(len, texts))

        def add(what: str, work: Callable[[], object]) -> float:
            took = median(_seconds(work) for _ in range(ROUNDS))
            rate, volume = f"{len(texts) / took:,.0f}", f"{characters / took / 1e6:.1f}"  # noqa: B023
            rows.append([source, what, rate, volume, f"{1e3 * took / len(texts):.2f}"])  # noqa: B023
            print(f"  {rows[-1]}", flush=True)
            return took

        add("cleaning alone", lambda: [Cleaned(text, [source]).text for text in texts])  # noqa: B023
        if source == "html":
            add("html.parser of Python alone", lambda: [_parsed(text) for text in texts])  # noqa: B023
        for title, recipe in (("features", TextRecipe()), ("features, cleaned", TextRecipe(clean=(source,)))):
            features, _ = TextFeatures.fit(texts, recipe)
            add(title, lambda: features.transform(texts))  # noqa: B023
    sizes = {source: sum(map(len, texts)) / len(texts) for source, texts in sources.items()}
    note = (
        f"{len(plain):,} docstrings of {sum(map(len, plain)) / len(plain):,.0f} characters in the mean, as pages of "
        f"{sizes['html']:,.0f} and texts of PDF files of {sizes['pdf']:,.0f}. Features are TF-IDF of words by the "
        "default recipe. html.parser collects the texts outside scripts and styles, and decides nothing about lines."
    )
    write("Cleaning of texts", ["source", "what", "texts/s", "million characters/s", "ms a text"], rows, note)


def as_page(text: str, rng: random.Random) -> str:
    """The text with each paragraph in a tag, and one word in ten in bold or a link."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        words = [html.escape(word) for word in paragraph.split(" ")]
        words = [_marked(word, rng.random()) for word in words]
        paragraphs.append(f'<p class="text">{" ".join(words)}</p>')
    return HEAD + "\n".join(paragraphs) + "<!-- the end --></body></html>"


def _marked(word: str, chance: float) -> str:
    if chance < 0.05:
        return f"<b>{word}</b>"
    return f'<a href="#x" title="x">{word}</a>' if chance < 0.1 else word


def as_pdf(text: str) -> str:
    """The text in lines of equal length, with hyphens, in pages with a header and a number."""
    lines = []
    for line in textwrap.wrap(text.replace("fi", "\ufb01"), LINE_CHARACTERS - 1):
        head, _, last = line.rpartition(" ")
        cut = len(last) // 2
        lines.append(f"{head} {last[:cut]}-\n{last[cut:]}" if cut > 2 and last.isalpha() else line)
    pages = (lines[at : at + PAGE_LINES] for at in range(0, len(lines), PAGE_LINES))
    return "\f".join(f"Reference of functions\n{chr(10).join(page)}\n{at}\n" for at, page in enumerate(pages, 1))


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


class _Texts(HTMLParser):
    """Collects texts outside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.texts.append(data)


def _parsed(text: str) -> str:
    parser = _Texts()
    parser.feed(text)
    parser.close()
    return "".join(parser.texts)


if __name__ == "__main__":
    main()
