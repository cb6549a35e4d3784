"""Output codes as numbers and as pictures."""

from xml.etree import ElementTree

import numpy as np
import pytest
from asking import TestClient, bearer, problem
from working import train, upload

from solvers.output_codes.code_families import make

CODE = "/api/v1/models/coded/versions/1/code"
FIGURE = "/api/v1/figures/code"
PNG = b"\x89PNG\r\n\x1a\n"


def coded(client: TestClient, solver: str = "output_code", dataset: str = "letters", **params: object) -> None:
    job = train(client, dataset, "coded", solver=solver, params=params)
    assert job["state"] == "succeeded", job


def test_a_version_shows_its_code_and_distances(models: TestClient) -> None:
    coded(models, code="all_pairs", decoding="loss")
    shown = models.get(CODE).json()
    assert (shown["model"], shown["version"], shown["n_classes"], shown["n_columns"]) == ("coded", 1, 3, 3)
    assert shown["matrix"] == make("all_pairs", 3).tolist()
    assert shown["classes"] == ["a", "b", "c"]
    assert (shown["discrete"], shown["distance"], shown["decoding"]) == (True, "hamming", "loss")
    assert shown["row_distances"] == [[0, 2, 2], [2, 0, 2], [2, 2, 0]]
    assert np.array(shown["column_distances"]).shape == (3, 3)


def test_a_designed_code_is_shown_with_its_lengths(models: TestClient) -> None:
    coded(models, "continuous_code", norm="l1")
    shown = models.get(CODE).json()
    matrix = np.array(shown["matrix"])
    assert (shown["discrete"], shown["distance"], shown["decoding"]) == (False, "euclidean", "inner_product")
    assert shown["row_distances"][0][1] == pytest.approx(np.linalg.norm(matrix[0] - matrix[1]), abs=1e-6)


def test_a_window_of_a_code_keeps_the_distances_of_the_whole(models: TestClient) -> None:
    coded(models, code="all_pairs")
    whole = models.get(CODE).json()
    part = models.get(CODE, params={"first_class": 1, "n_classes": 1, "first_column": 1, "n_columns": 9}).json()
    assert part["classes"] == ["b"]
    assert part["matrix"] == [whole["matrix"][1][1:]]
    assert part["row_distances"] == [[0]]
    assert part["column_distances"] == [row[1:] for row in whole["column_distances"][1:]]
    beyond = models.get(CODE, params={"first_class": 9, "first_column": 9}).json()
    assert (beyond["classes"], beyond["matrix"], beyond["column_distances"]) == ([], [], [])
    assert beyond["n_classes"] == 3


@pytest.mark.parametrize(
    "query", [{"n_classes": 0}, {"n_columns": 201}, {"first_class": -1}, {"first_column": "x"}, {"n_classes": 10**9}]
)
def test_windows_have_bounds(models: TestClient, query: dict[str, object]) -> None:
    problem(models.get(CODE, params=query), 422)


def test_a_kernel_over_machines_shows_the_code_that_they_were_trained_for(models: TestClient) -> None:
    coded(models, "continuous_code", kernel="rbf")
    shown = models.get(CODE).json()
    assert shown["decoding"] == "kernel"
    assert shown["matrix"] == make("one_vs_rest", 3).tolist()


@pytest.mark.parametrize("path", ["/api/v1/models/letters/versions/1/code", f"{FIGURE}?model=letters&version=1"])
def test_a_model_without_a_code_says_so(models: TestClient, path: str) -> None:
    assert "no output code" in problem(models.get(path), 404, "not_found")["detail"]


@pytest.mark.parametrize("path", ["/api/v1/models/none/versions/1/code", f"{FIGURE}?model=letters&version=9"])
def test_what_is_not_there_has_neither_code_nor_picture(models: TestClient, path: str) -> None:
    problem(models.get(path), 404, "not_found")


def test_a_code_is_drawn_as_svg_and_as_png(models: TestClient) -> None:
    coded(models, code="sparse_random")
    query = {"model": "coded", "version": 1}
    drawn = models.get(FIGURE, params=query)
    assert drawn.headers["content-type"].startswith("image/svg+xml")
    assert ElementTree.fromstring(drawn.content).tag.endswith("svg")
    assert models.get(FIGURE, params=query).content == drawn.content
    png = models.get(FIGURE, params={**query, "format": "png"})
    assert png.headers["content-type"] == "image/png"
    assert png.content.startswith(PNG)
    assert len(png.content) > 10_000


def test_hostile_labels_are_drawn_as_they_are(models: TestClient) -> None:
    labels = ["<script>alert(1)</script>", "$x^{$", "\\frac", "a" * 300]
    rows = b"label,width,height\n" + b"".join(
        f'"{label}",{i},{5 - i}\n'.encode() for i, label in enumerate(labels) for _ in range(6)
    )
    assert upload(models, "hostile", rows, "csv")["state"] == "ready"
    coded(models, dataset="hostile")
    drawn = models.get(FIGURE, params={"model": "coded", "version": 1})
    assert drawn.status_code == 200, drawn.text[:300]
    assert b"<script" not in drawn.content
    assert models.get(CODE).json()["classes"] == sorted(labels)


@pytest.mark.parametrize("query", [{"format": "pdf"}, {"version": 0}, {"model": "a/b"}])
def test_pictures_are_asked_for_properly(models: TestClient, query: dict[str, object]) -> None:
    problem(models.get(FIGURE, params={"model": "letters", "version": 1, **query}), 422)


def test_a_key_is_needed_and_a_viewers_is_enough(models: TestClient, secrets: dict[str, str]) -> None:
    coded(models)
    for path in (CODE, f"{FIGURE}?model=coded&version=1"):
        problem(models.get(path, headers={"Authorization": "Bearer none"}), 401)
        assert models.get(path, headers=bearer(secrets["viewer"])).status_code == 200
