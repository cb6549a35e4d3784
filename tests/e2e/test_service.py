import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from running import Running, alive, clean_environment, running, until

ROOT = Path(__file__).parents[2]

# a service beside both processes of the quick tests would be a third of all the memory that they take
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes through /proc"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("service") / "home") as started:
        yield started


def _blocks(page: str, language: str) -> str:
    """All blocks of a language on a page, as one script."""
    return "".join(re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL))


def _texts(file: Path) -> Path:
    rows = [{"text": f"{word} number {n}", "label": word} for word in ("apple", "pear", "plum") for n in range(20)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def _noise(file: Path) -> Path:
    """Texts whose labels are drawn without a look at them, too many for Newton's steps: no training ends by itself."""
    draw, words = Random(0), [f"word{number}" for number in range(400)]
    rows = [{"text": " ".join(draw.choices(words, k=12)), "label": f"label{draw.randrange(20)}"} for _ in range(1500)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def _corpus(folder: Path, service: Running) -> None:
    subprocess.run(
        [sys.executable, "-m", "app.cli", "corpus", "docstrings", "--output", str(folder / "docstrings.jsonl")],
        env=service.environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def test_the_readmes_python_works_as_it_is_pasted(service: Running, tmp_path: Path) -> None:
    _corpus(tmp_path, service)
    ran = subprocess.run(
        [sys.executable, "-c", _blocks("README.md", "python")],
        cwd=tmp_path,
        env=service.environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert len(re.findall(r"^\d+% \S", ran.stdout, re.MULTILINE)) == 3
    service.cli("datasets", "delete", "docstrings", "--force", "--yes", check=False)


def test_the_session_with_curl_works_as_it_is_pasted_and_can_be_repeated(service: Running, tmp_path: Path) -> None:
    _corpus(tmp_path, service)
    script = _blocks("docs/how-to/use-curl.md", "sh")
    for _ in range(2):
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=service.environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        assert any(0 <= line["latest"]["gap"] <= 1e-3 for line in lines if "latest" in line)
        assert any(len(line["predictions"][0]["top"]) == 3 for line in lines if "predictions" in line)


def test_the_session_with_curl_ends_where_the_key_is_wrong(service: Running, tmp_path: Path) -> None:
    _corpus(tmp_path, service)
    script = _blocks("docs/how-to/use-curl.md", "sh").replace('KEY="', 'KEY="wrong')
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=service.environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode != 0
    assert '"status":401' in ran.stdout


def test_the_command_line_uploads_trains_and_predicts(service: Running, tmp_path: Path) -> None:
    file = _texts(tmp_path / "fruits.jsonl")
    assert json.loads(service.cli("datasets", "upload", str(file), "--json").stdout)["state"] == "ready"
    trained = service.cli("train", "fruits", "--model", "fruits", "-p", "tol=0.01", "--watch", "--json")
    assert json.loads(trained.stdout.splitlines()[-1])["result"]["version"] == 1
    asked = service.cli("predict", "fruits", "--text", "a plum", "--text", "an apple", "--json")
    assert [one["label"] for one in json.loads(asked.stdout)["predictions"]] == ["plum", "apple"]
    refused = service.cli("train", "fruits", "--model", "fruits", "-p", "tool=0.01", check=False)
    assert refused.returncode == 1
    assert "tol" in refused.stderr


def test_a_tree_is_uploaded_trained_along_measured_by_level_and_predicted_with_a_path(
    service: Running, tmp_path: Path
) -> None:
    file = _texts(tmp_path / "grown.jsonl")
    service.cli("datasets", "upload", str(file))
    tree = tmp_path / "fruit-tree.csv"
    tree.write_text("parent,child\nroot,apple\nroot,pear\nstone,plum\n")
    refused = service.cli("hierarchies", "upload", str(tree), check=False)
    assert refused.returncode == 1
    assert "row 4, parent: 'stone' is the parent of 'plum'" in refused.stderr
    tree.write_text("parent,child\nroot,pome\npome,apple\npome,pear\nroot,plum\n")
    assert json.loads(service.cli("hierarchies", "upload", str(tree), "--json").stdout)["levels"] == [2, 2]
    along = ("--solver", "transfer", "--hierarchy", "fruit-tree")
    service.cli("train", "grown", "--model", "grown", *along, "--watch")
    version = json.loads(service.cli("models", "show", "grown", "--json").stdout)
    assert [level["error"] for level in version["levels"]["test"]] == [0.0, 0.0]
    asked = service.cli("predict", "grown", "--text", "a pear", "--json")
    (prediction,) = json.loads(asked.stdout)["predictions"]
    assert [step["label"] for step in prediction["path"]] == ["pome", "pear"]
    assert all(step["margin"] > 0 for step in prediction["path"])


def test_a_faulty_file_is_told_by_its_rows(service: Running, tmp_path: Path) -> None:
    file = _texts(tmp_path / "faulty.jsonl")
    file.write_text(file.read_text() + '{"text": 7, "label": "kiwi"}\n')
    done = service.cli("datasets", "upload", str(file), check=False)
    assert done.returncode == 1
    assert "row 61" in done.stderr


def test_a_worker_that_was_killed_is_started_again_and_works(service: Running, tmp_path: Path) -> None:
    before = service.members("workers.main")
    os.kill(min(before), signal.SIGKILL)
    until(lambda: not alive(before))
    until(lambda: service.members("workers.main"))
    file = _texts(tmp_path / "afterwards.jsonl")
    assert json.loads(service.cli("datasets", "upload", str(file), "--json").stdout)["state"] == "ready"


def test_a_second_service_on_the_same_folder_is_refused(service: Running) -> None:
    done = service.cli("up", "--port", "0", check=False)
    assert done.returncode == 1
    assert "Another polymargin service runs on the data folder" in done.stderr


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "app.cli", "up", "--port", port]
        environment = clean_environment(POLYMARGIN_HOME=str(tmp_path / "home"))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"port {port}" in done.stderr
    assert not (tmp_path / "home" / "logs").exists()


def test_neither_a_killed_nor_a_stopped_service_leaves_a_process_or_loses_a_job(tmp_path: Path) -> None:
    # A folder whose socket's path would be too long for the operating system.
    home = tmp_path / ("long" * 30)
    quick = {
        f"POLYMARGIN_{name}_SECONDS": value for name, value in (("LEASE", "3"), ("HEARTBEAT", "1"), ("SWEEP", "1"))
    }
    with running(home, **quick) as service:
        service.cli("datasets", "upload", str(_noise(tmp_path / "noise.jsonl")))
        endless = ("--solver", "weston_watkins", "-p", "C=1000", "-p", "tol=1e-15", "-p", "max_epochs=1000000000")
        job = json.loads(service.cli("train", "noise", "--model", "endless", *endless, "--json").stdout)["id"]
        until(lambda: _look(service, job) == ("running", 1))
        members = service.members()
        # Redis, worker with its pool process, API, process reaper.
        assert len(members) >= 5
        service.process.kill()
        until(lambda: not alive(members))
    with running(home, **quick) as service:
        # The killed worker's lease runs out, and a sweep queues the job again.
        until(lambda: _look(service, job) == ("running", 2))
        members = service.members()
        service.process.terminate()
        assert service.process.wait() == 0
        assert not alive(members)
    with running(home, **quick | {"POLYMARGIN_LEASE_SECONDS": "1000"}) as service:
        # The stopped worker handed its job back, so nothing has to run out.
        until(lambda: _look(service, job) == ("running", 3))
        service.cli("jobs", "cancel", job)
        until(lambda: _look(service, job) == ("cancelled", 3))


def _look(service: Running, job: str) -> tuple[str, int]:
    found = json.loads(service.cli("jobs", "show", job, "--json").stdout)
    return found["state"], found["attempt"]
