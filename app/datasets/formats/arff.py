"""ARFF, as Weka, Meka and Clus write it."""

from collections.abc import Sequence

from app.datasets.formats.format import Format, Reference
from app.descriptions import Shape


def _is_arff(lines: Sequence[str], labels: frozenset[str]) -> bool:
    first = next((line for line in lines if not line.lstrip().startswith("%")), "")
    return first.lstrip().lower().startswith(("@relation", "@attribute"))


ARFF = Format(
    "arff",
    "ARFF (Weka, Meka, Clus)",
    "app.formats.arff:parse_arff",
    frozenset(
        {
            "label_column",
            "label_columns",
            "unlabelled",
            "without_label",
            "languages",
            "text_columns",
            "ignore_columns",
            "id_column",
            "missing",
            "encoding",
        }
    ),
    Reference(
        "Weka's, dense or sparse, and those of Meka and Clus: attributes are numbers, categories (nominal), texts "
        "(string) or ids (`key`)",
        "the attribute that `label_column` or `label_columns` names, else a `hierarchical` one, `label` or `class`, or "
        "those that Meka's `-C` specifies",
        weight="`{weight}` at the end of a row",
    ),
    (
        Shape("Weka: dense ARFF", "weka.arff"),
        Shape("Weka: sparse ARFF", "sparse.arff"),
        Shape("Meka: ARFF with `-C`", "meka.arff"),
        Shape("Clus: ARFF with hierarchical classes", "clus.arff"),
    ),
    extensions=("arff",),
    recognises=_is_arff,
)
