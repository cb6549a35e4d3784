"""Commands: webhooks."""

from typing import Annotated, cast, get_args

import typer

from app.command_line.connection import connect
from app.command_line.output import Json, print_result, table
from app.webhooks.schemas import Event, NewWebhook, Webhook

webhooks = typer.Typer(help="Notify other programs of events (administrators only).", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Name or id.")]


@webhooks.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the webhook.")],
    url: Annotated[str, typer.Argument(help="https URL whose host POLYMARGIN_WEBHOOK_HOSTS allows.")],
    events: Annotated[
        list[str], typer.Option("--event", help=f"Event to send; may be repeated: {', '.join(get_args(Event))}.")
    ],
    json: Json = False,
) -> None:
    """Create a webhook; its secret is shown only once."""
    made = connect().webhooks.create(name, url, cast(list[Event], events))
    _show(made, json)


@webhooks.command("list")
def list_(json: Json = False) -> None:
    """List the newest webhooks, without their secrets."""
    page = connect().webhooks.list()
    rows = [(each.name, each.url, ", ".join(each.events), each.n_waiting, each.n_failed) for each in page.items]
    print_result(page, table(["name", "url", "events", "waiting", "failed"], rows), json)


@webhooks.command()
def show(webhook: Ref, json: Json = False) -> None:
    """Show a webhook, without its secret."""
    found = connect().webhooks.get(webhook)
    _show(found, json)


@webhooks.command()
def delete(webhook: Ref, json: Json = False) -> None:
    """Delete a webhook with its deliveries; nothing more is sent."""
    connect().webhooks.delete(webhook)
    print_result({"deleted": webhook}, f"Deleted {webhook}", json)


@webhooks.command()
def rotate(webhook: Ref, json: Json = False) -> None:
    """Replace the secret, which is shown only once; the former one signs deliveries as well for 24 hours."""
    made = connect().webhooks.rotate_secret(webhook)
    _show(made, json)


@webhooks.command()
def retry(
    webhook: Ref,
    delivery: Annotated[str, typer.Argument(metavar="DELIVERY", help="Id, as deliveries lists it.")],
    json: Json = False,
) -> None:
    """Send a delivery again immediately, even if it failed for good or succeeded."""
    found = connect().webhooks.retry(webhook, delivery)
    print_result(found, f"Waiting: {found.id}", json)


@webhooks.command()
def deliveries(
    webhook: Ref,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Number of deliveries to show.")] = 50,
    json: Json = False,
) -> None:
    """List deliveries, newest first."""
    page = connect().webhooks.deliveries(webhook, page_size=limit)
    rows = [
        (each.id, f"{each.created_at:%F %T}", each.event, each.state, each.attempts,
         each.status, each.error)
        for each in page.items
    ]  # fmt: skip
    print_result(page, table(["id", "when (UTC)", "event", "state", "attempts", "status", "error"], rows), json)


def _show(webhook: Webhook, json: bool) -> None:
    rows = [("url", webhook.url), ("events", ", ".join(webhook.events)), ("waiting", str(webhook.n_waiting))]
    rows.append(("failed", str(webhook.n_failed)))
    if isinstance(webhook, NewWebhook):
        rows.append(("secret", webhook.secret))
    print_result(webhook, table(["webhook", webhook.name], rows), json)
