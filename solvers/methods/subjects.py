"""Subjects: concepts of a vocabulary, those that no training row has among them.

A ranker orders the candidates of a text. A concept is a candidate if a kernel machine learnt from the rows scores it
well, if one of its names occurs in the text (Medelyan 2009; Suominen, Inkinen and Lehtinen 2022), or if its name is
like the names of concepts that score well. With features phi of (row, candidate) pairs,

    minimise  lambda/2 |w|^2 + 1/n sum_i 1/|P_i| sum_{y in P_i} log(1 + sum_{z in N_i} exp(w . (phi_iz - phi_iy))),

P_i being the row's own labels among its candidates and N_i the other candidates: the soft maximum of the margins of
Weston and Watkins over lists of candidates. The features of a training row are made from the other folds alone:
exactly, from one inverse of the kernel matrix, and by counts that leave its fold out. The gap is
|gradient|^2 / (2 lambda).

Of more rows than ``_MOST_EXACT``, or than fit into memory, the kernel machine is one over some of the rows, and the
ranker learns from some of the rows.

Without the names of concepts the candidates are those that the machine scores best.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import logit

from solvers.core.base import Handles, Params, Solver, State, Step
from solvers.core.memory import limit_bytes, refuse
from solvers.core.model import Model
from solvers.core.problem import Problem
from solvers.labels.label_sets import own_labels
from solvers.labels.name_block import NameBlock
from solvers.metrics.confidence.pairs import Pairs
from solvers.metrics.confidence.set_reliability import SetReliability
from solvers.numerics.array_types import Bools, Floats, Ints
from solvers.subjects import ridge
from solvers.subjects.answers import Calibration
from solvers.subjects.candidates import CROSSED, FEATURES, SEEN, Candidates, Counts
from solvers.subjects.hat_basis import HatBasis
from solvers.subjects.model import Machine, SubjectModel, unit_rows
from solvers.subjects.ranker import Lists, logistic_steps, softmax_steps

# a plain ranker chooses the candidates that the ranker sees
_PLAIN_STRENGTH, _PLAIN_STEPS, _LEAST_DEVIATION = 1e-3, 4, 0.15
_MOST_ALIKE, _MOST_BEST = 40, 80
# rows of a machine over all of them, landmarks of one over some, and rows that the ranker learns from
_MOST_EXACT, _MOST_LANDMARKS, _LEAST_LANDMARKS, _MOST_RANKED = 20_000, 5_000, 200, 10_000
_LANDMARKS_TAG, _RANKED_TAG = 1, 2


class SubjectsParams(Params):
    """Parameters of :class:`Subjects`."""

    C: float = Field(
        default=10.0, ge=1e-15, le=1e15, description="Weight of the ranker's loss relative to the norm: 1 / lambda."
    )
    machine_regularization: float = Field(
        default=0.3,
        ge=1e-4,
        le=1e6,
        description="Regularization of the kernel machine that scores concepts with training rows.",
    )
    n_candidates: int = Field(
        default=80, ge=2, le=1000, description="Candidates of a row that the ranker is trained on."
    )
    folds: int = Field(default=10, ge=2, le=50, description="Folds for the scores and counts of training rows.")
    tol: float = Field(default=1e-6, gt=0, lt=1, description="Stop at this relative duality gap.")
    max_epochs: int = Field(
        default=50, ge=1, le=10**6, description="Stop after this many Newton steps even if training has not converged."
    )
    memory_mb: int | None = Field(
        default=None,
        ge=1,
        description="Refuse problems that need more than this many megabytes; the default is the machine's memory.",
    )


class _Prepared(NamedTuple):
    """What the ranker is fitted on, and what the model is made of."""

    names: NameBlock
    machine: Machine
    candidates: Candidates
    counts: Counts
    basis: HatBasis
    lists: Lists
    seen: Ints
    missed: Ints
    others: Ints


class _Scored(NamedTuple):
    """Rows of one fold, and their scores by a machine of the other folds, shape (n_rows, n_learnt)."""

    fold: int
    rows: Ints
    scores: NDArray[np.float32]


class Subjects(Solver[SubjectsParams]):
    """A ranker of the concepts of a vocabulary."""

    name = "subjects"
    title = "Concepts of a vocabulary, learnt from rows and found by name"
    formula = (
        r"\tfrac\lambda2 \|w\|^2 + \tfrac1n \sum_i \tfrac1{|P_i|} \sum_{y \in P_i} "
        r"\log\bigl(1 + \sum_{z \in N_i} e^{w^\top (\phi_{iz} - \phi_{iy})}\bigr)"
    )
    paper = "Medelyan 2009; Suominen, Inkinen and Lehtinen 2022; Weston and Watkins 1998"
    handles = Handles(flat=False, tree=True, multilabel=True)
    uses_names = True
    Params = SubjectsParams

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """A step without a bound when scores and candidates are there, then one after each of Newton's."""
        self.admit(problem)
        self.check_features(problem)
        self.check_memory(problem.n_samples, problem.n_features, problem.n_classes)
        if state is None:
            yield Step(
                0, np.nan, np.nan, np.nan, False, {"w": np.empty(0), "epoch": np.zeros(1, np.int64)}, fraction=0.0
            )
        lists = self._prepared(problem).lists
        w = None if state is None or not len(state["w"]) else np.asarray(state["w"])
        begun = 0 if w is None or state is None else int(state["epoch"][0]) + 1
        iterates = softmax_steps(lists, 1.0 / self.params.C, w)
        if w is not None:
            next(iterates)  # it was the last step's
        for epoch, iterate in enumerate(iterates, begun):
            converged = iterate.gap <= self.params.tol
            new = {"w": iterate.w, "epoch": np.array([epoch])}
            yield Step(epoch, iterate.primal, iterate.dual, max(0.0, iterate.gap), converged, new)
            if converged or epoch >= self.params.max_epochs:
                return

    def model(self, problem: Problem, state: State) -> Model:
        prepared = self._prepared(problem)
        w = np.array(state["w"]) if len(state["w"]) else np.zeros(prepared.lists.phi.shape[1])
        lists = prepared.lists
        floor = logit((prepared.missed + 1.0) / (prepared.missed + prepared.others + 2.0))
        scores = lists.scores(w)
        calibration = Calibration.fit(scores, prepared.seen, lists.true, lists.begin, floor)
        parts = prepared.names, prepared.machine, prepared.candidates, prepared.counts, prepared.basis
        model = SubjectModel(problem.tree, problem.n_features, *parts, w, calibration)
        model.set_reliability = self._reliability(prepared, calibration.log_odds(scores, prepared.seen), floor)
        return model

    def check_memory(self, n_samples: int, n_features: int, n_classes: int) -> None:
        needed = self.bytes_needed(n_samples, n_features, n_classes)
        refuse(f"{self.name} with {n_samples:,} examples", needed, self.params.memory_mb)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        # no more concepts than that have rows of their own
        learnt = min(n_classes, 8 * n_samples, 10_000)
        needed = self._landmark_bytes(n_samples, learnt, min(n_samples, _LEAST_LANDMARKS))
        if n_samples <= _MOST_EXACT:
            needed = min(needed, ridge.bytes_needed(n_samples, learnt))
        return needed + self._list_bytes(n_samples)

    def _list_bytes(self, n_samples: int) -> int:
        # a pair has some 250 numbers in single precision
        n_ranked = n_samples if n_samples <= _MOST_EXACT else min(n_samples, _MOST_RANKED)
        return 4 * 250 * n_ranked * (self.params.n_candidates + 5)

    def _landmark_bytes(self, n_samples: int, learnt: int, n_landmarks: int) -> int:
        n_ranked = min(n_samples, _MOST_RANKED)
        return ridge.landmark_bytes(n_landmarks, learnt, n_ranked, min(self.params.folds, n_samples))

    def _n_landmarks(self, n_samples: int, learnt: int) -> int | None:
        """How many landmarks fit into memory; None where a machine over all rows does."""
        room = limit_bytes(self.params.memory_mb) - self._list_bytes(n_samples)
        if n_samples <= _MOST_EXACT and ridge.bytes_needed(n_samples, learnt) <= room:
            return None
        m = min(n_samples, _MOST_LANDMARKS)
        while m > _LEAST_LANDMARKS and self._landmark_bytes(n_samples, learnt, m) > room:
            m = max(_LEAST_LANDMARKS, m * 9 // 10)
        return m

    def _prepared(self, problem: Problem) -> _Prepared:
        """Scores, counts, candidates and their numbers; the same for the same problem, made once."""
        kept = getattr(self, "_made", None)
        if kept is None or kept[0] is not problem:
            kept = (problem, self._prepare(problem))
            self._made = kept
        return kept[1]

    def _prepare(self, problem: Problem) -> _Prepared:
        names = problem.names or NameBlock(problem.n_features, problem.tree.n_nodes, _nothing(problem.tree.n_nodes))
        given, matches = names.split(problem.X)
        terms = unit_rows(given)
        Y = sp.csr_matrix(own_labels(problem.label_sets(), problem.tree.parents).astype(np.int8))
        fold = self._folds(problem.n_samples)
        learnt = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
        ranked = self._ranked(problem.n_samples)
        support, A, scored = self._machine(terms, sp.csr_matrix(Y[:, learnt]), problem.weights, fold, ranked)
        counts = Counts.from_labels(Y, names.named(matches), fold)
        n_best = min(_MOST_BEST, len(learnt))
        candidates = Candidates(learnt, problem.tree.parent, sp.csr_matrix(names.alike[learnt]), n_best, _MOST_ALIKE)
        numbers, true, begin, missed, others = self._pairs(candidates, scored, matches, counts, Y)
        kept = _chosen(numbers, true, begin, self.params.n_candidates)
        sizes = np.add.reduceat(kept.astype(np.int64), begin[:-1])
        numbers, true = numbers[kept], true[kept]
        basis, phi = HatBasis.fit(numbers, CROSSED)
        lists = Lists(phi, np.concatenate([[0], np.cumsum(sizes)]), true)
        total = Counts(*(each.sum(axis=0, keepdims=True) for each in (counts.has, counts.names, counts.both)))
        machine = Machine(sp.csr_matrix(support, dtype=np.float32), A.astype(np.float16))
        seen = (numbers[:, SEEN] > 0).astype(np.int64)
        return _Prepared(names, machine, candidates, total, basis, lists, seen, missed, others)

    def _ranked(self, n: int) -> Ints:
        """The rows that the ranker learns from, ascending."""
        if n <= _MOST_EXACT:
            return np.arange(n)
        return np.sort(np.random.default_rng([self.seed, _RANKED_TAG]).permutation(n)[:_MOST_RANKED])

    def _machine(
        self, terms: sp.csr_matrix, Y: sp.csr_matrix, weights: Floats, fold: Ints, ranked: Ints
    ) -> tuple[sp.csr_matrix, NDArray[np.float32], Iterator[_Scored]]:
        """Support and coefficients of the kernel machine, and the scores of ranked rows from other folds."""
        strength, n = self.params.machine_regularization, terms.shape[0]
        parts = [ranked[fold[ranked] == number] for number in range(int(fold.max()) + 1)]
        m = self._n_landmarks(n, Y.shape[1])
        if m is None:
            A, scores = ridge.fit(terms, Y, strength, fold, weights)
            return terms, A, (_Scored(number, rows, scores[rows]) for number, rows in enumerate(parts))
        chosen = np.sort(np.random.default_rng([self.seed, _LANDMARKS_TAG]).permutation(n)[:m])
        machine = ridge.Landmarks(terms, Y, strength, weights, chosen)
        scored = (
            _Scored(number, rows, machine.without(np.flatnonzero(fold == number), rows))
            for number, rows in enumerate(parts)
            if len(rows)
        )
        return terms[chosen], machine.coefficients(), scored

    def _pairs(
        self,
        candidates: Candidates,
        scored: Iterable[_Scored],
        matches: sp.csr_matrix,
        counts: Counts,
        Y: sp.csr_matrix,
    ) -> tuple[NDArray[np.float32], Bools, Ints, Ints, Ints]:
        """The numbers of all pairs, which are true, where rows begin, and the numbers of pairs that are no candidates.

        Of these, first those that are true: of concepts that no other fold has, and of others.
        """
        numbers: list[tuple[int, NDArray[np.float32], Bools]] = []
        missed, others = np.zeros(2, np.int64), np.zeros(2, np.int64)
        for number, rows, scores in scored:
            without = counts.without(number)
            seen = (without[0] > 0).astype(np.int64)
            n_seen = np.bincount(seen, minlength=2)
            for k, i in enumerate(rows.tolist()):
                here = slice(matches.indptr[i], matches.indptr[i + 1])
                row = candidates.row(scores[k], matches.indices[here], matches.data[here], without)
                own = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
                numbers.append((i, row.numbers, np.isin(row.concepts, own)))
                left_out = np.setdiff1d(own, row.concepts)
                missed += np.bincount(seen[left_out], minlength=2)
                others += n_seen - np.bincount(seen[np.union1d(own, row.concepts)], minlength=2)
        numbers.sort(key=lambda each: each[0])
        sizes = [len(each[2]) for each in numbers]
        true = np.concatenate([each[2] for each in numbers])
        begin = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return np.concatenate([each[1] for each in numbers]), true, begin, missed, others

    def _reliability(self, prepared: _Prepared, log_odds: Floats, floor: Floats) -> SetReliability:
        """Of the training rows, whose features are from other folds; what the ranker does not see has the floor."""
        begin, true = prepared.lists.begin, prepared.lists.true
        best = np.maximum.reduceat(log_odds, begin[:-1])
        missed = np.repeat(floor, prepared.missed)
        values = np.concatenate([log_odds, missed, floor])
        counts = np.concatenate([np.ones(len(log_odds) + len(missed), np.int64), prepared.others])
        right = np.concatenate([true, np.ones(len(missed), bool), np.zeros(2, bool)])
        some = counts > 0
        return SetReliability.from_pairs(Pairs(values[some], right[some], counts[some], best))

    def _folds(self, n: int) -> Ints:
        order = np.random.default_rng(self.seed).permutation(n)
        fold = np.empty(n, np.int64)
        fold[order] = np.arange(n) % min(self.params.folds, n)
        return fold


def _nothing(n: int) -> sp.csr_matrix:
    return sp.csr_matrix((np.empty(0, np.float32), np.empty(0, np.int32), np.zeros(n + 1, np.int32)), shape=(n, n))


def _chosen(numbers: NDArray[np.float32], true: Bools, begin: Ints, most: int) -> Bools:
    """The candidates that a plain ranker puts first in each row, and all true ones: bool, shape (n_pairs,)."""
    if np.diff(begin).max(initial=0) <= most:
        return np.ones(len(true), bool)
    phi = np.ones((len(numbers), len(FEATURES) + 1), np.float32)
    np.subtract(numbers, numbers.mean(axis=0), out=phi[:, :-1])
    phi[:, :-1] /= np.maximum(numbers.std(axis=0), _LEAST_DEVIATION)
    lists, w = Lists(phi, begin, true), np.zeros(len(FEATURES) + 1)
    for step, iterate in enumerate(logistic_steps(lists, _PLAIN_STRENGTH)):
        w = iterate.w
        if step >= _PLAIN_STEPS:
            break
    scores = lists.scores(w)
    kept = true.copy()
    for i, j in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
        kept[i + np.argsort(-scores[i:j], kind="stable")[:most]] = True
    return kept
