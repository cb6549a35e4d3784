"""The parameters of every method, from the schemas that the service checks them by."""

from typing import Any

from app.jobs.routes import list_solvers
from app.jobs.schemas import SolverInfo
from docs_site.markdown import table


def parameters() -> str:
    """Markdown: a section for each method, with what it minimises and a table of its parameters."""
    return "\n".join(_section(solver) for solver in list_solvers().items)


def _section(solver: SolverInfo) -> str:
    schema = solver.params_schema
    rows = [
        (f"`{name}`", _type(about, schema), _shown(about), about.get("description", ""))
        for name, about in schema.get("properties", {}).items()
    ]
    takes = [name for name, yes in solver.handles if yes]
    drawn = table(("parameter", "type", "default", "meaning"), rows)
    return (
        f"## {solver.name}\n\n{solver.title}. {solver.paper}.\n\n```text\n{solver.summary}\n```\n\n"
        f"Capabilities: {', '.join(f'`{name}`' for name in takes)}.\n\n{drawn}"
    )


def _shown(about: dict[str, Any]) -> str:
    return f"`{about['default']}`" if about.get("default") is not None else "none"


def _type(about: dict[str, Any], schema: dict[str, Any]) -> str:
    if "$ref" in about:
        return _type(schema["$defs"][about["$ref"].rsplit("/", 1)[-1]], schema)
    if "anyOf" in about:
        return " or ".join(dict.fromkeys(_type(one, schema) for one in about["anyOf"]))
    if "enum" in about:
        return ", ".join(f"`{value}`" for value in about["enum"])
    if "const" in about:
        return f"`{about['const']}`"
    if about.get("type") == "array":
        return f"list of {_type(about.get('items', {}), schema) or 'values'}"
    return str(about.get("type", ""))
