"""Rules of a remote service that train models again."""

from collections.abc import Mapping
from typing import Any

import orjson

from app.remote.transport import Transport
from app.schemas.common.pages import Page
from app.schemas.rules.rules import Rule, RuleRun


class Rules:
    """What starts trainings by itself."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(self, name: str, model: str, **options: Any) -> Rule:
        """Make a rule.

        Parameters
        ----------
        name, model : str
        **options
            The other fields of app.schemas.rules.rules.RuleRequest: cron, time_zone, feedback_rows, feedback, dataset,
            training, warm, promote.

        Raises
        ------
        ConflictError
            The name is taken.
        InvalidInputError
            Nothing would start it, or the model cannot be trained so.
        """
        given: Mapping[str, Any] = {name: value for name, value in options.items() if value is not None}
        return self._transport.post(Rule, "/rules", {"name": name, "model": model, **given})

    def get(self, rule: str) -> Rule:
        return self._transport.get(Rule, f"/rules/{rule}")

    def list(self, page_size: int = 50, page_token: str | None = None) -> Page[Rule]:
        """One page, newest first."""
        return self._transport.get(Page[Rule], "/rules", page_size=page_size, page_token=page_token)

    def enable(self, rule: str, enabled: bool = True) -> Rule:
        """Switch a rule on, or off."""
        body, headers = orjson.dumps({"enabled": enabled}), {"Content-Type": "application/json"}
        response = self._transport.send("PATCH", f"/rules/{rule}", content=body, headers=headers)
        return Rule.model_validate_json(response.content)

    def delete(self, rule: str) -> None:
        """Delete a rule; what it has begun goes on."""
        self._transport.send("DELETE", f"/rules/{rule}")

    def start(self, rule: str) -> RuleRun:
        """Start a rule now; raises ConflictError while a run of it is not over."""
        return self._transport.post(RuleRun, f"/rules/{rule}/runs")

    def runs(self, rule: str, page_size: int = 50, page_token: str | None = None) -> Page[RuleRun]:
        """One page of what a rule has done, newest first."""
        return self._transport.get(Page[RuleRun], f"/rules/{rule}/runs", page_size=page_size, page_token=page_token)
