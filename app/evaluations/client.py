"""Evaluations of a remote service, and comparisons of versions by them."""

from typing import Any

from app.evaluations.schemas import Comparison, ConfusedPairs, EvaluatedLabels, Evaluation, Mistakes, Part
from app.jobs.client import Jobs
from app.jobs.schemas import ComparisonJobs
from app.remote.errors import ForbiddenError, NotFoundError
from app.remote.transport import Resource, given
from app.schemas import Page


class Evaluations(Resource):
    """What evaluate jobs have made."""

    def get(self, evaluation: str) -> Evaluation:
        return self._transport.get(Evaluation, f"/evaluations/{evaluation}")

    def list(
        self,
        model: str | None = None,
        version: int | None = None,
        dataset: str | None = None,
        page_size: int = 50,
        page_token: str | None = None,
    ) -> Page[Evaluation]:
        """One page, newest first; of a model, one of its versions or a dataset, or all."""
        return self._transport.get(
            Page[Evaluation],
            "/evaluations",
            model=model,
            version=version,
            dataset=dataset,
            page_size=page_size,
            page_token=page_token,
        )

    def labels(
        self, evaluation: str, offset: int = 0, limit: int = 100, level: int | None = None, order: str = "f1"
    ) -> EvaluatedLabels:
        """Precision, recall, F1 and support of labels; ``order`` is f1, support or label, with - the largest first."""
        path = f"/evaluations/{evaluation}/labels"
        return self._transport.get(EvaluatedLabels, path, offset=offset, limit=limit, level=level, order=order)

    def confusions(self, evaluation: str, level: int | None = None, limit: int = 50) -> ConfusedPairs:
        """The most confused pairs of labels."""
        return self._transport.get(ConfusedPairs, f"/evaluations/{evaluation}/confusions", level=level, limit=limit)

    def mistakes(self, evaluation: str, offset: int = 0, limit: int = 20) -> Mistakes:
        """The rows that the version is most wrong about, the most wrong first; up to 100 at a time."""
        return self._transport.get(Mistakes, f"/evaluations/{evaluation}/mistakes", offset=offset, limit=limit)

    def compare(
        self,
        model: str,
        a: int | str,
        b: int | str,
        other: str | None = None,
        dataset: str | None = None,
        part: Part | None = None,
        confidence: float = 0.95,
        seed: int = 0,
        timeout: float | None = None,
    ) -> Comparison:
        """McNemar's test and the paired bootstrap of two versions.

        Where the two were not evaluated on the same rows yet, they are, and this waits for it.

        Parameters
        ----------
        a, b : int or str
            Numbers of versions, or aliases.
        other : str or None
            The model of b, where it is another.
        dataset, part : str or None
            On which rows; by default those of the newest evaluations, else those that neither was trained on.
        timeout : float or None
            Seconds to wait for evaluations.

        Raises
        ------
        NotFoundError
            No such model or version; or the two were not evaluated on the same rows, and the key may not queue jobs.
        JobFailedError, TimedOutError
            An evaluation did not succeed.
        """
        path, sides = f"/models/{model}/compare", {"a": str(a), "b": str(b), "other": other}
        asked: dict[str, Any] = {**sides, "dataset": dataset, "part": part}

        def compared() -> Comparison:
            return self._transport.get(Comparison, path, **asked, confidence=confidence, seed=seed)

        try:
            return compared()
        except NotFoundError as missing:
            try:
                queued = self._transport.post(ComparisonJobs, path, given(**asked))
            except ForbiddenError:
                raise missing from None
        for job in queued.jobs:
            Jobs(self._transport).get(job.id).wait(timeout)
        return compared()
