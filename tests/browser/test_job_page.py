"""The page of a job that is looked at from the queue on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import LONG, Service, signed_in, upload_noise

from app.client import Client

pytestmark = pytest.mark.slow


def test_a_job_that_begins_leaves_nothing_of_the_queue_on_its_page(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    upload_noise(client, tmp_path, "queued-noise")
    first, second = (client.train("queued-noise", name, "lee_lin_wahba", LONG) for name in ("before", "after"))
    try:
        page.goto(f"{service.url}/jobs/{second.id}")
        page.get_by_text("Queue position").wait_for()
        first.cancel()
        page.get_by_text("Queue position").wait_for(state="detached")
        page.locator("#state .badge.running").wait_for()
        assert page.locator("dt:text-is('Attempt') + dd").inner_text().startswith("1 on")
    finally:
        second.cancel()


def test_the_page_of_a_job_says_while_the_service_is_away(
    opened: Callable[..., Any], client: Client, service: Service, tmp_path: Path
) -> None:
    page = signed_in(opened(refused=True), service.url, service.key)
    upload_noise(client, tmp_path, "away-noise")
    job = client.train("away-noise", "away", "lee_lin_wahba", LONG)
    try:
        page.route("**/events", lambda route: route.fulfill(status=502, body="away"))
        page.goto(f"{service.url}/jobs/{job.id}")
        page.get_by_text("No connection; trying again").wait_for()
        page.unroute("**/events")
        page.get_by_text("No connection; trying again").wait_for(state="hidden")
    finally:
        job.cancel()


def test_the_overview_shows_a_job_that_begins_and_ends_without_loading_anew(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    upload_noise(client, tmp_path, "overview-noise")
    page.goto(f"{service.url}/")
    page.get_by_role("link", name="Upload").focus()
    page.evaluate("window.kept = true")
    job = client.train("overview-noise", "shown", "lee_lin_wahba", LONG)
    try:
        page.locator(f'[data-job="{job.id}"]').wait_for()
    finally:
        job.cancel()
    page.locator(f'[data-job="{job.id}"]').wait_for(state="detached")
    assert page.evaluate("[window.kept, document.activeElement.textContent]") == [True, "Upload"]
