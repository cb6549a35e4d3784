"""Schemas of health and status."""

from typing import Literal

from pydantic import BaseModel, Field

from app.jobs.schemas import Job


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str


class Readiness(BaseModel):
    """Whether each part that a request may need is available."""

    ready: bool
    database: str
    queue: str
    workers: str
    storage: str = Field(
        default="ok", description="ok, or why object storage cannot be used; models in memory answer nevertheless."
    )


class CurvePoint(BaseModel):
    """One point of a job's convergence curve."""

    seconds: float = Field(description="Training time so far, in seconds.")
    gap: float | None = Field(description="Relative duality gap, (primal - dual) / primal.")
    primal: float | None


class RunningJob(BaseModel):
    """A job that a worker is running, with its curve."""

    job: Job
    curve: list[CurvePoint] = Field(description="The latest 200 steps.")


class Queue(BaseModel):
    """The workers of one queue and their load."""

    name: str = Field(description="Name of the queue: general, or a pool of class shards (shard-0, shard-1, ...).")
    processes: int = Field(description="Number of jobs or shards that its workers can run at the same time.")
    busy: int = Field(description="Number of jobs or shards that they are running.")
    waiting: int = Field(description="Number of waiting jobs.")


class Room(BaseModel):
    """Disk or memory, in bytes."""

    total_bytes: int
    free_bytes: int


class Attention(BaseModel):
    """A problem that needs attention."""

    kind: Literal["job_failed", "dataset_failed", "no_workers", "disk_full", "object_storage"]
    detail: str
    id: str | None = Field(default=None, description="Id of the job or dataset.")
    name: str | None = Field(default=None, description="Name of the job's model, or of the dataset.")


class Status(BaseModel):
    """Current activity of the service."""

    version: str
    jobs: dict[str, int] = Field(description="State -> number of jobs.")
    running: list[RunningJob] = Field(description="The newest twenty.")
    queued: list[Job] = Field(description="The newest twenty.")
    queues: list[Queue]
    disk: Room = Field(description="Disk of the data folder.")
    memory: Room = Field(description="Memory of the responding machine; free is what can be used without swapping.")
    n_datasets: int
    n_hierarchies: int
    n_models: int
    attention: list[Attention] = Field(description="Problems of the last day's jobs and datasets, the newest ten.")
