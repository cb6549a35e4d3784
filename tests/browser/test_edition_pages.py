"""The pages of a version and a model: an edition of the vocabulary is adopted, and people say what the model is for."""

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import Service

from app.client import Client

pytestmark = pytest.mark.slow

NAMES = ["baking", "weaving", "pottery", "soup"]


def _vocabulary(path: Path, names: list[str]) -> Path:
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."]
    lines += [f'<u:{name}> a skos:Concept ; skos:prefLabel "{name.title()}"@en .' for name in names]
    path.write_text("\n".join(lines))
    return path


def test_a_version_adopts_an_edition_and_a_model_is_described(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    rows = tmp_path / "handicrafts.jsonl"
    lines = [
        {
            "text": f"The {NAMES[i % 4]} and the {NAMES[i // 4 % 4]}, day {i}",
            "label": list({f"u:{NAMES[i % 4]}", f"u:{NAMES[i // 4 % 4]}"}),
        }
        for i in range(32)
    ]
    rows.write_text("\n".join(map(json.dumps, lines)))
    client.datasets.upload(rows, "handicrafts").wait()
    client.hierarchies.upload(_vocabulary(tmp_path / "first.ttl", NAMES), "handicrafts-1")
    client.hierarchies.upload(_vocabulary(tmp_path / "second.ttl", [*NAMES, "felting"]), "handicrafts-2")
    (tmp_path / "other.csv").write_text("parent,child\nroot,engines\n")
    client.hierarchies.upload(tmp_path / "other.csv", "engineering")
    client.train("handicrafts", "indexer", "subjects", hierarchy="handicrafts-1").wait()
    page.goto(f"{service.url}/models/indexer/versions/1")
    form = page.locator("#adopt")
    # only vocabularies that have concepts of this one
    assert form.locator("option").all_inner_texts() == ["handicrafts-2"]
    form.get_by_label("Adopt an edition of the vocabulary").select_option("handicrafts-2")
    form.get_by_role("button", name="Adopt").click()
    page.get_by_role("link", name="Version 2 of indexer").click()
    facts = page.locator("#edition")
    facts.get_by_text("1, found by their names").wait_for()
    assert "handicrafts-2" in facts.inner_text()
    edition = client.models.version("indexer", 2).edition_of
    assert edition is not None
    assert edition.appeared == 1
    page.goto(f"{service.url}/models/indexer")
    about = page.locator("#about")
    about.get_by_text("Edit", exact=True).click()
    about.get_by_label("License").fill("CC-BY-4.0")
    about.get_by_label("Languages").fill("en, sv-FI")
    about.get_by_label("Intended use").fill("Indexing <b>handicrafts</b>.")
    about.get_by_role("button", name="Save").click()
    about.get_by_text("en, sv-FI").wait_for()
    assert "Indexing <b>handicrafts</b>." in about.inner_text()
    assert client.models.get("indexer").about.languages == ["en", "sv-FI"]
