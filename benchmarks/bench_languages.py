"""Does a model for each language answer better than one model for texts of several languages?

    python -m benchmarks.bench_languages

Needs the corpora beside the repository, in ``../shared/data``: records of a technical library, in German or English.
The gain in nDCG@10 over the words of all texts has a confidence interval of paired bootstrap over the held-out rows.
"""

import time

import numpy as np

from app.datasets.recipe_schemas import TextRecipe
from app.features.by_language import main_language
from benchmarks.bench_fields import gain_over, of_texts, subjects_answered
from benchmarks.bench_subjects import parts, targets, vocabulary
from benchmarks.results import write

CORPUS = "tib-core.orig"
LANGUAGES = ("de", "en")
RECIPES = {
    "words": TextRecipe(),
    "lemmas of de, en": TextRecipe(lemmas=LANGUAGES),
    "by_language": TextRecipe.model_validate({"by_language": LANGUAGES}),
}


def bench() -> None:
    train, test = parts(CORPUS)
    concepts, _ = vocabulary(None, [label for _, some in (*train, *test) for label in some], "de")
    Y, Y_test = targets(train, concepts), targets(test, concepts)
    texts, held_out = ([text for text, _ in some] for some in (train, test))
    began = time.process_time()
    read = np.array([main_language([text], LANGUAGES) for text in held_out])
    microseconds = 1e6 * (time.process_time() - began) / len(held_out)
    first: np.ndarray | None = None
    rows: list[list[str]] = []
    for title, recipe in RECIPES.items():
        began = time.process_time()
        made = of_texts(texts, held_out, recipe, [], concepts)
        features = time.process_time() - began
        found, took = subjects_answered(made, Y, Y_test, concepts, began)
        ndcg = np.array(found.ndcg)
        gain = "" if first is None else gain_over(ndcg, first)
        first = ndcg if first is None else first
        parted = [f"{ndcg[read == language].mean():.3f}" for language in LANGUAGES]
        rows.append(
            [title, f"{np.mean(found.f1):.3f}", f"{ndcg.mean():.3f}", gain, *parted, f"{features:.0f}", f"{took:.0f}"]
        )
        print(f"  {rows[-1]}", flush=True)
    shares = ", ".join(f"{np.mean(read == each):.0%} {each}" for each in (*LANGUAGES, "other"))
    note = (
        f"{len(train):,} rows to train on, {len(test):,} held out ({shares}), {len(concepts):,} concepts. gain: of "
        f"nDCG@10 over words, with an interval of 95 %. Languages are detected in {microseconds:.0f} us a text."
    )
    parted = [f"nDCG@10 of {language}" for language in LANGUAGES]
    header = ["features", "F1@5", "nDCG@10", "gain", *parted, "features s", "processor s"]
    write(f"A model for each language: {CORPUS}", header, rows, note)


if __name__ == "__main__":
    bench()
