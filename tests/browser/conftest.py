"""A real Chromium and a service that it looks at; where there is no browser, these tests are skipped."""

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browsing import ARGUMENTS, PATIENCE_MS, Service, begin, end, fill, signed_in

from app.client import Client

# A context that closes takes milliseconds. Chromium sometimes never answers when a page in it has just begun to reload,
# and Playwright waits for that answer without a limit.
CLOSING_SECONDS = 60.0


class Chromium:
    """One browser for many tests: it is launched when a context is asked for, and again after it has hung."""

    def __init__(self, launch: Callable[[], Any]) -> None:
        self._launch = launch
        self._browser: Any = None
        self.process = 0  # the id of the browser's own process

    def new_context(self, **options: Any) -> Any:
        if self._browser is None or not self._browser.is_connected():
            self._browser = self._launch()
            found = self._browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
            self.process = next(int(each["id"]) for each in found if each["type"] == "browser")
        return self._browser.new_context(**options)

    def close(self, context: Any, seconds: float = CLOSING_SECONDS) -> None:
        """Close a context; a browser that does not answer for so many seconds is killed."""
        if not self._browser.is_connected():
            return
        ending = threading.Timer(seconds, os.kill, (self.process, signal.SIGKILL))
        ending.start()
        try:
            context.close()
        except Exception:
            if self._browser.is_connected():
                raise
        finally:
            ending.cancel()

    def end(self) -> None:
        if self._browser is not None and self._browser.is_connected():
            self._browser.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", action="store_true", help="take the documentation's pictures of pages again")


@pytest.fixture
def pictures(request: pytest.FixtureRequest) -> bool:
    """Whether the documentation's pictures are to be taken."""
    return bool(request.config.getoption("--screenshots", default=False))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-browser")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no chromium: make test-browser says how to get one")
    with playwright.sync_playwright() as running:
        browser = Chromium(lambda: running.chromium.launch(executable_path=path, args=ARGUMENTS))
        yield browser
        browser.end()


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
def opened(chromium: Chromium) -> Iterator[Callable[..., Any]]:
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
        chromium.close(context)
    assert faults == []


@pytest.fixture
def page(opened: Callable[..., Any], service: Service) -> Any:
    """A page of the administrator's browser."""
    return signed_in(opened(), service.url, service.key)
