"""The fields of the upload form that say how a dataset's file is read: one for each option of an import."""

from dataclasses import dataclass
from typing import Any

from app.schemas.datasets.datasets import ImportOptions
from app.services.datasets.import_options import formats_of


@dataclass(frozen=True)
class ImportField:
    """One field: its option, what it is called and means, which formats have it, and how it is filled in."""

    name: str
    label: str
    hint: str
    formats: str
    kind: str
    choices: tuple[tuple[str, str], ...]
    placeholder: str


def import_fields() -> dict[str, ImportField]:
    """All options by name. An empty value stands for the default, which is then not sent."""
    properties = ImportOptions.model_json_schema()["properties"]
    return {name: _field(name, schema) for name, schema in properties.items()}


def _field(name: str, schema: dict[str, Any]) -> ImportField:
    # of an option that may be left out, what it is where it is given
    given = {**next((each for each in schema.get("anyOf", []) if each["type"] != "null"), {}), **schema}
    kind = {"array": "lines", "boolean": "choice"}.get(given["type"], "choice" if "enum" in given else "line")
    default = given["default"]
    choices: list[tuple[str, str]] = []
    if given["type"] == "boolean":
        choices = [("", _yes(default)), (str(not default).lower(), _yes(not default))]
    elif kind == "choice":
        choices = [("", default or "by default"), *((each, each) for each in given["enum"] if each != default)]
    formats = " ".join(sorted(formats_of(name)))
    placeholder = default if kind == "line" and default else ""
    label = name.replace("_", " ").capitalize()
    return ImportField(name, label, given["description"], formats, kind, tuple(choices), placeholder)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
