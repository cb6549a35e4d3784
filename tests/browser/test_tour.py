"""The first minutes: from an empty service to a first prediction by clicks alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Service, begin, end, picture

from app.client import Client

pytestmark = pytest.mark.slow


def test_four_steps_lead_from_an_empty_service_to_a_prediction(
    chromium: Any, opened: Callable[..., Any], tmp_path: Path, pictures: bool
) -> None:
    service, process = begin(tmp_path / "home")
    try:
        page = opened()
        page.goto(service.link)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("button", name="Load").wait_for()
        picture(page, pictures, "tour")
        page.get_by_role("button", name="Load").click()
        page.locator("#tour").get_by_role("button", name="Train").click()
        page.locator("#trials-chart[data-points]").wait_for()
        page.get_by_role("link", name="Try it").wait_for()
        page.locator("#trials-chart[data-points]").wait_for()
        picture(page, pictures, "job")
        page.get_by_role("link", name="Try it").click()
        page.get_by_role("button", name="Use a row of the dataset").click()
        page.get_by_text("its label is").wait_for()
        page.get_by_role("button", name="Predict").click()
        page.locator("#answer progress").first.wait_for()
        assert page.locator("#answer .answers li").count() == 5
        page.evaluate("scrollTo(0, 0)")
        picture(page, pictures, "playground", 900)
        if pictures:
            _mistakes(page, service)
        page.goto(service.url)
        page.get_by_role("heading", name="Overview").wait_for()
        assert not page.locator("#tour").is_visible()
        page.goto(f"{service.url}/hierarchies/docstrings")
        page.get_by_role("button", name="Children of scipy", exact=True).click()
        page.get_by_text("scipy.stats", exact=True).wait_for()
    finally:
        end(process)


def _mistakes(page: Any, service: Service) -> None:
    """The picture of the rows that the version is most wrong about."""
    with Client(service.url, service.key) as client:
        client.evaluate("docstrings", "docstrings", resamples=50).wait()
    page.goto(f"{service.url}/models/docstrings/versions/1")
    page.locator("#mistakes li").first.wait_for()
    page.locator("#mistakes").evaluate("card => scrollTo(0, card.getBoundingClientRect().top + scrollY - 16)")
    picture(page, True, "mistakes", 480)
