"""Webhooks by the API: made by administrators, whose secret is shown once."""

from asking import TestClient, problem
from fastapi import FastAPI
from receiving import Receiver

API = "/api/v1/webhooks"


def test_a_webhook_is_made_shown_without_its_secret_and_deleted(
    app: FastAPI, client: TestClient, receiver: Receiver
) -> None:
    body = {"name": "hook", "url": receiver.url, "events": ["review.dry", "job.failed", "job.failed"]}
    answer = client.post(API, json=body)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["secret"].startswith("whsec_")
    assert answer.headers["cache-control"] == "no-store"
    assert (made["events"], made["owner"]) == (["job.failed", "review.dry"], "the-admin")
    found = [
        client.get(f"{API}/hook"),
        client.get(API),
        client.get(f"{API}/hook/deliveries"),
        client.get("/api/v1/audit"),
    ]
    for each in found:
        assert each.status_code == 200
        assert made["secret"] not in each.text
    assert found[0].json() == {name: value for name, value in made.items() if name != "secret"}
    problem(client.post(API, json=body), 409, "conflict")
    rotated = client.post(f"{API}/hook/secret")
    assert (rotated.status_code, rotated.headers["cache-control"]) == (200, "no-store")
    assert rotated.json()["secret"] not in (made["secret"], None)
    assert rotated.json()["secret"] not in client.get("/api/v1/audit").text
    problem(client.post(f"{API}/hook/deliveries/none/retry"), 404, "not_found")
    assert client.delete(f"{API}/hook").status_code == 204
    problem(client.get(f"{API}/hook"), 404, "not_found")


def test_no_host_is_allowed_by_default(client: TestClient) -> None:
    body = {"name": "hook", "url": "https://hooks.example.org/", "events": ["job.failed"]}
    [fault] = problem(client.post(API, json=body), 422, "invalid_input")["errors"]
    assert (fault["pointer"], "POLYMARGIN_WEBHOOK_HOSTS" in fault["detail"]) == ("/url", True)
    problem(client.post(API, json=body | {"events": ["job.other"]}), 422)
