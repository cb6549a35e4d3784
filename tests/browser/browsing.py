"""A service of its own for a browser to look at."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from PIL import Image

from app.client import Client

ROOT = Path(__file__).parents[2]
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip
START_SECONDS = 120.0
# For what the browser waits for, jobs of half a minute included.
PATIENCE_MS = 300_000.0
TEXTS = b"".join(
    b'{"text": "%s", "label": "%s"}\n' % (text, label)
    for text, label in [
        (b"red round apple", b"fruit"),
        (b"green long leek", b"vegetable"),
        (b"blue deep sea", b"water"),
    ]
    * 12
)


PAGES = (
    "/", "/datasets", "/datasets/foods", "/hierarchies", "/hierarchies/things", "/train", "/tune", "/jobs", "/models",
    "/models/foods", "/models/foods/versions/2", "/models/sure-foods/versions/1", "/models/foods/compare?a=1&b=2",
    "/playground", "/keys", "/audit", "/docs", "/train?dataset=foods&model=foods&version=1",
)  # fmt: skip
OPEN = "document.querySelectorAll('main details').forEach((each) => { each.open = true; })"
# what sticks out of the window, of what no box of its own scrolls
TOO_WIDE = """() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".scroll, pre, svg"))
    .map((each) => each.outerHTML.slice(0, 200))"""
# so exact, of texts without sense, that it is still at it when the test has looked
LONG = {"C": 1000.0, "tol": 1e-12, "max_epochs": 10**8}


@dataclass(frozen=True)
class Service:
    """A running service: its address, the link that its start has printed, and the administrator's key."""

    url: str
    link: str
    key: str


def begin(home: Path, *options: str, **settings: str) -> tuple[Service, subprocess.Popen[str]]:
    """Start a service on an empty data folder, with these options of ``polymargin up``, and wait until it is ready.

    Settings are named without their prefix.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("POLYMARGIN_")}
    environment |= {
        "POLYMARGIN_HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "200",
        "POLYMARGIN_COMPILE_AHEAD": "0",
    }
    environment |= {f"POLYMARGIN_{name}": value for name, value in settings.items()}
    command = [sys.executable, "-m", "app.cli", "up", "--port", "0", *options]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    deadline, said = time.monotonic() + START_SECONDS, ""
    for line in process.stdout:
        said += line
        if "Logs" in line or time.monotonic() > deadline:
            break
    found = re.search(r"(http://[^/\s]+)(/sign-in\?link=\S+)", said)
    assert found is not None, said
    return Service(found[1], found[0], (home / "admin.key").read_text().strip()), process


def end(process: subprocess.Popen[str]) -> None:
    """Stop a service, and wait for it."""
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=START_SECONDS)


def picture(page: Any, wanted: bool, name: str, height: int = 900) -> None:
    """Take a picture for the documentation, where that is wanted, of the upper part of the window."""
    if wanted:
        page.mouse.move(0, 0)
        clip = {"x": 0, "y": 0, "width": 1280, "height": height}
        small_png(page.screenshot(clip=clip), ROOT / "docs/how-to/pictures" / f"dashboard-{name}.png")


def small_png(taken: bytes, path: Path) -> None:
    """Write a picture with 128 colours, which nobody sees, and half the bytes."""
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(128).save(path, optimize=True)


def signed_in(page: Any, url: str, key: str) -> Any:
    """The page, whose browser has a session of the key, as the form of the sign-in starts it."""
    answer = page.context.request.post(f"{url}/sign-in", form={"key": key}, max_redirects=0)
    assert answer.status == 303
    return page


def place(found: Any) -> dict[str, float]:
    """Where an element is in the window, in pixels, once it is shown."""
    found.wait_for()
    return dict(found.evaluate("each => each.getBoundingClientRect().toJSON()"))


def places(page: Any, *paths: str) -> list[dict[str, float]]:
    """Where the first elements of CSS paths are at one moment, in pixels of the window, once all of them are shown.

    Two questions, one after the other, might be answered before and after the page has drawn itself again.
    """
    look = """paths => {
        const found = paths.map((path) => document.querySelector(path)?.getBoundingClientRect().toJSON());
        return found.every((each) => each?.width) && found;
    }"""
    return list(page.wait_for_function(look, arg=list(paths)).json_value())


def upload_noise(client: Client, folder: Path, name: str = "noise") -> None:
    """A dataset of texts whose labels are drawn without a look at them."""
    draw, words = Random(0), [f"word{number}" for number in range(400)]
    rows = [{"text": " ".join(draw.choices(words, k=12)), "label": f"label{draw.randrange(20)}"} for _ in range(1500)]
    (folder / "noise.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    client.datasets.upload(folder / "noise.jsonl", name).wait()


def fill(service: Service, folder: Path) -> None:
    texts, tree = folder / "foods.jsonl", folder / "tree.csv"
    texts.write_bytes(TEXTS)
    tree.write_text("parent,child\nroot,food\nfood,fruit\nfood,vegetable\nroot,water\n")
    with Client(service.url, service.key) as client:
        client.datasets.upload(texts, "foods").wait()
        client.hierarchies.upload(tree, "things")
        for C in (0.1, 10.0):
            client.train("foods", "foods", "weston_watkins", {"C": C}).wait()
        client.train("foods", "sure-foods", "auto", {"folds": 2}).wait()
        for version in (1, 2):
            client.evaluate("foods", "foods", version=version, resamples=50).wait()
        client.evaluate("sure-foods", "foods", resamples=50).wait()
        client.models.set_alias("foods", "production", 1)
        client.keys.create("a-viewer", "viewer")
