"""The table of settings, from the class that reads them."""

from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from app.access.sign_in_settings import SignInSettings
from app.config import Settings
from docs_site.markdown import table

_UNITS = ("GiB", 30), ("MiB", 20), ("KiB", 10)


def settings() -> str:
    """A Markdown table of all settings: variable, meaning, default."""
    prefix = Settings.model_config["env_prefix"]
    rows = [
        (f"`{prefix}{name.upper()}`", field.description or "", shown_default(name, field))
        # those of sign-ins last, which few services need
        for name, field in sorted(
            Settings.model_fields.items(), key=lambda item: item[0] in SignInSettings.model_fields
        )
    ]
    return table(("variable", "meaning", "default"), rows)


def shown_default(name: str, field: FieldInfo) -> str:
    """The default as a reader would write it; sizes in binary units, too."""
    default: Any = field.get_default(call_default_factory=True)
    if default is None or default == "":
        return "not set"
    if isinstance(default, bool):
        return f"`{default}`".lower()
    if isinstance(default, Path):
        return f"`{default}`".replace(str(Path.home()), "~")
    if isinstance(default, float):
        return f"{default:g}"
    if name.endswith("_bytes"):
        unit, power = next(unit for unit in _UNITS if not default % (1 << unit[1]))
        return f"{default} ({default >> power} {unit})"
    return f"`{default}`" if isinstance(default, str) else str(default)
