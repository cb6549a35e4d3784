"""Models that rank the concepts of a vocabulary, those that no training row has among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from solvers.core.model import Contributions
from solvers.hierarchical import subtrees
from solvers.hierarchical.subtree_model import ClosedSetModel
from solvers.labels import stored_arrays
from solvers.labels.name_block import N_COLUMNS, NameBlock
from solvers.labels.taxonomy import Taxonomy
from solvers.metrics.confidence.set_reliability import SetReliability
from solvers.metrics.ranking import Ranking
from solvers.numerics.array_types import AnyFloats, Array, Floats, Ints, Ints32
from solvers.numerics.lazy_arrays import Parts, part_of
from solvers.subjects.answers import Calibration, set_size
from solvers.subjects.candidates import BY_NAME, Candidates, Counts, Row, learnt_numbers
from solvers.subjects.hat_basis import HatBasis
from solvers.subjects.sources import SCORERS
from solvers.subjects.sources.source import Scorer

_ROWS = 64
_MOST_ALIKE = 1000


class SubjectModel(ClosedSetModel):
    """Log-odds of concepts: of candidates by the calibrated ranker, of all others a constant.

    The log-odds of a node are the best of the concepts at or below it, so that sets are closed upwards; concepts are
    ranked by their own.

    Parameters
    ----------
    tree : Taxonomy
        Its nodes are the concepts.
    n_features : int
        Where texts have no names, those of ``names`` are not there.
    names : NameBlock
    sources : sequence of Scorer
    candidates : Candidates
    counts : Counts
        Of all training rows, in one fold.
    basis : HatBasis
    w : float64 array, shape (n_columns,)
    calibration : Calibration
    """

    kind = "subjects"
    ranks_own = True

    def __init__(
        self,
        tree: Taxonomy,
        n_features: int,
        names: NameBlock,
        sources: Sequence[Scorer],
        candidates: Candidates,
        counts: Counts,
        basis: HatBasis,
        w: Floats,
        calibration: Calibration,
    ) -> None:
        self.tree, self.classes, self.n_features = tree, tree.names, n_features
        self.names, self.sources, self.candidates = names, tuple(sources), candidates
        self.counts, self.basis, self.w, self.calibration = counts, basis, w, calibration
        self._flat = not (tree.parent >= 0).any()

    @cached_property
    def learnt(self) -> frozenset[int]:
        """The concepts that some training row has."""
        return frozenset(self.candidates.learnt.tolist())

    @cached_property
    def _totals(self) -> tuple[Ints, Ints, Ints]:
        return self.counts.without(None)

    @cached_property
    def _seen(self) -> Ints:
        return (self._totals[0] > 0).astype(np.int64)

    def scores(self, X: sp.csr_matrix) -> AnyFloats:
        """Log-odds of the concepts and of what is above them: float64, shape (n_samples, n_classes)."""
        return self._closed(self._own(X))

    def score_one(self, indices: Ints32, values: Floats) -> AnyFloats:
        return np.asarray(self.scores(self._one(indices, values))[0])

    def ranking(self, X: sp.csr_matrix) -> Ranking:
        own = self._own(X)
        closed = own if self._flat else self._closed(own.copy())
        return Ranking(own, sets=sp.csr_matrix(self.margins(closed) > 0), set_scores=None if self._flat else closed)

    def top(self, indices: Ints32, values: Floats, k: int = 1) -> tuple[Ints, AnyFloats]:
        """The k best concepts of one sparse example by falling log-odds of their own, and these."""
        own = self._own(self._one(indices, values))[0]
        order = np.argsort(-own, kind="stable")[:k]
        return order, own[order]

    def predict(self, X: sp.csr_matrix, chunk_bytes: int = 64 << 20) -> Ints:
        """The first concept of the ranking, shape (n_samples,); see :meth:`predict_sets`."""
        rows = max(1, chunk_bytes // (16 * len(self.classes)))
        parts = [self._own(X[begin : begin + rows]).argmax(axis=1) for begin in range(0, X.shape[0], rows)]
        return np.concatenate([np.empty(0, np.int64), *parts])

    def margins(self, scores: AnyFloats) -> AnyFloats:
        """Log-odds above the least of the set with the largest expected F1; never rising on the way down."""
        given = np.asarray(scores, np.float64)
        found = np.empty_like(given)
        start, above = self.tree.parents
        below = np.repeat(np.arange(len(start) - 1), np.diff(start))
        for k, row in enumerate(given):
            # those that have their log-odds from no concept below them
            highest = np.full(len(row), -np.inf)
            np.maximum.at(highest, above, row[below])
            some = np.sort(row[row > highest])[::-1][:101]
            size = set_size(expit(some), self.calibration.kappa, self.calibration.nothing)
            if size == 0:
                found[k] = row - some[0] - 1e-9
            else:
                # halfway to the first that is left out; equal ones come together
                worse = some[some < some[size - 1]]
                found[k] = row - (some[size - 1] + (worse[0] if len(worse) else some[size - 1] - 2.0)) / 2.0
        return found

    def contests(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> list[tuple[int, int | None]]:
        """The concepts of the predicted set that have their log-odds for themselves; where that is empty, the best.

        All others have those of a concept below them.
        """
        own = self._own(self._one(indices, values))
        closed = own if self._flat else self._closed(own.copy())
        chosen = np.flatnonzero((self.margins(closed)[0] > 0) & (own[0] == closed[0])).tolist()
        return [(concept, None) for concept in chosen or [best]]

    def contributions(self, indices: Ints32, values: Floats, best: int, rival: int | None) -> Contributions | None:
        """Of log-odds: what learnt scores contribute, by terms; what a name contributes, by its columns; the rest."""
        parts, intercept = np.zeros(len(indices)), 0.0
        terms, row = self._rows(self._one(indices, values))[0]
        place = {int(index): at for at, index in enumerate(indices)}
        for sign, concept in ((1.0, best), (-1.0, rival)):
            if concept is None:
                continue
            at = np.flatnonzero(row.concepts == concept)
            seen = int(self._seen[concept])
            if not len(at):
                intercept += sign * float(self.calibration.floor[seen])
                continue
            gains = self.basis.transform(row.numbers[at])[0].astype(np.float64) * self.w * self.calibration.slope[seen]
            by_number = np.bincount(self.basis.owners(), gains)
            of_name = sum(by_number[number] for number in BY_NAME)
            rest = float(by_number.sum()) - of_name
            for source, scorer in enumerate(self.sources):
                shares = self._shares(scorer, terms, concept)
                if shares is not None:
                    of_terms = by_number[learnt_numbers(source)].sum()
                    parts[indices < self.names.first] += sign * of_terms * shares
                    rest -= of_terms
            intercept += sign * (rest + float(self.calibration.offset[seen]))
            first = self.names.first + N_COLUMNS * concept
            if first in place:
                parts[place[first]] += sign * of_name
            else:
                intercept += sign * of_name
        return Contributions(parts, float(intercept), additive=False)

    def with_concepts(
        self,
        tree: Taxonomy,
        names: NameBlock,
        new_of_old: Ints,
        rows: tuple[sp.csr_matrix, sp.csr_matrix] | None = None,
    ) -> SubjectModel:
        """The same machine and ranker over other concepts.

        A concept that takes the place of several is scored as its sources merge them.
        """
        counts = self.counts.moved(new_of_old, tree.n_nodes)
        if rows is not None:
            labels, named = rows
            counts = Counts.from_labels(labels.astype(np.int8), named, np.zeros(labels.shape[0], np.int64))
        places = new_of_old[self.candidates.learnt]
        kept = places >= 0
        learnt, of = np.unique(places[kept], return_inverse=True)
        sources = [scorer.merged(kept, of) for scorer in self.sources]
        n_best, n_alike = min(self.candidates.n_best, len(learnt)), self.candidates.n_alike
        candidates = Candidates(learnt, tree.parents, sp.csr_matrix(names.alike[learnt]), n_best, n_alike)
        n_features = names.first + N_COLUMNS * names.n_concepts + 1
        kept_parts = self.basis, self.w, self.calibration
        model = SubjectModel(tree, n_features, names, sources, candidates, counts, *kept_parts)
        model.report, model.record, model.set_reliability = self.report, self.record, self.set_reliability
        return model

    def _shares(self, scorer: Scorer, terms: sp.csr_matrix, concept: int) -> Floats | None:
        """The share of each term in the scorer's score of a concept; None where there is no such score."""
        at = int(np.searchsorted(self.candidates.learnt, concept))
        if at == len(self.candidates.learnt) or self.candidates.learnt[at] != concept:
            return None
        parts = scorer.parts(terms, at)
        total = float(parts.sum())
        return parts / total if abs(total) > 1e-3 * np.abs(parts).sum() else None

    def _one(self, indices: Ints32, values: Floats) -> sp.csr_matrix:
        return sp.csr_matrix((values, indices, [0, len(indices)]), shape=(1, self.n_features))

    def _rows(self, X: sp.csr_matrix) -> list[tuple[sp.csr_matrix, Row]]:
        """The terms of each row, of length one, and its candidates."""
        self.check_width(X)
        given, matches = self.names.split(X)
        terms = unit_rows(given)
        found = []
        scores = np.stack([scorer.scores(terms) for scorer in self.sources])
        for i in range(X.shape[0]):
            here = slice(matches.indptr[i], matches.indptr[i + 1])
            found.append(
                (terms[i], self.candidates.row(scores[:, i], matches.indices[here], matches.data[here], self._totals))
            )
        return found

    def _own(self, X: sp.csr_matrix) -> Floats:
        """Log-odds of the concepts for themselves."""
        own = np.empty((X.shape[0], len(self.classes)))
        own[:] = self.calibration.floor[self._seen]
        for begin in range(0, X.shape[0], _ROWS):
            for k, (_, row) in enumerate(self._rows(X[begin : begin + _ROWS]), begin):
                scores = self.basis.transform(row.numbers).astype(np.float64) @ self.w
                own[k, row.concepts] = self.calibration.log_odds(scores, self._seen[row.concepts])
        return own

    def _closed(self, own: Floats) -> Floats:
        if not self._flat:
            subtrees.best_below(self.tree.parents, own)
        return own

    def arrays(self) -> dict[str, Array]:
        alike, chosen = self.candidates.alike, self.candidates
        parts: dict[str, Mapping[str, Array]] = {
            "names": self.names.arrays(),
            "alike": {"data": alike.data, "indices": alike.indices, "indptr": alike.indptr},
            "counts": {"has": self.counts.has, "names": self.counts.names, "both": self.counts.both},
            "basis": self.basis.arrays(),
            "calibration": {name: np.atleast_1d(each) for name, each in self.calibration._asdict().items()},
        }
        for number, scorer in enumerate(self.sources):
            parts[f"source{number}"] = scorer.arrays()
        sizes = np.array([chosen.n_best, chosen.n_alike])
        if self.set_reliability is not None:
            parts["set_reliability"] = self.set_reliability.arrays()
        own: dict[str, Array] = {
            "learnt": chosen.learnt,
            "sources": np.array([scorer.kind for scorer in self.sources]),
            "w": self.w,
            "sizes": sizes,
        }
        return dict(Parts(parts)) | stored_arrays.of_tree(self.tree) | own

    @classmethod
    def from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> SubjectModel:
        try:
            return cls._from_arrays(classes, n_features, arrays)
        except (KeyError, IndexError, ValueError) as error:
            raise stored_arrays.ArrayFault(f"the arrays of subjects do not fit one another: {error}") from error

    @classmethod
    def _from_arrays(cls, classes: tuple[str, ...], n_features: int, arrays: Mapping[str, Array]) -> SubjectModel:
        tree = stored_arrays.graph(classes, arrays)
        names = NameBlock.from_arrays(part_of(arrays, "names"))
        learnt = np.asarray(arrays["learnt"])
        stored_arrays.require_ascending("learnt", learnt, tree.n_nodes)
        if "sources" in arrays:
            kinds = np.asarray(arrays["sources"]).tolist()
            stored = [(SCORERS[kind], part_of(arrays, f"source{number}")) for number, kind in enumerate(kinds)]
        else:  # the one source of earlier versions
            support = {name: arrays[name] for name in arrays if name == "A" or name.startswith("support.")}
            stored = [(SCORERS["kernel"], support)]
        sources = [scorer.from_arrays(given, len(learnt), names.first) for scorer, given in stored]
        alike = stored_arrays.sparse(part_of(arrays, "alike"), len(learnt), tree.n_nodes)
        counts = Counts(*(np.asarray(part_of(arrays, "counts")[name]) for name in ("has", "names", "both")))
        basis = HatBasis.from_arrays(part_of(arrays, "basis"))
        w = np.asarray(arrays["w"])
        stored_arrays.require_floats("w", w, len(basis.mean))
        kept = part_of(arrays, "calibration")
        slope, offset, floor = (np.asarray(kept[name], np.float64) for name in ("slope", "offset", "floor"))
        kappa, nothing = (float(np.ravel(each)[0]) for each in (kept["kappa"], kept.get("nothing", np.ones(1))))
        calibration = Calibration(slope, offset, floor, kappa, nothing)
        n_best, n_alike = (int(each) for each in arrays["sizes"])
        _require("names", names.n_concepts == tree.n_nodes and 0 < names.first <= n_features)
        _require("sources", len(sources) > 0)
        _require("sizes", 0 <= n_best <= len(learnt) and 0 <= n_alike <= tree.n_nodes + _MOST_ALIKE)
        for count in (counts.has, counts.names, counts.both):
            valid = count.shape == (1, tree.n_nodes) and count.min() >= 0
            _require("counts", bool(valid))
        _require("counts.both", bool((counts.both <= np.minimum(counts.has, counts.names)).all()))
        for each in (slope, offset, floor):
            _require("calibration", each.shape == (2,))
        candidates = Candidates(learnt, tree.parents, alike, n_best, n_alike)
        model = cls(tree, n_features, names, sources, candidates, counts, basis, w, calibration)
        held_out = part_of(arrays, "set_reliability")
        model.set_reliability = SetReliability.from_arrays(held_out) if held_out else None
        return model


def unit_rows(X: sp.csr_matrix) -> sp.csr_matrix:
    """The rows divided by their lengths; zeros stay."""
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1.0 / np.where(lengths > 0, lengths, 1.0)) @ X)


def _require(name: str, valid: bool) -> None:
    if not valid:
        raise ValueError(f"the array {name} is out of range")
