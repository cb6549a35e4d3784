"""What forms show before something is sent, and what they ask for."""

import gzip
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pytest
from browsing import Service, picture, signed_in

from app.client import Client
from app.datasets.schemas import ImportOptions

pytestmark = pytest.mark.slow


def test_the_form_tells_how_long_a_training_takes_or_that_this_is_not_known(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    page.goto(f"{service.url}/train?dataset=foods")
    estimate = page.locator("#estimate")
    estimate.get_by_text("Estimated:").wait_for()
    assert "this dataset with this method." in estimate.inner_text()
    # a dataset of its own: nothing is trained on it
    (tmp_path / "new.csv").write_text("label,text\n" + "a,red apple\nb,green pear\n" * 4)
    client.datasets.upload(tmp_path / "new.csv", "never-trained").wait()
    page.goto(f"{service.url}/train?dataset=never-trained")
    estimate.get_by_text("No time estimate: this method has not been trained on this dataset yet.").wait_for()
    assert "this dataset with this method." not in estimate.inner_text()


def test_a_wrong_name_of_a_model_is_explained_while_it_is_typed(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/train?dataset=foods")
    estimate = page.locator("#estimate")
    estimate.get_by_text("Estimated:").wait_for()
    page.get_by_label("Model", exact=True).fill("double click/ä")
    estimate.get_by_text("Model: Letters, digits, dots, dashes and underscores.").wait_for()
    page.get_by_label("Model", exact=True).fill("double-click")
    estimate.get_by_text("Estimated:").wait_for()


def test_the_fields_that_say_how_a_file_is_read_are_shown_where_it_cannot_be_read(
    page: Any, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "old.csv").write_bytes("label,text\na,Grün\n".encode("latin-1"))
    page.goto(f"{service.url}/datasets")
    encoding = page.get_by_label("Encoding", exact=True)
    assert not encoding.is_visible()
    page.get_by_role("link", name="Upload").click()
    page.get_by_label("Drop a file here").set_input_files(tmp_path / "old.csv")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.get_by_text("set encoding, for example to windows-1252").wait_for()
    assert encoding.is_visible()


def test_trials_that_are_all_alike_are_drawn_in_the_middle_of_their_chart(
    page: Any, client: Client, service: Service
) -> None:
    job = client.models.version("sure-foods", 1).job
    page.goto(f"{service.url}/jobs/{job}")
    chart = page.locator("#trials-chart[data-points]")
    chart.wait_for()
    values = chart.evaluate("chart => chart.data[0].y")
    assert len(values) > 1
    assert set(values) == {1.0}
    assert chart.evaluate("chart => chart.layout.yaxis.range") == pytest.approx([0.95, 1.05])


def test_the_columns_of_a_table_are_shown_before_the_upload_and_can_be_changed(
    page: Any, client: Client, service: Service, tmp_path: Path, pictures: bool
) -> None:
    towns, codes = ("Aachen", "Bonn", "Köln"), ("0110", "0210", "0310", "1111")
    rows = [f"{codes[n % 4]};a clerk who writes letter {n};{towns[n % 3]}" for n in range(60)]
    content = "code;description;town\n" + "\n".join(rows) + "\n"
    page.goto(f"{service.url}/datasets")
    transfer = page.evaluate_handle(
        """(content) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([content], "jobs.csv", { type: "text/csv" }));
          return transfer;
        }""",
        content,
    )
    page.locator("[data-drop]").dispatch_event("drop", {"dataTransfer": transfer})
    columns = page.locator("#columns table")
    columns.wait_for()
    assert columns.locator("thead th").all_inner_texts() == ["code", "description", "town"]
    assert columns.locator("tbody tr").count() == 5
    assert columns.locator("tbody tr").first.locator("td").all_inner_texts() == [
        "0110",
        "a clerk who writes letter 0",
        "Aachen",
    ]
    proposed = {name: page.get_by_label(f"Role of {name}").input_value() for name in ("code", "description", "town")}
    assert proposed == {"code": "label", "description": "text", "town": "category"}
    page.locator("#upload").scroll_into_view_if_needed()
    picture(page, pictures, "columns")
    page.get_by_label("Role of town").select_option("left out")
    page.get_by_text("Columns, missing values and characters").click()
    assert page.get_by_label("Label column", exact=True).input_value() == "code"
    assert page.get_by_label("Ignore columns").input_value() == "town"
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    statistics = client.datasets.statistics("jobs")
    assert {each.name: each.role for each in statistics.columns or []} == {"description": "text", "town": "left out"}
    assert {each.label for each in statistics.classes} == set(codes)


def test_a_label_column_that_is_not_clear_is_asked_for(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    file = tmp_path / "places.csv"
    file.write_text("size,town,river\n" + "".join(f"{n},T{n % 3},R{n % 4}\n" for n in range(30)))
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(file)
    asked = page.get_by_label("Which column has the labels?")
    asked.wait_for()
    page.get_by_role("button", name="Upload").click()
    assert asked.evaluate("select => select.validity.valueMissing")
    asked.select_option("river")
    assert page.get_by_label("Role of river").input_value() == "label"
    page.get_by_label("Role of town").select_option("label")
    assert (asked.input_value(), page.get_by_label("Role of river").input_value()) == ("town", "category")
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    assert {each.label for each in client.datasets.statistics("places").classes} == {"T0", "T1", "T2"}
    roles = {each.name: each.role for each in client.datasets.statistics("places").columns or []}
    assert roles == {"size": "number", "river": "category"}


def test_columns_of_0_and_1_and_cells_with_several_labels_are_proposed(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    flags, sets = tmp_path / "two-flags.csv", tmp_path / "joined-labels.csv"
    flags.write_text("text,rude,loud\n" + "".join(f"remark {n},{n % 2},{n % 3 % 2}\n" for n in range(30)))
    sets.write_text("label,text\n" + "".join(f"{('a;b', 'b;c', 'c')[n % 3]},remark {n}\n" for n in range(30)))
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(flags)
    asked = page.get_by_label("Which column has the labels?")
    asked.wait_for()
    assert asked.locator("option:checked").inner_text() == "Each column of 0 and 1 is a label"
    asked.select_option("rude")
    assert page.get_by_label("Role of loud").input_value() == "number"
    asked.select_option(label="Each column of 0 and 1 is a label")
    assert [page.get_by_label(f"Role of {name}").input_value() for name in ("rude", "loud")] == ["indicator"] * 2
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    assert {each.label for each in client.datasets.statistics("two-flags").classes} == {"rude", "loud"}
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(sets)
    page.get_by_text("several labels separated by ;").wait_for()
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    assert {each.label for each in client.datasets.statistics("joined-labels").classes} == {"a", "b", "c"}


def test_the_columns_of_a_file_are_named_in_the_form(
    opened: Callable[..., Any], client: Client, service: Service, tmp_path: Path
) -> None:
    page = signed_in(opened(refused=True), service.url, service.key)
    file = tmp_path / "tickets.csv"
    rows = [
        f"subject {n};a longer body é;{('red', '')[n % 2]};{n},5;NA;{('ham', 'spam')[n % 3 == 0]}" for n in range(40)
    ]
    file.write_text("subject;body, in full;colour;price;rating;team\n" + "\n".join(rows) + "\n", encoding="latin-1")
    page.goto(f"{service.url}/datasets")
    page.get_by_label("Drop a file here").set_input_files(file)
    page.get_by_text("The columns cannot be shown: line 2: not valid UTF-8").wait_for()
    page.get_by_label("Infer column types from values").uncheck()
    page.get_by_label("Label column", exact=True).fill("team")
    page.get_by_text("Columns, missing values and characters").click()
    page.get_by_label("Text columns").fill("subject\nbody, in full")
    page.get_by_label("Category columns").fill("colour")
    page.get_by_label("Number columns").fill("price\nrating\n")
    page.get_by_label("Missing", exact=True).select_option("keep")
    page.get_by_label("Missing values").fill("NA")
    page.get_by_label("Decimal").select_option("comma")
    page.get_by_label("Encoding").select_option("latin-1")
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    statistics = client.datasets.statistics("tickets")
    columns = {each.name: (each.role, each.missing) for each in statistics.columns or []}
    assert columns == {
        "subject": ("text", 0),
        "body, in full": ("text", 0),
        "colour": ("category", 20),
        "price": ("number", 0),
        "rating": ("number", 40),
    }
    assert {each.label for each in statistics.classes} == {"ham", "spam"}


def test_the_form_asks_each_option_that_a_format_has_and_no_other(page: Any, service: Service) -> None:
    page.goto(f"{service.url}/datasets")
    page.get_by_text("Columns, missing values and characters").click()

    def shown() -> set[str]:
        fields = page.locator("#upload [name]:visible").evaluate_all("fields => fields.map((each) => each.name)")
        return set(fields) - {"file", "name", "format"}

    every = set(ImportOptions.model_fields)
    assert shown() == every
    of_tables = every - {"zero_based", "text_fields", "label_fields"}
    of_records = {
        "unlabelled", "without_label", "label_type", "merge_labels", "languages", "text_fields", "label_fields",
    }  # fmt: skip
    for format, options in (
        ("svmlight", {"label_separator", "encoding", "unlabelled", "label_type", "merge_labels", "zero_based"}),
        ("npz", {"label_column", "weight_column", "ignore_columns", "unlabelled", "label_type", "merge_labels"}),
        ("csv", of_tables - {"sheet"}),
        ("jsonl", of_tables - {"label_columns", "label_separator", "delimiter", "decimal", "quotes", "sheet"}),
        ("jsonld", of_records | {"label_separator"}),
        ("marc", of_records),
    ):
        page.get_by_label("Format").select_option(format)
        assert shown() == options, format


@pytest.mark.parametrize("large", [False, True], ids=["at once", "in pieces"])
def test_features_labels_and_names_of_labels_come_from_three_files(
    opened: Callable[..., Any], client: Client, service: Service, tmp_path: Path, large: bool
) -> None:
    page = signed_in(opened(refused=True), service.url, service.key)  # a text alone has no columns to show
    name = f"pair-{large}".lower()
    words = "word " * (2500 if large else 1)
    (tmp_path / f"{name}.txt").write_text(f"a red apple {words}\nthe blue sea\na pear\n" * (300 if large else 1))
    labels = tmp_path / "Zuordnung (grün) Y.trn.txt"
    labels.write_text("0 2\n1\n0\n" * (300 if large else 1))
    (tmp_path / "names").write_text("fruit\nwater\nred\n")
    page.goto(f"{service.url}/datasets")
    page.get_by_text("Labels in a second file").click()
    page.get_by_label("Labels of the rows").set_input_files(labels)
    page.get_by_label("Drop a file here").set_input_files(tmp_path / f"{name}.txt")
    format = page.get_by_label("Format")
    assert (format.input_value(), format.is_disabled()) == ("archive", True)
    page.get_by_label("Labels of the rows").set_input_files([])
    assert format.is_enabled()
    page.get_by_label("Labels of the rows").set_input_files(labels)
    page.get_by_label("Titles of the labels").set_input_files(tmp_path / "names")
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    made = client.datasets.get(name)
    assert (made.format, made.state, made.n_rows) == ("archive", "ready", 900 if large else 3)
    first = client.datasets.rows(name, limit=3).rows
    assert [row.labels for row in first] == [["fruit", "red"], ["water"], ["fruit"]]


def test_the_form_tells_a_corpus_of_annifs_from_a_table_where_it_can_unpack_it(
    opened: Callable[..., Any], client: Client, service: Service, tmp_path: Path
) -> None:
    page = signed_in(opened(refused=True), service.url, service.key)
    corpus, table = b"a red apple\t<http://example.org/fruit>\n" * 3000, b"text\tlabel\na red apple\tfruit\n"
    zstd = pa.compress(corpus, "zstd", asbytes=True)
    page.goto(f"{service.url}/datasets")
    for name, content, format in (
        ("corpus.tsv", corpus, "annif"),
        ("table.tsv", table, "tsv"),
        ("packed-table.tsv.gz", gzip.compress(table), "tsv"),
        ("cut.tsv.gz", gzip.compress(corpus)[:-20], "annif"),
        ("broken.tsv.gz", b"no such thing", "tsv"),
        ("packed.tsv.xz", lzma.compress(corpus), ""),
        ("packed.tsv.gz", gzip.compress(corpus), "annif"),
        ("packed.tsv.zst", zstd, ""),
        ("columns.feather", b"ARROW1", "arrow"),
        ("catalogue.json", b'{"@context": {}, "@graph": []}', ""),
        ("catalogue.jsonld", b'{"@context": {}, "@graph": []}', "jsonld"),
        ("packed-again.tsv.zst", zstd, ""),
    ):
        (tmp_path / name).write_bytes(content)
        page.get_by_label("Name", exact=True).fill("")
        page.evaluate("() => { document.querySelector('[data-said]').textContent = ''; }")
        page.get_by_label("Drop a file here").set_input_files(tmp_path / name)
        page.locator("[data-said]:not(:empty)").wait_for()
        assert page.get_by_label("Format").input_value() == format, name
    page.get_by_role("button", name="Upload").click()
    page.locator("#histogram[data-points]").wait_for()
    assert client.datasets.get("packed-again").format == "annif"


def test_costs_are_pasted_from_a_spreadsheet_and_every_c_is_asked_for(
    page: Any, client: Client, service: Service
) -> None:
    labels = [each.label for each in client.datasets.statistics("foods").classes]
    page.goto(f"{service.url}/train?dataset=foods")
    page.get_by_label("Model", exact=True).fill("priced-foods")
    page.get_by_text("Method and parameters").click()
    page.get_by_label("Method", exact=True).select_option("crammer_singer")
    costs = page.get_by_label("costs", exact=True)
    costs.fill(f"{labels[0]}\t{labels[1]}\tmuch")
    page.get_by_role("button", name="Train", exact=True).click()
    page.get_by_text("Costs, line 1: expected label, answer, cost").first.wait_for()
    page.locator("#preview-row").fill("1")  # features do not depend on the costs
    page.locator('#preview ul[data-row="1"]').wait_for(state="attached")
    costs.fill(f"label\tanswer\tcost\n{labels[0]}\t{labels[1]}\t7.5\n{labels[1]}\t{labels[0]}\t2\n")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f]{32}"))
    request = client.jobs.get(page.url.rsplit("/", 1)[1]).request
    assert request["params"]["costs"] == {labels[0]: {labels[1]: 7.5}, labels[1]: {labels[0]: 2.0}}
    page.goto(f"{service.url}/train?dataset=foods")
    page.get_by_text("Method and parameters").click()
    page.get_by_label("Model", exact=True).fill("path-foods")
    page.get_by_label("Method", exact=True).select_option("crammer_singer")
    page.get_by_label("Gap at every C").fill("0.2")
    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_url(re.compile("/jobs/[0-9a-f]{32}"))
    assert client.jobs.get(page.url.rsplit("/", 1)[1]).request["every_c"]["eps"] == 0.2


def test_fields_of_another_method_keep_what_was_typed_and_late_ones_are_ignored(
    opened: Callable[..., Any], service: Service
) -> None:
    # costs of a tree without a tree are refused by the plan, which is asked for a moment after the last change
    page = signed_in(opened(refused=True), service.url, service.key)
    held: list[Any] = []
    page.route(re.compile("/solvers/(crammer_singer|softmax)"), lambda route: held.append(route))
    page.goto(f"{service.url}/train?dataset=foods")
    page.get_by_text("Method and parameters").click()
    method, title = page.get_by_label("Method", exact=True), page.locator("#about-solver strong")
    costs = page.get_by_label("costs", exact=True)
    with page.expect_request("**/solvers/crammer_singer"):
        method.select_option("crammer_singer")
    costs.fill("tree")
    held.pop().continue_()
    title.get_by_text("Crammer-Singer").wait_for()
    assert costs.input_value() == "tree"
    assert costs.evaluate("field => field === document.activeElement")
    with page.expect_request("**/solvers/softmax"):
        method.select_option("softmax")
    method.select_option("weston_watkins")
    title.get_by_text("Weston-Watkins").wait_for()
    with page.expect_response("**/solvers/softmax"):
        held.pop().continue_()
    page.evaluate("() => new Promise((done) => setTimeout(done, 50))")
    assert "Weston-Watkins" in title.inner_text()
    assert costs.input_value() == "tree"


def test_a_sheet_and_the_rule_for_several_parents_are_chosen_for_label_trees(
    page: Any, client: Client, service: Service, tmp_path: Path
) -> None:
    book = openpyxl.Workbook()
    book.active.append(["read me"])
    for row in (["parent", "child"], ["root", "a"], ["root", "b"], ["a", "c"], ["b", "c"]):
        sheet = book["Codes"] if "Codes" in book.sheetnames else book.create_sheet("Codes")
        sheet.append(row)
    book.save(tmp_path / "codes.xlsx")
    page.goto(f"{service.url}/hierarchies")
    page.get_by_label("Sheet").wait_for(state="hidden")
    page.get_by_label("Drop a file here").set_input_files(tmp_path / "codes.xlsx")
    page.get_by_label("Path separator").wait_for(state="hidden")
    page.get_by_label("Sheet").fill("Codes")
    page.get_by_label("Labels with several parents").select_option("first")
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/hierarchies/codes")
    assert client.hierarchies.get("codes").n_nodes == 3
