"""Settings, all from the environment (prefix POLYMARGIN_); docs/reference/settings.md explains them."""

import difflib
import logging
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from app.errors import SettingsError

_PREFIX = "POLYMARGIN_"
# variables that the client and the command line read
_OTHERS = ("URL", "API_KEY")


class Settings(BaseSettings):
    """What an installation may choose; the defaults are those of the embedded service."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="ignore", frozen=True, populate_by_name=True)

    home: Path = Field(
        default_factory=lambda: Path.home() / ".polymargin",
        description="Data folder: files, the SQLite database, logs, the administrator's key.",
    )
    database_url: str = Field(
        default="",
        description="`postgresql://user:password@host/name`, or any SQLAlchemy URL of SQLite or PostgreSQL. Not set: "
        "SQLite in the data folder.",
    )
    statement_seconds: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description="PostgreSQL ends a statement that takes longer; where it says nothing for five seconds more, the "
        "connection is given up: requests get 503, jobs go on by a new one.",
    )
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="The queue: `redis://host:6379/0`, or `unix:///path/of/socket`. `polymargin up` starts a private "
        "one where this is not set.",
    )
    cache: Path | None = Field(
        default=None,
        description="A folder on this machine's own disk: workers copy datasets there once and map them from there. "
        "For a data folder that is shared over a network. Not set: they are mapped from the data folder.",
    )
    cache_bytes: int = Field(
        default=64 << 30, gt=0, description="Most bytes of such copies; those used least recently are removed."
    )
    max_upload_bytes: int = Field(
        default=8 << 30, gt=0, description="Largest upload of a dataset or an archive, in bytes."
    )
    upload_seconds: float = Field(
        default=86_400.0, gt=0, description="How long an upload in pieces is kept after the last piece, in seconds."
    )
    max_unpacked_bytes: int = Field(
        default=32 << 30, gt=0, description="Largest content of an uploaded file that is compressed, in bytes."
    )
    max_unpacked_ratio: float = Field(
        default=250.0,
        gt=0,
        description="A compressed file that comes to more than so many times its size, and to more than 64 MiB, is "
        "refused.",
    )
    max_classes: int = Field(
        default=500_000, gt=0, description="Most classes of a dataset; its import fails with more."
    )
    max_hierarchy_bytes: int = Field(
        default=32 << 20,
        gt=0,
        description="Largest upload of a hierarchy, in bytes; it is read while its answer is waited for.",
    )
    max_hierarchy_nodes: int = Field(
        default=1_000_000, gt=0, le=2**31 - 1, description="Most nodes of a hierarchy; reading ends at the first more."
    )
    max_hierarchy_depth: int = Field(default=1000, gt=0, description="Most levels of a hierarchy.")
    max_hierarchy_seconds: float = Field(
        default=120.0, gt=0, description="A hierarchy whose file takes longer to read is refused."
    )
    max_body_bytes: int = Field(default=8 << 20, gt=0, description="Largest body of any other request, in bytes.")
    max_instances: int = Field(default=1000, gt=0, description="Most instances in one prediction request.")
    lease_seconds: float = Field(
        default=30.0, gt=0, description="A running job that was not heard of for so long is given to another worker."
    )
    heartbeat_seconds: float = Field(
        default=5.0,
        gt=0,
        description="Time between two heartbeats of a running job, which renew its lease; keep it well below that.",
    )
    sweep_seconds: float = Field(default=5.0, gt=0, description="Time between two sweeps of a worker.")
    notify_again_seconds: float = Field(
        default=20.0,
        gt=0,
        validation_alias=AliasChoices("POLYMARGIN_NOTIFY_AGAIN_SECONDS", "POLYMARGIN_RING_AGAIN_SECONDS"),
        description="Workers are notified again of a queued job that none took for so long. The name of earlier "
        "versions, `POLYMARGIN_RING_AGAIN_SECONDS`, is still read.",
    )
    max_attempts: int = Field(default=3, gt=0, description="A job that lost so many workers fails.")
    exchange_seconds: float = Field(
        default=600.0,
        gt=0,
        description="A shard whose peers live but send nothing for so long gives up; the job goes on from its "
        "checkpoint.",
    )
    shard_address: str | None = Field(
        default=None,
        min_length=1,
        description="Name or IP address of this machine, as the shards of a job on other machines reach it. Where it "
        "is set shards send what they exchange to each other, encrypted, and not through Redis: for all shards or "
        "none. It needs the extra `pairs` (pyzmq).",
    )
    shard_ports: str = Field(
        default="49152-65535",
        pattern=r"^\d{1,5}-\d{1,5}$",
        description="The first and the last port on which shards may listen for each other.",
    )
    job_memory_bytes: int | None = Field(
        default=None,
        gt=0,
        description="Memory that one job may take, in bytes: one whose estimate is above it is refused, and "
        "allocations that go more than 1 GiB beyond it fail the job. Not set: three quarters of the machine's or "
        "container's, divided by the worker's processes.",
    )
    worker_niceness: int = Field(
        default=10,
        ge=0,
        le=19,
        description="By how much processes that run jobs give way to others of the machine, so that predictions beside "
        "them do not wait; 0: not at all.",
    )
    compile_ahead: bool = Field(
        default=True,
        description="Whether `polymargin up` compiles the loops of all methods after its first start, at the lowest "
        "priority of the processor: some minutes, after which no first job waits for a compiler.",
    )
    checkpoint_seconds: float = Field(default=20.0, ge=0, description="Time between two checkpoints of a training job.")
    keep_checkpoints_seconds: float = Field(
        default=86400.0,
        ge=0,
        description="The checkpoint of a failed or cancelled job is kept for so long, for a retry.",
    )
    keep_deleted_seconds: float = Field(
        default=7 * 86400.0,
        ge=0,
        description="A deleted version of a model can be brought back for so long; then its files are removed.",
    )
    keep_predictions_seconds: float = Field(
        default=30 * 86400.0,
        ge=0,
        description="The file that a prediction job has made is kept for so long.",
    )
    keep_audit_seconds: float = Field(
        default=0.0,
        ge=0,
        description="Entries of the audit log are kept for so long; an entry tells how many were removed. 0: ever.",
    )
    max_audit_entries: int = Field(
        default=0,
        ge=0,
        description="Most entries of the audit log of one workspace; an entry tells how many older ones were removed. "
        "0: any number.",
    )
    model_cache_bytes: int = Field(
        default=4 << 30, gt=0, description="Memory for loaded models in one API process, in bytes."
    )
    allowed_hosts: str = Field(
        default="",
        description="Names by which the API may be asked, with commas between: `api.example.org,.example.net`; `*` for "
        "any. Addresses, localhost and the name that it is bound to always are.",
    )
    allowed_origins: str = Field(
        default="",
        description="Origins whose pages may ask for changes beside the API's own, with commas between: "
        "`https://example.org`.",
    )
    trusted_proxies: str = Field(
        default="",
        description="Proxies, by address or network with commas between (`127.0.0.1,10.0.0.0/8`; `*`: any), that are "
        "believed from where a request came and whether by HTTPS (`X-Forwarded-For`, `X-Forwarded-Proto`); name only "
        "what sets both anew. Not set: none.",
    )
    session_seconds: float = Field(
        default=604800.0, gt=0, description="After so long a browser has to sign in to the dashboard again."
    )
    head_seconds: float = Field(
        default=10.0, gt=0, description="A connection that sends no whole head of a request for so long is closed."
    )
    body_seconds: float = Field(
        default=30.0,
        gt=0,
        description="A body takes at most so long and what `POLYMARGIN_BODY_LEAST_RATE` gives it; a client that reads "
        "nothing of its answer for so long is cut off.",
    )
    body_least_rate: float = Field(
        default=1024.0, gt=0, description="Bytes a second that a body comes at, in the mean."
    )
    connections: int = Field(
        default=4096,
        gt=0,
        description="Most open connections; never more than the limit of open files less 256.",
    )
    connections_per_address: int = Field(
        default=256,
        ge=0,
        description="Most open connections of one address; behind any proxy that is the proxy's. 0: any.",
    )
    failed_keys_per_minute: float = Field(
        default=60.0,
        ge=0,
        description="Keys that are not known, from one address, in the mean; then new keys from there get 429. Each "
        "API process counts by itself; behind a proxy that `POLYMARGIN_TRUSTED_PROXIES` does not name the address is "
        "the proxy's. 0: any number.",
    )
    protocols: str = Field(
        default="open_inference,kserve_v1,mlflow,annif,label_studio",
        description="The protocols of other services that are spoken beside the API's own, with commas between; `none` "
        "for none.",
    )
    mlflow_model: str = Field(
        default="", description="The model that MLflow's `/invocations`, `/ping` and `/version` at the root mean."
    )
    requests_per_second: float = Field(
        default=5000.0,
        ge=0,
        description="Of one key, in the mean, with up to a second's at once; more get 429 and when to come again. Each "
        "API process counts by itself. 0: any number.",
    )
    max_jobs: int = Field(
        default=20_000, ge=0, description="Jobs of one workspace that are not over; more get 429. 0: any number."
    )
    max_stored_bytes: int = Field(
        default=1 << 40,
        ge=0,
        description="Bytes of uploaded datasets and of versions of models in one workspace; what does not fit gets "
        "507, and no job is taken that would make a version. 0: any number.",
    )
    log_level: str = Field(default="info", description="`debug`, `info`, `warning` or `error`.")
    trace_endpoint: str = Field(
        default="",
        description="Where spans of requests and jobs are sent by OTLP over HTTP, as "
        "`http://127.0.0.1:4318/v1/traces`; needs `pip install 'polymargin[otel]'`. Not set: nothing is traced.",
    )

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, url: str) -> str:
        if url and url.partition(":")[0].partition("+")[0] not in ("sqlite", "postgresql", "postgres"):
            raise ValueError("a URL of PostgreSQL or SQLite was expected, as postgresql://user:password@host/name")
        return url

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, level: str) -> str:
        if level.upper() not in logging.getLevelNamesMapping():
            raise ValueError("debug, info, warning or error was expected")
        return level

    @property
    def sqlalchemy_url(self) -> str:
        """The database's URL, with psycopg 3 named for a plain postgresql:// one."""
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
    def files(self) -> Path:
        """The folder of datasets, checkpoints and models."""
        return self.home / "files"

    @property
    def admin_key_file(self) -> Path:
        """Where the first start writes the administrator's key."""
        return self.home / "admin.key"

    @property
    def restoring_file(self) -> Path:
        """What is there from the beginning of a restore to its end."""
        return self.home / ".restoring"


@lru_cache
def settings() -> Settings:
    """The process's settings, read once.

    Raises
    ------
    SettingsError
        Variables of the environment have values that they cannot have; their values are not repeated.
    """
    try:
        return Settings()
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        raise SettingsError("; ".join(map(_told, faults))) from None


def misspelt(names: Iterable[str]) -> list[str]:
    """What to say of variables that are nearly called as a setting is, which nobody reads."""
    known = [name.upper() for name in Settings.model_fields] + ["RING_AGAIN_SECONDS", *_OTHERS]
    given = [name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX)]
    near = {name: difflib.get_close_matches(name, known, 1, 0.85) for name in given if name not in known}
    return [f"{_PREFIX}{name} is no setting; {_PREFIX}{found[0]} is one" for name, found in near.items() if found]


def _told(fault: Any) -> str:
    name = str(fault["loc"][-1]).upper().removeprefix(_PREFIX)
    return f"{_PREFIX}{name}: {fault['msg'].removeprefix('Value error, ')}"
