"""The Helm chart: what can be checked without helm, and what helm says if it is installed."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.config import Settings
from app.version import VERSION
from deploy.release import chart_version

CHART = Path(__file__).parent.parent / "deploy" / "helm" / "polymargin"
VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
TEMPLATES = {path.name: path.read_text() for path in sorted((CHART / "templates").iterdir())}
TEXT = "\n".join(TEMPLATES.values())


def _known(path: str) -> bool:
    found: Any = VALUES
    for part in path.split("."):
        if not isinstance(found, dict) or part not in found:
            return False
        found = found[part]
    return True


def _named(schema: dict[str, Any], values: dict[str, Any]) -> Iterator[str]:
    """Values that the schema does not list where it lists all."""
    listed = schema.get("properties", {})
    for name, value in values.items():
        if schema.get("additionalProperties") is False and name not in listed:
            yield name
        if isinstance(value, dict):
            yield from _named(listed.get(name, {}), value)


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"], chart["apiVersion"]) == (chart_version(VERSION), VERSION, "v2")


def test_templates_use_values_that_are_there_and_all_of_them() -> None:
    used = set(re.findall(r"\.Values\.([A-Za-z.]+)", TEXT))
    assert {path for path in used if not _known(path)} == set()
    for name, value in VALUES.items():
        within = {f"{name}.{inner}" for inner in value} if isinstance(value, dict) else set()
        assert name in used or (within and within <= used), name
    assert list(_named(SCHEMA, VALUES)) == []


def test_templates_include_what_is_defined_and_close_what_they_open() -> None:
    defined = set(re.findall(r'define "([^"]+)"', TEXT))
    assert set(re.findall(r'include "([^"]+)"', TEXT)) == defined
    for name, text in TEMPLATES.items():
        opened = len(re.findall(r"\{\{-? *(?:if|with|range|define) ", text))
        assert opened == len(re.findall(r"\{\{-? *end\b", text)), name


def test_what_the_chart_sets_is_a_setting_and_urls_come_from_a_secret() -> None:
    known = {f"POLYMARGIN_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"name: (POLYMARGIN_[A-Z_]+)", TEXT)) <= known
    for url in ("POLYMARGIN_DATABASE_URL", "POLYMARGIN_REDIS_URL"):
        assert re.search(rf"name: {url}\n +valueFrom:\n +secretKeyRef:", TEXT)
    assert "kind: Secret" not in TEXT


def test_pods_are_probed_and_run_without_root() -> None:
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(re.findall(r"(\w+Probe):", TEMPLATES["api.yaml"]))
    assert "livenessProbe" in TEMPLATES["workers.yaml"]
    assert VALUES["podSecurityContext"]["runAsNonRoot"] is True
    assert VALUES["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert VALUES["securityContext"]["readOnlyRootFilesystem"] is True
    assert f"--uid {VALUES['podSecurityContext']['runAsUser']} " in (CHART.parents[2] / "Dockerfile").read_text()


@pytest.mark.parametrize("sets", [[], ["shards.pools=2", "files.existingClaim=mine", "api.processes=3"]], ids=str)
def test_helm_reads_the_chart(sets: list[str]) -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed here")
    options = [part for each in sets for part in ("--set", each)]
    subprocess.run([helm, "lint", "--strict", CHART, *options], check=True)
    made = subprocess.run([helm, "template", "r", CHART, *options], check=True, capture_output=True, text=True).stdout
    kubeconform = shutil.which("kubeconform")
    if kubeconform is not None:
        subprocess.run([kubeconform, "-strict", "-"], input=made, text=True, check=True)
    pools = {each["metadata"]["name"] for each in yaml.safe_load_all(made) if each and each["kind"] == "Deployment"}
    assert pools == {"r-polymargin-api", "r-polymargin-general"} | (
        {"r-polymargin-shard-0", "r-polymargin-shard-1"} if sets else set()
    )
