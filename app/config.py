"""Settings, all from the environment (prefix POLYMARGIN_); docs/configuration.md lists every one."""

from functools import lru_cache
from pathlib import Path

from pydantic import AliasChoices, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What an installation may choose; the defaults are those of the embedded service."""

    model_config = SettingsConfigDict(env_prefix="POLYMARGIN_", extra="ignore", frozen=True, populate_by_name=True)

    home: Path = Field(default_factory=lambda: Path.home() / ".polymargin", description="Data folder.")
    database_url: str = Field(default="", description="SQLAlchemy URL; empty: SQLite in the data folder.")
    redis_url: str = Field(default="redis://127.0.0.1:6379/0", description="Broker; redis:// or unix:// with a path.")
    cache: Path | None = Field(
        default=None, description="Folder on this machine's disk for copies of datasets' arrays; by default none."
    )
    cache_bytes: int = Field(default=64 << 30, gt=0, description="Most bytes of such copies.")
    max_upload_bytes: int = Field(default=8 << 30, gt=0, description="Largest dataset upload, bytes.")
    max_hierarchy_bytes: int = Field(default=32 << 20, gt=0, description="Largest hierarchy upload, bytes.")
    max_body_bytes: int = Field(default=8 << 20, gt=0, description="Largest body of any other request, bytes.")
    max_instances: int = Field(default=1000, gt=0, description="Most instances in one prediction request.")
    lease_seconds: float = Field(default=30.0, gt=0, description="A job unheard of for so long is given to another.")
    heartbeat_seconds: float = Field(default=5.0, gt=0, description="Time between two signs of life of a job.")
    sweep_seconds: float = Field(default=5.0, gt=0, description="Time between two sweeps of a worker.")
    notify_again_seconds: float = Field(
        default=20.0,
        gt=0,
        validation_alias=AliasChoices("POLYMARGIN_NOTIFY_AGAIN_SECONDS", "POLYMARGIN_RING_AGAIN_SECONDS"),
        description="Workers are notified again of a job queued so long; the second name is that of earlier versions.",
    )
    max_attempts: int = Field(default=3, gt=0, description="Attempts after which a job that loses its worker fails.")
    exchange_seconds: float = Field(
        default=600.0, gt=0, description="A shard that waits so long for its peers in one round gives up."
    )
    checkpoint_seconds: float = Field(default=20.0, ge=0, description="Time between two checkpoints of a job.")
    keep_checkpoints_seconds: float = Field(
        default=86400.0, ge=0, description="A failed or cancelled job's checkpoint is kept so long for a retry."
    )
    model_cache_bytes: int = Field(default=4 << 30, gt=0, description="Memory for loaded models in one API process.")
    log_level: str = Field(default="info", description="debug, info, warning or error.")

    @property
    def sqlalchemy_url(self) -> str:
        """The database's URL, with psycopg 3 named for a plain postgresql:// one."""
        url = self.database_url or f"sqlite:///{self.home / 'polymargin.db'}"
        if url.startswith("postgres://"):
            url = "postgresql://" + url.removeprefix("postgres://")
        return url.replace("postgresql://", "postgresql+psycopg://", 1)

    @property
    def files(self) -> Path:
        """The folder of datasets, checkpoints and models."""
        return self.home / "files"

    @property
    def admin_key_file(self) -> Path:
        """Where the first start writes the administrator's key."""
        return self.home / "admin.key"


@lru_cache
def settings() -> Settings:
    """The process's settings, read once."""
    return Settings()
