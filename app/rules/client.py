"""Rules and feedback of a remote service."""

from collections.abc import Sequence
from typing import Any, Literal

from app.jobs.client import Job, job_of
from app.jobs.schemas import Job as JobBody
from app.predictions.client import Instance
from app.remote.transport import Resource, given
from app.rules.schemas import Feedback as FeedbackBody
from app.rules.schemas import Rule, RuleRun
from app.schemas import Page


class Rules(Resource):
    """What starts trainings by itself."""

    def create(self, name: str, model: str, **options: Any) -> Rule:
        """Make a rule.

        Parameters
        ----------
        name, model : str
        **options
            The other fields of app.rules.schemas.RuleRequest: cron, time_zone, feedback_rows, feedback, dataset,
            training, warm, promote.

        Raises
        ------
        ConflictError
            The name is taken.
        InvalidInputError
            Nothing would start it, or the model cannot be trained so.
        """
        return self._transport.post(Rule, "/rules", given(name=name, model=model, **options))

    def get(self, rule: str) -> Rule:
        return self._transport.get(Rule, f"/rules/{rule}")

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[Rule]:
        """One page, newest first."""
        return self._transport.get(Page[Rule], "/rules", page_size=page_size, page_token=page_token)

    def enable(self, rule: str, enabled: bool = True) -> Rule:
        """Switch a rule on, or off."""
        return self._transport.ask("PATCH", Rule, f"/rules/{rule}", {"enabled": enabled})

    def delete(self, rule: str) -> None:
        """Delete a rule; what it has begun goes on."""
        self._transport.send("DELETE", f"/rules/{rule}")

    def start(self, rule: str) -> RuleRun:
        """Start a rule now; raises ConflictError while a run of it is not over."""
        return self._transport.post(RuleRun, f"/rules/{rule}/runs")

    def runs(self, rule: str, page_size: int = 50, page_token: str | None = None) -> Page[RuleRun]:
        """One page of what a rule has done, newest first."""
        return self._transport.get(Page[RuleRun], f"/rules/{rule}/runs", page_size=page_size, page_token=page_token)


class Feedback(Resource):
    """The right labels of what models have answered."""

    def report(
        self,
        model: str,
        instance: Instance,
        labels: str | Sequence[str],
        version: int | None = None,
        answer: str | None = None,
        note: str | None = None,
    ) -> FeedbackBody:
        """Report the correct labels of one instance; they are stored once this returns.

        Parameters
        ----------
        instance : str, mapping or sequence of float
            As it was given to predict.
        labels : str or sequence of str
            One label; several or none if the model names sets.
        version : int or None
            Which version answered; the latest where it is not given.
        answer : str or None
            The ``id`` of the answer, with ``/`` and the place of the prediction behind it where it had several.

        Raises
        ------
        InvalidInputError
            The model cannot take the instance, or no row could have these labels.
        """
        body = given(
            instance={"text": instance} if isinstance(instance, str) else instance,
            labels=[labels] if isinstance(labels, str) else list(labels),
            version=version,
            answer=answer,
            note=note,
        )
        return self._transport.post(FeedbackBody, f"/models/{model}/feedback", body)

    def get(self, model: str, id: str) -> FeedbackBody:
        return self._transport.get(FeedbackBody, f"/models/{model}/feedback/{id}")

    def list(
        self, model: str, page_size: int = 50, page_token: str | None = None, waiting: bool | None = None
    ) -> Page[FeedbackBody]:
        """One page, newest first: only what no rows were made of, only the rest, or all."""
        query = {"page_size": page_size, "page_token": page_token, "waiting": waiting}
        return self._transport.get(Page[FeedbackBody], f"/models/{model}/feedback", **query)

    def delete(self, model: str, id: str) -> None:
        """Delete a report; a row that was made of it stays in its dataset."""
        self._transport.send("DELETE", f"/models/{model}/feedback/{id}")

    def append_rows(
        self, model: str, dataset: str | None = None, part: Literal["train", "test", "validation"] | None = None
    ) -> Job:
        """Queue a job that appends what waits of the feedback to a dataset.

        Parameters
        ----------
        dataset : str or None
            The one that the latest version was trained on, where it is not given.

        Raises
        ------
        ConflictError
            Nothing waits that fits the dataset.
        """
        body = given(dataset=dataset, part=part)
        return job_of(self._transport.post(JobBody, f"/models/{model}/feedback/rows", body), self._transport)
