import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from asking import TestClient, problem
from working import train

from app import short_cache as remembered
from app.errors import NotFound
from app.models.schemas import ModelVersion
from app.predictions import model_cache
from app.predictions.model_cache import ModelCache
from app.store.db import sessions

NAMES = ("letters", "foods", "shapes")


def test_models_that_do_not_fit_make_room_for_the_newest(models: TestClient) -> None:
    sizes = {name: ModelCache(sessions(), 1 << 30).get(("default", name, None, None)).nbytes for name in NAMES}
    cache = ModelCache(sessions(), sizes["letters"] + sizes["shapes"])
    for name in ("letters", "shapes"):
        cache.get(("default", name, None, None))
    assert cache.nbytes == sizes["letters"] + sizes["shapes"]
    cache.get(("default", "foods", None, None))
    assert cache.ready(("default", "foods", None, None)) is not None
    assert cache.ready(("default", "letters", None, None)) is None
    assert cache.nbytes <= max(sizes["letters"] + sizes["shapes"], sizes["foods"])


def test_a_model_larger_than_the_bound_is_kept_alone(models: TestClient) -> None:
    cache = ModelCache(sessions(), 1)
    for name in NAMES:
        loaded = cache.get(("default", name, None, None))
        assert cache.ready(("default", name, None, None)) is loaded
        assert cache.nbytes == loaded.nbytes


def test_many_threads_load_a_model_once(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    load = model_cache.load_version

    def counted(session: object, version: object) -> object:
        loads.append(threading.current_thread().name)
        return load(session, version)  # type: ignore[arg-type]

    monkeypatch.setattr(model_cache, "load_version", counted)
    cache = ModelCache(sessions(), 1 << 30)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: cache.get(("default", "letters", None, None)), range(16)))
    assert len(loads) == 1
    assert all(model is found[0] for model in found)


def test_a_name_is_looked_up_again_after_a_second(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(remembered.time, "monotonic", lambda: now[0])
    cache = ModelCache(sessions(), 1 << 30)
    loaded = cache.get(("default", "letters", None, None))
    assert cache.ready(("default", "letters", None, None)) is loaded
    now[0] += 1.1
    assert cache.ready(("default", "letters", None, None)) is None
    assert cache.get(("default", "letters", None, None)) is loaded


def test_a_promoted_version_is_loaded_while_the_one_before_answers(
    models: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the training between takes as long as it takes
    monkeypatch.setattr("app.short_cache.REMEMBERED_SECONDS", 3600.0)
    cache, newest = ModelCache(sessions(), 1 << 30), ("default", "letters", None, None)
    first = cache.get(newest)
    train(models, "letters", "letters", params={"C": 0.01})
    loading, go_on, load = threading.Event(), threading.Event(), model_cache.load_version

    def slow(session: object, version: object) -> object:
        loading.set()
        assert go_on.wait(60)
        return load(session, version)  # type: ignore[arg-type]

    monkeypatch.setattr(model_cache, "load_version", slow)
    cache.resolved.refresh()
    assert loading.wait(60)
    cache.resolved.refresh()
    assert cache.ready(newest) is first
    (thread,) = cache._ahead.values()
    go_on.set()
    thread.join()
    cache.resolved.refresh()
    loaded = cache.ready(newest)
    assert loaded is not None
    assert loaded.version.version == 2
    assert not cache._ahead
    assert cache.loaded() == [first, loaded]
    cache.resolved.refresh()  # what no name means any more is let go
    assert cache.loaded() == [loaded]
    assert cache.nbytes == loaded.nbytes


def test_what_a_version_that_is_let_go_has_counted_is_written_and_then_forgotten(models: TestClient) -> None:
    cache, letters, foods = ModelCache(sessions(), 1), *(("default", name, None, None) for name in NAMES[:2])
    loaded = cache.get(letters)
    assert loaded.counts is not None
    loaded.counts.add([(np.array([0]), np.array([1.0]))])
    counts = weakref.ref(loaded.counts)
    del loaded
    cache.get(foods)  # there is room for one
    assert counts() is not None
    cache.counts.write()
    assert models.get("/api/v1/models/letters/versions/1/drift").json()["n_answers"] == 1
    cache.counts.write()
    gc.collect()
    assert counts() is None


def test_a_model_that_is_being_loaded_holds_up_no_other(models: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, letters, foods = ModelCache(sessions(), 1 << 30), *(("default", name, None, None) for name in NAMES[:2])
    loading, go_on, load = threading.Event(), threading.Event(), model_cache.load_version

    def slow(session: object, version: ModelVersion) -> object:
        if version.model == "foods":
            loading.set()
            assert go_on.wait(60)
        return load(session, version)  # type: ignore[arg-type]

    monkeypatch.setattr(model_cache, "load_version", slow)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cache.get, foods)
        assert loading.wait(60)
        loaded = cache.get(letters)  # from its files
        assert cache.get(letters) is loaded
        cache.resolved.refresh()
        assert not waiting.done()
        go_on.set()
        assert waiting.result().version.model == "foods"


def test_a_deleted_version_answers_no_more_while_the_one_before_is_loaded(
    models: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(models, "letters", "letters", params={"C": 0.01})
    # the training between takes as long as it takes
    monkeypatch.setattr("app.short_cache.REMEMBERED_SECONDS", 3600.0)
    cache, newest = ModelCache(sessions(), 1 << 30), ("default", "letters", None, None)
    assert cache.get(newest).version.version == 2
    assert models.delete("/api/v1/models/letters/versions/2").status_code == 200
    monkeypatch.setattr(model_cache, "load_version", lambda *_: pytest.fail("nobody waits for it"))
    cache.resolved.refresh()
    assert cache.ready(newest) is None
    monkeypatch.undo()
    assert cache.get(newest).version.version == 1


def test_what_is_not_there_is_not_remembered(models: TestClient) -> None:
    cache = ModelCache(sessions(), 1 << 30)
    for reference in (
        ("default", "none", None, None),
        ("default", "letters", 9, None),
        ("default", "letters", None, "none"),
        ("other", "letters", None, None),
    ):
        with pytest.raises(NotFound):
            cache.get(reference)
        assert cache.ready(reference) is None
    problem(models.post("/api/v1/models/none/predict", json={"instances": [[1]]}), 404)
