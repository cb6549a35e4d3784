"""The index of the papers' equations: which function each is in, read from docstrings and comments."""

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docs_site.markdown import table

ROOT = Path(__file__).parents[1]
_PAPER = re.compile(r"((?:[A-Z][\w'-]+(?:, | and ))*[A-Z][\w'-]+(?: et al\.)?),? (\d{4})\b")
_PLACE = re.compile(
    r"\b([Ee]quation|[Aa]lgorithm|[Tt]heorem|[Cc]orollary|[Cc]orollarie|[Ff]igure|[Ss]ection)s? "
    r"(\(?\d[\d.]*\w?\)?(?:(?:, | and | to |, and )\(?\d[\d.]*\w?\)?)*)"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)*[a-z]?")
_KINDS = ("equation", "algorithm", "theorem", "corollary", "figure", "section")


class Citation(NamedTuple):
    paper: str
    kind: str
    number: str
    where: str


def equations() -> str:
    """Markdown: for each paper a table of its equations, algorithms and sections, and where the code has them."""
    by_paper: dict[str, dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    for found in citations(ROOT / "solvers"):
        by_paper[found.paper][found.kind, found.number].add(found.where)
    parts = []
    for paper in sorted(by_paper):
        rows = [
            (f"{kind} {number}", ", ".join(f"`{where}`" for where in sorted(places)))
            for (kind, number), places in sorted(by_paper[paper].items(), key=_order)
        ]
        parts.append(f"## {paper}\n\n{table(('in the paper', 'in the code'), rows)}")
    return "\n".join(parts)


def citations(folder: Path) -> Iterator[Citation]:
    """Every numbered place of a paper that the code of a folder names."""
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text()
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        first = _PAPER.search(ast.get_docstring(ast.parse(text)) or "") or _PAPER.search(text)
        for name, prose in _texts(text):
            yield from _cited(prose, f"{module}.{name}" if name else module, first)


def _texts(text: str) -> Iterator[tuple[str, str]]:
    """Docstrings and comments, with the name of what they are in."""
    tree = ast.parse(text)
    yield "", ast.get_docstring(tree) or ""
    spans = list(_definitions(tree, ""))
    for name, node in spans:
        yield name, ast.get_docstring(node) or ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            line = token.start[0]
            inside = [name for name, node in spans if node.lineno <= line <= (node.end_lineno or 0)]
            yield inside[-1] if inside else "", token.string


def _definitions(
    node: ast.AST, prefix: str
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from _definitions(child, f"{prefix}{child.name}.")


def _cited(prose: str, where: str, first: re.Match[str] | None) -> Iterator[Citation]:
    flat = " ".join(prose.split())
    papers = list(_PAPER.finditer(flat))
    for place in _PLACE.finditer(flat):
        before = [paper for paper in papers if paper.start() < place.start()]
        paper = before[-1] if before else first
        if paper is None:
            continue
        kind = place[1].lower().replace("corollarie", "corollary")
        for number in _NUMBER.findall(place[2]):
            yield Citation(f"{paper[1]} {paper[2]}", kind, number, where)


def _order(item: tuple[tuple[str, str], set[str]]) -> tuple[int, list[int], str]:
    kind, number = item[0]
    return _KINDS.index(kind), [int(part) for part in re.findall(r"\d+", number)], number
