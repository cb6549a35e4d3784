"""Archives that come in: every member is expected, bounded and compared with its hash."""

import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access import quotas
from app.datasets import versions as dataset_versions
from app.errors import InvalidInput, Item, NotFound, PolymarginError
from app.exports.archives import CARD, CONTENTS, LOADER
from app.exports.schemas import ArchiveContents, ArchivedVersion
from app.models import service as models
from app.models import versions
from app.models.schemas import ModelVersion
from app.models.versions import Facts
from app.plurals import counted
from app.predictions.model_cache import load_folder
from app.storable_text import parse_json
from app.store import tables
from app.store.db import new_id, reading, writing
from app.store.disk_space import writing_to
from app.store.files import MANIFEST, Files, Upload, files
from app.store.lookup import by_id
from solvers.core.artefact_files import read_array, sync_folder
from solvers.core.stored_models import ModelError

MAX_MEMBERS = 10_000
# manifests name every class; the others are smaller still
MAX_TEXT_BYTES = 256 << 20
_BLOCK = 1 << 20
_ARRAY = re.compile(r"(model|features)/[A-Za-z0-9][A-Za-z0-9_.-]{0,199}\.npy")
_TEXTS = {CONTENTS, CARD, LOADER, f"model/{MANIFEST}", f"features/{MANIFEST}"}
# of a zip file's member: encrypted, or with patches
_FLAGS = 0x1 | 0x20


@dataclass(frozen=True)
class Unpacked:
    """An archive that was found whole: the folder of its files, which is there for as long as it is used."""

    folder: Path
    version: ArchivedVersion


@contextmanager
def unpacked(session: Session, upload: Upload, check: Callable[[], None]) -> Iterator[Unpacked]:
    """Unpack the archive that was received and compare all of it, in no transaction; the upload is gone afterwards.

    Parameters
    ----------
    check : callable
        Called now and then; raises where nobody waits any more.

    Raises
    ------
    InvalidInput
        The file is no archive, has a member that none should have or whose bytes are not those that were written, or
        a model that this version cannot read.
    StorageFull
        The workspace has no room for it.
    """
    # outside of the sweep's folders until all is checked
    work = upload.path.with_name(f"{upload.path.name}.import")
    try:
        with _opened(upload.path) as archive:
            contents = _contents(archive, upload.size_bytes)
            _require_listed(archive, contents)
            quotas.require_room(session, sum(file.size_bytes for file in contents.files.values()), hold=False)
            _extract(archive, contents, work, check)
        _require_whole(work, contents)
        yield Unpacked(work, contents.version)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        upload.abort()


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError, UnicodeDecodeError) as error:
        raise _refused("the file is not a zip file, or is truncated") from error


def _contents(archive: zipfile.ZipFile, size_bytes: int) -> ArchiveContents:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise _refused(f"it has {len(members)} members; at most {MAX_MEMBERS} are allowed")
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise _refused("a member occurs twice")
    for member in members:
        text = member.filename in _TEXTS
        if not text and not _ARRAY.fullmatch(member.filename):
            raise _refused(f"it is no model archive, as an export writes it: it has the file {member.filename!r:.80}")
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise _refused("a member is compressed; archives of this service are uncompressed", member.filename)
        if member.flag_bits & _FLAGS:
            raise _refused("a member is encrypted", member.filename)
        if text and member.file_size > MAX_TEXT_BYTES:
            raise _refused(f"it is larger than {MAX_TEXT_BYTES} bytes", member.filename)
    if sum(member.file_size for member in members) > size_bytes:
        raise _refused("its members together are larger than the file, so some of them overlap")
    if CONTENTS not in names:
        raise _refused(f"it has no {CONTENTS}")
    text_ = _read(archive, CONTENTS)
    try:
        return ArchiveContents.model_validate(parse_json(text_))
    except orjson.JSONDecodeError:
        raise _refused("it is not JSON", CONTENTS) from None
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        items = [Item(f"{CONTENTS}: {fault['msg']}", "/".join(("", *map(str, fault["loc"])))[:200]) for fault in faults]
        raise InvalidInput(
            "The archive's content list does not have the form that this release expects.", items
        ) from None


def _require_listed(archive: zipfile.ZipFile, contents: ArchiveContents) -> None:
    there = {member.filename: member.file_size for member in archive.infolist()} | {CONTENTS: None}
    listed = {name: file.size_bytes for name, file in contents.files.items()} | {CONTENTS: None}
    if there.keys() != listed.keys():
        n = len(there.keys() ^ listed.keys())
        raise _refused(f"{counted(n, 'member', 'is/are')} there and not listed, or listed and not there", CONTENTS)
    wrong = [name for name, size in listed.items() if there[name] != size]
    if wrong:
        raise _refused("its size differs from the listed size", wrong[0])
    missing = {f"model/{MANIFEST}", f"features/{MANIFEST}"} - listed.keys()
    if missing:
        raise _refused("it is missing", min(missing))


def _extract(archive: zipfile.ZipFile, contents: ArchiveContents, work: Path, check: Callable[[], None]) -> None:
    """Write the files of model and features below ``work``, each compared with its hash on the way."""
    for folder in ("model", "features"):
        (work / folder).mkdir(parents=True)
    for name, expected in contents.files.items():
        check()
        target = work / name if "/" in name else None  # card and loader are hashed and not kept
        digest = _copied(archive, name, target)
        if digest != expected.sha256:
            raise _refused("its bytes differ from the listed hash", name)
    for made in (work / "model", work / "features", work):
        sync_folder(made)


def _copied(archive: zipfile.ZipFile, name: str, target: Path | None) -> str:
    sha256 = hashlib.sha256()
    try:
        path = target or Path(os.devnull)
        with archive.open(name) as member, writing_to(path, archive.getinfo(name).file_size), path.open("wb") as file:
            while block := member.read(_BLOCK):
                sha256.update(block)
                file.write(block)
            if target is not None:
                file.flush()
                os.fsync(file.fileno())
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise _refused("it cannot be read", name) from error
    return sha256.hexdigest()


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        return archive.read(name)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise _refused("it cannot be read", name) from error


def _require_whole(work: Path, contents: ArchiveContents) -> None:
    """The manifests are those of the version, name exactly the arrays that came, and can be loaded."""
    version = contents.version
    for part, digest in (("model", version.sha256), ("features", version.features_sha256)):
        if contents.files[f"{part}/{MANIFEST}"].sha256 != digest:
            raise _refused("it is not the manifest of the version", f"{part}/{MANIFEST}")
        manifest = _manifest(work / part / MANIFEST)
        named = {f"{part}/{name}.npy": sha256 for name, sha256 in manifest["arrays"].items()}
        came = {name: file.sha256 for name, file in contents.files.items() if name.startswith(f"{part}/")}
        came.pop(f"{part}/{MANIFEST}")
        if named != came:
            raise _refused("its arrays differ from the members of the file", f"{part}/{MANIFEST}")
        for name in came:
            _require_native(work / name, name)
    try:
        model, features, _, _ = load_folder(Files(work.parent), work.name)
    except PolymarginError as error:
        raise _refused(error.detail) from None
    except ModelError as error:
        raise _refused(str(error)) from None
    except Exception as error:  # the arrays are the user's: whatever fails on them is a fault of the file
        raise _refused(f"this version cannot read its model ({type(error).__name__})") from error
    if model.n_features != features.n_features or len(model.classes) != version.n_classes:
        raise _refused("model, features and version do not agree on the number of features or classes")
    if not all(_finite(array) for array in model.arrays().values()):
        raise _refused("an array of the model has values that are not finite")


def _require_native(path: Path, name: str) -> None:
    """The bytes of numbers are in this machine's order: compiled loops take no others."""
    try:
        native = read_array(path, mmap=True).dtype.isnative
    except (ValueError, EOFError, OSError) as error:
        raise _refused("it is not an array", name) from error
    if not native:
        raise _refused("its numbers have a different byte order", name)


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = parse_json(path.read_bytes())
        if isinstance(manifest, dict) and all(isinstance(value, str) for value in manifest["arrays"].values()):
            return manifest
    except (orjson.JSONDecodeError, KeyError, AttributeError):
        pass
    raise _refused("it is not a manifest", f"{path.parent.name}/{path.name}")


def _finite(array: np.ndarray) -> bool:
    if array.dtype.kind != "f":
        return True
    flat = array.reshape(-1)
    return all(not np.isnan(flat[at : at + (1 << 22)]).any() for at in range(0, flat.size, 1 << 22))


def register(session: Session, archive: Unpacked, name: str | None) -> ModelVersion:
    """Make the next version of a model of what was unpacked; without a name, of the model that the archive names."""
    work, version = archive.folder, archive.version
    id = new_id()
    path = f"models/import-{id}"
    store = files()
    target = store.path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    size = sum(file.stat().st_size for file in work.rglob("*") if file.is_file())
    os.rename(work, target)
    sync_folder(target.parent)
    try:
        for manifest in target.rglob(MANIFEST):
            store.publish(manifest.parent.relative_to(store.root).as_posix())
        with writing(session):
            quotas.require_room(session, size)
            facts = Facts(
                job_id=id,
                dataset_id=_same_dataset(session, version.dataset_sha256),
                hierarchy_id=_same_hierarchy(session, version.hierarchy_sha256),
                path=path,
                size_bytes=size,
                origin=version.origin.model_dump(mode="json"),
                copy_of=None if version.copy_of is None else version.copy_of.model_dump(mode="json"),
                edition_of=None if version.edition_of is None else version.edition_of.model_dump(mode="json"),
                refit=None if version.refit is None else version.refit.model_dump(mode="json"),
                **{fact: getattr(version, fact) for fact in _FACTS},
            )
            model = name or version.origin.model
            number = versions.add(session, model, facts, version.metrics)
            row = models.version_row(session, model, number)
            row.tags, row.notes = dict(version.tags), version.notes
            owner = by_id(session, tables.Model, row.model_id)
            owner.about = owner.about or version.about.stored
            session.flush()
            return models.show_versions(session, [row])[0]
    except BaseException:
        store.delete(path)
        raise


_FACTS = (
    "dataset_sha256", "hierarchy_sha256", "solver", "params", "seed", "request", "code_version", "n_classes",
    "n_features", "n_train", "epochs", "converged", "primal", "dual", "gap", "violation", "seconds", "report", "sha256",
)  # fmt: skip


def _same_hierarchy(session: Session, sha256: str | None) -> str | None:
    """The id of the hierarchy that has the same hash here."""
    H = tables.Hierarchy
    return None if sha256 is None else session.scalars(select(H.id).where(H.sha256 == sha256).order_by(H.id)).first()


def _same_dataset(session: Session, sha256: str) -> str | None:
    """The id of the ready dataset one of whose versions has the same hash; None where several were read differently."""
    D, V = tables.Dataset, tables.DatasetVersion
    query = select(D.id).join(V, V.dataset_id == D.id).where(V.sha256 == sha256, D.state == "ready").order_by(D.id)
    ids = session.scalars(query).unique().all()
    # a hash is that of a file, and says nothing of the columns that were taken for labels or texts
    ways = dataset_versions.options(session, ids)
    return ids[0] if ids and all(ways[id] == ways[ids[0]] for id in ids) else None


def get(session: Session, id: str) -> ModelVersion:
    """The version with that id; raises NotFound."""
    with reading(session):
        row = by_id(session, tables.ModelVersion, id)
        if row.deleted_at is not None:
            raise NotFound("the version was deleted")
        return models.show_versions(session, [row])[0]


def _refused(detail: str, member: str | None = None) -> InvalidInput:
    where = "" if member is None else f"{member[:100]}: "
    return InvalidInput("The file is not an archive that can be imported.", [Item(f"{where}{detail}")])
