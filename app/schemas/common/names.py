"""Names and identifiers as they appear in URLs, bodies and tables."""

from typing import Annotated

from pydantic import StringConstraints

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

# a version of a model, by its number or an alias
VERSION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}@[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
