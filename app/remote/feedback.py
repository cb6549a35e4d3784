"""Feedback to models of a remote service: what is right, and rows made of it."""

from collections.abc import Sequence
from typing import Literal

from app.remote.jobs import Job, job_of
from app.remote.models import Instance
from app.remote.transport import Transport
from app.schemas.common.pages import Page
from app.schemas.jobs.jobs import Job as JobBody
from app.schemas.rules.feedback import Feedback as FeedbackBody


class Feedback:
    """The right labels of what models have answered."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def report(
        self,
        model: str,
        instance: Instance,
        labels: str | Sequence[str],
        version: int | None = None,
        answer: str | None = None,
        note: str | None = None,
    ) -> FeedbackBody:
        """Tell what is right of one instance; it is kept once this returns.

        Parameters
        ----------
        instance : str, mapping or sequence of float
            As it was given to predict.
        labels : str or sequence of str
            One label, unless the model names sets.
        version : int or None
            Which version answered; the latest where it is not given.
        answer : str or None
            The ``id`` of the answer, with ``/`` and the place of the prediction behind it where it had several.

        Raises
        ------
        InvalidInputError
            The model cannot take the instance, or no row could have these labels.
        """
        given = {"text": instance} if isinstance(instance, str) else instance
        reported = [labels] if isinstance(labels, str) else list(labels)
        asked = {"version": version, "answer": answer, "note": note}
        body = {
            "instance": given,
            "labels": reported,
            **{name: value for name, value in asked.items() if value is not None},
        }
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
        body = {name: value for name, value in (("dataset", dataset), ("part", part)) if value is not None}
        return job_of(self._transport.post(JobBody, f"/models/{model}/feedback/rows", body), self._transport)
