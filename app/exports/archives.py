"""Archives of versions: zip files of plain arrays with the hash of each, made as they are sent."""

import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from app.errors import Unavailable
from app.exports import archive_loader
from app.exports.model_cards import model_card
from app.exports.schemas import ARCHIVE_FORMAT, ArchiveContents, ArchivedFile, ArchivedVersion
from app.features import cleaning as text_cleaning
from app.features import excerpts as text_excerpts
from app.features import reading as text_reading
from app.models import service as models
from app.models.schemas import ModelAbout, ModelVersion, Origin
from app.store import tables
from app.store.db import reading
from app.store.files import MANIFEST, files
from app.store.lookup import by_id

CONTENTS, CARD, LOADER = "archive.json", "README.md", "load.py"
_BLOCK = 1 << 20
# the same version gives the same bytes
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class Archive:
    """A version that is ready to be sent: its small members, and the files of its arrays."""

    name: str
    small: dict[str, bytes]
    arrays: dict[str, Path]

    def blocks(self) -> Iterator[bytes]:
        """The zip file, block by block; nothing is compressed, so that numpy reads it as it reads its own archives."""
        out = _Sink()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            for name, content in self.small.items():
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
                yield out.drain()
            for name, path in self.arrays.items():
                with path.open("rb") as file, archive.open(zipfile.ZipInfo(name, _EPOCH), "w", force_zip64=True) as to:
                    while block := file.read(_BLOCK):
                        to.write(block)
                        yield out.drain()
        yield out.drain()


def make(session: Session, ref: str, number: int) -> Archive:
    """The archive of a version.

    Raises
    ------
    NotFound
        No such model or version.
    Unavailable
        The version's files cannot be read.
    """
    with reading(session):
        row = models.version_row(session, ref, number)
        shown = models.show_versions(session, [row])[0]
        metrics = models.stored_metrics(session, row.id)
        about = ModelAbout.model_validate(by_id(session, tables.Model, row.model_id).about or {})
    store = files()
    try:
        for part in ("model", "features"):
            store.local(f"{row.path}/{part}")
        return _made(shown, about, metrics, store.path(row.path))
    except (OSError, ValueError, KeyError) as error:
        raise Unavailable(f"The files of version {number} cannot be read.") from error


def _made(version: ModelVersion, about: ModelAbout, metrics: dict[str, dict[str, float]], folder: Path) -> Archive:
    small: dict[str, bytes] = {}
    arrays: dict[str, Path] = {}
    listed: dict[str, ArchivedFile] = {}
    manifests = {}
    for part in ("model", "features"):
        text = (folder / part / MANIFEST).read_bytes()
        manifests[part] = json.loads(text)
        small[f"{part}/{MANIFEST}"] = text
        for name, digest in sorted(manifests[part]["arrays"].items()):
            path = folder / part / f"{name}.npy"
            arrays[f"{part}/{path.name}"] = path
            listed[f"{part}/{path.name}"] = ArchivedFile(sha256=digest, size_bytes=path.stat().st_size)
    card = model_card(version, manifests["features"]["kind"], manifests["model"]["kind"], about)
    small |= {CARD: card.encode(), LOADER: loader_source().encode()}
    listed |= {name: _described(content) for name, content in small.items()}
    facts = ArchivedVersion(
        origin=Origin(model=version.model, version=version.version, job=version.job, created_at=version.created_at),
        about=about,
        metrics=metrics,
        features_sha256=listed[f"features/{MANIFEST}"].sha256,
        **version.model_dump(
            include=ArchivedVersion.model_fields.keys() - {"origin", "about", "metrics", "features_sha256"}
        ),
    )
    contents = ArchiveContents(format=ARCHIVE_FORMAT, version=facts, files=dict(sorted(listed.items())))
    small = {CONTENTS: contents.model_dump_json(indent=1).encode(), **small}
    return Archive(f"{version.model}-{version.version}.npz", small, arrays)


def loader_source() -> str:
    """The script of an archive: with what reads texts within it, it needs no file beside it."""
    modules = (archive_loader, text_reading, text_cleaning, text_excerpts)
    script, *parts = (Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules)
    imports = "from app.features.excerpts import excerpt, split_text\nfrom app.features.reading import reader\n"
    before, after = script.split(imports)
    within = "".join(part.split("from __future__ import annotations\n")[1] for part in parts)
    return before + re.sub(r"^from app\..*\n", "", within, flags=re.MULTILINE) + after


def _described(content: bytes) -> ArchivedFile:
    return ArchivedFile(sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content))


class _Sink(io.RawIOBase):
    """A file that cannot be rewound and keeps nothing but what was not taken yet."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._waiting += data
        return len(data)

    def drain(self) -> bytes:
        block = bytes(self._waiting)
        self._waiting.clear()
        return block
