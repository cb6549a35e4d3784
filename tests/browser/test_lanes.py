"""The shards of a job, side by side while it runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import LONG, begin, end, signed_in, upload_noise

from app.client import Client

pytestmark = pytest.mark.slow


def test_the_overview_shows_how_long_each_shard_has_waited_and_what_it_has_sent(
    chromium: Any, opened: Callable[..., Any], tmp_path: Path
) -> None:
    service, process = begin(tmp_path / "home", "--shards", "2")
    try:
        with Client(service.url, service.key) as client:
            upload_noise(client, tmp_path)
            job = client.train("noise", "exact", "weston_watkins", LONG, shards=2)
            page = signed_in(opened(), service.url, service.key)
            page.goto(service.url)
            lanes = page.locator(f'[data-job="{job.id}"] .lanes tbody tr')
            lanes.nth(1).wait_for()
            assert lanes.locator("th").all_inner_texts() == ["Shard 0", "Shard 1"]
            sent = lanes.first.locator("td").last
            before = sent.inner_text()
            assert before.endswith("B")
            page.wait_for_function(
                "before => document.querySelector('.lanes tbody td:last-child').innerText !== before", arg=before
            )
            page.close()  # it asks as long as it is there
    finally:
        end(process)
