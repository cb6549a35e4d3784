"""Which cases share the code that drives them, so that one of them represents the others in the quick tests."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

# The first of each represents the others; a method that is in none of these lines is always tested itself.
DRIVERS = (
    ("weston_watkins", "crammer_singer"),
    ("lee_lin_wahba", "absolute_sum", "maximum_margin_regression", "reinforced"),
    ("absolute_maximum", "absolute_total"),
    ("spoc", "kernel_weston_watkins", "kernel_lee_lin_wahba"),
    ("orthogonal_transfer", "transfer", "tree_loss", "hierarchical_multiclass", "flat_multiclass"),
    ("hierarchical_svm", "node_svm"),
    ("adaboost_mh", "adaboost_ecc", "adaboost_mo"),
    ("multiboost_cw", "multiboost"),
    # a precision is no method, but is compiled as another one
    ("float32", "float64"),
)
# the folders whose tests' cases differ in what is computed, and not in what the database is asked
COMPUTING = ("workers", "exports")
# the folders whose slow tests wait for leases, servers and pages for half of their time
WAITING = ("faults", "e2e", "browser")
PLACE = {method: (driver, place) for driver, methods in enumerate(DRIVERS) for place, method in enumerate(methods)}


def mark_slow(items: Iterable[pytest.Item]) -> None:
    """Mark the cases of a test that another method of the same driver represents, all other parameters being equal.

    A test that is about the methods rather than what drives them, as one of their objectives is, says so by the
    marker ``each_method`` and keeps all its cases.
    """
    alike: dict[Any, list[tuple[list[int], pytest.Item]]] = defaultdict(list)
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        places = {key: PLACE[name] for key, value in params.items() if (name := _method(value)) in PLACE}
        if places and not item.get_closest_marker("each_method"):
            others = tuple(repr(value) for key, value in params.items() if key not in places)
            drivers = tuple(driver for driver, _ in places.values())
            alike[item.nodeid.split("[")[0], drivers, others].append(([place for _, place in places.values()], item))
    for cases in alike.values():
        first = min(cases, key=lambda case: case[0])[0]
        for place, item in cases:
            if place != first:
                item.add_marker(pytest.mark.slow)
    for item in items:
        # what is at stake there is the engine, which is one; each server that is started and killed takes seconds
        database = getattr(getattr(item, "callspec", None), "params", {}).get("database")
        if database == "postgresql" and "faults" in item.path.parts:
            item.add_marker(pytest.mark.slow)


def repeated_on_postgresql(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The cases of a test that another one represents on PostgreSQL: they compute otherwise by the same statements."""
    seen: set[str] = set()
    repeated = []
    for item in sorted(items, key=lambda item: item.get_closest_marker("slow") is not None):
        database = getattr(getattr(item, "callspec", None), "params", {}).get("database")
        if database == "postgresql" and item.path.parent.name in COMPUTING:
            test = item.nodeid.split("[")[0]
            if test in seen:
                repeated.append(item)
            seen.add(test)
    return repeated


def waiting_first(items: list[pytest.Item]) -> None:
    """Put the slow tests that wait in front: the first process does them while the others compute.

    Each process begins with its part of the list, and takes over from the ends of the others' parts.
    """
    order = {folder: place for place, folder in enumerate(WAITING)}

    def place(item: pytest.Item) -> int:
        is_slow = item.get_closest_marker("slow") is not None
        return order.get(item.path.parent.name, len(order)) if is_slow else len(order)

    items.sort(key=place)


def _method(value: Any) -> str:
    """The method that a parameter names or an estimator has."""
    return str(getattr(value, "solver", value))
