"""Who needs the fixtures: every process that runs tests, and not the one that only hands them out to others."""

import os

import pytest

# Before numpy is loaded, here and in what the tests start: two processes of tests with as many threads as the machine
# has processors wait for each other within every product of matrices, and take three times as long.
for library in ("OPENBLAS", "OMP"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """What the fixtures import takes 150 MB and seconds, which the tests' first process would spend for nothing."""
    if not config.pluginmanager.has_plugin("dsession"):
        config.pluginmanager.import_plugin("shared_fixtures")
