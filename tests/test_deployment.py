"""What installs and deploys: pinned versions, containers, no secrets."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from typer.main import get_command

from app.cli import cli

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return document


def _name(requirement: str) -> str:
    return re.split(r"[\[<>=;]", requirement)[0].lower().replace("_", "-")


def test_every_dependency_is_pinned_to_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", line) for line in lines)
    asked = project["dependencies"] + [name for extra in project["optional-dependencies"].values() for name in extra]
    assert {_name(requirement) for requirement in asked} - {"polymargin"} <= {_name(line) for line in lines}


def test_the_unit_of_systemd_runs_a_command_that_is_there_and_exposes_little() -> None:
    path = ROOT / "deploy/systemd/polymargin.service"
    lines = [line for line in path.read_text().splitlines() if "=" in line and not line.startswith("#")]
    options = {name: value for name, _, value in (line.partition("=") for line in lines)}
    command, *arguments = options["ExecStart"].split()
    assert command == "/opt/polymargin/bin/polymargin"
    given = cast(Any, get_command(cli)).commands[arguments[0]].make_context("up", arguments[1:]).params
    assert given["verbose"]
    assert options["EnvironmentFile"] == "-/etc/polymargin/settings.env"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    examined = ["systemd-analyze", "security", "--offline=true", "--threshold=30", "--no-pager", str(path)]
    found = subprocess.run(examined, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_the_socket_of_systemd_is_that_of_the_unit_and_of_the_command() -> None:
    folder = ROOT / "deploy/systemd"
    lines = (folder / "polymargin.socket").read_text().splitlines()
    options = {name: value for name, _, value in (line.partition("=") for line in lines if "=" in line)}
    made = cast(Any, get_command(cli)).commands["up"].make_context("up", []).params
    assert options["ListenStream"] == f"{made['host']}:{made['port']}"
    assert options.get("Accept", "no") == "no"
    assert "Also=polymargin.socket" in (folder / "polymargin.service").read_text().splitlines()
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    found = subprocess.run(
        ["systemd-analyze", "verify", str(folder / "polymargin.socket")], capture_output=True, text=True
    )
    assert "Unknown key" not in found.stderr


def test_the_services_wait_for_what_they_need(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {"postgres", "redis", "migrate", "api", "worker", "shard-0", "shard-1"} <= set(services)
    for name in ("api", "worker", "shard-0", "shard-1"):
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert services["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "--appendonly" in services["redis"]["command"]


def test_no_secret_has_a_default_and_no_port_is_open_to_the_network(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert set(re.findall(r"\$\{POSTGRES_PASSWORD([^}]*)\}", text)) == {":?set it"}
    published = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


STAGES = ("client", "server", "worker")


def _stages() -> dict[str, list[str]]:
    """The instructions of each stage of the Dockerfile, each in one line, those of its base before its own."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE))
    found: dict[str, list[str]] = {}
    for part in re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]:
        head, *instructions = [line for line in part.splitlines() if line.strip()]
        base, _, name = head.split()
        found[name] = found.get(base, []) + instructions
    return found


@pytest.mark.parametrize("name", STAGES)
def test_an_image_runs_without_root_from_files_that_another_stage_has_installed(name: str) -> None:
    stages = _stages()
    instructions = stages[name]
    assert "USER 10001" in instructions
    after = instructions[instructions.index("USER 10001") + 1 :]
    assert not [line for line in after if line.startswith(("RUN", "COPY", "USER"))]
    # a compiler, pip and caches stay behind
    assert not [line for line in instructions if line.startswith("RUN") and ("pip" in line or "apt-get" in line)]
    copied = [line.split() for line in instructions if line.startswith("COPY ")]
    assert copied
    assert all(words[1].removeprefix("--from=") in stages for words in copied)
    assert any(line.startswith("HEALTHCHECK ") for line in instructions) == (name != "client")


def test_a_service_writes_only_to_the_volumes_of_its_image() -> None:
    for name in ("server", "worker"):
        (volumes,) = (line for line in _stages()[name] if line.startswith("VOLUME "))
        set_to = dict(
            re.findall(r"(\w+)=(/\S+)", " ".join(line for line in _stages()[name] if line.startswith("ENV ")))
        )
        for setting in ("NUMBA_CACHE_DIR", "PYTHONPYCACHEPREFIX", "MPLCONFIGDIR", "POLYMARGIN_HOME"):
            assert set_to[setting].startswith(tuple(json.loads(volumes.removeprefix("VOLUME ")))), setting


def test_the_builder_copies_what_exists() -> None:
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from=" not in line:
            assert all((ROOT / source).exists() for source in line.split()[1:-1]), line


def test_the_images_are_built_by_one_command_and_used_with_a_read_only_root(compose: dict[str, Any]) -> None:
    made = subprocess.run(["make", "--dry-run", "images"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert f"for target in {' '.join(STAGES)};" in made
    for name in ("migrate", "api", "worker", "shard-0", "shard-1"):
        service, target = compose["services"][name], "server" if name in ("migrate", "api") else "worker"
        assert (service["build"]["target"], service["image"]) == (target, f"polymargin-{target}")
        assert service["read_only"]
        assert service["tmpfs"] == ["/tmp"]
        assert {"files:/var/lib/polymargin", "cache:/var/cache/polymargin"} == set(service["volumes"])


def test_docker_compose_reads_the_file() -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed here")
    command = [docker, "compose", "--profile", "shards", "config", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if name != "POSTGRES_PASSWORD"}
    subprocess.run(command, cwd=ROOT, env=environment | {"POSTGRES_PASSWORD": "x"}, check=True)
    assert subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False).returncode != 0


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_no_secrets_and_no_more_rights_than_each_job_names(path: Path) -> None:
    text = path.read_text()
    assert "secrets." not in text
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    for job in jobs.values():
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= set(jobs)
        for step in job.get("steps", ()):
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "a/b@v1")), step
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()


def test_a_release_is_tested_built_by_make_and_published_by_the_identity_of_its_workflow() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    assert jobs["test"]["uses"] == "./.github/workflows/ci.yml"
    assert jobs["build"]["needs"] == "test"
    assert "make release" in [step.get("run") for step in jobs["build"]["steps"]]
    assert jobs["packages"]["permissions"] == {"id-token": "write"}
    matrix = jobs["image"]["strategy"]["matrix"]
    assert {each["architecture"] for each in matrix["include"]} == set(matrix["architecture"]) == {"amd64", "arm64"}
    assert matrix["target"] == jobs["images"]["strategy"]["matrix"]["target"] == list(STAGES)
    (step,) = (step for step in yaml.safe_load(WORKFLOWS[0].read_text())["jobs"]["run"]["steps"] if "run" in step)
    assert (ROOT / step["run"]).is_file()
