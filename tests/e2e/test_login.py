"""A person signs in with the command of a user, to a service as it is installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from identity_provider import CLIENT, SECRET
from identity_provider import running as running_provider
from running import clean_environment, running

pytestmark = pytest.mark.slow


def test_a_person_signs_in_works_and_signs_out(tmp_path: Path) -> None:
    with running_provider() as provider:
        names = {
            "OPENID_ISSUER": provider.issuer,
            "OPENID_CLIENT_ID": CLIENT,
            "OPENID_CLIENT_SECRET": SECRET,
            "PUBLIC_URL": "http://127.0.0.1",
            "GROUP_ROLES": "annotators=clerk",
        }
        with running(tmp_path / "home", **{f"POLYMARGIN_{name}": value for name, value in names.items()}) as service:
            user = clean_environment(POLYMARGIN_HOME=str(tmp_path / "user"))
            url = service.environment["POLYMARGIN_URL"]
            command = [sys.executable, "-m", "app.cli"]
            login = subprocess.Popen(
                [*command, "login", url], env=user, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            assert login.stderr is not None
            found = re.search(r"enter the code (\S+)", login.stderr.readline())
            assert found is not None
            provider.enter(found[1])
            out, err = login.communicate()
            assert login.returncode == 0, err
            assert f"Signed in to {url} as ann (clerk in default)" in out

            def run(*arguments: str) -> subprocess.CompletedProcess[str]:
                return subprocess.run([*command, *arguments], env=user, capture_output=True, text=True)

            assert run("datasets", "list").returncode == 0
            refused = run("keys", "list")
            assert refused.returncode == 1
            assert "requires the admin role" in refused.stderr
            assert "ann" in service.cli("audit", "--key", "ann").stdout
            assert run("logout").stdout == f"Signed ann out of {url}\n"
            assert run("datasets", "list").returncode == 1
