import asyncio
import threading
import time
from collections.abc import Callable

import pytest
from asking import TestClient, bearer, call, problem
from fastapi import FastAPI
from working import upload

from app.config import Settings
from app.hierarchies.schemas import NewHierarchy
from app.main import create_app
from app.store.files import Upload

URL = "/api/v1/hierarchies"
TREE = b"parent,child\nroot,a\nroot,b\na,c\na,d\n"
KEY = {"Idempotency-Key": "one-of-mine"}


def test_an_uploaded_tree_is_shown_with_its_counts(client: TestClient) -> None:
    response = client.post(URL, params={"name": "letters", "format": "csv"}, content=TREE)
    assert response.status_code == 201
    hierarchy = response.json()
    assert (hierarchy["n_nodes"], hierarchy["n_leaves"], hierarchy["levels"]) == (4, 3, [2, 2])
    assert response.headers["location"] == f"{URL}/{hierarchy['id']}"
    assert client.get(f"{URL}/letters").json() == hierarchy
    assert client.get(URL).json()["items"] == [hierarchy]
    below = client.get(f"{URL}/letters/nodes", params={"parent": "a"}).json()
    assert [node["name"] for node in below["nodes"]] == ["c", "d"]
    assert client.delete(f"{URL}/letters").status_code == 204
    problem(client.get(f"{URL}/letters"), 404, "not_found")


def test_a_form_and_options_are_taken(client: TestClient) -> None:
    params = {"name": "letters", "format": "paths", "separator": "/"}
    response = client.post(URL, params=params, files={"file": ("tree", b"a/b\na/c\n")})
    assert response.json()["n_leaves"] == 2
    params = {"name": "others", "format": "csv", "root": "all"}
    assert client.post(URL, params=params, content=b"parent,child\nall,b\n").json()["n_nodes"] == 1


@pytest.mark.parametrize(
    ("content", "row", "word"),
    [
        (b"parent,child\nroot,a\na,b\nroot,b\n", 4, "'b' has two parents"),
        (b"parent,child\nroot,a\nb,c\nc,b\n", 3, "cycle: 'c' < 'b'"),
        (b"parent,child\nroot,a\nx,b\n", 3, "'x' is the parent of 'b'"),
    ],
)
def test_what_is_no_tree_is_refused_at_once(client: TestClient, content: bytes, row: int, word: str) -> None:
    document = problem(client.post(URL, params={"name": "a", "format": "csv"}, content=content), 422, "invalid_input")
    (fault,) = document["errors"]
    assert fault["row"] == row
    assert word in fault["detail"]
    assert client.get(URL).json()["items"] == []


def test_the_same_upload_again_gets_the_same_hierarchy(client: TestClient) -> None:
    params = {"name": "letters", "format": "csv"}
    problem(client.post(URL, params=params, content=b"parent,child\na,a\n", headers=KEY), 422)
    first = client.post(URL, params=params, content=TREE, headers=KEY)
    again = client.post(URL, params=params, content=TREE, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["idempotency-replayed"] == "true"
    assert again.json() == first.json()
    problem(client.post(URL, params=params | {"root": "b"}, content=TREE, headers=KEY), 422)
    problem(client.post(URL, params=params, content=TREE), 409, "conflict")


def test_a_hierarchy_has_a_bound_of_its_own(config: Settings, secrets: dict[str, str]) -> None:
    app = create_app(config.model_copy(update={"max_hierarchy_bytes": 1000, "max_body_bytes": 10}))
    with TestClient(app, headers=bearer(secrets["editor"])) as client:
        params = {"name": "letters", "format": "csv"}
        problem(client.post(URL, params=params, content=b"x" * 1001), 413, "too_large")
        assert client.post(URL, params=params, content=TREE).status_code == 201


def test_a_client_that_goes_away_ends_the_reading(
    app: FastAPI, secrets: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def read(_upload: Upload, _new: NewHierarchy, check: Callable[[], None]) -> None:
        try:
            while True:
                check()
                time.sleep(0.001)
        finally:
            ended.set()

    monkeypatch.setattr("app.hierarchies.service.read", read)
    url = "/api/v1/hierarchies?name=t&format=paths"
    headers = {**bearer(secrets["editor"]), "Transfer-Encoding": "chunked"}
    asyncio.run(call(app, url, headers, [b"a", b"", None]))
    assert ended.is_set()


def test_a_vocabulary_is_shown_with_its_labels_and_compared_with_its_next_edition(client: TestClient) -> None:
    params = {"name": "old", "format": "paths", "language": "en"}
    old = client.post(URL, params=params, content=b"1 - Arts\n2 - Toys\n3 - Toys > Clay\n").json()
    assert (old["languages"], old["read_as"]["id_separator"]) == ({"en": 3}, " - ")
    (clay,) = client.get(f"{URL}/old/nodes", params={"parent": "2"}).json()["nodes"]
    assert (clay["name"], clay["names"]) == ("3", {"en": "Clay"})
    content = b"1 - Arts\n2 - Toys & games\n3 - Arts > Clay\n"
    assert client.post(URL, params=params | {"name": "new"}, content=content).status_code == 201
    found = client.get(f"{URL}/new/changes", params={"since": "old"}).json()
    assert [(each["change"], each["label"]) for each in found["changes"]] == [("moved", "3"), ("renamed", "2")]
    assert client.get(f"{URL}/new/retired").json() == {"labels": [], "n_labels": 0}
    problem(client.get(f"{URL}/new/changes", params={"since": "none"}), 404, "not_found")


def test_what_was_dropped_is_in_the_answer(client: TestClient) -> None:
    content = b"child,parent\na,\nb,\nc,a\nc,b\n"
    params = {"name": "t", "format": "csv", "tree": "first"}
    answer = client.post(URL, params=params, content=content).json()
    assert (answer["n_dropped"], answer["dropped"]) == (1, [{"label": "c", "parent": "b", "line": 5}])
    (node,) = client.get(f"{URL}/t/nodes", params={"parent": "a"}).json()["nodes"]
    assert node["other_parents"] == ["b"]


def test_a_graph_keeps_all_parents_and_counts_rows_below_each(client: TestClient) -> None:
    content = b"child,parent\na,\nb,\nc,a\nc,b\nd,c\n"
    answer = client.post(URL, params={"name": "g", "format": "csv", "tree": "graph"}, content=content).json()
    assert (answer["n_several_parents"], answer["n_dropped"], answer["n_leaves"]) == (1, 0, 1)
    upload(client, "rows", b'{"text": "word", "label": "d"}\n{"text": "word", "label": "b"}\n', "jsonl")
    nodes = client.get(f"{URL}/g/nodes", params={"dataset": "rows"}).json()["nodes"]
    assert {node["name"]: node["n_rows"] for node in nodes} == {"a": 1, "b": 2, "c": 1, "d": 1}
    assert [node["other_parents"] for node in nodes] == [[], [], ["b"], []]


def test_nodes_are_found_by_names_of_any_language_and_count_the_rows_below_them(client: TestClient) -> None:
    tree = b"child,parent,name@de,name@fr\nn1,root,\xc3\x84pfel,pommes\nn2,n1,Boskoop,Belle\nn3,root,Gem\xc3\xbcse,\n"
    query = {"name": "fruits", "format": "csv", "parent_field": "parent", "id_field": "child", "name_field": "name"}
    answer = client.post("/api/v1/hierarchies", params=query, content=tree)
    assert answer.status_code == 201, answer.text
    url = "/api/v1/hierarchies/fruits/nodes"
    for search, label in (("\u00e4pf", "n1"), ("POMM", "n1"), ("N2", "n2"), ("gem\u00dcse", "n3"), ("names", None)):
        found = client.get(url, params={"search": search}).json()["nodes"]
        assert [node["name"] for node in found] == ([label] if label else []), search
    rows = b"".join(b'{"text": "word", "label": "%s"}\n' % label for label in (b"n2", b"n2", b"n1", b"n3", b"x"))
    upload(client, "rows", rows, "jsonl")
    counted = client.get(url, params={"dataset": "rows"}).json()["nodes"]
    assert {node["name"]: node["n_rows"] for node in counted} == {"n1": 3, "n2": 2, "n3": 1}
    assert client.get(url).json()["nodes"][0]["n_rows"] is None
    problem(client.get(url, params={"dataset": "none"}), 404)
