"""The page that asks for a tuning, and its leaderboard, in a real browser."""

import re
from typing import Any

import pytest
from browsing import Service

from app.client import Client

pytestmark = pytest.mark.slow


def test_a_tuning_is_asked_for_and_its_leaderboard_followed_to_the_version(
    page: Any, client: Client, service: Service
) -> None:
    page.goto(f"{service.url}/tune?dataset=foods")
    page.get_by_label("Model").fill("tuned")
    page.get_by_label("Values, one parameter per line").fill("C = 0.1, 1, 10")
    page.get_by_label("words and word pairs").check()
    page.get_by_text("6 trials.").wait_for()
    page.get_by_role("button", name="Tune", exact=True).click()
    page.wait_for_url(re.compile("/tune/[0-9a-f]{32}"))
    page.get_by_role("link", name="Version 1 of tuned").wait_for()
    for chart in ("#time-chart", "#settings-chart"):
        page.locator(f"{chart} .main-svg").first.wait_for()
    rows = page.locator("#leaderboard-body tr")
    assert rows.count() == 6
    assert rows.first.locator("td").first.inner_text() == "1"
    job = client.jobs.list(kind="tune").items[0]
    assert job.result is not None
    assert page.locator('[data-value="best"]').inner_text().startswith(f"{job.result.measures['accuracy']:.2g}"[:3])


def test_a_line_that_is_no_list_of_values_is_told_before_anything_is_sent(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/tune?dataset=foods")
    page.get_by_label("Values, one parameter per line").fill("C")
    page.get_by_text("expected name = value, value").first.wait_for()
