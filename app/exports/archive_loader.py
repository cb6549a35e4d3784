"""Predicts from an archive of Polymargin with numpy and scipy alone: ``python load.py model.npz "some text"``.

An archive is a zip file of arrays, which numpy.load reads: ``Classifier("model.npz").predict(["some text"])``. Linear
machines are known here, along a tree, given or learnt, as well, centroids, and pools of them; numbers come as a matrix
with the columns that the training data had, rows of tables as dicts by column. Other kinds are imported into a
service: ``polymargin models import model.npz``.
"""

import json
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from app.features.excerpts import excerpt, split_text
from app.features.reading import reader


class Classifier:
    """``classes_``, ``decision_function`` and ``predict``, as scikit-learn has them."""

    def __init__(self, path: str) -> None:
        self.archive = np.load(path, allow_pickle=False)
        self.model, self.features = (
            json.loads(self.archive[f"{part}/manifest.json"]) for part in ("model", "features")
        )
        self.classes_ = np.array(self.model["classes"])

    def decision_function(self, instances: Any) -> Any:
        """Scores, shape (n, n_classes), of texts, or of rows of a matrix."""
        X = self.transform(instances)
        arrays = {name: self.archive[f"model/{name}"] for name in self.model["arrays"]}
        return _scores(self.model["kind"], X, arrays, len(self.classes_))

    def predict(self, instances: Any) -> Any:
        """Labels, shape (n,)."""
        scores = self.decision_function(instances)
        if self.model["kind"] == "taxonomy":
            return self.classes_[[self._leaf(row) for row in scores]]
        return self.classes_[scores.argmax(axis=1)]

    def transform(self, instances: Any) -> Any:
        """The sparse rows that the machine reads."""
        kind, params = self.features["kind"], self.features["params"]
        if kind == "text":
            return self._texts([[text] for text in instances], ["text"], params, "features/")
        if kind == "table":
            return self._table(instances, params)
        if kind in ("named_text", "named_table"):
            raise ValueError("this script does not find names of concepts; import the model into Polymargin")
        X = sp.csr_matrix(instances, dtype=float)
        X = X[:, self.archive["features/used"]] if "used" in self.features["arrays"] else X
        return self._scaled(X.toarray(), params["recipe"]) if kind == "scaled" else X

    def _terms(self, texts: Any, recipe: dict[str, Any], part: str) -> Any:
        idf, size = self.archive[f"{part}idf"], recipe.get("hash_features")
        if size:
            hashes = [
                [zlib.crc32(term.encode("utf-8", "surrogatepass")) for term in terms(text, recipe)] for text in texts
            ]
            found = [Counter(value % size for value in row) for row in hashes]
        else:
            ids = {name: i for i, name in enumerate(self._names(f"{part}names"))}
            found = [Counter(ids[term] for term in terms(text, recipe) if term in ids) for text in texts]
        indices = [index for row in found for index in row]
        counts = np.array([count for row in found for count in row.values()], float)
        X: Any = sp.csr_matrix(
            (counts, indices, np.cumsum([0, *map(len, found)])), shape=(len(found), size or len(idf))
        )
        if recipe.get("weighting") == "bm25":
            k1, b, mean = recipe["bm25_k1"], recipe["bm25_b"], self.archive[f"{part}mean_length"][0]
            total = np.repeat(X.sum(axis=1).A1, np.diff(X.indptr))
            X.data *= (k1 + 1) / (X.data + k1 * (1 - b + b * total / mean))
        elif recipe["sublinear_tf"]:
            X.data = np.log(X.data) + 1
        place: Any = X.indices
        if f"{part}idf_columns" in self.archive:  # all other columns have the last idf
            columns = self.archive[f"{part}idf_columns"]
            place = np.searchsorted(columns, X.indices)
            place = np.where(columns.take(place, mode="clip") == X.indices, place, -1)
        X.data *= idf[place]
        lengths = np.sqrt(X.multiply(X).sum(axis=1)).A1
        return (sp.diags(1 / np.where(lengths > 0, lengths, 1)) @ X).tocsr()

    def _scaled(self, numbers: Any, recipe: dict[str, Any], names: Sequence[str] = ()) -> Any:
        fill, centre, scale, marked = (
            self.archive[f"features/{name}"] for name in ("fill", "centre", "scale", "marked")
        )
        missing = np.isnan(numbers)
        X = (np.where(missing, fill, numbers) - centre) / scale
        weight = recipe.get("vector_weight")
        vectors = [] if weight is None else _lists(names)
        for block in vectors:
            X[:, block] *= weight * _inverse_lengths(X[:, block])
        if recipe["scaling"] == "unit_norm":
            single = np.setdiff1d(np.arange(X.shape[1]), np.concatenate([[], *vectors]).astype(int))
            X[:, single] *= _inverse_lengths(X[:, single])
        return sp.csr_matrix(np.hstack([X, missing[:, marked]]))

    def _table(self, records: Any, params: dict[str, Any]) -> Any:
        columns = params["columns"]
        rows = [
            {name: np.nan if row.get(name) is None else row[name] for name in columns["numbers"]} for row in records
        ]
        numbers = np.array([list(row.values()) for row in rows], float).reshape(len(records), -1)
        names = self._names("features/levels")
        place = {name: i for i, name in enumerate(names)}
        folded = [name for name, has in zip(columns["categories"], self.archive["features/folded"], strict=True) if has]
        others = {name: len(names) + i for i, name in enumerate(folded)}
        levels = np.zeros((len(records), len(names) + len(others)))
        for i, row in enumerate(records):
            for name in columns["categories"]:
                at = place.get(f"{name}={_level(row.get(name))}", others.get(name))
                if at is not None:
                    levels[i, at] = 1
        parts = [self._scaled(numbers, params["recipe"], columns["numbers"]), sp.csr_matrix(levels)]
        if params["text"] is not None:
            texts = [[row.get(name) or "" for name in columns["texts"]] for row in records]
            parts.append(self._texts(texts, columns["texts"], params["text"], "features/text."))
        return sp.hstack(parts, format="csr")

    def _texts(self, rows: list[list[str]], columns: list[str], recipe: dict[str, Any], part: str) -> Any:
        fields = recipe.get("fields")
        if not fields:
            return self._terms(["\n".join(filter(None, row)) for row in rows], recipe, part)
        if len(columns) == 1:
            columns = ["title", "body"]
            rows = [list(split_text(text, columns)) for (text,) in rows]
        X: Any = 0
        for at, name in enumerate(columns):
            own = {option: value for option, value in fields.get(name, {}).items() if value is not None}
            weight = own.pop("weight", 1)
            X = X + weight * self._terms([row[at] for row in rows], {**recipe, **own, "fields": {}}, part)
        lengths = np.sqrt(X.multiply(X).sum(axis=1)).A1
        return (sp.diags(1 / np.where(lengths > 0, lengths, 1)) @ X).tocsr()

    def _names(self, name: str) -> list[str]:
        blob, offsets = self.archive[f"{name}_blob"].tobytes(), self.archive[f"{name}_offsets"]
        return [blob[a:b].decode() for a, b in pairwise(offsets)]

    def _leaf(self, scores: Any) -> int:
        if "candidates" in self.model["arrays"]:
            candidates = self.archive["model/candidates"]
            return int(candidates[scores[candidates].argmax()])
        node, parent = -1, self.archive["model/parent"]
        while len(children := np.flatnonzero(parent == node)):
            node = int(children[scores[children].argmax()])
        return node


def _level(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


def _inverse_lengths(X: Any) -> Any:
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return 1 / np.where(lengths > 0, lengths, 1)


def _lists(names: Sequence[str]) -> list[list[int]]:
    """The places of the elements `v.0`, `v.1` and so on of each column of lists."""
    found: dict[str, list[int]] = {}
    single = set(names)
    for place, name in enumerate(names):
        column, mark, element = name.rpartition(".")
        if mark and column not in single and element == str(len(found.get(column, []))):
            found.setdefault(column, []).append(place)
    return list(found.values())


def terms(text: str, recipe: dict[str, Any]) -> list[str]:
    """Words, runs of them, their beginnings and runs of characters, as the recipe says."""
    unknown = set(recipe) - {
        "min_df", "max_df", "max_features", "ngram_max", "prefix", "char_ngrams", "sublinear_tf", "lowercase",
        "min_word_length", "stop_words", "libraries", "hash_features", "weighting", "bm25_k1", "bm25_b",
        "reader", "normalization", "unspaced", "language", "clean", "max_characters", "max_words",
        "max_sentences",
    }  # fmt: skip
    # "stem", "lemmas" and "by_language" take dictionaries that numpy and scipy do not have
    if beyond := sorted(name for name in unknown if recipe[name]):
        raise ValueError(f"this script cannot read texts with {', '.join(beyond)}; import the archive into Polymargin")
    reading = reader(recipe)
    stop = set(map(reading.fold, recipe.get("stop_words", ())))
    words, grams = ([term for term in found if term not in stop] for found in reading.read(excerpt(text, recipe).text))
    found = [" ".join(words[i : i + n]) for n in range(1, recipe["ngram_max"] + 1) for i in range(len(words) - n + 1)]
    found += grams
    if length := recipe.get("prefix"):
        found += [f"{word[:length]}*" for word in words if len(word) > length]
    if lengths := recipe.get("char_ngrams"):
        for n in range(lengths[0], lengths[1] + 1):
            found += [f"~{word[i : i + n]}" for word in (f" {w} " for w in words) for i in range(len(word) - n + 1)]
    return found


def _log_softmax(scores: Any) -> Any:
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def _scores(kind: str, X: Any, arrays: dict[str, Any], n_classes: int) -> Any:
    # weights in half precision are widened: scipy multiplies by none
    arrays = {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in arrays.items()}
    if kind == "pool":
        kinds = json.loads(bytes(arrays["kinds"]))
        members = [
            {
                name.removeprefix(f"member{m}."): array
                for name, array in arrays.items()
                if name.startswith(f"member{m}.")
            }
            for m in range(len(kinds))
        ]
        parts = [_scores(of, X, member, n_classes) for of, member in zip(kinds, members, strict=True)]
        scores = sum(b * part for b, part in zip(arrays["coefficients"], parts, strict=True))
        said = _log_softmax(scores)
        if "tempering.values" in arrays:
            # each row's scores times a factor, which follows from the entropy of their softmax
            scale, power = arrays["tempering.values"]
            entropy = -(np.exp(said) * said).sum(axis=1, keepdims=True)
            said = _log_softmax(np.exp(scale + power * np.log(np.maximum(entropy, 1e-6))) * scores)
        if "later_places.coefficients" in arrays:
            # the classes but the likeliest share what it leaves, by coefficients of their own
            first = np.arange(n_classes) == said.argmax(axis=1)[:, None]
            others = sum(b * part for b, part in zip(arrays["later_places.coefficients"], parts, strict=True))
            others = _log_softmax(np.where(first, -np.inf, others))
            rest = np.log(np.maximum(np.where(first, 0, np.exp(said)).sum(axis=1), 1e-30))
            most = said.max(axis=1) - 1e-4 - others.max(axis=1)
            said = _log_softmax(np.where(first, said, others + np.minimum(rest, most)[:, None]))
        return said
    if kind == "sparse_linear":
        weights = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(X.shape[1], n_classes))
        return (X @ weights).toarray() + arrays.get("intercept", 0)
    if kind == "centroids":
        lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)))
        products = _scores("sparse_linear", X, arrays, n_classes)
        cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
        return np.log(np.maximum(cosines, 0) + arrays["smoothing"])
    if kind == "sharded_linear":
        blocks = [arrays[f"W-{rank}"] for rank in range(int(arrays["owner"].max()) + 1)]
        W = np.empty((len(arrays["features"]), n_classes))
        for rank, block in enumerate(blocks):
            W[:, arrays["owner"] == rank] = block
        bias = float(arrays["bias"][0])
        return X[:, arrays["features"][: len(W) - (bias != 0)]] @ W[: len(W) - (bias != 0)] + bias * W[-1]
    if kind in ("linear", "linear_code", "taxonomy"):
        if "W" not in arrays:  # most weights are zero
            shape = (len(arrays["features"]), n_classes)
            arrays["W"] = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape).toarray()
        return X[:, arrays["features"]] @ arrays["W"] + arrays.get("intercept", 0)
    if kind == "label_trees":
        parent, label = arrays["parent"], arrays["label"]
        shape = (X.shape[1], len(parent))
        weights = sp.csr_matrix((arrays["data"].astype(np.float32), arrays["indices"], arrays["indptr"]), shape=shape)
        losses = np.maximum(0, 1 - ((X @ weights).toarray() + arrays["intercept"])) ** 2
        likely = np.zeros((X.shape[0], n_classes))
        for node, above in enumerate(parent):  # which comes before it
            losses[:, node] = 0 if above < 0 else losses[:, node] + losses[:, above]
            if label[node] >= 0:
                likely[:, label[node]] += np.exp(-losses[:, node])
        return np.log(np.maximum(likely / np.sum(parent < 0), 1e-30))
    raise ValueError(f"this script reads linear machines; import a model of the kind {kind!r} into Polymargin")


def main(arguments: list[str]) -> None:
    """Print the label of each argument but the first: a text, numbers with commas between, or a record as JSON."""
    if len(arguments) < 2:
        sys.exit("Usage: python load.py MODEL.npz INSTANCE ...; an instance is a text, or 1.5,0,2, or a JSON object")
    path, *instances = arguments
    try:
        classifier = Classifier(path)
    except (OSError, KeyError, TypeError, ValueError):
        sys.exit(f"{path} is not a readable archive of a model version")
    kind = classifier.features["kind"]
    try:
        asked: list[Any] = instances
        if kind == "table":
            asked = [json.loads(instance) for instance in instances]
        elif kind not in ("text", "named_text"):
            asked = [[float(number) for number in instance.split(",")] for instance in instances]
        labels = classifier.predict(asked)
    except (ArithmeticError, AttributeError, IndexError, ValueError) as error:
        sys.exit(f"These cannot be classified: {error}")
    for instance, label in zip(instances, labels, strict=True):
        print(f"{label}\t{instance}")


if __name__ == "__main__":
    main(sys.argv[1:])
