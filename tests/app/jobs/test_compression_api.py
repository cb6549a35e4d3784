"""Smaller copies over HTTP: the job, what the version shows, and its page."""

from asking import TestClient, problem
from working import run


def test_a_copy_is_asked_for_as_a_job_and_told_of_on_its_page(models: TestClient) -> None:
    request = {"kind": "compress", "model": "letters", "float16": True, "prune_share": 0.5}
    response = models.post("/api/v1/jobs", json=request)
    assert response.status_code == 202, response.text
    run(response.json()["id"])
    job = models.get(f"/api/v1/jobs/{response.json()['id']}").json()
    assert (job["kind"], job["state"], job["result"]["model"]) == ("compress", "succeeded", "letters")
    number = job["result"]["version"]
    found = models.get(f"/api/v1/models/letters/versions/{number}").json()
    copy = found["copy_of"]
    assert (copy["float16"], copy["prune_share"], copy["version"]) == (True, 0.5, 1)
    assert "gap" not in found or found["gap"] is None
    page = models.get(f"/models/letters/versions/{number}").text
    assert "A smaller copy of" in page
    assert "copies have no certificate" in page
    assert f"{copy['pruned']:,}".replace(",", "") in page.replace("\u202f", "").replace(",", "")
    listed = models.get("/api/v1/models/letters").json()
    assert listed["latest"]["version"] == 1
    assert "Compress letters 1" in " ".join(models.get("/jobs").text.split())
    problem(models.post("/api/v1/jobs", json=request | {"version": number}), 409, "conflict")
    problem(models.post("/api/v1/jobs", json={"kind": "compress", "model": "letters"}), 422)
