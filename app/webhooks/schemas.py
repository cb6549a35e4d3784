"""Schemas of webhooks and their deliveries."""

from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

from app.schemas import Name

Event = Literal["job.succeeded", "job.failed", "job.cancelled", "model.promoted", "review.dry", "review.precision_low"]


class WebhookRequest(BaseModel):
    """A URL that receives events as signed requests."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Name of the webhook.")
    url: str = Field(
        max_length=2000,
        description="Where events are sent by POST: an https URL whose host `POLYMARGIN_WEBHOOK_HOSTS` allows.",
    )
    events: list[Event] = Field(
        min_length=1,
        max_length=20,
        description="Events to send: the end of a job, an alias that moves to a version (`model.promoted`), a review "
        "queue without open rows (`review.dry`), and sure rows that are right less often than promised "
        "(`review.precision_low`).",
    )

    @field_validator("events")
    @classmethod
    def _unique(cls, events: list[Event]) -> list[Event]:
        return sorted(set(events))


class Webhook(BaseModel):
    id: str
    name: str
    owner: str | None
    url: str
    events: list[Event]
    created_at: AwareDatetime
    n_waiting: int = Field(description="Deliveries that are waiting for a first or another attempt.")
    n_failed: int = Field(description="Deliveries that failed for good.")


class NewWebhook(Webhook):
    """A new webhook; its secret is shown only once."""

    secret: str = Field(description="`whsec_` and the key of the signatures in base64.")


class Delivery(BaseModel):
    """One event for one webhook, and the state of its delivery."""

    id: str = Field(description="Sent as `webhook-id`: the same in each attempt.")
    event: Event
    payload: dict[str, Any] = Field(description="The JSON that is sent.")
    state: Literal["waiting", "delivered", "failed"]
    attempts: int
    next_attempt_at: AwareDatetime | None
    status: int | None = Field(description="HTTP status of the last attempt.")
    error: str | None = Field(description="Why the last attempt failed.")
    created_at: AwareDatetime
    delivered_at: AwareDatetime | None
