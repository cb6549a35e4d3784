"""Settings, all read from the environment (prefix POLYMARGIN_); docs/reference/settings.md lists them."""

import difflib
import logging
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from pydantic import AliasChoices, Field, ValidationError, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from app.access.sign_in_settings import PREFIX, SignInSettings
from app.errors import SettingsError

# one heartbeat may fail, and the next one be late
_HEARTBEATS_PER_LEASE = 3
# variables that the client and the command line read
_OTHERS = ("URL", "API_KEY")
NO_CLIENT = "buckets need the extra s3: pip install 'polymargin[s3]'"
# of addresses of objects
BUCKETS = ("s3://", "gs://")


class Settings(SignInSettings):
    """Settings of an installation; the defaults suit the embedded service."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="ignore", frozen=True, populate_by_name=True
    )

    home: Path = Field(
        default_factory=lambda: Path.home() / ".polymargin",
        description="Data folder: files, the SQLite database, logs, the administrator's key.",
    )
    database_url: str = Field(
        default="",
        description="`postgresql://user:password@host/name`, or any SQLAlchemy URL of SQLite or PostgreSQL. Default: "
        "SQLite in the data folder.",
    )
    statement_seconds: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description="PostgreSQL ends statements that take longer, in seconds. If the server is silent for five more "
        "seconds, the connection is closed: requests get 503, and jobs continue on a new connection.",
    )
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="URL of the queue: `redis://host:6379/0` or `unix:///path/of/socket`. If it is not set, "
        "`polymargin up` starts a private Redis server.",
    )
    files: str = Field(
        default="",
        pattern=r"^(s3://[^/?#\s]+(/[^?#\s]*)?)?$",
        description="`s3://bucket/prefix`: object storage for datasets, models and checkpoints, so that machines need "
        "no shared folder. Each machine keeps copies of what it uses, in `POLYMARGIN_CACHE` or the data folder. Needs "
        "the extra `s3`; credentials are read as by the AWS tools. Default: files are kept in the data folder.",
    )
    files_endpoint: str = Field(
        default="",
        description="URL of an S3 server other than AWS, such as MinIO.",
    )
    admin_key: str = Field(
        default="",
        pattern=r"^(\S{32,200})?$",
        repr=False,
        description="The first administrator's key, 32 to 200 characters, for processes that share no folder with the "
        "file `admin.key`. It is read when there is no administrator yet. Default: a random key.",
    )
    cache: Path | None = Field(
        default=None,
        description="Folder on a local disk for copies of files: workers copy each dataset there once and map it from "
        "there. Use it if the data folder is on a network. Default: datasets are mapped from the data folder.",
    )
    cache_bytes: int = Field(
        default=64 << 30,
        gt=0,
        description="Maximum size of these copies in bytes; the least recently used copies are removed.",
    )
    max_upload_bytes: int = Field(
        default=8 << 30, gt=0, description="Maximum size of an uploaded dataset or archive, in bytes."
    )
    upload_seconds: float = Field(
        default=86_400.0, gt=0, description="Seconds for which an upload in pieces is kept after its last piece."
    )
    max_unpacked_bytes: int = Field(
        default=32 << 30, gt=0, description="Maximum size of an uploaded file after decompression, in bytes."
    )
    max_unpacked_ratio: float = Field(
        default=250.0,
        gt=0,
        description="Maximum ratio of decompressed to compressed size; files that exceed it and 64 MiB are rejected.",
    )
    max_classes: int = Field(
        default=500_000, gt=0, description="Maximum number of classes of a dataset; the import fails with more."
    )
    max_hierarchy_bytes: int = Field(
        default=32 << 20,
        gt=0,
        description="Maximum size of an uploaded hierarchy, in bytes; it is parsed during the request.",
    )
    max_hierarchy_nodes: int = Field(
        default=1_000_000,
        gt=0,
        le=2**31 - 1,
        description="Maximum number of nodes of a hierarchy; parsing stops when it is exceeded.",
    )
    max_hierarchy_depth: int = Field(default=1000, gt=0, description="Maximum number of levels of a hierarchy.")
    max_hierarchy_seconds: float = Field(
        default=120.0,
        gt=0,
        description="Maximum number of seconds for parsing a hierarchy; files that take longer are rejected.",
    )
    max_body_bytes: int = Field(
        default=8 << 20, gt=0, description="Maximum size of the body of any other request, in bytes."
    )
    max_instances: int = Field(default=1000, gt=0, description="Maximum number of instances in one prediction request.")
    lease_seconds: float = Field(
        default=30.0,
        gt=0,
        description="A running job without a heartbeat for this many seconds is given to another worker.",
    )
    heartbeat_seconds: float = Field(
        default=5.0,
        gt=0,
        description=(
            "Seconds between two heartbeats of a running job, which renew its lease: at most a third of "
            "`POLYMARGIN_LEASE_SECONDS`, so that a job outlives a heartbeat that fails."
        ),
    )
    sweep_seconds: float = Field(default=5.0, gt=0, description="Seconds between two sweeps of a worker.")
    notify_again_seconds: float = Field(
        default=20.0,
        gt=0,
        validation_alias=AliasChoices("POLYMARGIN_NOTIFY_AGAIN_SECONDS", "POLYMARGIN_RING_AGAIN_SECONDS"),
        description="Workers are notified again of a job that no worker has claimed for this many seconds. The old "
        "name, `POLYMARGIN_RING_AGAIN_SECONDS`, still works.",
    )
    max_attempts: int = Field(default=3, gt=0, description="A job fails once it has lost this many workers.")
    exchange_seconds: float = Field(
        default=600.0,
        gt=0,
        description="Seconds after which a shard gives up on live peers that send nothing; the job resumes from its "
        "checkpoint.",
    )
    shard_address: str | None = Field(
        default=None,
        min_length=1,
        description="Host name or IP address at which shards on other machines reach this machine. If it is set, "
        "shards exchange data directly and encrypted instead of through Redis: set it for all shards or "
        "for none. It requires the extra `pairs` (pyzmq).",
    )
    shard_ports: str = Field(
        default="49152-65535",
        pattern=r"^\d{1,5}-\d{1,5}$",
        description="First and last port on which shards listen for each other.",
    )
    job_memory_bytes: int | None = Field(
        default=None,
        gt=0,
        description="Memory limit of one job, in bytes. A job whose estimate exceeds it is rejected, and a job that "
        "allocates over 1 GiB more than the limit fails. Default: three quarters of the memory of the "
        "machine or container, divided by the number of worker processes.",
    )
    worker_niceness: int = Field(
        default=10,
        ge=0,
        le=19,
        description="Niceness of the processes that run jobs, so that predictions on the same machine do not wait "
        "for them. 0 gives jobs normal priority.",
    )
    compile_ahead: bool = Field(
        default=True,
        description="Whether `polymargin up` compiles all methods after its first start. It takes some minutes at "
        "the lowest priority; afterwards no job waits for compilation.",
    )
    checkpoint_seconds: float = Field(
        default=20.0, ge=0, description="Seconds between two checkpoints of a training job."
    )
    keep_checkpoints_seconds: float = Field(
        default=86400.0,
        ge=0,
        description="Seconds for which the checkpoint of a failed or cancelled job is kept for a retry.",
    )
    keep_deleted_seconds: float = Field(
        default=7 * 86400.0,
        ge=0,
        description="Seconds for which a deleted model version can be restored; then its files are removed.",
    )
    keep_predictions_seconds: float = Field(
        default=30 * 86400.0,
        ge=0,
        description="Seconds for which the output file of a prediction job is kept.",
    )
    keep_audit_seconds: float = Field(
        default=0.0,
        ge=0,
        description=(
            "Seconds for which entries of the audit log are kept; an entry records how many were removed. 0 "
            "keeps entries forever."
        ),
    )
    max_audit_entries: int = Field(
        default=0,
        ge=0,
        description="Maximum number of entries in the audit log of one workspace; an entry records how many older "
        "ones were removed. 0 means no limit.",
    )
    model_cache_bytes: int = Field(
        default=4 << 30, gt=0, description="Memory for loaded models in each API process, in bytes."
    )
    open_metrics: bool = Field(
        default=False,
        description=(
            "Whether `/metrics` also shows models, workspaces and their prediction counts to requests without a key."
        ),
    )
    allowed_hosts: str = Field(
        default="",
        description="Comma-separated host names at which the API answers: `api.example.org,.example.net`; `*` allows "
        "any. IP addresses, localhost and the name that the API is bound to are always allowed.",
    )
    allowed_origins: str = Field(
        default="",
        description="Comma-separated origins of other sites whose pages may send changing requests: "
        "`https://example.org`.",
    )
    trusted_proxies: str = Field(
        default="",
        description="Comma-separated addresses or networks of trusted proxies (`127.0.0.1,10.0.0.0/8`; `*`: any). "
        "The service takes the client's address and HTTPS from their headers `X-Forwarded-For` and "
        "`X-Forwarded-Proto`; list only proxies that overwrite both headers. Default: none.",
    )
    protected_aliases: str = Field(
        default="",
        description="Comma-separated aliases, such as `production`, that only administrators and keys created with "
        "`--promotes` may move or remove, in all models. Default: none.",
    )
    webhook_hosts: str = Field(
        default="",
        description="Comma-separated hosts to which webhooks may send events: `hooks.example.org,.example.net`; `*` "
        "allows any. Default: none, so no webhook can be created. Set it for workers too.",
    )
    webhook_private: bool = Field(
        default=False,
        description="Whether webhooks may reach private, local and other non-public addresses, and use plain http.",
    )
    sources: str = Field(
        default="",
        description="Comma-separated beginnings of addresses from which the service fetches files itself: "
        "`https://data.example.org/exports/,s3://lake/labels/,gs://other-lake/`. Every key that may upload can read "
        "what is there. Default: none.",
    )
    targets: str = Field(
        default="",
        description="Comma-separated beginnings of addresses to which prediction jobs may write their file: "
        "`s3://lake/answers/,gs://other-lake/`. Every key that may predict files can replace what is there. "
        "Default: none.",
    )
    sources_private: bool = Field(
        default=False,
        description="Whether these addresses may be private, local and other non-public ones.",
    )
    session_seconds: float = Field(
        default=604800.0, gt=0, description="Seconds after which a browser must sign in to the dashboard again."
    )
    head_seconds: float = Field(
        default=10.0,
        gt=0,
        description="A connection that does not send complete request headers within this many seconds is closed.",
    )
    body_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Seconds that a request body may take, plus its size divided by `POLYMARGIN_BODY_LEAST_RATE`; a "
        "pause may last ten times as long. A client that reads nothing of its response for this many "
        "seconds is disconnected.",
    )
    body_least_rate: float = Field(
        default=1024.0, gt=0, description="Minimum average rate of a request body, in bytes per second."
    )
    connections: int = Field(
        default=4096,
        gt=0,
        description="Maximum number of open connections; never more than the open-file limit minus 256.",
    )
    connections_per_address: int = Field(
        default=256,
        ge=0,
        description=(
            "Maximum number of open connections of one address; behind a proxy this is the proxy's address. 0 "
            "means no limit."
        ),
    )
    failed_keys_per_minute: float = Field(
        default=60.0,
        ge=0,
        description="Average number of unknown keys per minute that one address may send; beyond it, further unknown "
        "keys get 429. Each API process counts separately. Behind a proxy that is not in "
        "`POLYMARGIN_TRUSTED_PROXIES`, the address is the proxy's. 0 means no limit.",
    )
    protocols: str = Field(
        default="open_inference,kserve_v1,mlflow,annif,label_studio",
        description="Comma-separated protocols of other services that the API also serves; `none` disables them all.",
    )
    mlflow_model: str = Field(
        default="", description="Model that serves MLflow's `/invocations`, `/ping` and `/version` at the root."
    )
    requests_per_second: float = Field(
        default=5000.0,
        ge=0,
        description="Average request rate allowed per key, with bursts of up to one second's worth; further requests "
        "get 429 with Retry-After. Each API process counts separately. 0 means no limit.",
    )
    max_jobs: int = Field(
        default=20_000,
        ge=0,
        description="Maximum number of unfinished jobs per workspace; further jobs get 429. 0 means no limit.",
    )
    max_stored_bytes: int = Field(
        default=1 << 40,
        ge=0,
        description="Maximum size of uploaded datasets and model versions in one workspace, in bytes. Uploads beyond "
        "it, and jobs that would create a version, get 507; jobs whose version does not fit when they end fail. "
        "Deleted versions count until they can no longer be restored. 0 means no limit.",
    )
    log_level: str = Field(default="info", description="`debug`, `info`, `warning` or `error`.")
    trace_endpoint: str = Field(
        default="",
        description="OTLP/HTTP endpoint for traces of requests and jobs, for example "
        "`http://127.0.0.1:4318/v1/traces`; requires `pip install 'polymargin[otel]'`. Default: no "
        "tracing.",
    )

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if url and url.partition(":")[0].partition("+")[0] not in ("sqlite", "postgresql", "postgres"):
            raise ValueError("expected a URL of PostgreSQL or SQLite, for example postgresql://user:password@host/name")
        return url

    @field_validator("files", "sources", "targets")
    @classmethod
    def _has_client_of_buckets(cls, addresses: str) -> str:
        if "s3://" in addresses and find_spec("boto3") is None:
            raise ValueError(NO_CLIENT)
        if "gs://" in addresses and not _has_google_client():
            raise ValueError("addresses gs:// need the extra gs: pip install 'polymargin[gs]'")
        return addresses

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, level: str) -> str:
        if level.upper() not in logging.getLevelNamesMapping():
            raise ValueError("expected debug, info, warning or error")
        return level

    @model_validator(mode="after")
    def _lease_outlives_heartbeats(self) -> Self:
        if self.lease_seconds < _HEARTBEATS_PER_LEASE * self.heartbeat_seconds:
            raise ValueError(
                f"{PREFIX}LEASE_SECONDS ({self.lease_seconds:g}) must be at least {_HEARTBEATS_PER_LEASE} times "
                f"{PREFIX}HEARTBEAT_SECONDS ({self.heartbeat_seconds:g}): heartbeats renew the lease of a running job"
            )
        return self

    @property
    def sqlalchemy_url(self) -> str:
        """The database's URL; a plain postgresql:// URL gets psycopg 3 as its driver."""
        url = self.database_url or f"sqlite:///{self.home / 'polymargin.db'}"
        if url.startswith("postgres://"):
            url = "postgresql://" + url.removeprefix("postgres://")
        return url.replace("postgresql://", "postgresql+psycopg://", 1)

    @property
    def shard_port_range(self) -> tuple[int, int]:
        """The first and the last port on which shards may listen."""
        first, last = map(int, self.shard_ports.split("-"))
        return first, last

    @property
    def files_folder(self) -> Path:
        """The folder of datasets, checkpoints and models, or in which a machine works on those in a bucket."""
        return self.home / "files"

    @property
    def admin_key_file(self) -> Path:
        """The file to which the first start writes the administrator's key."""
        return self.home / "admin.key"

    @property
    def restoring_file(self) -> Path:
        """The file that exists while a restore runs."""
        return self.home / ".restoring"


def _has_google_client() -> bool:
    try:
        return find_spec("google.cloud.storage") is not None
    except ModuleNotFoundError:  # no package of Google's at all
        return False


@lru_cache
def settings() -> Settings:
    """The process's settings, read once.

    Raises
    ------
    SettingsError
        Environment variables have invalid values; the message does not repeat them.
    """
    try:
        return Settings()
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise SettingsError("; ".join(map(_fault_text, faults))) from None


def misspelt(names: Iterable[str]) -> list[str]:
    """Warnings about variables whose names resemble a setting but are not one."""
    known = [name.upper() for name in Settings.model_fields] + ["RING_AGAIN_SECONDS", *_OTHERS]
    given = [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
    near = {name: difflib.get_close_matches(name, known, 1, 0.85) for name in given if name not in known}
    return [
        f"{PREFIX}{name} is not a setting; did you mean {PREFIX}{found[0]}?" for name, found in near.items() if found
    ]


def _fault_text(fault: Any) -> str:
    text = str(fault["msg"]).removeprefix("Value error, ")
    if not fault["loc"]:  # several settings do not fit together; the text names them
        return text
    name = str(fault["loc"][-1]).upper().removeprefix(PREFIX)
    return f"{PREFIX}{name}: {text}"
