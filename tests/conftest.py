"""Who needs the fixtures: every process that runs tests, and not the one that only hands them out to others."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """What the fixtures import takes 150 MB and seconds, which the tests' first process would spend for nothing."""
    if not config.pluginmanager.has_plugin("dsession"):
        config.pluginmanager.import_plugin("shared_fixtures")
