"""What the service says of fields, in the words of a command's options."""

import pytest
from typer.main import get_command

from app.cli import cli
from app.command_line.option_names import names_of

SPACE = "/space/0/grid/C/1"


@pytest.mark.parametrize(
    ("command", "said", "shown"),
    [
        (
            "datasets upload",
            "pass label_column to name the label column",
            "pass --label-column to name the label column",
        ),
        ("datasets upload", "kept by missing=keep; decimal=comma", "kept by --missing keep; --decimal comma"),
        ("datasets upload", "no column 'label_column' there", "no column 'label_column' there"),
        ("hierarchies upload", "id_field says it; csv_x", "--option id_field says it; csv_x"),
        (
            "tune",
            "pass the number of settings to draw, such as draws=20",
            "pass the number of settings to draw, such as --draws 20",
        ),
        ("datasets delete", "force=true deletes the", "--force deletes the"),
        ("datasets upload", "pass quotes=false", "pass --no-quotes"),
        (
            "predict",
            "least_cost cannot be combined with threshold or min_precision, which are about the threshold",
            "--least-cost cannot be combined with --threshold or --min-precision, which are about the threshold",
        ),
        ("models compress", "smaller: float16 or prune_share", "smaller: --float16 or --prune-share"),
        ("train", "give max_features or hash_features", "give --text-max-features or --text-hash-features"),
        ("datasets upload", "of type dictionary<values=string>", "of type dictionary<values=string>"),
        ("train", "weston_watkins has no max_epochs", "weston_watkins has no max_epochs"),
    ],
)
def test_fields_in_messages_become_options(command: str, said: str, shown: str) -> None:
    assert names_of(get_command(cli), command.split()).said(said) == shown


@pytest.mark.parametrize(
    ("command", "pointer", "shown"),
    [
        ("train texts --watch", "/text/stop_words", "--text-stop-words"),
        ("train texts", "/text/char_ngrams/0", "--text-char-ngrams"),
        ("train texts", "/params/max_epochs", "--param max_epochs"),
        ("train texts", "/dataset", "DATASET"),
        ("train texts", "/elsewhere/3", "/elsewhere/3"),
        ("tune texts", SPACE, "--grid C"),
        ("tune texts", "/space/0/params/tol", "--param tol"),
        ("tune texts --space file.json", SPACE, SPACE),
        ("tune texts --space=file.json", SPACE, SPACE),
        ("datasets correct d 1 a", "/corrections/0/labels/0", "LABELS"),
        ("datasets correct d 9 a --by id", "/corrections/0/id", "ROW"),
        ("datasets correct d --file f", "/corrections/6/id", "--file, line 7: id"),
        ("datasets correct d --file f", "/corrections/6/labels", "--file, line 7: labels"),
        ("datasets correct d --file f", "/corrections", "--file"),
        ("hierarchies upload f", "/query/parent_field", "--option parent_field"),
        ("datasets append d f.csv", "/query/decimal", "--decimal"),
    ],
)
def test_places_of_faults_become_options(command: str, pointer: str, shown: str) -> None:
    assert names_of(get_command(cli), command.split()).place(pointer) == shown
