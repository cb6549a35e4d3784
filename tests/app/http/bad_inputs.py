"""Requests that must be refused, each with its name, its status and its code."""

from collections.abc import Iterator
from typing import Any, NamedTuple

LONG = "x" * 129
NO_NAMES = {
    "empty": "", "with a blank": "a b", "with a slash": "a/b", "with a dot first": ".a", "too long": LONG,
    "with an umlaut": "ä", "with a quote": "a'b", "with a line end": "a\nb", "with markup": "<b>",
}  # fmt: skip
PAGED = ["datasets", "hierarchies", "jobs", "models", "keys", "evaluations", "audit", "models/letters/versions"]
NO_NUMBERS: list[Any] = ["", "x", -1, 1.5, "1e3", 2**63, "٣", "0x1", "null"]
ROW = b"a 1:1\nb 2:1\n"
LETTER = {"indices": [1], "values": [1.0]}


class Bad(NamedTuple):
    """A request without sense."""

    name: str
    method: str
    path: str
    status: int
    code: str = "invalid_input"
    query: dict[str, Any] | None = None
    json: Any = None
    content: bytes | None = None
    headers: dict[str, str] | None = None


def _of_lists() -> Iterator[Bad]:
    for path in PAGED:
        for size in (0, -1, 1001, "x", 2**64):
            yield Bad(f"page size {size} of {path}", "GET", path, 422, query={"page_size": size})
        for token in ("x", "!!", "AAAA", "é", "a" * 101):
            yield Bad(f"page token {token:.9} of {path}", "GET", path, 422, query={"page_token": token})
    yield Bad("a state that no job has", "GET", "jobs", 422, query={"state": "asleep"})
    yield Bad("evaluations of a version of no model", "GET", "evaluations", 422, query={"version": 1})
    yield Bad("evaluations of an unknown model", "GET", "evaluations", 404, "not_found", {"model": "none"})
    for since in ("yesterday", "2030-01-01T00:00:00", "2030-13-01T00:00:00Z", "0.5", "1900000000"):
        yield Bad(f"audit since {since}", "GET", "audit", 422, query={"since": since})
    yield Bad("a zero byte in a query", "GET", "jobs?state=%00", 422)


def _of_things() -> Iterator[Bad]:
    paths = {
        "datasets/{}": "DELETE GET", "datasets/{}/rows": "GET", "datasets/{}/statistics": "GET",
        "hierarchies/{}": "DELETE GET", "hierarchies/{}/nodes": "GET",
        "jobs/{}": "GET", "jobs/{}/cancel": "POST", "jobs/{}/retry": "POST",
        "jobs/{}/steps": "GET", "jobs/{}/events": "GET", "models/{}": "DELETE GET", "models/{}/versions": "GET",
        "models/{}/versions/1": "DELETE GET", "models/{}/versions/1/selection": "GET", "models/{}/restore": "POST",
        "evaluations/{}": "GET", "evaluations/{}/labels": "GET", "keys/{}": "DELETE", "solvers/{}": "GET",
        "models/{}/aliases/a": "DELETE",
    }  # fmt: skip
    for path, methods in paths.items():
        for method in methods.split():
            yield Bad(f"{method} {path} of nothing", method, path.format("none"), 404, "not_found")
    for path in ("datasets/{}", "models/{}", "jobs/{}", "hierarchies/{}"):
        for why in ("with a blank", "too long", "with an umlaut", "with markup"):
            yield Bad(f"GET {path} by a name {why}", "GET", path.format(NO_NAMES[why]), 422)
    for number in (0, -1, "x", 2**31, 1.5):
        yield Bad(f"version {number}", "GET", f"models/letters/versions/{number}", 422)
    yield Bad("a version that is not there", "GET", "models/letters/versions/9", 404, "not_found")
    for offset in NO_NUMBERS:
        yield Bad(f"rows from {offset!r}", "GET", "datasets/letters/rows", 422, query={"offset": offset})
        yield Bad(f"statistics from {offset!r}", "GET", "datasets/letters/statistics", 422, query={"offset": offset})
    for limit in (0, -1, 1001, "all"):
        yield Bad(f"{limit} rows", "GET", "datasets/letters/rows", 422, query={"limit": limit})
    yield Bad("a dataset from which models came", "DELETE", "datasets/letters", 409, "conflict")
    yield Bad("force that is neither", "DELETE", "datasets/letters", 422, query={"force": "perhaps"})
    for why, tags in {
        "a name that fits no URL": {"a/b": "x"},
        "a long value": {"a": "x" * 1001},
        "a number": {"a": 1},
    }.items():
        yield Bad(f"a version's tag with {why}", "PATCH", "models/letters/versions/1", 422, json={"tags": tags})
        yield Bad(f"a job's tag with {why}", "PATCH", "jobs/none", 422, json={"tags": tags})
    yield Bad("no route", "GET", "nothing", 404, "not_found")
    yield Bad("a method that no route takes", "PUT", "datasets", 405, "method_not_allowed")
    yield Bad("a comparison without versions", "GET", "models/letters/compare", 422)
    yield Bad("a comparison without evaluations", "GET", "models/letters/compare", 404, "not_found", {"a": 1, "b": 1})
    for query in ({"model": "letters"}, {"version": 1}, {"model": "letters", "version": 0}):
        yield Bad(f"a figure of {query}", "GET", "figures/code", 422, query=query)


def _of_uploads() -> Iterator[Bad]:
    for kind, format in (("datasets", "svmlight"), ("hierarchies", "csv")):
        for why, name in NO_NAMES.items():
            query = {"name": name, "format": format}
            yield Bad(f"{kind} by a name {why}", "POST", kind, 422, query=query, content=ROW)
        yield Bad(f"{kind} without a name", "POST", kind, 422, query={"format": format}, content=ROW)
        yield Bad(f"{kind} of no known format", "POST", kind, 422, query={"name": "n", "format": "docx"}, content=ROW)
        query = {"name": "n", "format": format}
        yield Bad(f"{kind} without content", "POST", kind, 422, query=query, content=b"")
        yield Bad(
            f"{kind} in an encoding",
            "POST",
            kind,
            415,
            "unsupported_format",
            query,
            None,
            ROW,
            {"Content-Encoding": "br"},
        )
        form = {"Content-Type": "multipart/form-data"}
        yield Bad(f"{kind} in a form without boundary", "POST", kind, 400, "malformed", query, None, ROW, form)
        form = {"Content-Type": "multipart/form-data; boundary=b"}
        yield Bad(f"{kind} in a form that is none", "POST", kind, 400, "malformed", query, None, ROW, form)
        for key in ("", "with blank", "k" * 256):
            yield Bad(
                f"{kind} with idempotency key {key:.9}", "POST", kind, 422, "invalid_input", query, None, ROW,
                {"Idempotency-Key": key},
            )  # fmt: skip
    yield Bad(
        "a dataset by a name that is taken", "POST", "datasets", 409, "conflict",
        {"name": "letters", "format": "svmlight"}, None, ROW,
    )  # fmt: skip
    trees = {
        "a cycle": b"parent,child\na,b\nb,a\n", "a node of itself": b"parent,child\na,a\n", "one column": b"a\nb\n",
        "three columns": b"parent,child\na,b,c,d\n", "no rows": b"parent,child\n",
        "a byte that is no text": b"parent,child\n\xff,a\n",
    }  # fmt: skip
    for why, content in trees.items():
        yield Bad(
            f"a tree with {why}", "POST", "hierarchies", 422, query={"name": "n", "format": "csv"}, content=content
        )
    for content in (b"{", b"[]", b"3", b"null", b'{"name": 3}', b"[" * 5000, b'{"a": ' * 5000):
        query = {"name": "n", "format": "json"}
        yield Bad(f"a tree of JSON {content[:8]!r}", "POST", "hierarchies", 422, query=query, content=content)


def _of_bodies() -> Iterator[Bad]:
    json = {"Content-Type": "application/json"}
    for path in ("jobs", "jobs/plan", "keys", "models/letters/predict"):
        for content in (b"", b"{", b'{"a": 1,}', b"NaN", b'"\xff"', b"[" * 9999, b'{"a": 1e400}'):
            yield Bad(f"{content[:9]!r} to {path}", "POST", path, 400, "malformed", {}, None, content, json)
        for content in (b"[]", b"3", b"null", b'"text"'):
            yield Bad(f"{content!r} to {path}", "POST", path, 422, "invalid_input", {}, None, content, json)
        for kind in ("text/plain", "application/xml", "multipart/form-data"):
            yield Bad(
                f"{kind} to {path}", "POST", path, 415, "unsupported_format", {}, None, b"{}", {"Content-Type": kind}
            )
        yield Bad(
            f"a length that is none to {path}", "POST", path, 400, "malformed", {}, None, b"{}", {"Content-Length": "x"}
        )


def _of_jobs() -> Iterator[Bad]:
    good = {"dataset": "letters", "model": "m", "solver": "weston_watkins"}
    wrong: dict[str, list[Any]] = {
        "dataset": [None, 3, "", "a b", {}, []],
        "model": [None, 3, "", "a b", LONG],
        "solver": [None, 3, "none", LONG, {}],
        "params": [
            None,
            3,
            [],
            {"C": -1},
            {"C": 0},
            {"C": 1e300},
            {"none": 1},
            {"tol": -1},
            {"max_epochs": 0},
        ],
        "seed": [-1, 2**31, 1.5, "1", None],
        "threads": [0, 257, "many"],
        "test_fraction": [-0.1, 1, 2, "half"],
        "unseen_labels": ["ignore", 3],
        "shards": [0, 1025, "two"],
        "path": [[], [1, 1], [-1], [0], [1e16], "1", [None]],
        "kind": ["sleep", None, 3],
        "hierarchy": [3, "a b"],
        "exchange": ["letters"],
        "text": [3, {"min_df": 0}, {"none": 1}],
        "none": [1],
    }
    for field, values in wrong.items():
        for value in values:
            if value is None and field in ("hierarchy", "shards"):
                continue
            name = f"a job whose {field} is {value!r:.20}"
            yield Bad(name, "POST", "jobs", 422, json={**good, field: value})
    yield Bad("a job on an unknown dataset", "POST", "jobs", 404, "not_found", json={**good, "dataset": "none"})
    yield Bad("a job along an unknown tree", "POST", "jobs", 404, "not_found", json={**good, "hierarchy": "none"})
    yield Bad("a job along no tree", "POST", "jobs", 422, json={**good, "solver": "orthogonal_transfer"})
    yield Bad("more shards than pools", "POST", "jobs", 409, "conflict", json={**good, "shards": 2})
    measure = {"kind": "evaluate", "model": "letters", "dataset": "letters"}
    for field, value in (
        ("resamples", -1), ("resamples", 10_001), ("confidence", 0), ("confidence", 1), ("part", "some"),
        ("version", 0), ("seed", -1), ("propensity_b", 0), ("alias", "a b"), ("none", 1),
    ):  # fmt: skip
        yield Bad(f"an evaluation whose {field} is {value}", "POST", "jobs", 422, json={**measure, field: value})
    yield Bad(
        "an evaluation of a version and an alias", "POST", "jobs", 422, json={**measure, "version": 1, "alias": "a"}
    )
    for field in ("model", "dataset", "alias"):
        yield Bad(
            f"an evaluation of an unknown {field}", "POST", "jobs", 404, "not_found", json={**measure, field: "none"}
        )


def _of_the_rest() -> Iterator[Bad]:
    for body in (
        {}, {"name": ""}, {"name": "a b"}, {"name": 3}, {"name": LONG}, {"name": "n", "role": "king"},
        {"name": "n", "role": 3}, {"name": "n", "none": 1}, {"name": "n", "expires_at": "2001-01-01T00:00:00Z"},
        {"name": "n", "expires_at": "soon"},
        {"name": "n", "workspace": "a b"}, {"name": "n", "workspace": 3},
    ):  # fmt: skip
        yield Bad(f"a key of {body!r:.70}", "POST", "keys", 422, json=body)
    yield Bad("a key by a name that is taken", "POST", "keys", 409, "conflict", json={"name": "the-admin"})
    alias = "models/letters/aliases/production"
    for body in ({}, {"version": 0}, {"version": "1"}, {"version": 1.5}, {"version": 2**31}, {"version": 1, "none": 1}):
        yield Bad(f"an alias of {body}", "PUT", alias, 422, json=body)
    yield Bad("an alias of a version that is not there", "PUT", alias, 404, "not_found", json={"version": 9})
    for tag in ("1", '"x"', 'W/"1"', '"9999999999"', '"7"'):
        body = {"version": 1}
        yield Bad(
            f"an alias if it is {tag}", "PUT", alias, 412, "precondition_failed", {}, body, None, {"If-Match": tag}
        )
    yield Bad("an alias by a name with a blank", "PUT", "models/letters/aliases/a b", 422, json={"version": 1})
    for value in (0, -1, "all", 1.5):
        yield Bad(f"to keep {value} versions", "PUT", "models/letters/retention", 422, json={"keep_last": value})


def _of_predictions() -> Iterator[Bad]:
    instances: list[Any] = [
        None, [], {}, "text", [None], [3], ["text"], [{}], [{"none": 1}], [{"text": "a text"}], [{"indices": [1]}],
        [{"indices": [1], "values": []}], [{"indices": [1], "values": ["1"]}], [{"indices": ["1"], "values": [1]}],
        [{"indices": [-1], "values": [1]}], [{"indices": [1.5], "values": [1]}], [{"indices": 1, "values": 1}],
        [{"indices": [1, 1], "values": [1, 1]}], [[1.0] * 1_000], [["x"]], [{"indices": [1], "values": [1e308, 1]}],
        [LETTER] * 1001,
    ]  # fmt: skip
    for given in instances:
        yield Bad(f"a prediction of {given!r:.40}", "POST", "models/letters/predict", 422, json={"instances": given})
    for field, values in (("top_k", [0, -1, "1", 1.5, None]), ("threshold", ["x", -1]), ("none", [1])):
        for value in values:
            body = {"instances": [LETTER], field: value}
            yield Bad(f"a prediction whose {field} is {value!r}", "POST", "models/letters/predict", 422, json=body)
    body = {"instances": [LETTER]}
    for query in (
        {"version": 0},
        {"version": "x"},
        {"version": -1},
        {"alias": "a b"},
        {"version": 1, "alias": "production"},
    ):
        yield Bad(f"a prediction with {query}", "POST", "models/letters/predict", 422, query=query, json=body)
    for path, query in (("none", {}), ("letters", {"version": 9}), ("letters", {"alias": "none"})):
        yield Bad(f"a prediction by {path} {query}", "POST", f"models/{path}/predict", 404, "not_found", query, body)


def _named() -> list[Bad]:
    found: dict[str, Bad] = {}
    for family in (_of_lists, _of_things, _of_uploads, _of_bodies, _of_jobs, _of_the_rest, _of_predictions):
        for bad in family():
            assert bad.name not in found, bad.name
            found[bad.name] = bad
    return list(found.values())


BAD_INPUTS = _named()
