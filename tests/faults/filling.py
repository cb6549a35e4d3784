"""Run by a test on a small file system of its own: fills it under a service, and prints what every write answers."""

import json
import os
import sys
import warnings
from pathlib import Path

home = Path(sys.argv[1])
os.environ["POLYMARGIN_HOME"] = str(home / "home")
os.environ["POLYMARGIN_DATABASE_URL"] = ""
os.environ["POLYMARGIN_REDIS_URL"] = f"unix://{home}/no-redis.sock"

from app.access import keys  # noqa: E402
from app.config import settings  # noqa: E402 - what is above decides what it finds
from app.main import create_app  # noqa: E402
from app.store.db import sessions  # noqa: E402
from app.store.migrate import upgrade  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

ROWS = b"a 1:1\nb 2:1\na 1:2\nb 2:2\n"
API = "/api/v1"


def _files() -> list[str]:
    return sorted(str(path.relative_to(home)) for path in settings().files_folder.rglob("*"))


def _state(client: TestClient) -> list[object]:
    lists = [client.get(f"{API}/{name}").json() for name in ("datasets", "hierarchies", "jobs", "models", "keys")]
    return [*lists, _files()]


def _fill() -> None:
    with open(home / "ballast", "ab", buffering=0) as file:
        for block in (1 << 20, 4096, 1):
            try:
                while file.write(b"\0" * block) == block:
                    pass
            except OSError:
                continue


def main() -> None:
    upgrade(settings().sqlalchemy_url)
    with sessions()() as session:
        secret = keys.create(session, "root", "admin").secret
        other = keys.create(session, "other", "viewer").id
    with TestClient(create_app(), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {secret}"}) as client:
        made = client.post(f"{API}/datasets?name=old&format=svmlight", content=ROWS).json()
        client.post(f"{API}/hierarchies?name=tree&format=paths", content=b"a\nb\n").raise_for_status()
        pieces = client.post(f"{API}/uploads", json={"size_bytes": len(ROWS)}).json()["id"]
        client.patch(f"{API}/uploads/{pieces}", content=ROWS, headers={"Upload-Offset": "0"}).raise_for_status()
        before = _state(client)
        _fill()
        writes = {
            "upload": lambda: client.post(f"{API}/datasets?name=new&format=svmlight", content=ROWS),
            "large upload": lambda: client.post(f"{API}/datasets?name=new&format=svmlight", content=ROWS * 200_000),
            "form": lambda: client.post(f"{API}/datasets?name=new&format=svmlight", files={"file": ROWS * 100_000}),
            "pieces": lambda: client.post(f"{API}/datasets?name=whole&format=svmlight&upload={pieces}"),
            "hierarchy": lambda: client.post(f"{API}/hierarchies?name=new&format=paths", content=b"a\nb\n"),
            "key": lambda: client.post(f"{API}/keys", json={"name": "new", "role": "viewer"}),
            "revoke": lambda: client.delete(f"{API}/keys/{other}"),
            "cancel": lambda: client.post(f"{API}/jobs/{made['job']}/cancel"),
            "delete": lambda: client.delete(f"{API}/hierarchies/tree"),
        }
        statuses = {}
        for name, write in writes.items():
            answer = write()
            statuses[name] = [answer.status_code, answer.json().get("code") if answer.content else None]
        after = _state(client)
        (home / "ballast").unlink()
        again = [writes[name]().status_code for name in ("upload", "pieces", "hierarchy", "key")]
    print(json.dumps({"statuses": statuses, "before": before, "after": after, "again": again}))


main()
