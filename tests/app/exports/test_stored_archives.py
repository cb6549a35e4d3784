"""Archives that earlier versions wrote are imported, and their models answer as they did."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from app.exports import archive_imports
from app.predictions import service as predictions
from app.predictions.model_cache import ModelCache
from app.store import db
from app.store.files import files

ARCHIVES = Path(__file__).parents[2] / "artefacts" / "archives"
STORED = sorted(ARCHIVES.glob("*/*.npz"))


def _known(found: Any, expected: Any) -> Any:
    """What is expected, as it was found, with every number to five digits: sums differ from machine to machine."""
    if isinstance(expected, dict):
        return {name: _known(found[name], value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [_known(one, other) for one, other in zip(found, expected, strict=True)]
    return float(f"{found:.5g}") if isinstance(expected, float) else found


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_archive_of_an_earlier_version_is_imported_and_answers_as_it_did(session: Session, path: Path) -> None:
    upload = files().upload()
    upload.write(path.read_bytes())
    upload.finish()
    with archive_imports.unpacked(session, upload, lambda: None) as found:
        version = archive_imports.register(session, found, "imported")
    assert version.origin is not None
    assert version.origin.model == path.stem
    stored = json.loads((path.parent / "answers.json").read_text())[path.stem]
    loaded = ModelCache(db.sessions(), 1 << 30).get(("default", "imported", None, None))
    answer = predictions.predict(loaded, {"instances": stored["instances"], "top_k": 3}, 10)
    expected = stored["predictions"]
    assert _known(answer["predictions"], expected) == _known(expected, expected)


def test_archives_of_two_versions_are_stored() -> None:
    assert {path.parent.name for path in STORED} == {"0.4.0", "1.0.0rc1"}
    assert len(STORED) == 6
