"""Which columns of a table a version reads."""

from asking import TestClient, problem


def test_a_version_names_the_columns_that_it_reads(models: TestClient) -> None:
    found = {name: models.get(f"/api/v1/models/{name}/inputs").json() for name in ("letters", "foods", "shapes")}
    assert [each["instance"] for each in found.values()] == ["numbers", "text", "features"]
    assert found["foods"]["text_columns"] == ["text"]
    assert found["shapes"]["number_columns"] == ["width", "height"]
    problem(models.get("/api/v1/models/none/inputs"), 404)
