"""``polymargin status``: what goes on in the service now."""

from app.client import Polymargin
from app.commands.common.output import Json, console, number, print_json, table
from app.schemas.operation.status import Status

_GIB = float(1 << 30)


def status(json: Json = False) -> None:
    """What goes on now: running and waiting jobs, workers, room on disk, and what wants attention."""
    with Polymargin() as client:
        found = client.status()
    if json:
        print_json(found)
    else:
        _show(found)


def _show(found: Status) -> None:
    out = console(False)
    running = [
        (
            running.job.id,
            running.job.kind,
            running.job.request.get("model"),
            None if running.job.progress is None else f"{running.job.progress.fraction:.0%}",
            None if running.job.progress is None else number(running.job.progress.gap),
        )
        for running in found.running
    ]
    if running:
        out.print(table(["running", "kind", "model", "done", "gap"], running))
    queues = [(queue.name, queue.processes, queue.busy, queue.waiting) for queue in found.queues]
    out.print(table(["queue", "processes", "busy", "waiting"], queues))
    for name, room in (("disk", found.disk), ("memory", found.memory)):
        out.print(f"{name}: {room.free_bytes / _GIB:.1f} of {room.total_bytes / _GIB:.1f} GiB free")
    for fault in found.attention:
        subject = " ".join(part for part in (fault.kind, fault.name, fault.id) if part)
        out.print(f"{subject}: {fault.detail}", markup=False)
