"""Which methods share the code that drives them, so that one of them may stand for the others in the quick tests."""

from collections.abc import Iterable
from typing import Any

import pytest

# A method that stands in none of these lines is always tested itself.
DRIVERS = (
    ("weston_watkins", "crammer_singer"),
    ("lee_lin_wahba", "absolute_sum", "maximum_margin_regression", "reinforced"),
    ("absolute_maximum", "absolute_total"),
    ("spoc", "kernel_weston_watkins", "kernel_lee_lin_wahba"),
    ("orthogonal_transfer", "transfer", "tree_loss", "hierarchical_multiclass", "flat_multiclass"),
    ("hierarchical_svm", "node_svm"),
    ("adaboost_mh", "adaboost_ecc", "adaboost_mo"),
)
DRIVER = {method: methods[0] for methods in DRIVERS for method in methods}


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the cases of a test whose method's driver an earlier case of it has tested with the same other parameters.

    A test that is about the methods rather than what drives them, as one of their objectives is, says so by the
    marker ``each_method`` and keeps all its cases.
    """
    tested: set[tuple[Any, ...]] = set()
    for item in items:
        if item.get_closest_marker("slow") or item.get_closest_marker("each_method"):
            continue
        params: dict[str, Any] = (
            item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        )
        names = {key: name for key, value in params.items() if (name := _method(value)) in DRIVER}
        if not names:
            continue
        others = tuple((key, repr(value)) for key, value in params.items() if key not in names)
        case = (item.nodeid.split("[")[0], tuple((key, DRIVER[name]) for key, name in names.items()), others)
        if case in tested:
            item.add_marker(pytest.mark.slow)
        tested.add(case)


def _method(value: Any) -> str:
    """The method that a parameter names, an estimator has, or a case like 'reinforced, block ascent' begins with."""
    return str(getattr(value, "method", value)).split(",")[0]
