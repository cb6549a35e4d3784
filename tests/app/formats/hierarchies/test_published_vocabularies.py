"""Vocabularies are counted right: one that is made, and those of publishers in POLYMARGIN_BENCH_DATA."""

import lzma
import os
from collections import Counter
from pathlib import Path

import pytest

from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Vocabulary
from app.hierarchies.schemas import HierarchyOptions

FOLDER = Path(os.environ.get("POLYMARGIN_BENCH_DATA", "not set")) / "vocabularies"
BOUNDS = Bounds(nodes=100_000, depth=100, characters=1 << 28)
PREFIXES = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://example.org/t/> .
"""
WHY = "POLYMARGIN_BENCH_DATA names no folder of vocabularies"


def concept(k: int, parents: list[int], more: str = "") -> str:
    broader = "".join(f" ; skos:broader :c{parent}" for parent in parents)
    return f':c{k} a skos:Concept ; skos:prefLabel "Concept {k}"@en, "Begriff {k}"@de{broader}{more} .\n'


def read(path: Path, format: str, **options: str) -> Vocabulary:
    return parse_hierarchy(path, format, HierarchyOptions.model_validate(options), BOUNDS)


def test_each_concept_is_counted_once_however_many_parents_it_has(tmp_path: Path) -> None:
    # 4 on top; of the others each third has two parents, each ninth three
    parents = {k: [k // 4, *([k % 4] if k % 3 == 0 else []), *([4] if k % 9 == 0 else [])] for k in range(8, 300)}
    parents |= {k: [k // 4] for k in range(4, 8)} | {k: [] for k in range(4)}
    parents = {k: list(dict.fromkeys(of)) for k, of in parents.items()}
    content = PREFIXES + "".join(concept(k, of) for k, of in parents.items())
    content += "".join(concept(k, [], " ; owl:deprecated true ; skos:broader :c1") for k in range(300, 310))
    path = tmp_path / "made.ttl"
    path.write_text(content)
    found = read(path, "skos", tree="first")
    assert len(found.tree.names) == 310
    assert Counter(edge.label for edge in found.dropped) == Counter(
        {f"http://example.org/t/c{k}": len(of) - 1 for k, of in parents.items() if len(of) > 1}
    )


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason=WHY)
def test_the_economists_thesaurus_has_6244_concepts(tmp_path: Path) -> None:
    path = tmp_path / "stw.ttl"
    path.write_bytes(lzma.decompress((FOLDER / "stw-skos.ttl.xz").read_bytes()))
    found = read(path, "skos", tree="first")
    assert len(found.tree.names) == 6244
    assert len({edge.label for edge in found.dropped}) == 4566


@pytest.mark.slow
@pytest.mark.skipif(not FOLDER.is_dir(), reason=WHY)
@pytest.mark.parametrize(
    ("file", "format", "options", "n_others"),
    [
        ("iab-content-3.1.tsv", "csv", {"id_field": "Unique ID", "name_field": "Name"}, 2),
        ("shopify-head.txt", "paths", {}, 2),
    ],
)
def test_published_tables_and_paths_have_a_node_for_each_line_that_is_no_header(
    file: str, format: str, options: dict[str, str], n_others: int
) -> None:
    n_lines = sum(1 for line in (FOLDER / file).read_text().splitlines() if line.strip())
    assert len(read(FOLDER / file, format, **options).tree.names) == n_lines - n_others
