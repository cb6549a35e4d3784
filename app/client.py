"""Python client of a Polymargin service: ``Client().train("papers", "topics", params={"C": 1.0}).wait()``.

It needs httpx and pydantic and loads neither the solvers nor the service; its errors are in app.remote.errors.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from app.access.client import Audit, Keys, login, logout
from app.access.schemas import DeviceCode, SignInToken, Usage
from app.datasets.client import Dataset, Datasets
from app.datasets.schemas import DatasetFormat
from app.evaluations.client import Evaluations
from app.evaluations.schemas import Comparison, Part
from app.hierarchies.client import Hierarchies
from app.jobs.client import Job, Jobs
from app.jobs.schemas import Reproduction, SolverInfo, SolverList, TrainRequest
from app.models.client import Models, reproduce
from app.operation.client import Storage
from app.operation.schemas import Health, Readiness, Status
from app.predictions.client import Instances, Predictions
from app.remote.errors import InvalidInputError
from app.remote.tables import Data
from app.remote.transport import Transport
from app.remote.uploads import Uploads
from app.reviews.client import Reviews
from app.rules.client import Feedback, Rules
from app.webhooks.client import Webhooks


class Client:
    """A connection to one service; use it from one thread, and as a context manager to close it.

    Parameters
    ----------
    url : str or None
        Address of the service; None: ``POLYMARGIN_URL``, else where the service of ``POLYMARGIN_HOME`` (~/.polymargin)
        was started last, or where its user signed in since, else http://127.0.0.1:8000.
    api_key : str or None
        None: ``POLYMARGIN_API_KEY``, else the token of a sign-in to this service (``login``), else the file
        ``admin.key``, both in ``POLYMARGIN_HOME`` (default ~/.polymargin).
    timeout : float
        Seconds to wait for an answer's next bytes.
    attempts : int
        How often a request is sent at most when the connection fails or the service is not ready. Every POST carries
        an Idempotency-Key, so that a second attempt does not do the work twice.
    """

    _connect: ClassVar[type[Transport]] = Transport

    def __init__(
        self, url: str | None = None, api_key: str | None = None, *, timeout: float = 60.0, attempts: int = 5
    ) -> None:
        self._transport = self._connect(url, api_key, timeout=timeout, attempts=attempts)
        self.datasets = Datasets(self._transport)
        self.hierarchies = Hierarchies(self._transport)
        self.jobs = Jobs(self._transport)
        self.models = Models(self._transport)
        self.rules = Rules(self._transport)
        self.webhooks = Webhooks(self._transport)
        self.reviews = Reviews(self._transport)
        self.evaluations = Evaluations(self._transport)
        self.feedback = Feedback(self._transport)
        self.keys = Keys(self._transport)
        self.audit = Audit(self._transport)
        self.storage = Storage(self._transport)
        self.uploads = Uploads(self._transport)

    @property
    def url(self) -> str:
        return self._transport.url

    @property
    def has_own_key(self) -> bool:
        """Whether the key was given to this client or in ``POLYMARGIN_API_KEY``."""
        return self._transport.own_key is not None

    def login(self, show: Callable[[DeviceCode], None] | None = None) -> SignInToken:
        """Sign in with one's own account at the identity provider of the service, by the device flow (RFC 8628).

        The call returns when the person has signed in. The token is kept in ``POLYMARGIN_HOME`` (~/.polymargin), for
        this and later clients and for the command line. A key that is given otherwise takes precedence.

        Parameters
        ----------
        show : callable, optional
            Shows the person the address and the code; by default they are printed.

        Raises
        ------
        SignInError
            Nobody entered the code before it expired.
        ForbiddenError
            The person has declined the sign-in, or has no role in the service.
        NotFoundError
            The service has no identity provider, or the provider no device flow.
        UnavailableError, UnreachableError
            The provider or the service does not answer.
        """
        return login(self._transport, show or _print_code)

    def logout(self) -> str:
        """Revoke the token of ``login`` and remove it from this machine; return the person's name.

        Raises
        ------
        SignInError
            Nobody is signed in to this service here, or the token was removed but not revoked.
        """
        return logout(self._transport)

    def upload(
        self,
        data: Data,
        name: str | None = None,
        format: DatasetFormat | None = None,
        *,
        progress: bool | None = None,
        **options: Any,
    ) -> Dataset:
        """The same as ``datasets.upload``."""
        return self.datasets.upload(data, name, format, progress=progress, **options)

    def train(
        self,
        dataset: str,
        model: str | None = None,
        solver: str = "auto",
        params: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Job:
        """Queue a training job.

        Parameters
        ----------
        dataset : str
            Id or name.
        model : str, optional
            The model gets a new version under this name; by default that of the dataset.
        solver : str
            See ``solvers()``.
        params : mapping or None
            The solver's parameters, as its JSON schema describes them.
        **options
            The other fields of app.jobs.schemas.TrainRequest: hierarchy, path, shards, seed, threads,
            test_fraction, unseen_labels, missing_parents, exchange, text, until_certain,
            certain_rows, every_c.

        Raises
        ------
        InvalidInputError
            A parameter is unknown or out of bounds, or the dataset does not fit the solver.
        """
        try:
            return self.jobs.train(dataset, model or dataset, solver, dict(params or {}), **options)
        except InvalidInputError as error:
            misplaced = {f"/{name}": name for name in options if name not in TrainRequest.model_fields}
            faults = [fault for fault in error.errors if fault.pointer in misplaced]
            known = self.solver(solver).params_schema.get("properties", {}) if faults else {}
            for fault in faults:
                name = misplaced[fault.pointer or ""]
                if name in known:
                    fault.detail = f'a parameter of {solver}: pass params={{"{name}": {options[name]!r}}}'
            raise

    def tune(self, dataset: str, model: str, space: Sequence[Mapping[str, Any]], **options: Any) -> Job:
        """Queue a tuning: settings are tried on rows held out, and the best are trained on all rows.

        Parameters
        ----------
        dataset : str
            Id or name.
        model : str
            The model gets a new version under this name.
        space : sequence of mapping
            What is tried: each has a ``solver``, and may have ``params``, a ``grid`` of values and ``ranges`` to draw
            from, as app.jobs.request_schemas.Candidate describes them.
        **options
            The other fields of app.jobs.request_schemas.TuneRequest: texts, draws, measure, folds, validation_fraction,
            halving, first_epochs, trial_tol, budget_seconds, hierarchy, seed, threads, test_fraction.

        Raises
        ------
        InvalidInputError
            No settings of a candidate can be tried on the dataset.
        """
        request = {"kind": "tune", "dataset": dataset, "model": model, "space": [dict(each) for each in space]}
        return self.jobs.submit({**request, **options})

    def predict(
        self,
        model: str,
        instances: Instances,
        top_k: int = 1,
        version: int | None = None,
        alias: str | None = None,
        threshold: float | None = None,
        min_precision: float | None = None,
        **options: Any,
    ) -> Predictions:
        """The same as ``models.predict``."""
        return self.models.predict(model, instances, top_k, version, alias, threshold, min_precision, **options)

    def picture(self, figure: str, format: str = "svg", **of: str | int) -> bytes:
        """A picture of the dashboard, as SVG or PNG.

        Parameters
        ----------
        figure : str
            ``job``, ``tuning``, ``reliability``, ``confusions``, ``thresholds``, ``classes``, ``spread``, ``code``,
            ``drift`` or ``path``.
        format : {"svg", "png"}
        **of
            What it is of: ``job``, ``evaluation``, ``dataset``, or ``model`` and ``version``; and, as ``of``, which
            one of several: ``lengths`` of a spread, ``settings`` of a tuning.
        """
        return self._transport.send("GET", f"/figures/{figure}", params={**of, "format": format}).content

    def predict_dataset(self, model: str, dataset: str, **options: Any) -> Job:
        """Queue the prediction of all rows of a dataset; once it has succeeded, ``job.save_predictions(path)``.

        Parameters
        ----------
        model, dataset : str
            Ids or names.
        **options
            The other fields of app.predictions.schemas.BatchPredictRequest: version or alias, part,
            format (``parquet``, ``csv``, ``jsonl`` or ``xlsx``), top_k, threshold or min_precision, include, exclude,
            language, inputs, bom.
        """
        return self.jobs.submit({"kind": "predict", "model": model, "dataset": dataset, **options})

    def suggest_rows(self, model: str, dataset: str, budget: int = 200, **options: Any) -> Job:
        """Queue the choice of rows that are most worth labelling; then ``job.suggested_rows()``.

        Parameters
        ----------
        model, dataset : str
            Ids or names.
        budget : int
            Number of rows to choose.
        **options
            The other fields of app.curation.schemas.SuggestRowsRequest: version or alias, part, diversity,
            few_rows_share, few_rows, skip_decided, top_k, seed.
        """
        request = {"kind": "suggest_rows", "model": model, "dataset": dataset, "budget": budget}
        return self.jobs.submit({**request, **options})

    def wrong_labels(self, model: str | None = None, **options: Any) -> Job:
        """Queue the search for labels that are probably wrong; then ``job.wrong_labels()``.

        Parameters
        ----------
        model : str, optional
            Id or name. Its dataset is judged by its method; without it, ``dataset`` by ``solver``.
        **options
            The other fields of app.curation.schemas.WrongLabelsRequest: version or alias; dataset, hierarchy, solver
            and params; dataset_version, folds, limit, seed, threads.
        """
        request = {"kind": "wrong_labels", **options}
        return self.jobs.submit(request if model is None else {**request, "model": model})

    def evaluate(self, model: str, dataset: str, **options: Any) -> Job:
        """Queue the evaluation of a version of a model; once it has succeeded, ``evaluations.get(job.id)`` has it.

        Parameters
        ----------
        model, dataset : str
            Ids or names.
        **options
            The other fields of app.evaluations.schemas.EvaluateRequest: version or alias, part, hierarchy, resamples,
            confidence, seed.

        Raises
        ------
        InvalidInputError
            The dataset has no such part.
        """
        return self.jobs.submit({"kind": "evaluate", "model": model, "dataset": dataset, **options})

    def compress(self, model: str, **options: Any) -> Job:
        """Queue a smaller copy of a version, whose ``copy_of`` shows what it loses.

        Parameters
        ----------
        model : str
            Id or name.
        **options
            The other fields of app.jobs.request_schemas.CompressRequest: float16, prune_share or prune_below,
            version or alias, and the dataset and part to measure the loss on.

        Raises
        ------
        InvalidInputError
            Nothing is to be smaller, or the loss of accuracy cannot be measured.
        ConflictError
            The version is a copy itself.
        """
        return self.jobs.submit({"kind": "compress", "model": model, **options})

    def adopt(self, model: str, hierarchy: str, **options: Any) -> Job:
        """Queue a version that answers with the concepts of another edition of its vocabulary, without training.

        Concepts that are new are found by their names. The version's ``edition_of`` shows what changed, and how the
        answers to held-out rows compare.

        Parameters
        ----------
        model : str
            Id or name.
        hierarchy : str
            Id or name of the edition.
        **options
            The other fields of app.jobs.request_schemas.AdoptRequest: version or alias, and the dataset and part to
            compare both versions on.

        Raises
        ------
        InvalidInputError
            The version does not find concepts by their names, or the answers cannot be compared.
        ConflictError
            The version is a smaller copy, or has that edition already.
        """
        return self.jobs.submit({"kind": "adopt", "model": model, "hierarchy": hierarchy, **options})

    def reproduce(self, model: str, version: int, keep: bool = False, timeout: float | None = None) -> Reproduction:
        """Train a version again from its own lineage, and compare the bits of all arrays.

        Parameters
        ----------
        keep : bool
            Keep the new version, under the name of the model and ``.reproduced``; else it is deleted again.
        timeout : float or None
            Seconds to wait for the job.

        Raises
        ------
        ClientError
            The dataset or the label tree is gone.
        JobFailedError
            The job has failed.
        """
        return reproduce(self._transport, model, version, keep, timeout)

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
        """The same as ``evaluations.compare``."""
        return self.evaluations.compare(model, a, b, other, dataset, part, confidence, seed, timeout)

    def solvers(self) -> list[SolverInfo]:
        """Every training method with the JSON schema of its parameters."""
        return self._transport.get(SolverList, "/solvers").items

    def usage(self) -> Usage:
        """What the key's workspace has of jobs and bytes, and what it may have."""
        return self._transport.get(Usage, "/usage")

    def status(self) -> Status:
        """What goes on in the service now: running jobs with their curves, queues, room, what wants attention."""
        return self._transport.get(Status, "/status")

    def solver(self, name: str) -> SolverInfo:
        """One training method; raises NotFoundError."""
        return self._transport.get(SolverInfo, f"/solvers/{name}")

    def health(self) -> Health:
        return self._transport.get(Health, f"{self.url}/healthz")

    def readiness(self) -> Readiness:
        return self._transport.get(Readiness, f"{self.url}/readyz")

    def close(self) -> None:
        self._transport.close()

    def __repr__(self) -> str:
        return f"<Client of {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _print_code(code: DeviceCode) -> None:
    print(code.instructions, flush=True)


def __getattr__(name: str) -> Any:
    if name == "Polymargin":
        warnings.warn(
            "Polymargin is now polymargin.Client; this name will be removed in version 1.1",
            DeprecationWarning,
            stacklevel=2,
        )
        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
