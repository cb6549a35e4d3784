"""Model cards in the form that the Hugging Face Hub reads: YAML in front, then Markdown for people."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from app.features.base import OF_TEXTS
from app.jobs.request_schemas import CopyOf, EditionOf
from app.models.schemas import ModelAbout, ModelVersion
from app.plurals import gap_text

# what the measures of a version are called there; the others go by their own names
_METRICS = {"error": "error", "macro_f1": "f1", "accuracy@5": "top-5-accuracy"}
# characters of a parameter's value
_LONGEST = 1000


def model_card(version: ModelVersion, features: str, kind: str, about: ModelAbout) -> str:
    """README.md of a version.

    Parameters
    ----------
    features : str
        "text", "named_text", "sparse", "scaled", "table" or "named_table".
    kind : str
        Of the model, as its manifest names it.
    about : ModelAbout
        What people say about the model.
    """
    task = "text-classification" if features in OF_TEXTS else "tabular-classification"
    front: dict[str, Any] = {
        **{name: value for name, value in (("license", about.license), ("language", about.languages)) if value},
        "library_name": "polymargin",
        "pipeline_tag": task,
        "tags": ["polymargin", "large-margin", version.solver, *sorted(f"{k}:{v}" for k, v in version.tags.items())],
        "model-index": [
            {
                "name": version.model,
                "results": [
                    {
                        "task": {"type": task},
                        "dataset": {"type": "own", "name": f"sha256:{version.dataset_sha256[:16]}", "split": part},
                        "metrics": [
                            {"type": _METRICS.get(name, name), "name": name, "value": value}
                            for name, value in measures.items()
                        ],
                    }
                    for part, measures in version.metrics.items()
                    if measures
                ],
            }
        ],
    }
    # JSON is YAML, and needs no library that writes it
    lines = ["---", *(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in front.items()), "---", ""]
    lines += [f"# {version.model}, version {version.version}", ""]
    if version.notes:
        lines += [version.notes, ""]
    for title, text in (("Intended use", about.intended_use), ("Limitations", about.limitations)):
        lines += [f"## {title}", "", text, ""] if text else []
    lines += ["## Model details", "", *_table(_details(version, kind) | _said(about)), ""]
    lines += ["## Certificate", "", _certificate(version), ""]
    lines += ["## Training", "", *_table(_training(version)), ""]
    lines += ["## Evaluation", ""]
    if version.refit is not None:
        lines += [version.refit.summary, ""]
    lines += [*_measures(version.metrics), ""]
    lines += ["## How to use it", "", *_USE.format(name=version.model).splitlines(), ""]
    return "\n".join(lines)


_USE = """\
Without Polymargin, for linear machines, with numpy and scipy alone:

```python
from load import Classifier

Classifier("archive.npz").predict([...])
```

Into a service, which compares every hash and then gives the same answers bit by bit:

```sh
polymargin models import archive.npz --name {name}
```

`archive.json` has the SHA-256 of every file, and all that the numbers can be traced to."""


def _details(version: ModelVersion, kind: str) -> dict[str, object]:
    return {
        "method": version.solver,
        "kind": kind,
        "classes": version.n_classes,
        "features": version.n_features,
        "training rows": version.n_train,
        "SHA-256 of the artefact": version.sha256,
        "SHA-256 of the dataset": version.dataset_sha256,
        "SHA-256 of the label tree": version.hierarchy_sha256,
        "written by": f"Polymargin {version.code_version}, {version.created_at:%F %T} UTC",
    }


def _said(about: ModelAbout) -> dict[str, object]:
    given = {"license": about.license, "languages": ", ".join(about.languages or ()), "contact": about.contact}
    return {name: value for name, value in given.items() if value}


def _training(version: ModelVersion) -> dict[str, object]:
    params = {f"`{name}`": _shortened(json.dumps(value)) for name, value in version.params.items()}
    return {**params, "seed": version.seed, "epochs": version.epochs, "seconds": f"{version.seconds:.3g}"}


def _shortened(value: str) -> str:
    """A value without what makes a line too long to read, as a large table of costs."""
    return (
        value if len(value) <= _LONGEST else f"{value[:_LONGEST]} ... ({len(value):,} characters; the version has all)"
    )


def _certificate(version: ModelVersion) -> str:
    if version.copy_of is not None:
        return _copy(version.copy_of)
    if version.edition_of is not None:
        return _edition(version.edition_of)
    if version.gap is None:
        return "This method has no duality gap."
    state = "reached its tolerance" if version.converged else "ended above its tolerance"
    return (
        f"Training {state}: by its relative duality gap of {gap_text(version.gap)}, measured over all training rows, "
        "the objective is at most that share above the least possible."
    )


def _copy(copy: CopyOf) -> str:
    half = "in half precision, " if copy.float16 else ""
    of_source = (
        "" if copy.gap is None else f" The relative duality gap of that version, {gap_text(copy.gap)}, is not its own."
    )
    return (
        f"This is a smaller copy of version {copy.version} (SHA-256 `{copy.version_sha256}`), {half}with {copy.pruned} "
        f"of {copy.weights} weights set to zero; it has no certificate.{of_source} On {copy.n_rows} rows (part "
        f"{copy.part}) both answer first with the same label to {copy.agreement:.4%}; the error is {copy.error:.4g} in "
        f"place of {copy.error_source:.4g} (95 % interval of the loss {copy.loss_low:.3g} to {copy.loss_high:.3g}, "
        f"exact p of McNemar's test {copy.mcnemar.exact:.3g})."
    )


def _edition(edition: EditionOf) -> str:
    of_source = (
        ""
        if edition.gap is None
        else f" The relative duality gap of its training, {gap_text(edition.gap)}, stays its own."
    )
    return (
        f"Version {edition.version} (SHA-256 `{edition.version_sha256}`) adopted another edition of its vocabulary "
        f"without training: {edition.appeared} concepts are new and found by name, {edition.gone} are gone and "
        f"nothing replaces them, and {edition.merged} share a successor.{of_source} On {edition.n_rows} rows (part "
        f"{edition.part}) both name the same first concept to {edition.agreement:.4%}; nDCG@10 is {edition.ndcg:.4g} "
        f"in place of {edition.ndcg_source:.4g} (95 % interval of the gain {edition.gain_low:.3g} to "
        f"{edition.gain_high:.3g})."
    )


def _measures(metrics: Mapping[str, Mapping[str, float]]) -> Iterable[str]:
    parts = [part for part, values in metrics.items() if values]
    names = list(dict.fromkeys(name for part in parts for name in metrics[part]))
    if not names:
        return ["Nothing was held out."]
    lines = [f"| measure | {' | '.join(parts)} |", f"|---|{'---|' * len(parts)}"]
    for name in names:
        cells = (f"{metrics[part][name]:.6g}" if name in metrics[part] else "" for part in parts)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _table(values: Mapping[str, object]) -> list[str]:
    rows = [f"| {name} | {value} |" for name, value in values.items() if value is not None]
    return ["| | |", "|---|---|", *rows]
