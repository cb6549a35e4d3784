"""Archives: what goes out comes in with the same bits, and nothing else comes in."""

import copy
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
import scipy.sparse as sp
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.datasets.recipe_schemas import ColumnRecipe, TextRecipe
from app.errors import InvalidInput, StorageFull
from app.exports import archive_imports, archive_loader, archives, model_cards
from app.jobs import service as jobs
from app.jobs import wakeups as job_queue
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.models.schemas import ModelAbout, ModelVersion, VersionPatch
from app.predictions import service as predictions
from app.predictions.model_cache import ModelCache
from app.store import db, tables
from app.store.files import files
from app.store.scope import DEFAULT, Scope, confine
from solvers.core.linear_model import LinearModel
from solvers.selection.later_places import LaterPlaces
from solvers.selection.pool_model import PoolModel
from solvers.selection.temperature_scaling import TemperatureScaling
from workers.tasks import run

Members = dict[str, bytes]
TEXTS = "".join(
    json.dumps({"text": text, "label": label}) + "\n"
    for text, label in [("red round apple", "fruit"), ("green long Leek", "herb"), ("blue deep sea", "water")] * 8
)


@pytest.fixture
def version(database: sessionmaker[Session], dataset: Callable[..., str]) -> ModelVersion:
    dataset()
    return _train(database)


def _train(database: sessionmaker[Session], data: str = "digits", **request: Any) -> ModelVersion:
    with database() as session:
        job = jobs.submit(
            session, TrainRequest(**{"solver": "weston_watkins", "dataset": data, "model": "m", **request})
        )
    run(job.id)
    with database() as session:
        done = jobs.get(session, job.id)
        assert done.state == "succeeded", done.error
        return models.version(session, "m")


def _exported(session: Session, number: int = 1) -> bytes:
    return b"".join(archives.make(session, "m", number).blocks())


def _import(session: Session, archive: bytes, name: str | None = None) -> ModelVersion:
    upload = files().upload()
    upload.write(archive)
    upload.finish()
    try:
        with archive_imports.unpacked(session, upload, lambda: None) as found:
            assert not session.in_transaction(), "other writers would wait for gigabytes"
            return archive_imports.register(session, found, name)
    finally:
        assert not upload.path.exists()


def _members(archive: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def _zipped(members: Members, compression: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def _listed(members: Members) -> Members:
    """The same with sizes and hashes in archive.json that fit the members."""
    contents = orjson.loads(members["archive.json"])
    contents["files"] = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}
        for name, content in members.items()
        if name != "archive.json"
    }
    return {**members, "archive.json": orjson.dumps(contents)}


def _scores(session: Session, model: str, instances: list[Any]) -> Any:
    loaded = ModelCache(db.sessions(), 1 << 30).get((DEFAULT, model, None, None))
    answer = predictions.predict(loaded, {"instances": instances, "top_k": 3}, 10)
    return answer["predictions"]


def test_an_archive_gives_the_same_bits_under_another_name(session: Session, version: ModelVersion) -> None:
    models.change_version(session, "m", 1, VersionPatch(tags={"stage": "try"}, notes="good one"))
    archive = _exported(session)
    assert _exported(session) == archive, "the same version gives the same bytes"
    found = _import(session, archive, "other")
    assert (found.model, found.version, found.sha256) == ("other", 1, version.sha256)
    assert found.origin is not None
    assert (found.origin.model, found.origin.version, found.origin.job) == ("m", 1, version.job)
    same = {"params", "seed", "gap", "metrics", "levels", "dataset", "dataset_sha256", "solver", "report"}
    assert found.model_dump(include=same) == version.model_dump(include=same)
    assert (found.tags, found.notes) == ({"stage": "try"}, "good one")
    instances = [[0.25 * i, 1.0, -0.5, 0.0, 2.0] for i in range(4)]
    assert _scores(session, "other", instances) == _scores(session, "m", instances)
    assert _import(session, _exported(session), None).version == 2
    assert _members(b"".join(archives.make(session, "other", 1).blocks())).keys() == _members(archive).keys()


def test_a_dataset_is_linked_where_it_is_ready_and_its_file_was_read_in_one_way(
    session: Session, version: ModelVersion
) -> None:
    archive, D = _exported(session), tables.Dataset
    old = session.scalars(select(D)).one()
    # a failed import of the same file came first
    failed = D(**{c.name: getattr(old, c.name) for c in D.__table__.columns} | {"id": "0" * 32, "name": "failed"})
    failed.state = "failed"
    session.add(failed)
    # rows were appended since
    old.sha256 = "0" * 64
    session.commit()
    assert _import(session, archive, "other").dataset == old.id
    again = session.scalars(select(tables.DatasetVersion)).one()
    values = {c.name: getattr(again, c.name) for c in tables.DatasetVersion.__table__.columns}
    session.add(tables.DatasetVersion(**values | {"dataset_id": failed.id}))
    failed.state = "ready"
    job_queue.enqueue(session, "import", failed.id, {"kind": "import", "format": "csv", "label_column": "place"})
    session.commit()
    assert _import(session, archive, "third").dataset is None


def test_numpy_reads_an_archive_and_its_card_has_what_the_hub_reads(session: Session, version: ModelVersion) -> None:
    archive = np.load(io.BytesIO(_exported(session)), allow_pickle=False)
    assert archive["model/W"].shape[1] == 3
    card = archive["README.md"].decode()
    front = dict(line.split(": ", 1) for line in card.split("---\n")[1].splitlines())
    assert json.loads(front["pipeline_tag"]) == "tabular-classification"
    (entry,) = json.loads(front["model-index"])
    found = {each["name"]: each["value"] for each in entry["results"][-1]["metrics"]}
    assert found == version.metrics["train" if entry["results"][-1]["dataset"]["split"] == "train" else "test"]
    assert version.sha256 in card
    assert "relative duality gap" in card


def test_what_people_say_of_a_model_is_on_its_cards_and_goes_with_archives(
    session: Session, version: ModelVersion
) -> None:
    said = {"license": "CC-BY-4.0", "languages": ["fi", "sv-FI"], "intended_use": "Sorting letters.", "contact": "Ann"}
    found = models.describe(session, version.model, ModelAbout.model_validate(said))
    assert found.about.model_dump(exclude_none=True) == said
    models.describe(session, version.model, ModelAbout(limitations="Not for numbers.", contact=None))
    archive = _exported(session)
    card = np.load(io.BytesIO(archive), allow_pickle=False)["README.md"].decode()
    front = dict(line.split(": ", 1) for line in card.split("---\n")[1].splitlines())
    assert (json.loads(front["license"]), json.loads(front["language"])) == ("CC-BY-4.0", ["fi", "sv-FI"])
    for part in ("## Intended use\n\nSorting letters.", "## Limitations\n\nNot for numbers."):
        assert part in card
    assert "Ann" not in card
    taken = _import(session, archive, "elsewhere")
    about = models.get(session, taken.model).about
    assert (about.license, about.limitations, about.contact) == ("CC-BY-4.0", "Not for numbers.", None)
    # what a service says of its own model stays
    models.describe(session, "elsewhere", ModelAbout(license="MIT", languages=[]))
    _import(session, archive, "elsewhere")
    assert models.get(session, "elsewhere").about.license == "MIT"
    assert models.get(session, "elsewhere").about.languages is None


def test_a_card_of_a_version_without_a_gap_and_without_tests_says_so(version: ModelVersion) -> None:
    bare = version.model_copy(update={"gap": None, "metrics": {}, "notes": "Mind the gap."})
    card = model_cards.model_card(bare, "text", "linear", ModelAbout())
    for part in ("no duality gap", "Nothing was held out", "Mind the gap.", "text-classification"):
        assert part in card


def _without(name: str) -> Callable[[Members], bytes]:
    return lambda members: _zipped({key: value for key, value in members.items() if key != name})


def _with(name: str, content: bytes = b"x") -> Callable[[Members], bytes]:
    return lambda members: _zipped({**members, name: content})


def _relisted(name: str, content: bytes) -> Callable[[Members], bytes]:
    return lambda members: _zipped(_listed({**members, name: content}))


def _flipped(members: Members) -> bytes:
    W = bytearray(members["model/W.npy"])
    W[-1] ^= 1
    return _zipped({**members, "model/W.npy": bytes(W)})


def _flipped_and_listed(members: Members) -> bytes:
    return _zipped(_listed(_members(_flipped(members))))


def _with_array(name: str, change: Callable[[Any], Any]) -> Callable[[Members], bytes]:
    """An archive made by hand: every hash is right, and one array is another."""
    part, _, array = name.partition("/")
    fact = {"model": "sha256", "features": "features_sha256"}[part]

    def changed(members: Members) -> bytes:
        out = io.BytesIO()
        np.save(out, change(np.load(io.BytesIO(members[f"{name}.npy"]))))
        manifest, contents = orjson.loads(members[f"{part}/manifest.json"]), orjson.loads(members["archive.json"])
        manifest["arrays"][array] = hashlib.sha256(out.getvalue()).hexdigest()
        text = orjson.dumps(manifest)
        contents["version"][fact] = hashlib.sha256(text).hexdigest()
        renewed = {f"{name}.npy": out.getvalue(), f"{part}/manifest.json": text, "archive.json": orjson.dumps(contents)}
        return _zipped(_listed({**members, **renewed}))

    return changed


def _out_of_range(features: Any) -> Any:
    features[-1] = 1 << 30
    return features


def _with_shared_bytes(members: Members) -> bytes:
    out = io.BytesIO(_zipped(members))
    with zipfile.ZipFile(out, "a") as archive:
        largest = max(archive.filelist, key=lambda member: member.file_size)
        for number in range(50):
            again = copy.copy(largest)
            again.filename = f"model/more{number}.npy"
            archive.filelist.append(again)
        archive.writestr("model/last.npy", b"x")
    return out.getvalue()


def _contents(change: Callable[[dict[str, Any]], Any]) -> Callable[[Members], bytes]:
    def changed(members: Members) -> bytes:
        contents = orjson.loads(members["archive.json"])
        change(contents)
        return _zipped({**members, "archive.json": orjson.dumps(contents)})

    return changed


WRONG: dict[str, Callable[[Members], bytes]] = {
    "no zip": lambda members: b"PK nonsense",
    "cut off": lambda members: _zipped(members)[:-30],
    "compressed": lambda members: _zipped(members, zipfile.ZIP_DEFLATED),
    "without contents": _without("archive.json"),
    "without a member": _without("model/W.npy"),
    "without a manifest": lambda members: _zipped(
        _listed({key: value for key, value in members.items() if key != "features/manifest.json"})
    ),
    "unlisted member": _with("model/more.npy"),
    "path upwards": _relisted("../../x.npy", b"x"),
    "path upwards within": _relisted("model/../x.npy", b"x"),
    "absolute path": _relisted("/tmp/x.npy", b"x"),
    "unknown member": _relisted("setup.py", b"x"),
    "pickle": _relisted("model/more.pkl", b"x"),
    "another bit": _flipped,
    "another bit and its hash": _flipped_and_listed,
    "array that no manifest names": _relisted("model/more.npy", b"x"),
    "index out of range": _with_array("model/features", _out_of_range),
    "a different byte order": _with_array("model/W", lambda W: W.astype(W.dtype.newbyteorder())),
    "shared bytes": _with_shared_bytes,
    "contents that are no JSON": _with("archive.json", b"{"),
    "another format": _contents(lambda contents: contents.update(format=2)),
    "unknown field": _contents(lambda contents: contents.update(more=1)),
    "NUL": _contents(lambda contents: contents["version"].update(notes="a\0b")),
    "number beyond bounds": _contents(lambda contents: contents["version"].update(seed=-1)),
    "other classes": _contents(lambda contents: contents["version"].update(n_classes=7)),
    "other artefact": _contents(lambda contents: contents["version"].update(sha256="0" * 64)),
    "name": _contents(lambda contents: contents["version"]["origin"].update(model="../m")),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_archive_is_refused_and_leaves_nothing(wrong: str, session: Session, version: ModelVersion) -> None:
    wrong_archive = WRONG[wrong](_members(_exported(session)))
    files().upload().abort()  # makes the folder of uploads
    before = sorted(files().root.rglob("*"))
    with pytest.raises(InvalidInput):
        _import(session, wrong_archive)
    assert sorted(files().root.rglob("*")) == before
    assert models.get(session, "m").versions == [1]


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ("index out of range", "the array features"),
        ("shared bytes", "some of them overlap"),
        ("unknown member", "it is no model archive, as an export writes it: it has the file 'setup.py'"),
    ],
)
def test_a_refusal_names_what_is_wrong(wrong: str, reported: str, session: Session, version: ModelVersion) -> None:
    with pytest.raises(InvalidInput) as caught:
        _import(session, WRONG[wrong](_members(_exported(session))))
    assert reported in caught.value.errors[0].detail


def test_an_archive_of_texts_with_fewer_terms_than_weights_is_refused(
    session: Session, database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset(TEXTS, "texts", "jsonl")
    _train(database, "texts")
    fewer = _with_array("features/names_offsets", lambda offsets: offsets[:-1])(_members(_exported(session)))
    with pytest.raises(InvalidInput):
        _import(session, fewer)


def test_an_archive_that_a_workspace_has_no_room_for_is_not_unpacked(
    session: Session, version: ModelVersion, configure: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = _exported(session)
    configure(max_stored_bytes=10)
    monkeypatch.setattr(archive_imports, "_extract", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(StorageFull):
        _import(confine(session, Scope(DEFAULT)), archive)


def test_a_member_that_is_there_twice_is_refused(session: Session, version: ModelVersion) -> None:
    out = io.BytesIO(_exported(session))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(out, "a") as archive:
        archive.writestr("README.md", "another")
    with pytest.raises(InvalidInput) as caught:
        _import(session, out.getvalue())
    assert "twice" in caught.value.errors[0].detail


@pytest.fixture
def load(tmp_path: Path, session: Session) -> Callable[..., Any]:
    """The archive's own script, in a process that has numpy and scipy alone: labels and scores."""

    def call(instances: Any) -> tuple[list[str], Any]:
        members = _members(_exported(session))
        (tmp_path / "model.npz").write_bytes(_zipped(members))
        (tmp_path / "load.py").write_bytes(members["load.py"])
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); import json, load\n"
            "found = load.Classifier(sys.argv[1] + '/model.npz')\n"
            "asked = json.loads(sys.argv[2])\n"
            "print(json.dumps([found.predict(asked).tolist(), found.decision_function(asked).tolist()]))\n"
            "assert not {'app', 'solvers', 'sklearn', 'numba'} & set(sys.modules)\n"
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", script, str(tmp_path), json.dumps(instances)],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        labels, scores = json.loads(done.stdout)
        return labels, scores

    return call


def _compare(session: Session, load: Callable[..., Any], asked: list[Any], instances: list[Any]) -> None:
    labels, scores = load(asked)
    classes = ModelCache(db.sessions(), 1 << 30).get((DEFAULT, "m", None, None)).model.classes
    for label, row, expected in zip(labels, scores, _scores(session, "m", instances), strict=True):
        assert label == expected["label"]
        for each in expected["top"]:
            assert row[classes.index(each["label"])] == pytest.approx(each["score"], rel=1e-4, abs=1e-5)


def test_the_script_in_an_archive_answers_as_the_service_does(
    session: Session, version: ModelVersion, load: Callable[..., Any]
) -> None:
    rows = [[0.25 * i, 1.0, -0.5, 0.0, 2.0 - i] for i in range(4)]
    _compare(session, load, rows, rows)


@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"ngram_max": 2, "prefix": 3, "char_ngrams": (2, 3), "min_df": 1},
        {"lowercase": False, "sublinear_tf": False, "min_word_length": 1, "stop_words": ["sea"]},
        {"weighting": "bm25", "min_df": 1, "hash_features": 64},
        {"stop_words": "english", "min_df": 1},
        {"clean": ["html", "pdf"], "min_df": 1, "max_words": 5},
    ],
    ids=["plain", "rich", "bare", "hashed", "english", "cleaned"],
)
def test_the_script_reads_texts_by_their_recipe(
    recipe: dict[str, Any],
    database: sessionmaker[Session],
    session: Session,
    dataset: Callable[..., str],
    load: Callable[..., Any],
) -> None:
    dataset(TEXTS, "texts", "jsonl")
    _train(database, "texts", text=TextRecipe(**recipe))
    texts = ["a red apple in the deep Sea sea", "Green leek", "nothing of it", "<p>a r<b>ed</b> ap-\nple &amp; <i>sea"]
    _compare(session, load, texts, [{"text": text} for text in texts])


def test_the_script_knows_pools(
    database: sessionmaker[Session], session: Session, dataset: Callable[..., str], load: Callable[..., Any]
) -> None:
    dataset(TEXTS, "texts", "jsonl")
    _train(
        database, "texts", solver="auto", params={"candidates": [{"solver": "weston_watkins"}, {"solver": "softmax"}]}
    )
    texts = ["a red apple in the deep Sea sea", "Green leek", "nothing of it"]
    _compare(session, load, texts, [{"text": text} for text in texts])


@pytest.mark.parametrize("solver", ["label_trees", "centroids", "complement_naive_bayes"])
def test_the_script_knows_what_auto_pools_of_texts(
    solver: str,
    database: sessionmaker[Session],
    session: Session,
    dataset: Callable[..., str],
    load: Callable[..., Any],
) -> None:
    dataset(TEXTS, "texts", "jsonl")
    _train(database, "texts", solver=solver)
    texts = ["a red apple in the deep Sea sea", "Green leek", "nothing of it"]
    _compare(session, load, texts, [{"text": text} for text in texts])


@pytest.mark.parametrize("later", [None, LaterPlaces(np.array([3.0, 0.1]))], ids=["alone", "and of later places"])
@pytest.mark.parametrize("tempering", [None, TemperatureScaling(-0.3, 0.2)], ids=["pool", "tempered"])
def test_the_script_knows_the_temperatures_of_rows_and_later_places(
    tempering: TemperatureScaling | None, later: LaterPlaces | None
) -> None:
    rng = np.random.default_rng(0)
    W = rng.standard_normal((2, 4, 3)).astype(np.float32)
    members = [LinearModel(("a", "b", "c"), 4, np.arange(4), each) for each in W]
    model = PoolModel(members, np.array([0.5, 2.0]), tempering=tempering, later=later)
    X = sp.csr_matrix(3.0 * rng.standard_normal((20, 4)))
    found = archive_loader._scores("pool", X, dict(model.arrays()), 3)
    np.testing.assert_allclose(found, model.scores(X), rtol=1e-4, atol=1e-5)
    plain = PoolModel(members, model.coefficients).scores(X)
    assert np.allclose(found, plain, atol=0.01) == (tempering is None and later is None)
    assert (found.argmax(axis=1) == plain.argmax(axis=1)).all()


def test_the_script_goes_down_a_tree(
    database: sessionmaker[Session],
    session: Session,
    dataset: Callable[..., str],
    hierarchy: Callable[..., str],
    load: Callable[..., Any],
) -> None:
    dataset()
    _train(database, solver="orthogonal_transfer", hierarchy=hierarchy())
    rows = [[0.25 * i, 1.0, -0.5, 0.0, 2.0 - i] for i in range(4)]
    labels, _ = load(rows)
    assert labels == [each["label"] for each in _scores(session, "m", rows)]


def test_the_script_says_what_it_does_not_know(
    database: sessionmaker[Session], session: Session, dataset: Callable[..., str], load: Callable[..., Any]
) -> None:
    dataset()
    _train(database, solver="kernel_weston_watkins")
    with pytest.raises(AssertionError, match="import a model of the kind"):
        load([[0.0] * 5])


def test_the_script_tells_what_is_wrong_in_one_line(
    database: sessionmaker[Session],
    session: Session,
    dataset: Callable[..., str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dataset()
    _train(database)
    file, other = tmp_path / "m-1.npz", tmp_path / "other.npz"
    file.write_bytes(_exported(session))
    other.write_bytes(b"no archive")
    for arguments, words in (
        ([str(file)], "Usage: python load.py"),
        ([str(tmp_path / "nowhere.npz"), "1"], "is not a readable archive"),
        ([str(other), "1"], "is not a readable archive"),
        ([str(file), "a,b"], "could not convert string to float"),
        ([str(file), "1,2"], "cannot be classified"),
    ):
        with pytest.raises(SystemExit, match=words):
            archive_loader.main(arguments)
    capsys.readouterr()  # what the jobs have logged, where nothing has said yet how much is to be
    archive_loader.main([str(file), "0,0,0,0,1"])
    label, instance = capsys.readouterr().out.split()
    assert instance == "0,0,0,0,1"
    assert label in json.loads(_members(file.read_bytes())["model/manifest.json"])["classes"]


def test_the_script_knows_every_field_of_the_recipe() -> None:
    source = archives.loader_source()
    for name in TextRecipe.model_fields:
        assert f'"{name}"' in source


def test_the_script_reads_records_of_tables(
    database: sessionmaker[Session], session: Session, dataset: Callable[..., str], load: Callable[..., Any]
) -> None:
    rows = [
        {"label": "ab"[k % 2], "x": k % 3 if k % 5 else None, "c": "rst"[k % 3], "text": "up down"[: k + 2]}
        for k in range(30)
    ]
    options = {"number_columns": ("x",), "category_columns": ("c",), "missing": "keep"}
    dataset("\n".join(map(json.dumps, rows)), "mixed", "jsonl", **options)
    _train(database, "mixed", columns=ColumnRecipe(scaling="unit_norm"), text=TextRecipe(min_df=1))
    records = [{"x": 2.5, "c": "r", "text": "up"}, {"c": "new"}, {"x": None, "c": "s", "text": "down down"}]
    _compare(session, load, records, [{"record": record} for record in records])


def test_the_script_scales_numbers(
    database: sessionmaker[Session], session: Session, dataset: Callable[..., str], load: Callable[..., Any]
) -> None:
    dataset()
    _train(database, columns=ColumnRecipe())
    rows = [[0.25 * i, 1.0, -0.5, 0.0, 2.0 - i] for i in range(4)]
    _compare(session, load, rows, rows)
