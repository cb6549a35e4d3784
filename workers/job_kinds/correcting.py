"""Jobs that correct rows of the newest version: they get other labels or are deleted, in the next version."""

import hashlib

import orjson

from app.config import settings
from app.errors import InvalidInput
from app.hierarchies.label_checks import named
from app.plurals import counted
from app.store.corpus import open_corpus, save_corpus, save_relabelled
from app.store.files import files
from app.store.relabelling import relabelled, without
from app.store.row_statistics import statistics_of
from workers.job_kinds.next_version import NextVersion, delete_other_attempts, folder_of, newest_version
from workers.running.job_context import JobContext


def correct_labels(context: JobContext) -> None:
    """Read the corrections, and create the version.

    Labels are written again beside the unchanged texts or numbers, which are copied only where rows are deleted.
    """
    lease, store = context.lease, files()
    context.phase("loading")
    base, source = newest_version(context, store)
    lines = [orjson.loads(line) for line in store.read_bytes(source).splitlines()]
    corrections = {each["row"]: each["labels"] for each in lines if "labels" in each}
    deleted = {each["row"] for each in lines if each.get("delete")}
    corpus = open_corpus(store, base.path)
    parsed = relabelled(corpus.head(), corpus.parts, corrections)
    parsed = without(parsed, deleted) if deleted else parsed
    n_labels, most = len(parsed.labels), settings().max_classes
    if n_labels > most:
        raise InvalidInput(f"the dataset would have {n_labels:,} classes; at most {most:,} are allowed")
    context.phase("saving", fraction=0.5)
    statistics = statistics_of(parsed)
    path = folder_of(lease)
    store.delete(path)
    if deleted:
        save_corpus(store, path, parsed)
    else:
        save_relabelled(store, path, base.path, parsed)
    lineage = f"{base.sha256}\n{lease.request['sha256']}\ncorrections"
    sha256 = hashlib.sha256(lineage.encode()).hexdigest()
    new = sorted({*parsed.labels}.difference(corpus.labels))
    warning = f"{counted(len(new), 'new label')}: {named(new)}" if new else None
    context.succeed(NextVersion(base, lease, sha256, path, parsed.kind, statistics, warning).add)
    delete_other_attempts(store, lease)
