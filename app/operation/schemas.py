"""Schemas of health and status."""

from typing import Literal

from pydantic import BaseModel, Field

from app.jobs.schemas import Job


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"
    version: str


class Readiness(BaseModel):
    """Whether each part that a request may need is there."""

    ready: bool
    database: str
    queue: str
    workers: str


class CurvePoint(BaseModel):
    """One point of a job's convergence curve."""

    seconds: float = Field(description="Training time so far.")
    gap: float | None = Field(description="(primal - dual) / primal.")
    primal: float | None


class RunningJob(BaseModel):
    """A job that a worker has, with its curve."""

    job: Job
    curve: list[CurvePoint] = Field(description="The latest 200 steps.")


class Queue(BaseModel):
    """The workers of one queue, and what they have to do."""

    name: str = Field(description="general, or that of a pool of class shards: shard-0, shard-1, ...")
    processes: int = Field(description="Jobs, or shards, that its workers can run at the same time.")
    busy: int = Field(description="How many they run.")
    waiting: int = Field(description="Jobs that wait for it.")


class Room(BaseModel):
    """Disk or memory, in bytes."""

    total_bytes: int
    free_bytes: int


class Attention(BaseModel):
    """Something that does not go as it should."""

    kind: Literal["job_failed", "dataset_failed", "no_workers", "disk_full"]
    detail: str
    id: str | None = Field(default=None, description="Of the job or dataset.")
    name: str | None = Field(default=None, description="Of the job's model, or of the dataset.")


class Status(BaseModel):
    """What goes on in the service now."""

    version: str
    jobs: dict[str, int] = Field(description="State -> number of jobs.")
    running: list[RunningJob] = Field(description="The newest twenty.")
    queued: list[Job] = Field(description="The newest twenty.")
    queues: list[Queue]
    disk: Room = Field(description="Where the data folder is.")
    memory: Room = Field(description="Of the machine that answers; free: without making others write to disk.")
    n_datasets: int
    n_hierarchies: int
    n_models: int
    attention: list[Attention] = Field(description="Of the jobs and datasets of the last day, the newest ten.")
