"""What forms tell before something is sent, and what they ask for."""

from typing import Any

import pytest
from browsing import Service

from app.client import Polymargin

pytestmark = pytest.mark.slow


def test_the_form_tells_how_long_a_training_takes_or_that_this_is_not_known(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/train?dataset=foods")
    estimate = page.locator("#estimate")
    estimate.get_by_text("It will take").wait_for()
    assert "this dataset by this method." in estimate.inner_text()
    page.get_by_text("Method, parameters and more").click()
    page.get_by_label("Method", exact=True).select_option("crammer_singer")
    estimate.get_by_text("Its time is not known yet").wait_for()
    assert estimate.inner_text() == "Its time is not known yet, as this method has not been trained on this dataset."


def test_trials_that_are_all_alike_are_drawn_in_the_middle_of_their_chart(
    page: Any, client: Polymargin, service: Service
) -> None:
    job = client.models.version("sure-foods", 1).job
    page.goto(f"{service.url}/jobs/{job}")
    chart = page.locator("#trials-chart[data-points]")
    chart.wait_for()
    values = chart.evaluate("chart => chart.data[0].y")
    assert len(values) > 1
    assert set(values) == {1.0}
    assert chart.evaluate("chart => chart.layout.yaxis.range") == pytest.approx([0.95, 1.05])
