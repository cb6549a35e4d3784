"""Webhooks of a remote service; only an administrator's key may manage them."""

from collections.abc import Sequence

from app.remote.transport import Resource
from app.schemas import Page
from app.webhooks.schemas import Delivery, Event, NewWebhook, Webhook


class Webhooks(Resource):
    """URLs that get events."""

    def create(self, name: str, url: str, events: Sequence[Event]) -> NewWebhook:
        """Create a webhook; its secret is in this answer and nowhere else.

        Raises
        ------
        InvalidInputError
            The service's settings do not allow the URL.
        ConflictError
            The name is taken.
        """
        return self._transport.post(NewWebhook, "/webhooks", {"name": name, "url": url, "events": list(events)})

    def get(self, webhook: str) -> Webhook:
        return self._transport.get(Webhook, f"/webhooks/{webhook}")

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[Webhook]:
        """One page, newest first."""
        return self._transport.get(Page[Webhook], "/webhooks", page_size=page_size, page_token=page_token)

    def delete(self, webhook: str) -> None:
        """Delete a webhook with its deliveries."""
        self._transport.send("DELETE", f"/webhooks/{webhook}")

    def rotate_secret(self, webhook: str) -> NewWebhook:
        """Replace the secret; the new one is in this answer and nowhere else. Both sign deliveries for 24 hours."""
        return self._transport.post(NewWebhook, f"/webhooks/{webhook}/secret")

    def retry(self, webhook: str, delivery: str) -> Delivery:
        """Send a delivery again immediately, even if it failed for good or succeeded."""
        return self._transport.post(Delivery, f"/webhooks/{webhook}/deliveries/{delivery}/retry")

    def deliveries(self, webhook: str, page_size: int = 50, page_token: str | None = None) -> Page[Delivery]:
        """One page of what was or is to be sent, newest first."""
        path = f"/webhooks/{webhook}/deliveries"
        return self._transport.get(Page[Delivery], path, page_size=page_size, page_token=page_token)
