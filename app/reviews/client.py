"""Review queues of a remote service."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from app.jobs.client import Job, job_of
from app.jobs.schemas import Job as JobBody
from app.remote.errors import ClientError
from app.remote.files import post_file, receive_file
from app.remote.transport import Resource, given
from app.reviews.schemas import (
    ClaimedRows,
    ClaimRequest,
    DecisionRequest,
    FoundLabels,
    ImportedDecisions,
    ReleaseRequest,
    Review,
    ReviewRequest,
    ReviewRow,
    ReviewRowPage,
    SheetFormat,
    State,
)
from app.schemas import Page

_FORMATS: dict[str, SheetFormat] = {".xlsx": "xlsx", ".json": "label-studio", ".xml": "label-studio-config"}


class Reviews(Resource):
    """Queues of rows that people decide."""

    def create(
        self, name: str, job: str, sure_share: float = 0.0, seed: int = 0, opinions: Literal[1, 2] = 1
    ) -> Review:
        """Create a queue from a prediction job that has succeeded; parameters as in ReviewRequest.

        Raises
        ------
        ConflictError
            The name is taken, or the job has not succeeded.
        InvalidInputError
            The job has no file of rows with their probabilities, or all of its rows are sure.
        """
        request = ReviewRequest(name=name, job=job, sure_share=sure_share, seed=seed, opinions=opinions)
        return self._transport.post(Review, "/reviews", request)

    def get(self, review: str) -> Review:
        """A queue by name or id, with its progress."""
        return self._transport.get(Review, f"/reviews/{review}")

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[Review]:
        """One page, newest first."""
        return self._transport.get(Page[Review], "/reviews", page_size=page_size, page_token=page_token)

    def delete(self, review: str) -> None:
        """Delete a queue with its rows and decisions."""
        self._transport.send("DELETE", f"/reviews/{review}")

    def rows(
        self, review: str, state: State | None = None, after: int | None = None, page_size: int = 100
    ) -> ReviewRowPage:
        """Rows of a queue, the least sure first; ``after`` is ``next_place`` of the page before."""
        return self._transport.get(
            ReviewRowPage, f"/reviews/{review}/rows", state=state, after=after, page_size=page_size
        )

    def claim(
        self,
        review: str,
        count: int = 1,
        minutes: float = 15.0,
        state: Literal["open", "disputed", "skipped"] = "open",
    ) -> Sequence[ReviewRow]:
        """Claim rows for some minutes, the least sure first; empty if none can be claimed."""
        request = ClaimRequest(count=count, minutes=minutes, state=state)
        return self._transport.post(ClaimedRows, f"/reviews/{review}/claim", request).rows

    def release(self, review: str, rows: Sequence[int]) -> None:
        """Give claimed rows back before their leases end."""
        self._transport.send("POST", f"/reviews/{review}/release", json=ReleaseRequest(rows=[*rows]))

    def labels(
        self, review: str, search: str | None = None, limit: int = 20, language: str | None = None
    ) -> FoundLabels:
        """Labels of the reviewed version whose label, notation or names contain all words of the search."""
        return self._transport.get(
            FoundLabels, f"/reviews/{review}/labels", search=search, limit=limit, language=language
        )

    def decide(
        self,
        review: str,
        row: int,
        label: str | Sequence[str] | None = None,
        comment: str | None = None,
        revision: int | None = None,
        new_labels: bool = False,
    ) -> ReviewRow:
        """Decide a row, or skip it without a label; repeating a decision changes nothing.

        Parameters
        ----------
        label : str or sequence of str, optional
            The correct label, or the correct set of labels, which may be empty; None skips the row.
        new_labels : bool, default False
            Accept labels that the model does not know.

        Raises
        ------
        InvalidInputError
            The model does not know a label.
        PreconditionFailedError
            The row has another revision by now.
        ConflictError
            Another person has claimed or decided the row.
        """
        decided = {"label": label} if label is None or isinstance(label, str) else {"labels": [*label]}
        request = DecisionRequest.model_validate(
            decided | {"skip": label is None, "comment": comment, "new_labels": new_labels}
        )
        # older services refuse a field that they do not know
        body = request.model_dump(exclude_none=True, exclude=None if new_labels else {"new_labels"})
        return self._transport.ask("PUT", ReviewRow, f"/reviews/{review}/decisions/{row}", body, revision)

    def undo(self, review: str, row: int, revision: int | None = None, minutes: float | None = None) -> ReviewRow:
        """Withdraw your own decision or skip of a row; raises PreconditionFailedError as :meth:`decide` does.

        Parameters
        ----------
        minutes : float, optional
            For so long you have the row again; None: anybody can claim it.

        Raises
        ------
        ConflictError
            Another person has decided the row.
        """
        path = f"/reviews/{review}/decisions/{row}"
        return self._transport.ask("DELETE", ReviewRow, path, revision=revision, minutes=minutes)

    def save_sheet(
        self, review: str, path: str | Path, state: State | None = None, format: SheetFormat | None = None
    ) -> int:
        """Save the rows as a workbook with a column for decisions, or for Label Studio; returns the file's bytes.

        Parameters
        ----------
        path : str or Path
            Its ending says the format: ``.xlsx``, ``.json`` or ``.xml``.
        format : str, optional
            "xlsx"; "label-studio": tasks with predictions; "label-studio-config": the labeling configuration for them.

        Raises
        ------
        ClientError
            The path ends otherwise, or with another format's ending.
        """
        file = Path(path)
        by_ending = _FORMATS.get(file.suffix.lower())
        if by_ending is None or format not in (None, by_ending):
            endings = [ending for ending, each in _FORMATS.items() if format in (None, each)] or [*_FORMATS]
            raise ClientError(f"{file.name[:80]}: the name of the file must end in {' or '.join(endings)}")
        params = {"state": state, "format": by_ending}
        return receive_file(self._transport, f"/reviews/{review}/sheet", file, params)

    def import_decisions(self, review: str, path: str | Path, new_labels: bool = False) -> ImportedDecisions:
        """Record the decisions of a file of :meth:`save_sheet` that people edited or annotated.

        A workbook, a CSV file of it, or Label Studio's export in JSON or JSON-MIN.

        Parameters
        ----------
        new_labels : bool, default False
            Accept labels that the model does not know.

        Returns
        -------
        ImportedDecisions
            ``problems`` lists the lines or tasks that were not understood, or whose rows changed meanwhile.
        """
        content = post_file(self._transport, f"/reviews/{review}/decisions", Path(path), {"new_labels": new_labels})
        return self._transport.parsed(ImportedDecisions, content)

    def append(
        self, review: str, dataset: str | None = None, part: Literal["train", "test", "validation"] | None = None
    ) -> Job:
        """Queue the job that appends decided rows to a dataset, each once.

        Parameters
        ----------
        dataset : str, optional
            Default: the dataset that the reviewed version was trained on.

        Raises
        ------
        ConflictError
            No decided row that fits the dataset is left.
        """
        body = given(dataset=dataset, part=part)
        return job_of(self._transport.post(JobBody, f"/reviews/{review}/append", body), self._transport)
