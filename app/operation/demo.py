"""A demonstration: a classifier of docstrings, trained by the service and by scikit-learn on the same rows."""

import json as jsonlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from app.client import Client
from app.config import settings
from app.datasets.recipe_schemas import TextRecipe
from app.models.schemas import ModelVersion
from app.operation.corpus import write_docstrings
from app.operation.embedded import serving
from app.plurals import gap_text

MODEL = "docstrings"
PARAMS = {"tol": 1e-3}
N_EXAMPLES = 3
EXCERPT = 90
TRAIN_SECONDS = 600.0


class DemoError(Exception):
    """A step of the demonstration did not do what it should."""


@dataclass(frozen=True)
class Rows:
    """One part of the corpus."""

    texts: list[str]
    labels: list[str]


def demonstrate(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Run the demonstration in a data folder of its own.

    Parameters
    ----------
    folder : Path
        Kept afterwards; a second run finds its data there and adds a version to the model.
    say : callable
        Takes one line for people.

    Returns
    -------
    dict
        The model's version, the errors of the three classifiers and some predictions, as JSON.

    Raises
    ------
    ClientError, SupervisorError, DemoError
        A step failed.
    """
    started = time.monotonic()
    corpus = folder / "docstrings.jsonl"
    if not corpus.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_docstrings(corpus)
    train, test = _read(corpus)
    say(f"Data       {corpus}: {len(train.texts)} rows to train on, {len(test.texts)} to test, "
        f"{len(set(train.labels))} classes")  # fmt: skip
    with _service(folder, say) as client:
        say(f"Service    {client.url}, started after {time.monotonic() - started:.1f} s")
        say("Training   uploads, imports and trains; the first time, the numerics are compiled, too")
        version = _train(client, corpus)
        _report(version, say)
        majority, linear = _majority(train, test), _linear_svc(train, test)
        error = version.metrics["test"]["error"]
        say(f"Test error {error:.2%}; scikit-learn's LinearSVC on the same rows, TF-IDF of words, {linear:.2%}; "
            f"always the largest class {majority:.2%}")  # fmt: skip
        examples = _examples(client, test, say)
        say(f"Go on      POLYMARGIN_HOME={folder} make serve, then open the link that it prints; "
            f"the key is in {settings().admin_key_file}")  # fmt: skip
    say(f"Done in {time.monotonic() - started:.1f} s; everything is stopped, the data stays in {folder}")
    return {
        "model": version.model_dump(mode="json"),
        "test_error": error,
        "linear_svc_test_error": linear,
        "majority_test_error": majority,
        "examples": examples,
        "seconds": time.monotonic() - started,
    }


@contextmanager
def _service(folder: Path, say: Callable[[str], None]) -> Iterator[Client]:
    # Whatever service the environment speaks of, the demonstration has its own.
    for name in [name for name in os.environ if name.startswith("POLYMARGIN_")]:
        del os.environ[name]
    os.environ["POLYMARGIN_HOME"] = str(folder)
    settings.cache_clear()
    with (
        serving("127.0.0.1", 0, 1, say) as service,
        Client(service.url, settings().admin_key_file.read_text().strip()) as client,
    ):
        yield client


def _train(client: Client, corpus: Path) -> ModelVersion:
    known = {dataset.name: dataset.state for dataset in client.datasets.list(page_size=1000).items}
    # Named by its time of making: a corpus that was made again is another dataset.
    name = f"docstrings-{int(corpus.stat().st_mtime)}"
    if known.get(name) == "failed":
        client.datasets.delete(name, force=True)
    if known.get(name) in (None, "failed"):
        client.datasets.upload(corpus, name)
    client.datasets.get(name).wait(TRAIN_SECONDS)
    job = client.train(name, MODEL, params=PARAMS).wait(TRAIN_SECONDS)
    if job.result is None or job.result.version is None:
        raise DemoError(f"job {job.id} made no version of the model")
    return client.models.version(MODEL, job.result.version)


def _report(version: ModelVersion, say: Callable[[str], None]) -> None:
    say(f"Model      {version.model} version {version.version}: {version.solver}, the best of "
        f"{version.report['trials']:.0f} trials on held-out rows; {version.n_features} features")  # fmt: skip
    say(f"Trained    {version.epochs} epochs in {version.seconds:.1f} s, "
        f"{'converged' if version.converged else 'stopped at the limit of epochs'}")  # fmt: skip
    if version.primal is None or version.dual is None or version.gap is None:
        raise DemoError("the model has no bounds")
    say(f"Optimum    primal {version.primal:.6g}, dual {version.dual:.6g}, relative gap {gap_text(version.gap)}: "
        "the best possible value lies between the two")  # fmt: skip


def _examples(client: Client, test: Rows, say: Callable[[str], None]) -> list[dict[str, Any]]:
    chosen = np.random.default_rng(0).choice(len(test.texts), N_EXAMPLES, replace=False)
    texts = [test.texts[row] for row in chosen]
    answers = client.predict(MODEL, texts, top_k=3).predictions
    for text, row, answer in zip(texts, chosen, answers, strict=True):
        excerpt = " ".join(text.split())[:EXCERPT]
        scores = ", ".join(f"{best.label} {best.probability:.0%}" for best in answer.top)
        say(f"Example    '{excerpt}...' is of {test.labels[row]}; predicted: {scores}")
    return [answer.model_dump(mode="json") for answer in answers]


def _majority(train: Rows, test: Rows) -> float:
    largest = Counter(train.labels).most_common(1)[0][0]
    return float(np.mean([label != largest for label in test.labels]))


def _linear_svc(train: Rows, test: Rows) -> float:
    recipe = TextRecipe()
    features = TfidfVectorizer(
        min_df=recipe.min_df,
        max_df=recipe.max_df,
        ngram_range=(1, recipe.ngram_max),
        max_features=recipe.max_features,
        sublinear_tf=recipe.sublinear_tf,
        lowercase=recipe.lowercase,
    )
    model = LinearSVC(random_state=0).fit(features.fit_transform(train.texts), train.labels)
    return float(np.mean(model.predict(features.transform(test.texts)) != np.array(test.labels)))


def _read(corpus: Path) -> tuple[Rows, Rows]:
    parts = {"train": Rows([], []), "test": Rows([], [])}
    with corpus.open(encoding="utf-8") as lines:
        for line in lines:
            row = jsonlib.loads(line)
            parts[row["split"]].texts.append(row["text"])
            parts[row["split"]].labels.append(row["label"])
    return parts["train"], parts["test"]
