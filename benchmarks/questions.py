"""The pages of the results: a question each, and the benchmarks that answer it."""

from typing import NamedTuple


class Dots(NamedTuple):
    """A small picture: one dot for each row of the tables, by a column's value.

    Attributes
    ----------
    name : str
        Of the picture's file.
    titles : str
        What the tables' titles begin with; a column named "" is the rest of the title.
    rows, series, x : str
        The columns with the place of a dot, its colour, and its value.
    label : str
        Of the axis of values.
    line : float or None
        Where a vertical line is drawn, 1 for ratios.
    only : tuple of str
        The series that are drawn; all when empty.
    """

    name: str
    titles: str
    rows: str
    series: str
    x: str
    label: str
    line: float | None = None
    only: tuple[str, ...] = ()
    log: bool = True


class Page(NamedTuple):
    """A page: its file's name, its question, what one should know before reading it, and whose tables it has."""

    name: str
    question: str
    about: str
    benchmarks: tuple[str, ...]
    pictures: tuple[Dots, ...] = ()


PEERS = (
    "auto",
    "auto, from texts",
    "crammer_singer",
    "LinearSVC",
    "LogisticRegression",
    "Omikuji, Parabel",
    "LightGBM",
)
PAGES = (
    Page(
        "flat",
        "Which flat machine is fast?",
        "Time to LIBLINEAR's own objective, or to a certified gap, on the same rows with the same C.",
        ("bench_peers", "bench_walrus", "bench_gap", "bench_precise", "bench_curves", "bench_lee_lin_wahba",
         "bench_growth", "bench_primitives", "bench_certain", "bench_screening", "bench_path", "bench_limit"),
        (
            Dots(
                "flat", "Time to LIBLINEAR's objective at its default stop", "set", "machine", "ratio",
                "time, LIBLINEAR's is 1", 1.0,
            ),
        ),
    ),
    Page(
        "answers",
        "Who answers best?",
        "Test rows that `auto`, single machines and other programs get right, all tuned on the same training rows.",
        ("bench_quality", "bench_sets_quality", "bench_subjects", "bench_set_precision", "bench_sparsity"),
        (Dots("answers", "Who answers best: ", "", "program", "P@1", "P@1, %", None, PEERS, False),),
    ),
    Page(
        "fields",
        "Do text columns with weights of their own answer better?",
        "Titles and abstracts: joined into one text, each column alone, as `fields`, and what `auto` chooses.",
        ("bench_fields",),
        (
            Dots(
                "fields", "Titles with a weight of their own", "", "features", "nDCG@10", "nDCG@10", None,
                ("joined", "fields, title 1", "fields, title 4"), False,
            ),
        ),
    ),
    Page(
        "languages",
        "Is a model for each language better than one for all?",
        "`subjects` on records in German or English: words of all texts, lemmas of both languages, and `by_language`.",
        ("bench_languages",),
    ),
    Page(
        "cleaning",
        "What does cleaning of pages and PDF texts cost?",
        "Texts a second that are cleaned, and that become features with and without cleaning.",
        ("bench_cleaning",),
    ),
    Page(
        "vectors",
        "What do vectors of one's own add to texts?",
        "A linear machine on words, on vectors, and on both with several weights of the vectors.",
        ("bench_vectors",),
        (
            Dots(
                "vectors", "Texts with vectors: ", "", "features", "error, %", "error, %", None,
                ("text alone", "vectors as numbers", "vector_weight 1"), False,
            ),
        ),
    ),
    Page(
        "curation",
        "What does the coding desk save?",
        "Labels that are needed, wrong labels that are found, and precisions that were promised.",
        ("bench_curation",),
        (
            Dots(
                "curation", "How many labels are needed?", "set", "rows chosen by", "of random's",
                "labels, as a share of what random rows need", 1.0, log=False,
            ),
        ),
    ),
    Page(
        "serving",
        "How fast are answers served?",
        "Requests a second, latency against load, first answers, and serving while jobs train.",
        ("bench_serving", "bench_serving_start", "bench_first_from_bucket", "bench_serving_texts", "bench_pool_texts",
         "bench_soak",
         "bench_predict_job", "bench_evaluation"),
        (Dots("serving", "Serving: requests a second", "request", "endpoint", "requests/s", "requests a second"),),
    ),
    Page(
        "waiting",
        "What does a person wait for?",
        "From a file of texts to the first and to the best prediction, by phase.",
        ("bench_waiting",),
    ),
    Page(
        "import",
        "How fast are files read?",
        "Uploaded files to arrays, texts to TF-IDF.",
        ("bench_import",),
        (Dots("import", "Reading files and weighing texts", "what", "", "times as fast", "times as fast", 1.0),),
    ),
    Page(
        "shards",
        "What do class shards and threads gain?",
        "One model in several processes: time, epochs, what travels; and threads within one process.",
        ("bench_shards", "bench_many_shards", "bench_exchange", "bench_threads", "bench_lock_free"),
        (Dots("shards", "Class shards: time in processes of their own: ", "", "way", "wall s", "seconds"),),
    ),
    Page(
        "memory",
        "What does training take in memory?",
        "Weights that would not fit densely, and the largest data.",
        ("bench_memory", "bench_largest"),
    ),
    Page(
        "cold_start",
        "How long does the first training take?",
        "With nothing compiled beforehand, and with everything.",
        ("bench_cold_start",),
        (Dots("cold_start", "Cold start", "method", "kind", "training, cold", "seconds, nothing compiled"),),
    ),
    Page(
        "retraining",
        "What does a warm start spare?",
        "Training again from an earlier version's dual variables.",
        ("bench_warm_retraining",),
        (
            Dots(
                "retraining", "Retraining from the dual variables of the version before", "set", "machine",
                "warm / cold", "time, from the start is 1", 1.0,
            ),
        ),
    ),
    Page(
        "copies",
        "What does a smaller copy save, and what does it lose?",
        "Half precision and pruned weights of linear machines: bytes, microseconds a row, and answers that change.",
        ("bench_smaller_copies",),
    ),
    Page(
        "trees",
        "How fast and how good are machines over a label tree?",
        "One label of a tree, and sets of labels.",
        ("bench_transfer", "bench_trees_little_regularisation", "bench_hm3", "bench_graphs", "bench_hierarchies"),
        (Dots("trees", "Machines over a label tree", "set", "method", "s", "seconds to a gap of 1 %"),),
    ),
    Page(
        "costs",
        "What do costs of wrong answers save?",
        "Mean costs with unit margins, costs as margins and losses times costs, by score or by least expected cost.",
        ("bench_costs",),
    ),
    Page(
        "boosting",
        "How fast and how good is boosting?",
        "Rounds, the master problem, and other programs' boosting.",
        ("bench_boosting", "bench_boosting_peers", "bench_boosting_text", "bench_boosting_figures",
         "bench_boosting_master", "bench_boosting_sweeps"),
        (
            Dots(
                "boosting", "Boosting: the figures of Lin et al.", "set", "method", "error % at 500",
                "test error after 500 rounds, %", None, (), False,
            ),
        ),
    ),
    Page(
        "codes",
        "What do output codes cost, and are they better?",
        "Test errors of codes, their design, and columns in threads.",
        ("bench_codes", "bench_quadratic_design"),
        (Dots("codes", "Test errors of output codes: ", "", "code", "loss", "test error, %", None, (), False),),
    ),
)  # fmt: skip


def page_of(benchmark: str) -> Page:
    """The page that shows a benchmark's tables.

    Raises
    ------
    KeyError
        If no page names it.
    """
    for page in PAGES:
        if benchmark in page.benchmarks:
            return page
    raise KeyError(f"no page of benchmarks/questions.py names {benchmark}")
