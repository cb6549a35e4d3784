"""A training for every C of a range: one version with the chosen C, and the path with what is certain of all others."""

from collections.abc import Callable
from typing import Any

import pytest
from asking import TestClient, problem
from canned import Canned
from working import train

RANGE = {"eps": 0.02, "low": 0.01, "high": 10.0}


def test_the_version_has_the_chosen_c_and_shows_the_path(models: TestClient) -> None:
    job = train(models, "letters", "letters", solver="crammer_singer", every_c=RANGE, keep_duals=True)
    assert job["state"] == "succeeded", job
    where = f"letters/versions/{job['result']['version']}"
    version = models.get(f"/api/v1/models/{where}").json()
    path = models.get(f"/api/v1/models/{where}/selection").json()["path"]
    assert version["params"]["C"] == path["chosen"]["C"]
    assert version["converged"]
    assert path["largest_gap"] <= 0.02
    assert [path["models"][0]["C"], path["models"][-1]["C"]] == [0.01, 10.0]
    assert path["bound"] == min(path["least_errors"]) <= path["chosen"]["errors"] == min(path["errors"])
    again = train(models, "letters", "letters", solver="crammer_singer", warm_start=where.replace("/versions/", "@"))
    assert again["state"] == "succeeded", again
    page = models.get(f"/models/{where}").text
    assert "No C has fewer than" in page
    picture = f"/api/v1/figures/path?model=letters&version={version['version']}"
    assert picture.replace("&", "&amp;") in page
    assert b"<svg" in models.get(picture).content
    document = problem(models.get("/api/v1/figures/path?model=letters&version=1"), 404, "not_found")
    assert "every_c" in document["detail"]


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"solver": "centroids"}, "/every_c"),
        ({"solver": "auto"}, "/every_c"),
        ({"params": {"C": 1.0}}, "/every_c"),
        ({"path": [0.1, 1.0]}, "/every_c"),
        ({"until_certain": 0.9}, "/every_c"),
        ({"every_c": {"low": 1.0, "high": 0.1}}, "/every_c"),
        ({"every_c": {"eps": 0.0}}, "/every_c/eps"),
    ],
)
def test_every_c_needs_one_gap_in_one_worker_and_no_other_c(
    models: TestClient, more: dict[str, Any], pointer: str
) -> None:
    given = {"dataset": "letters", "model": "m", "solver": "weston_watkins", "every_c": RANGE} | more
    document = problem(models.post("/api/v1/jobs", json=given), 422)
    assert [fault["pointer"] for fault in document["errors"]] == [pointer]


def test_the_command_line_says_what_is_certain(canned: Canned, command: Callable[..., tuple[int, str, str]]) -> None:
    solved = {"C": 0.1, "primal": 2.0, "dual": 1.99, "loss": 0.5, "epochs": 3}
    path = {
        "eps": 0.01,
        "largest_gap": 0.0095,
        "models": [solved, solved | {"C": 10.0}],
        "gaps": [0.0095],
        "edges": [0.1, 1.0, 10.0],
        "errors": [5, 4, 6],
        "least_errors": [2, 5],
        "most_errors": [9, 9],
        "n_held_out": 50,
        "bound": 2,
        "excluded": 0.5,
        "chosen": {"C": 1.0, "errors": 4},
    }
    canned.answer("GET /models/topics/versions/3/selection", {"trials": [], "members": [], "path": path})
    shown = " ".join(command("models", "trials", "topics", "--version", "3")[1].split())
    assert "C = 1 has 4 errors on 50 held-out rows" in shown
    assert "Every C from 0.1 to 10 has a model within a gap of 0.95%." in shown
    assert "No C of this range has an optimum with fewer than 2 errors" in shown
    assert "For 50% of the range" in shown
    assert "any C may" not in shown
    nothing = path | {"bound": 0, "excluded": 0.0, "least_errors": [0, 2]}
    canned.answers.clear()
    canned.answer("GET /models/topics/versions/3/selection", {"trials": [], "members": [], "path": nothing})
    shown = " ".join(command("models", "trials", "topics", "--version", "3")[1].split())
    assert "With these gaps, the optimum of any C may have fewer errors on these rows." in shown
    assert "An --every-c-eps below 0.01 decides more rows." in shown
    assert "fewer than 0 errors" not in shown
    assert "For 0%" not in shown
