"""Routes of webhooks."""

from fastapi import APIRouter, Response

from app.access.authentication import ADMIN
from app.http.bodies import Body
from app.http.parameters import V1, Db, Id, PageSize, PageToken, Ref
from app.http.problems import responses
from app.schemas import Page
from app.webhooks import service as webhooks
from app.webhooks.schemas import Delivery, NewWebhook, Webhook, WebhookRequest

router = APIRouter(prefix=f"{V1}/webhooks", tags=["webhooks"], dependencies=[ADMIN])


@router.get("")
def list_webhooks(session: Db, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Webhook]:
    """List webhooks, newest first, without their secrets."""
    return webhooks.page(session, page_size, page_token)


@router.post("", status_code=201, responses=responses(409))
def create_webhook(session: Db, response: Response, body: Body[WebhookRequest]) -> NewWebhook:
    """Create a webhook. Only this response shows its secret, so a repeated request with the same name is refused."""
    made = webhooks.create(session, body)
    response.headers["Cache-Control"] = "no-store"
    response.headers["Location"] = f"{V1}/webhooks/{made.name}"
    return made


@router.get("/{ref}")
def get_webhook(session: Db, ref: Ref) -> Webhook:
    """Get a webhook by id or name, without its secret."""
    return webhooks.get(session, ref)


@router.delete("/{ref}", status_code=204)
def delete_webhook(session: Db, ref: Ref) -> None:
    """Delete a webhook with its deliveries; nothing more is sent."""
    webhooks.delete(session, ref)


@router.post("/{ref}/secret")
def rotate_webhook_secret(session: Db, response: Response, ref: Ref) -> NewWebhook:
    """Replace the secret of a webhook; only this response shows the new one. Both sign deliveries for 24 hours."""
    made = webhooks.rotate_secret(session, ref)
    response.headers["Cache-Control"] = "no-store"
    return made


@router.post("/{ref}/deliveries/{id}/retry", status_code=202)
def retry_delivery(session: Db, ref: Ref, id: Id) -> Delivery:
    """Send a delivery again immediately, even if it failed for good or succeeded."""
    return webhooks.retry(session, ref, id)


@router.get("/{ref}/deliveries")
def list_deliveries(session: Db, ref: Ref, page_size: PageSize = 100, page_token: PageToken = None) -> Page[Delivery]:
    """List the deliveries of a webhook, newest first, with the result of the last attempt."""
    return webhooks.deliveries(session, ref, page_size, page_token)
