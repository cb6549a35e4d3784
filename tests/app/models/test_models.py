import pytest
from asking import MARKER, TestClient, problem
from working import train

ALIAS = "/api/v1/models/letters/aliases/production"


def test_a_model_shows_where_it_came_from_and_how_near_it_is_to_the_optimum(models: TestClient) -> None:
    train(models, "letters", "letters", params={"C": 0.5}, seed=3)
    model = models.get("/api/v1/models/letters").json()
    assert (model["versions"], model["latest"]["version"]) == ([2, 1], 2)
    version = models.get("/api/v1/models/letters/versions/2").json()
    assert version == model["latest"]
    assert (version["params"]["C"], version["seed"], version["solver"]) == (0.5, 3, "weston_watkins")
    assert version["gap"] <= 1e-3
    assert version["metrics"]["test"]["error"] == 0
    listed = models.get("/api/v1/models/letters/versions").json()["items"]
    assert [item["version"] for item in listed] == [2, 1]
    assert [item["name"] for item in models.get("/api/v1/models").json()["items"]] == ["shapes", "foods", "letters"]
    problem(models.get("/api/v1/models/letters/versions/3"), 404, "not_found")
    problem(models.get("/api/v1/models/none/versions"), 404, "not_found")


def test_an_alias_moves_for_whoever_knows_where_it_is(models: TestClient) -> None:
    train(models, "letters", "letters")
    made = models.put(ALIAS, json={"version": 1}, headers={"If-None-Match": "*"})
    assert (made.status_code, made.headers["etag"]) == (200, '"1"')
    for headers in ({}, {"If-Match": '"2"'}, {"If-Match": MARKER}, {"If-None-Match": "*"}, {"If-Match": '"0"'}):
        response = models.put(ALIAS, json={"version": 2}, headers=headers)
        problem(response, 412, "precondition_failed")
        assert MARKER not in response.text
    moved = models.put(ALIAS, json={"version": 2}, headers={"If-Match": made.headers["etag"]})
    assert moved.json() == {"name": "production", "version": 2, "revision": 2, "unconverged": None}
    assert models.put(ALIAS, json={"version": 1}, headers={"If-Match": "*"}).json()["revision"] == 3
    assert models.get("/api/v1/models/letters").json()["aliases"] == [
        {"name": "production", "version": 1, "revision": 3}
    ]


def test_an_alias_can_be_removed(models: TestClient) -> None:
    assert models.put(ALIAS, json={"version": 1}).status_code == 200
    assert models.delete(ALIAS).status_code == 204
    problem(models.delete(ALIAS), 404, "not_found")


@pytest.mark.parametrize(("body", "status"), [({"version": 9}, 404), ({"version": 0}, 422), ({}, 422)])
def test_an_alias_names_a_version_that_is_there(models: TestClient, body: dict[str, int], status: int) -> None:
    problem(models.put(ALIAS, json=body), status)
    assert models.get("/api/v1/models/letters").json()["aliases"] == []


def test_solvers_show_their_parameters(client: TestClient) -> None:
    solvers = client.get("/api/v1/solvers").json()["items"]
    by_name = {solver["name"]: solver for solver in solvers}
    assert by_name["weston_watkins"]["params_schema"]["properties"]["C"]
    assert client.get("/api/v1/solvers/weston_watkins").json() == by_name["weston_watkins"]
    assert "weston_watkins" in problem(client.get("/api/v1/solvers/weston_watkinz"), 404)["detail"]


def test_an_alias_is_removed_only_as_it_was_seen(models: TestClient) -> None:
    tag = models.put(ALIAS, json={"version": 1}).headers["etag"]
    for wrong in ('"7"', "nonsense"):
        problem(models.delete(ALIAS, headers={"If-Match": wrong}), 412)
    assert models.delete(ALIAS, headers={"If-Match": tag}).status_code == 204
    problem(models.delete(ALIAS, headers={"If-Match": tag}), 404)


def test_versions_come_in_pages(models: TestClient) -> None:
    page = models.get("/api/v1/models/letters/versions", params={"page_size": 1}).json()
    assert [version["version"] for version in page["items"]] == [1]
    problem(models.get("/api/v1/models/letters/versions", params={"page_token": "x"}), 422)
