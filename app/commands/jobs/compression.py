"""``polymargin models compress``."""

from typing import Annotated, Any

import typer

from app.client import Polymargin
from app.commands.common.output import Json, console, print_json, table
from app.commands.common.request_fields import fields_of, request_of
from app.commands.common.watching import watch as watch_job
from app.commands.models.copies import copy_facts
from app.schemas.jobs.compression import CompressRequest
from app.schemas.models.models import ModelVersion


@fields_of(CompressRequest, arguments=["model"], leave=["kind"])
def compress(
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the job, and show what the copy loses.")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Make a smaller copy of a version: half precision, small weights set to zero, or both; its loss is measured."""
    with Polymargin() as client:
        job = client.jobs.submit(request_of(CompressRequest, given) | {"kind": "compress"})
        if watch:
            job = watch_job(job, console(json))
            assert job.result is not None
            assert job.result.model is not None
            assert job.result.version is not None
            found = client.models.version(job.result.model, job.result.version)
            if json:
                print_json(found)
            else:
                console(json).print(table([f"{found.model} {found.version}", ""], _facts(found)))
            return
    if json:
        print_json(job)
        return
    console(json).print(table(["job", job.id], [("kind", job.kind), ("state", job.state)]))


def _facts(version: ModelVersion) -> list[tuple[str, object]]:
    return [("bytes", f"{version.size_bytes:,}"), *(copy_facts(version.copy_of) if version.copy_of else [])]
