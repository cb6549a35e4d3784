"""What a training job will take."""

from typing import Generic, TypeVar

from pydantic import BaseModel, Field

N = TypeVar("N", int, float)


class ShardPlan(BaseModel):
    """The share of one shard."""

    shard: int
    pool: str | None = Field(description="The pool that comes next for it; absent where there are too few.")
    classes: int = Field(description="Of an output code: its columns.")
    examples: int = Field(
        description="Training rows of these classes, or the sum of those that take part in each column; every shard "
        "reads all rows."
    )
    memory_bytes: int | None = Field(
        description="Of the arrays of this shard; absent for texts, whose features are known only in training."
    )


class Span(BaseModel, Generic[N]):
    """From the least to the most; both the same where it can be counted."""

    least: N
    most: N


class Assumptions(BaseModel):
    """What the prediction takes for granted."""

    batch: Span[float] = Field(description="Rows a round, on average; depends on the data.")
    once: Span[float] = Field(
        description="Bytes of a row in an epoch that travel once, however many shards there are; depends on the data."
    )
    message: Span[float] = Field(
        description="Bytes that every further shard adds for a row in an epoch, where it has very many classes; "
        "depends on the data."
    )
    products: float = Field(description="Multiply-adds a thread does in a second.")
    bandwidth: float = Field(description="Bytes a second between a shard and Redis.")
    round_trip: float = Field(description="Seconds of a round without its bytes.")


class EarlierJobs(BaseModel):
    """Trainings of the same dataset by the same method that have succeeded, the latest ten."""

    n_jobs: int
    seconds: Span[float] = Field(description="From the start of a job to its end.")


class JobPlan(BaseModel):
    """How a job would be dealt to its shards, and what an epoch over all rows would cost; what is unknown is absent."""

    shards: list[ShardPlan] = Field(description="None of a job without shards.")
    pools: int = Field(description="Pools that are running now; a job needs one for each shard.")
    rounds_per_epoch: Span[int] | None = Field(description="The job's steps tell how many there were.")
    bytes_per_epoch: Span[int] | None = Field(description="Sent by all shards together.")
    seconds_per_epoch: Span[float] | None = Field(
        description="Computing and exchange; absent for texts, and of methods that cannot be counted."
    )
    seconds_without_shards: float | None = Field(
        default=None, description="Computing of an epoch in one worker, by the same rates; absent as the seconds are."
    )
    advice: str | None = Field(
        default=None, description="Where shards do not pay, or may not: why. By the seconds of an epoch, not by memory."
    )
    assumptions: Assumptions | None
    memory_bytes: int | None = Field(
        default=None,
        description="Of all arrays of a job without shards; absent for texts, and of methods that cannot be counted.",
    )
    earlier: EarlierJobs | None = Field(default=None, description="How long a job of this kind takes; absent if none.")
