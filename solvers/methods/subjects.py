"""Subjects: concepts of a vocabulary, those that no training row has among them.

A ranker orders the candidates of a text. A concept is a candidate if a machine learnt from the rows, a source, scores
it well, if one of its names occurs in the text (Medelyan 2009; Suominen, Inkinen and Lehtinen 2022), or if its name is
like the names of concepts that score well. With features phi of (row, candidate) pairs,

    minimise  lambda/2 |w|^2 + 1/n sum_i 1/|P_i| sum_{y in P_i} log(1 + sum_{z in N_i} exp(w . (phi_iz - phi_iy))),

P_i being the row's own labels among its candidates and N_i the other candidates: the soft maximum of the margins of
Weston and Watkins over lists of candidates. The features of a training row are made without its fold: by machines that
were trained without it, and by counts that leave it out. The gap is |gradient|^2 / (2 lambda).

Sources are kernel ridge regression and, where concepts have some rows each and both are not too many, a binary machine
for each concept. Of more rows than ``_MOST_EXACT``, or than fit into memory, ridge regression over the nearest rows
takes the place of that over all, and the ranker learns from some of the rows.

Without the names of concepts the candidates are those that the sources score best.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Literal, NamedTuple

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
from solvers.subjects.answers import Calibration
from solvers.subjects.candidates import SEEN, Candidates, Counts, crossed
from solvers.subjects.hat_basis import HatBasis
from solvers.subjects.model import SubjectModel, unit_rows
from solvers.subjects.ranker import Lists, logistic_steps, softmax_steps
from solvers.subjects.sources import SOURCES, binary_machines, ridge
from solvers.subjects.sources.source import Learnt, Scorer, Task

# a plain ranker chooses the candidates that the ranker sees
_PLAIN_STRENGTH, _PLAIN_STEPS, _LEAST_DEVIATION = 1e-3, 4, 0.15
_MOST_ALIKE, _MOST_BEST = 40, 80
# rows of a machine over all of them, rows that the ranker learns from, and those that are scored at once
_MOST_EXACT, _MOST_RANKED, _SCORED = 20_000, 10_000, 256
# terms of all rows times concepts with rows, up to which binary machines are trained, four times: half a minute each
_MOST_PRODUCTS = 2e10
# rows that a concept has in the mean, below which binary machines add nothing to kernel ridge regression
_FEWEST_ROWS = 5
_RANKED_TAG = 2
# concepts with rows that memory is reckoned for where they have not been counted
_MOST_LEARNT = 10_000
# of the whole training, estimates: until the sources have learnt, and until rows are scored
_LEARNT_SHARE, _PREPARED_SHARE = 0.4, 0.9


class SubjectsParams(Params):
    """Parameters of :class:`Subjects`."""

    C: float = Field(
        default=10.0, ge=1e-15, le=1e15, description="Weight of the ranker's loss relative to the norm: 1 / lambda."
    )
    machine_regularization: float = Field(
        default=0.3,
        ge=1e-4,
        le=1e6,
        description="Regularization of kernel_ridge and neighbours.",
    )
    sources: list[Literal["kernel_ridge", "neighbours", "binary_machines"]] | None = Field(
        default=None,
        min_length=1,
        max_length=3,
        description="Machines whose scores the ranker combines. The default is kernel_ridge, or neighbours for more "
        "than 20,000 rows or where memory is short, and, where concepts with rows have 5 or more in the mean, the "
        "non-zero features of all rows times these concepts are at most 2e10, and memory is enough, binary_machines.",
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
    sources: tuple[Scorer, ...]
    candidates: Candidates
    counts: Counts
    basis: HatBasis
    lists: Lists
    seen: Ints
    missed: Ints
    others: Ints


class Subjects(Solver[SubjectsParams]):
    """A ranker of the concepts of a vocabulary."""

    name = "subjects"
    title = "Concepts of a vocabulary, learnt from rows and found by name"
    formula = (
        r"\tfrac\lambda2 \|w\|^2 + \tfrac1n \sum_i \tfrac1{|P_i|} \sum_{y \in P_i} "
        r"\log\bigl(1 + \sum_{z \in N_i} e^{w^\top (\phi_{iz} - \phi_{iy})}\bigr)"
    )
    paper = "Medelyan 2009; Suominen, Inkinen and Lehtinen 2022; Weston and Watkins 1998"
    handles = Handles(flat=False, tree=True, multilabel=True, graph=True)
    uses_names = True
    Params = SubjectsParams
    # what was made last, and of which problem
    _made: tuple[Problem, _Prepared] | None = None

    def steps(self, problem: Problem, state: State | None = None) -> Iterator[Step]:
        """Steps without a bound while sources learn and rows are scored, then one after each of Newton's."""
        self.admit(problem)
        self.check_features(problem)
        self.check_memory(problem.n_samples, problem.n_features, problem.n_classes)
        if state is None or not len(state["w"]):
            # a resumed training prepares again, and has said so before
            said = -1 if state is None else int(state["epoch"][-1])
            for number, fraction in enumerate(self._preparing(problem)):
                if number > said:
                    unfitted = {"w": np.empty(0), "epoch": np.array([0, number])}
                    yield Step(0, np.nan, np.nan, np.nan, False, unfitted, fraction=fraction)
        lists = self._prepared(problem).lists
        w = None if state is None or len(state["w"]) != lists.phi.shape[1] else np.asarray(state["w"])
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
        empty = float(np.mean(np.diff(problem.label_sets().indptr) == 0))
        calibration = Calibration.fit(scores, prepared.seen, lists.true, lists.begin, floor, empty)
        parts = prepared.names, prepared.sources, prepared.candidates, prepared.counts, prepared.basis
        model = SubjectModel(problem.tree, problem.n_features, *parts, w, calibration)
        model.set_reliability = self._reliability(prepared, calibration.log_odds(scores, prepared.seen), floor)
        return model

    def check_memory(self, n_samples: int, n_features: int, n_classes: int) -> None:
        needed = self.bytes_needed(n_samples, n_features, n_classes)
        refuse(f"{self.name} with {n_samples:,} examples", needed, self.params.memory_mb)

    def bytes_needed(self, n_samples: int, n_features: int, n_classes: int) -> int:
        # no more concepts than that have rows of their own
        learnt = min(n_classes, 8 * n_samples)
        n_sources = 1 if self.params.sources is None else len(self.params.sources)
        needed = self._list_bytes(n_samples) + 4 * _SCORED * learnt * (n_sources + 2)
        more = needed + binary_machines.bytes_needed(n_samples, n_features, min(learnt, _MOST_LEARNT))
        if "kernel_ridge" in (self.params.sources or ()):
            needed += ridge.bytes_needed(n_samples, min(learnt, _MOST_LEARNT))
        return max(needed, more) if self._may_have_binary(more) else needed

    def _may_have_binary(self, needed: int) -> bool:
        """Whether binary machines are asked for, or are not excluded and fit into memory."""
        if self.params.sources is not None:
            return "binary_machines" in self.params.sources
        return needed <= limit_bytes(self.params.memory_mb)

    def _list_bytes(self, n_samples: int) -> int:
        # a pair has some 250 numbers in single precision
        n_ranked = n_samples if n_samples <= _MOST_EXACT else min(n_samples, _MOST_RANKED)
        return 4 * 250 * n_ranked * (self.params.n_candidates + 5)

    def _prepared(self, problem: Problem) -> _Prepared:
        """Scores, counts, candidates and their numbers; the same for the same problem, made once."""
        if self._made is None or self._made[0] is not problem:
            for _ in self._preparing(problem):
                pass
        assert self._made is not None
        return self._made[1]

    def _preparing(self, problem: Problem) -> Iterator[float]:
        """Prepare; the share of it that is done, after each source and each fold."""
        yield 0.0
        names = problem.names or NameBlock(problem.n_features, problem.tree.n_nodes, _nothing(problem.tree.n_nodes))
        given, matches = names.split(problem.X)
        terms = unit_rows(given)
        Y = sp.csr_matrix(own_labels(problem.label_sets(), problem.tree.parents).astype(np.int8))
        fold = self._folds(problem.n_samples)
        learnt = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
        strength, own = self.params.machine_regularization, sp.csr_matrix(Y[:, learnt])
        chosen = self._sources(terms, own)
        task = Task(terms, own, problem.weights, fold, strength, self.seed, self.threads)
        machines: list[Learnt] = []
        for name in chosen:
            machines.append(SOURCES[name](task))
            yield _LEARNT_SHARE * len(machines) / len(chosen)
        counts = Counts.from_labels(Y, names.named(matches), fold)
        n_best = min(_MOST_BEST, len(learnt))
        candidates = Candidates(learnt, problem.tree.parents, sp.csr_matrix(names.alike[learnt]), n_best, _MOST_ALIKE)
        numbers, true, begin, missed, others = yield from self._pairs(candidates, machines, matches, counts, Y, fold)
        kept = _chosen(numbers, true, begin, self.params.n_candidates)
        sizes = np.add.reduceat(kept.astype(np.int64), begin[:-1])
        numbers, true = numbers[kept], true[kept]
        basis, phi = HatBasis.fit(numbers, crossed(len(machines)))
        lists = Lists(phi, np.concatenate([[0], np.cumsum(sizes)]), true)
        total = Counts(*(each.sum(axis=0, keepdims=True) for each in (counts.has, counts.names, counts.both)))
        seen = (numbers[:, SEEN] > 0).astype(np.int64)
        scorers = tuple(machine.scorer for machine in machines)
        prepared = _Prepared(names, scorers, candidates, total, basis, lists, seen, missed, others)
        self._made = problem, prepared

    def _ranked(self, n: int) -> Ints:
        """The rows that the ranker learns from, ascending."""
        if n <= _MOST_EXACT:
            return np.arange(n)
        return np.sort(np.random.default_rng([self.seed, _RANKED_TAG]).permutation(n)[:_MOST_RANKED])

    def _sources(self, terms: sp.csr_matrix, Y: sp.csr_matrix) -> Sequence[str]:
        """The names of the sources, the first of which has scores that likeness of names is weighted by."""
        if self.params.sources is not None:
            return [name for name in SOURCES if name in self.params.sources]
        n, n_learnt = Y.shape
        lists, most = self._list_bytes(n), limit_bytes(self.params.memory_mb)
        are_frequent = Y.nnz >= _FEWEST_ROWS * n_learnt
        is_exact = n <= _MOST_EXACT and ridge.bytes_needed(n, n_learnt) + lists <= most
        kernel = "neighbours" if are_frequent or not is_exact else "kernel_ridge"
        pays = are_frequent and terms.nnz * n_learnt <= _MOST_PRODUCTS
        pays = pays and self._may_have_binary(binary_machines.bytes_needed(*terms.shape, n_learnt) + lists)
        return (kernel, "binary_machines") if pays else (kernel,)

    def _pairs(
        self,
        candidates: Candidates,
        machines: list[Learnt],
        matches: sp.csr_matrix,
        counts: Counts,
        Y: sp.csr_matrix,
        fold: Ints,
    ) -> Generator[float, None, tuple[NDArray[np.float32], Bools, Ints, Ints, Ints]]:
        """The numbers of all pairs, which are true, where rows begin, and the numbers of pairs that are no candidates.

        Of these, first those that are true: of concepts that no other fold has, and of others. After each fold the
        share of the preparation that is done.
        """
        ranked = self._ranked(len(fold))
        numbers: list[tuple[int, NDArray[np.float32], Bools]] = []
        missed, others = np.zeros(2, np.int64), np.zeros(2, np.int64)
        n_folds = int(fold.max()) + 1
        for number in range(n_folds):
            rows = ranked[fold[ranked] == number]
            if not len(rows):
                continue
            without = counts.without(number)
            seen = (without[0] > 0).astype(np.int64)
            n_seen = np.bincount(seen, minlength=2)
            for k, i in enumerate(rows.tolist()):
                if k % _SCORED == 0:
                    some = rows[k : k + _SCORED]
                    scores = np.stack([machine.without(number, some) for machine in machines])
                here = slice(matches.indptr[i], matches.indptr[i + 1])
                row = candidates.row(scores[:, k % _SCORED], matches.indices[here], matches.data[here], without)
                own = Y.indices[Y.indptr[i] : Y.indptr[i + 1]]
                numbers.append((i, row.numbers, np.isin(row.concepts, own)))
                left_out = np.setdiff1d(own, row.concepts)
                missed += np.bincount(seen[left_out], minlength=2)
                others += n_seen - np.bincount(seen[np.union1d(own, row.concepts)], minlength=2)
            yield _LEARNT_SHARE + (_PREPARED_SHARE - _LEARNT_SHARE) * (number + 1) / n_folds
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
    phi = np.ones((len(numbers), numbers.shape[1] + 1), np.float32)
    np.subtract(numbers, numbers.mean(axis=0), out=phi[:, :-1])
    phi[:, :-1] /= np.maximum(numbers.std(axis=0), _LEAST_DEVIATION)
    lists, w = Lists(phi, begin, true), np.zeros(phi.shape[1])
    for step, iterate in enumerate(logistic_steps(lists, _PLAIN_STRENGTH)):
        w = iterate.w
        if step >= _PLAIN_STEPS:
            break
    scores = lists.scores(w)
    kept = true.copy()
    for i, j in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
        kept[i + np.argsort(-scores[i:j], kind="stable")[:most]] = True
    return kept
