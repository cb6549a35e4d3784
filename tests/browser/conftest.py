"""A real Chromium and a service that it looks at; where there is no browser, these tests are skipped."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browsing import ARGUMENTS, PATIENCE_MS, Service, begin, end, fill, signed_in

from app.client import Client


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="take the documentation's pictures of pages again")


@pytest.fixture
def pictures(request: pytest.FixtureRequest) -> bool:
    """Whether the documentation's pictures are to be taken."""
    return bool(request.config.getoption("--screenshots", default=False))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no chromium: make test-browser says how to get one")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def service(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a text model ``foods`` of two versions, evaluated, the first of them in production; and a tree."""
    running, process = begin(tmp_path_factory.mktemp("home"))
    try:
        fill(running, tmp_path_factory.mktemp("files"))
        yield running
    finally:
        end(process)


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url, service.key) as client:
        yield client


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages in contexts of their own; a test fails whose pages have logged an error or opened an alert."""
    faults: list[str] = []
    contexts: list[Any] = []

    def open_(width: int = 1280, scheme: str = "light", refused: bool = False) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        if not refused:  # the browser logs an answer that refuses something as an error
            page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(f"alert: {dialog.message}"), dialog.dismiss()))
        return page

    yield open_
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def page(opened: Callable[..., Any], service: Service) -> Any:
    """A page of the administrator's browser."""
    return signed_in(opened(), service.url, service.key)
