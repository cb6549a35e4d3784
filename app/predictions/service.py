"""Predictions: instances checked one by one, scored, and answered with labels."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from app.errors import MAX_ITEMS, InvalidInput, Item
from app.features.base import InstanceError, Row, stack
from app.features.language_detection import clear_language, is_among
from app.features.named_text import OF_TABLES
from app.features.names import shorten
from app.hierarchies.label_facts import LabelFacts, facts_in, name_steps
from app.predictions.allowed_labels import Allowed, allowed_labels, best_allowed
from app.predictions.answers import labels_of_set, one_label
from app.predictions.explanations import MAX_TERMS, explanation
from app.predictions.first_answers import ask_for_weights
from app.predictions.least_cost import Decided, check_least_cost, least_cost
from app.predictions.model_cache import LoadedModel
from app.predictions.schemas import LANGUAGE_PATTERN
from app.predictions.sure_answers import Used, sure, sure_labels, used_threshold
from solvers.core.certain_answers import certain
from solvers.core.model import Model
from solvers.numerics.array_types import AnyFloats

MAX_TOP = 1000
MAX_LABELS = 100_000
MAX_EXPLAINED = 100

_FIELDS = (
    "instances",
    "top_k",
    "threshold",
    "min_precision",
    "sure_level",
    "certain",
    "least_cost",
    "include",
    "exclude",
    "language",
    "text_language",
    "explain",
)
_KNOWN_FIELDS = frozenset(_FIELDS)
_NOTHING: dict[str, Any] = {}
Best = tuple[NDArray[np.int64], AnyFloats]
# a boolean is 1 or 0, as where a Parquet column of booleans is imported as numbers
_NUMBERS = frozenset({int, float, bool})


def predict(loaded: LoadedModel, document: dict[str, Any], max_instances: int) -> dict[str, Any]:
    """Answer one request.

    Checked by hand against ``schemas.predictions.PredictRequest``: a pydantic model with four kinds of instances
    would try each of them on every instance, and report four faults for one. The JSON parser lets no NaN through.

    Parameters
    ----------
    document : dict
        The request as JSON gave it; see ``PredictRequest``.

    Returns
    -------
    dict
        As ``PredictResponse``.

    Raises
    ------
    InvalidInput
        A fault of the request, or up to 20 instances that the model cannot take, each with its pointer.
    """
    instances, top_k, n_terms = _check(document, max_instances)
    says_certain = _says_certain(loaded, document)
    by_cost = "least_cost" in document and check_least_cost(loaded.model, document)
    if by_cost and says_certain:
        raise _fault("certain answers are those of the largest score; leave certain or least_cost out", "/certain")
    used, allowed = limits(loaded, document)
    rows = _rows(loaded, instances)
    if loaded.arrival is not None:
        loaded = loaded.arrival.answering(loaded, rows, needs_whole=says_certain)
    elif loaded.on_disk:
        ask_for_weights(loaded.model, rows)
    version = loaded.version
    with np.errstate(over="ignore", invalid="ignore"):  # looked for in the scores themselves
        reported = facts_in(loaded.labels.shown, document.get("language"))
        wanted = _Wanted(top_k, used, allowed, n_terms, reported)
        decided = _decided(loaded, rows, wanted) if by_cost else None
        best = _best(loaded, rows, wanted) if decided is None else [*zip(decided.classes, decided.scores, strict=True)]
        predictions = [_prediction(loaded, *given, wanted) for given in zip(instances, rows, best, strict=True)]
        if decided is not None:
            for each, costs in zip(predictions, decided.costs.tolist(), strict=True):
                _tell_costs(each, costs)
        if (language := document.get("text_language")) is not None:
            _tell_unseen_languages(loaded, instances, predictions, language)
        if says_certain:
            sure_of = certain(loaded.model, stack(rows, loaded.model.n_features), allowed)
            for each, is_certain in zip(predictions, sure_of.tolist(), strict=True):
                each["certain"] = is_certain
    if loaded.counts is not None and allowed is None and not by_cost:
        loaded.counts.add(best)
        loaded.counts.add_unknown(each.get("unknown", ()) for each in predictions)
    answer = {
        "model": version.model,
        "version": version.version,
        "version_sha256": version.sha256,
        "gap": version.gap,
        "set": loaded.model.names_sets,
        "predictions": predictions,
    }
    return answer if used is None else answer | {"sure_from": used.shown}


def limits(
    loaded: LoadedModel, document: Mapping[str, Any], may_be_unsure: bool = False
) -> tuple[Used | None, Allowed | None]:
    """The threshold of a request and the labels that it allows; raises InvalidInput where the model takes neither.

    With ``may_be_unsure`` a precision that no threshold leads to is one that no answer reaches.
    """
    asked = document.get("threshold"), document.get("min_precision")
    used = used_threshold(loaded.model, *asked, may_be_unsure, document.get("sure_level", "any"))
    allowed = allowed_labels(loaded, document.get("include"), document.get("exclude"))
    if allowed is not None and used is not None and loaded.model.back_off is not None:
        raise _fault("a threshold cannot be combined with include or exclude for models with a label tree", "/include")
    return used, allowed


def read_row(loaded: LoadedModel, instance: Any) -> Row:
    """Indices and values of one instance as JSON gave it; raises InstanceError."""
    fault = _malformed(instance)
    if fault is not None:
        raise InstanceError(fault)
    return loaded.features.row(instance)


def _check(document: dict[str, Any], max_instances: int) -> tuple[list[Any], int, int]:
    if not document.keys() <= _KNOWN_FIELDS:
        raise _fault(f"unknown field; known are {', '.join(_FIELDS)}", "")
    instances = document.get("instances")
    if not isinstance(instances, list):
        raise _fault("a list of instances is needed", "/instances")
    if not 1 <= len(instances) <= max_instances:
        raise _fault(f"{len(instances)} instances were given; expected 1 to {max_instances}", "/instances")
    top_k = document.get("top_k", 1)
    if type(top_k) is not int or not 1 <= top_k <= MAX_TOP:
        raise _fault(f"expected an integer from 1 to {MAX_TOP}", "/top_k")
    if len(instances) * top_k > MAX_LABELS:
        raise _fault(
            f"{top_k} labels of {len(instances)} instances; at most {MAX_LABELS} labels are returned", "/top_k"
        )
    n_terms = document.get("explain", 0)
    if type(n_terms) is not int or not 0 <= n_terms <= MAX_TERMS:
        raise _fault(f"expected an integer from 0 to {MAX_TERMS}", "/explain")
    if len(instances) * n_terms > MAX_TERMS * MAX_EXPLAINED:
        raise _fault(
            f"{n_terms} features of {len(instances)} instances; at most {MAX_EXPLAINED} can have all features",
            "/explain",
        )
    return instances, top_k, n_terms


def _says_certain(loaded: LoadedModel, document: dict[str, Any]) -> bool:
    """Whether answers say if they are certain; raises InvalidInput where the model cannot say it."""
    asked = document.get("certain", False)
    if type(asked) is not bool:
        raise _fault("expected true or false", "/certain")
    if asked and loaded.model.reach is None:
        fault = "the version has no certificate that bounds its answers; linear flat machines that end with a gap do"
        raise InvalidInput("The request does not fit the model.", [Item(fault, "/certain")])
    return asked


def _rows(loaded: LoadedModel, instances: Sequence[Any]) -> list[Row]:
    rows, faults = [], []
    for number, instance in enumerate(instances):
        try:
            rows.append(read_row(loaded, instance))
        except InstanceError as error:
            faults.append(Item(str(error), f"/instances/{number}"))
            if len(faults) == MAX_ITEMS:
                break
    if faults:
        raise InvalidInput("The instances do not fit the model.", faults)
    return rows


def _malformed(instance: Any) -> str | None:
    if type(instance) is list:
        return None if _NUMBERS.issuperset(map(type, instance)) else "a dense instance is a list of numbers"
    if type(instance) is dict:
        fields = instance.keys()
        if fields == {"text"}:
            return None if type(instance["text"]) is str else "text is a string"
        if fields == {"record"}:
            return None if type(instance["record"]) is dict else "record is an object of columns"
        if fields == {"features"}:
            named = instance["features"]
            good = type(named) is dict and (
                _NUMBERS.issuperset(map(type, named.values())) or all(map(_holds_numbers, named.values()))
            )
            if good:
                return None
            odd = [name for name, value in named.items() if not _holds_numbers(value)] if type(named) is dict else []
            where = f", which feature '{shorten(odd[0])}' is not" if odd else ""
            return f"features is an object of numbers, or of lists of numbers{where}"
        if fields == {"indices", "values"}:
            indices, values = instance["indices"], instance["values"]
            good = type(indices) is type(values) is list and {int}.issuperset(map(type, indices))
            good = good and _NUMBERS.issuperset(map(type, values))
            return None if good else "indices is a list of integers and values a list of numbers"
        known = next((each for each in ("text", "record", "features") if each in fields), None)
        others = sorted(str(name) for name in fields - {known})
        if known is not None and others:
            more = f"leave out {', '.join(repr(shorten(name)) for name in others[:3])}"
            return f"an instance with {known} has no other key: {more}; a prediction job takes files with more columns"
    return "an instance is {text}, {record}, {features}, {indices, values} or a list of numbers"


def _holds_numbers(value: Any) -> bool:
    return type(value) in _NUMBERS or (type(value) is list and _NUMBERS.issuperset(map(type, value)))


class _Wanted(NamedTuple):
    """What a request wants of each of its instances."""

    top_k: int
    used: Used | None
    allowed: Allowed | None
    n_terms: int
    reported: LabelFacts


def _best(loaded: LoadedModel, rows: list[Row], wanted: _Wanted) -> list[Best]:
    """The best classes of each row and their scores: one more than are wanted, where a rival explains the first."""
    k = max(wanted.top_k, 2) if wanted.n_terms else wanted.top_k
    if wanted.allowed is not None:
        return [best_allowed(loaded.model, row, k, wanted.allowed) for row in rows]
    if len(rows) == 1:
        return [loaded.model.top(*rows[0], k)]
    return loaded.model.top_rows(stack(rows, loaded.model.n_features), k)


def _decided(loaded: LoadedModel, rows: list[Row], wanted: _Wanted) -> Decided:
    """The labels of least expected cost: one more than are wanted, where a rival explains the first."""
    k = max(wanted.top_k, 2) if wanted.n_terms else wanted.top_k
    values = loaded.model.ranking(stack(rows, loaded.model.n_features)).values
    return least_cost(loaded.model, values, k, wanted.allowed)


def _tell_unseen_languages(
    loaded: LoadedModel, instances: Sequence[Any], predictions: Sequence[dict[str, Any]], named: Any
) -> None:
    """Add to answers the language of the text, if training texts were in others; raises InvalidInput."""
    if type(named) is not str or re.fullmatch(LANGUAGE_PATTERN, named) is None:
        raise _fault("expected a language tag such as fi, or auto", "/text_language")
    if not loaded.languages:
        return
    for instance, prediction in zip(instances, predictions, strict=True):
        if "known_terms" in prediction:
            language = clear_language(_text(loaded, instance)) if named == "auto" else named
            if language is not None and not is_among(language, loaded.languages):
                prediction["unseen_language"] = language


def _text(loaded: LoadedModel, instance: Mapping[str, Any]) -> str:
    columns = loaded.features.columns
    if "text" in instance or columns is None:
        return str(instance.get("text", ""))
    given = (instance["record"].get(name) for name in columns.texts)
    return "\n".join(each for each in given if isinstance(each, str))


def _tell_costs(prediction: dict[str, Any], costs: list[float]) -> None:
    """Add what the labels of an answer are expected to cost."""
    for label, cost in zip(prediction["top"], costs, strict=False):
        label["expected_cost"] = cost
    for label in (prediction, *prediction["labels"]):
        label["expected_cost"] = costs[0]


def _prediction(loaded: LoadedModel, instance: Any, row: Row, ranking: Best, wanted: _Wanted) -> dict[str, Any]:
    model, reported = loaded.model, wanted.reported
    ranked, worth = ranking
    best, scores = ranked[: wanted.top_k], worth[: wanted.top_k]
    top = _top(model, best, scores, reported)
    answer = {**top[0], "labels": None, "top": top, "path": None, "subtree": None}
    found = None
    known = loaded.features.known_terms(row[0])
    if known is not None:
        answer["known_terms"] = int(np.count_nonzero(known))
    language = loaded.features.text_language(instance)
    if language is not None:
        answer["text_language"] = language
    if wanted.used is not None and model.names_sets:
        answer["sure_labels"] = listed = sure_labels(model, row, wanted.used.threshold, wanted.allowed)
        for label in listed:
            label.update(reported.get(label["label"], _NOTHING))
    elif wanted.used is not None:
        found = answer["sure"] = sure(model, row, int(best[0]), top[0]["probability"], wanted.used)
        if found is not None:
            found.update(reported.get(found["label"], _NOTHING))
    if isinstance(loaded.features, OF_TABLES):
        unknown = loaded.features.terms.unknown(instance)
        if unknown:
            answer["unknown"] = unknown
    path, subtree = model.explain(*row, int(best[0]))
    # orjson writes the infinite margin of an only child as null
    if path is not None:
        answer["path"] = [{"label": label, "margin": margin, **reported.get(label, _NOTHING)} for label, margin in path]
    elif loaded.tree is not None and subtree is None:
        steps = loaded.path(top[0]["label"]) or []
        answer["path"] = [{"label": label, "margin": None, **reported.get(label, _NOTHING)} for label in steps]
    explained: list[str] | None = None
    if subtree is not None:
        scored = model.score_one(*row) if subtree else scores
        explained = _tell_set(answer, loaded, subtree, scored, wanted)
    else:
        answer["labels"] = one_label(loaded, top[0], wanted.used, found)
    if wanted.n_terms:
        rival = int(ranked[1]) if len(ranked) > 1 else None
        answer["explanation"] = explanation(loaded, instance, row, int(best[0]), rival, wanted.n_terms, explained)
        name_steps(answer["explanation"], reported)
    return answer


def _top(model: Model, best: NDArray[np.int64], scores: AnyFloats, reported: LabelFacts) -> list[dict[str, Any]]:
    """The best labels with their scores, facts and probabilities."""
    if not all(map(math.isfinite, scores.tolist())):
        raise InvalidInput("The scores of an instance are beyond the range of floats: its values are too large.")
    top: list[dict[str, Any]] = [
        {"label": model.classes[index], "score": score}
        for index, score in zip(best.tolist(), scores.tolist(), strict=True)
    ]
    if reported:
        for label in top:
            label.update(reported.get(label["label"], _NOTHING))
    if model.reliability is not None:
        for label in top:
            label["probability"] = min(math.exp(label["score"]), 1.0)
    elif model.set_reliability is not None:
        for label in top:
            label["probability"] = float(expit(label["score"]))
    return top


def _tell_set(
    answer: dict[str, Any],
    loaded: LoadedModel,
    subtree: Sequence[tuple[str, str | None, float]],
    scored: AnyFloats,
    wanted: _Wanted,
) -> list[str]:
    """Add the labels of a set and its nodes, the best label first, each behind all that is above it; the nodes."""
    nodes = [(label, parent) for label, parent, _ in subtree]
    answer["labels"] = labels_of_set(loaded, nodes, scored, wanted.used, wanted.reported, wanted.allowed)
    # a set that is no set of paths has further nodes
    others = [] if wanted.allowed is not None else [label for label, _ in nodes]
    chosen = [*(step for label in answer["labels"] for step in label["path"]), *others]
    ordered = _after_parents(chosen, dict(nodes), loaded.labels.other_parents)
    by_name = {node[0]: node for node in subtree}
    answer["subtree"] = [
        {"label": label, "parent": parent, "margin": margin, **wanted.reported.get(label, _NOTHING)}
        for label, parent, margin in (by_name[step] for step in ordered if step in by_name)
    ]
    return ordered


def _after_parents(
    labels: Sequence[str], parents: Mapping[str, str | None], others: Mapping[str, Sequence[str]]
) -> list[str]:
    """The labels once each, in their order, but each after those of its parents that are in the set."""
    ordered: dict[str, None] = {}

    def add(label: str) -> None:
        if label in ordered:
            return
        for parent in (parents.get(label), *others.get(label, ())):
            if parent is not None and parent in parents:
                add(parent)
        ordered[label] = None

    for label in labels:
        add(label)
    return [*ordered]


def _fault(detail: str, pointer: str) -> InvalidInput:
    return InvalidInput("The request does not fit its schema.", [Item(detail, pointer)])
