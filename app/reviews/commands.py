"""Commands: reviews."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.table import Table

from app.command_line.connection import connect
from app.command_line.output import Json, console, number, print_result, table
from app.command_line.request_fields import build_request, fields_of
from app.command_line.watching import watch as watch_job
from app.jobs.commands import show_job
from app.reviews.schemas import (
    ClaimRequest,
    DecidedRowsRequest,
    DecisionRequest,
    Review,
    ReviewRequest,
    ReviewRow,
    SheetFormat,
    State,
)

reviews = typer.Typer(help="Have people decide rows that are not sure.", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(metavar="REVIEW", help="Name or id.")]
Row = Annotated[int, typer.Argument(metavar="ROW", help="Number of the row in the dataset, from 0.")]
Revision = Annotated[int | None, typer.Option(help="Fail unless the row has this revision.")]
NewLabels = Annotated[bool, typer.Option("--new-labels", help="Accept labels that the model does not know.")]
_LONGEST = 60


@reviews.command()
@fields_of(ReviewRequest, arguments=["name", "job"])
def create(json: Json = False, **given: Any) -> None:
    """Create a queue of the rows of a prediction job that are not sure."""
    _show(connect().reviews.create(**build_request(ReviewRequest, given)), json)


@reviews.command("list")
def list_(json: Json = False) -> None:
    """List the newest queues."""
    page = connect().reviews.list()
    rows = [
        (
            each.name,
            each.model,
            each.version,
            each.n_rows,
            each.states.get("decided", 0),
            each.states.get("disputed", 0),
        )
        for each in page.items
    ]
    print_result(page, table(["name", "model", "version", "rows", "decided", "disputed"], rows), json)


@reviews.command()
def show(review: Ref, json: Json = False) -> None:
    """Show a queue with its progress, the agreement of people, and the measured precision of sure rows."""
    _show(connect().reviews.get(review), json)


@reviews.command()
def delete(review: Ref) -> None:
    """Delete a queue with its rows and decisions."""
    connect().reviews.delete(review)


@reviews.command()
def rows(
    review: Ref,
    state: Annotated[
        str | None,
        typer.Option(metavar="open|claimed|decided|disputed|skipped", help="Only rows in this state."),
    ] = None,
    after: Annotated[int | None, typer.Option(help="The next_place of the previous page.")] = None,
    json: Json = False,
) -> None:
    """List rows of a queue, the least sure first."""
    page = connect().reviews.rows(review, cast(State | None, state), after)
    more = None if page.next_place is None else f"More rows: --after {page.next_place}"
    print_result(page, [_listed(page.rows), more], json)


@reviews.command()
@fields_of(ClaimRequest)
def claim(review: Ref, json: Json = False, **given: Any) -> None:
    """Claim rows for some minutes; nobody else gets them meanwhile."""
    found = connect().reviews.claim(review, **build_request(ClaimRequest, given))
    print_result(found, _listed(found), json)


@reviews.command()
def release(
    review: Ref,
    rows: Annotated[list[int], typer.Argument(metavar="ROW...", help="Numbers of the rows in the dataset, from 0.")],
) -> None:
    """Give claimed rows back before their leases end."""
    connect().reviews.release(review, rows)


@reviews.command()
def labels(
    review: Ref,
    search: Annotated[str | None, typer.Argument(metavar="[WORDS]", help="Words of a label, notation or name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of labels to list.")] = 20,
    language: Annotated[str | None, typer.Option(help="Language of the names. Default: that of the queue.")] = None,
    json: Json = False,
) -> None:
    """Search the labels that the rows can have."""
    found = connect().reviews.labels(review, search, limit, language)
    shown = [(each.label, each.name, " › ".join(each.path)) for each in found.labels]
    print_result(found, table(["label", "name", "below"], shown), json)


@reviews.command()
def decide(
    review: Ref,
    row: Row,
    labels: Annotated[
        list[str] | None, typer.Argument(metavar="[LABEL...]", help="Correct label, or the labels of a set.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="The same as LABEL; may be repeated.")] = None,
    empty: Annotated[
        bool, typer.Option("--empty", help="Decide that the row has no label, in queues of sets.")
    ] = False,
    skip: Annotated[bool, typer.Option("--skip", help="Skip the row instead of giving a label.")] = False,
    comment: Annotated[str | None, typer.Option(help=DecisionRequest.model_fields["comment"].description)] = None,
    new_labels: NewLabels = False,
    revision: Revision = None,
    json: Json = False,
) -> None:
    """Decide a row, or skip it."""
    given = [*(labels or []), *(label or [])]
    if bool(given) + empty + skip != 1:
        raise typer.BadParameter("give labels, --empty or --skip", param_hint="LABEL")
    decision = None if skip else given[0] if len(given) == 1 else given
    found = connect().reviews.decide(review, row, decision, comment, revision, new_labels)
    print_result(found, _listed([found]), json)


@reviews.command()
def export(
    review: Ref,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write.", dir_okay=False)],
    state: Annotated[
        str | None,
        typer.Option(metavar="open|claimed|decided|disputed|skipped", help="Only rows in this state."),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            metavar="xlsx|label-studio|label-studio-config",
            help="Workbook, tasks for Label Studio (JSON), or the labeling configuration for them (XML). Default: as "
            "FILE ends.",
        ),
    ] = None,
) -> None:
    """Save the rows as a workbook with a column for decisions, or as tasks for Label Studio; import decides them."""
    n_bytes = connect().reviews.save_sheet(review, file, cast(State | None, state), cast(SheetFormat | None, format))
    console(False).print(f"{n_bytes} bytes: {file}")


@reviews.command("import")
def import_(
    review: Ref,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Edited workbook, a CSV file of it, or Label Studio's export (JSON or JSON-MIN).",
            exists=True,
            dir_okay=False,
        ),
    ],
    new_labels: NewLabels = False,
    json: Json = False,
) -> None:
    """Record the decisions of an edited workbook or of Label Studio's export, and list what was not understood."""
    found = connect().reviews.import_decisions(review, file, new_labels)
    counts = (
        f"{found.n_decided} decided, {found.n_unchanged} unchanged, {found.n_empty} without a decision, "
        f"{found.n_problems} not understood"
    )
    shown = [(each.line, each.row, each.detail) for each in found.problems]
    print_result(found, [counts, table(["line or task", "row", "problem"], shown) if shown else None], json)


@reviews.command()
@fields_of(DecidedRowsRequest)
def append(
    review: Ref,
    watch: Annotated[bool, typer.Option("--watch", help="Wait for the job.")] = False,
    json: Json = False,
    **given: Any,
) -> None:
    """Append decided rows to a dataset, as a new version; each row is appended once."""
    job = connect().reviews.append(review, **build_request(DecidedRowsRequest, given))
    if watch:
        job = watch_job(job, console(json))
    show_job(job, json)


@reviews.command()
def undo(
    review: Ref,
    row: Row,
    revision: Revision = None,
    minutes: Annotated[float | None, typer.Option(help="Number of minutes for which you claim the row again.")] = None,
    json: Json = False,
) -> None:
    """Withdraw your own decision of a row."""
    found = connect().reviews.undo(review, row, revision, minutes)
    print_result(found, _listed([found]), json)


def _listed(found: Sequence[ReviewRow]) -> Table:
    shown = [(each.row, each.state, _decided(each), _alternatives(each), _text(each)) for each in found]
    return table(["row", "state", "label", "alternatives", "text"], shown)


def _decided(row: ReviewRow) -> str | None:
    return None if row.labels is None else "; ".join(row.labels) or "(no label)"


def _alternatives(row: ReviewRow) -> str:
    """The alternatives with their names and probabilities; a plus sign is before the predicted ones."""
    return "; ".join(
        ("+" if each.predicted else "")
        + (each.label if each.name in (None, each.label) else f"{each.label} ({each.name})")
        + ("" if each.probability is None else f" {each.probability:.0%}")
        for each in row.alternatives
    )


def _text(row: ReviewRow) -> str:
    text = row.text if row.text is not None else str(row.record or row.id or "")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _show(review: Review, json: bool) -> None:
    hidden = {"states", "people", "agreement", "measured_precision"}
    values = review.model_dump(mode="json", exclude=hidden, exclude_none=True)
    values |= {f"rows {state}": count for state, count in review.states.items()}
    if review.agreement is not None:
        found = review.agreement
        kappa = "" if found.kappa is None else f", Cohen's kappa {number(found.kappa)}"
        mean = "" if found.consistency is None else f", inter-indexer consistency {number(found.consistency)}"
        values["agreement"] = f"{found.agreed:.1%} of {found.n_rows} rows{kappa}{mean}"
    measured = review.measured_precision
    if review.sure_level is not None:
        values["measured precision"] = f"not measured for sure nodes at level {review.sure_level}"
    if measured is not None:
        rows = f"{measured.n_rows} {'sure' if measured.of == 'sure_rows' else 'decided'} rows"
        values["measured precision"] = (
            f"{measured.precision:.1%} ({measured.lower_bound:.1%} to {measured.upper_bound:.1%}) "
            + (f"of {rows}" if review.label_separator is None else f"of {measured.n_labels} labels in {rows}")
        )
        if review.label_separator is not None and measured.recall is not None:
            values["measured recall"] = f"{measured.recall:.1%}; {measured.n_added} labels were added"
    counts = [(each.person, each.n_decided, each.n_skipped) for each in review.people]
    people = table(["person", "decided", "skipped"], counts) if counts else None
    print_result(review, [table(["review", review.name], values.items()), people], json)
