"""Schemas of predictions."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from app.display.shown import Shown
from app.evaluations.schemas import Part
from app.schemas import JobOptions, Name

_STRICT = ConfigDict(extra="forbid")


class TextInstance(BaseModel):
    model_config = _STRICT
    text: str


class NamedInstance(BaseModel):
    model_config = _STRICT
    features: dict[str, FiniteFloat | list[FiniteFloat]] = Field(
        description="Numbers by name; of a column of lists the list, or its elements as `v.0`, `v.1` and so on."
    )


class RecordInstance(BaseModel):
    model_config = _STRICT
    record: dict[str, FiniteFloat | bool | str | list[FiniteFloat] | None] = Field(
        description="Of models of tables: values by column, of columns of lists a list; one that is left out, or null, "
        "is missing. Models whose columns are all numbers need all of them."
    )


class SparseInstance(BaseModel):
    model_config = _STRICT
    indices: list[Annotated[int, Field(ge=0, lt=2**31)]]
    values: list[FiniteFloat]


Instance = TextInstance | RecordInstance | NamedInstance | SparseInstance | list[FiniteFloat]


# by RFC 5646, which says more of what may follow one another
LANGUAGE_PATTERN = r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$"


Included = Annotated[
    list[str] | None,
    Field(min_length=1, description="Answer with these labels alone; a node of a label tree includes all below it."),
]
Excluded = Annotated[
    list[str] | None,
    Field(min_length=1, description="Never answer with these labels, nor with labels below them."),
]


SureLevel = Annotated[
    Annotated[int, Field(ge=1, le=1000)] | Literal["any", "leaves"],
    Field(
        description="Along a label tree, what `min_precision` is of: any counts answers at all levels together, also "
        "broader nodes; leaves counts labels alone; a number counts nodes at that level, 1 below the top."
    ),
]


class PredictRequest(BaseModel):
    """Up to ``max_instances`` instances, all of the kind that the model was trained on."""

    model_config = _STRICT

    instances: list[Instance] = Field(min_length=1)
    top_k: int = Field(default=1, ge=1, le=1000, description="How many labels to return for each instance.")
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Say in `sure` what is at least so probable: the label, or along a label tree the deepest node; of "
        "sets, in `sure_labels`, all labels that are. For models with probabilities, as `auto` makes them.",
    )
    min_precision: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="In place of a threshold: the least one from which answers were right more often than this on rows "
        "held out, with a confidence of 95 % that holds for all thresholds at once. Of sets: labels, all rows' "
        "together.",
    )

    sure_level: SureLevel = "any"
    certain: bool = Field(
        default=False,
        description="Say in `certain` whether the exact optimum of the training problem gives the same label. For "
        "models whose duality gap bounds their answers: linear flat machines that are neither pooled nor calibrated.",
    )
    include: Included = None
    exclude: Excluded = None
    language: str | None = Field(
        default=None,
        pattern=LANGUAGE_PATTERN,
        description="Give the labels' names in this language alone, in `name`: a tag as `fi` or `de-AT`, for which "
        "`de` is used if it is missing, as `pt-BR` is for `pt`. Without it `names` has all languages.",
    )
    explain: int = Field(
        default=0,
        ge=0,
        le=100,
        description="How many features to name in `explanation` that lifted the label over the runner-up, and how many "
        "that lowered it. Refused, with the reason, where scores are not shared out among features.",
    )


class NamedLabel(BaseModel):
    """A label, with what the hierarchy of the version's training says about it."""

    label: str
    id: str | None = Field(default=None, description="Its URI or code, where the label is something else.")
    notation: str | None = Field(default=None, description="The code by which people know it.")
    name: str | None = Field(
        default=None, description="With `language`: the preferred name in it; absent where the vocabulary has none."
    )
    names: dict[str, str] | None = Field(default=None, description="The preferred name by language.")
    deprecated: bool = Field(default=False, description="The vocabulary asks not to use it any more.")


class ScoredLabel(NamedLabel):
    """A label and how sure it is."""

    probability: float | None = Field(default=None, description="Of models with probabilities, as `auto` makes them.")
    score: float | None = Field(
        description="Larger is surer; of models with probabilities their logarithm. Models that go down a label tree "
        "have the least margin on the label's path here, positive for the prediction alone; those that predict sets "
        "the margin of the node, positive in the set. Absent where the label has no rival."
    )


class SureAnswer(NamedLabel):
    """What is sure enough."""

    label: str = Field(
        description="The predicted label, or along a label tree the deepest node that is sure enough, or one of a set."
    )
    probability: float


class UsedThreshold(BaseModel):
    """What `sure` goes by."""

    threshold: float | None = Field(
        description="Absent where on the held-out rows no threshold reached the precision, so that no label of a set "
        "is sure."
    )
    precision: float | None = Field(
        default=None,
        description="Of the held-out rows that such answers were given to, of sets of their labels; absent for a given "
        "threshold.",
    )
    lower_bound: float | None = Field(
        default=None, description="The precision exceeds this, for all thresholds at once with a confidence of 95 %."
    )
    answered: float | None = Field(default=None, description="Share of the held-out rows that had an answer.")
    depth: float | None = Field(default=None, description="Mean level of those answers in the label tree, from 1.")
    recall: float | None = Field(
        default=None, description="Of sets: share of the held-out rows' labels that such answers have."
    )


class PathStep(NamedLabel):
    """One node on the way from the top of a label tree."""

    margin: float | None = Field(
        description="Its score less that of the best of its siblings; absent for an only child, and of models that do "
        "not go down the tree."
    )


class SubtreeNode(NamedLabel):
    """One label of a predicted set."""

    parent: str | None = Field(description="Also in the set; absent below the top.")
    margin: float = Field(description="Positive; never larger than that of the parent.")


class ExplainedTerm(BaseModel):
    """What one feature brought."""

    feature: str | int = Field(description="Its name or term, or its index where features have no names.")
    value: float = Field(description="In the row that the model read.")
    part: float = Field(description="Of the lead.")
    spans: list[tuple[int, int]] | None = Field(
        default=None, description="Of texts: where the term occurs: its first character and the one after its last."
    )


class ExplainedStep(BaseModel):
    """Why one label, or node, was preferred to its best rival: the parts and `intercept` and `rest` sum to `lead`."""

    label: str
    name: str | None = Field(default=None, description="With `language`: of the label.")
    rival: str | None = Field(
        description="The runner-up; along a label tree the best sibling. Absent without any, as in sets."
    )
    rival_name: str | None = Field(default=None, description="With `language`: of the rival.")
    lead: float = Field(description="The label's score less its rival's.")
    intercept: float
    lifted_by: list[ExplainedTerm] = Field(description="The largest part first.")
    lowered_by: list[ExplainedTerm] = Field(description="The largest part first.")
    rest: float = Field(description="The sum of all parts that are not listed.")


class AnsweredLabel(ScoredLabel):
    """One label of the answer to a row."""

    sure: bool | None = Field(
        default=None, description="With a threshold or a precision: whether the label is sure enough."
    )
    sure_ancestor: str | None = Field(
        default=None, description="The deepest node of the label tree that is sure enough, where the label is not."
    )
    path: list[str] | None = Field(
        default=None, description="The labels from the top of the label tree to this one, itself the last."
    )
    seen: bool = Field(default=True, description="False where no training row had the label.")


class Prediction(Shown, NamedLabel):
    """The answer for one instance: `labels`; beside it the best label itself, and what led to the answer."""

    score: float | None = Field(description="Absent where the label has no rival.")
    probability: float | None = Field(default=None, description="Of models with probabilities.")
    sure: SureAnswer | None = Field(
        default=None, description="With a threshold or a precision: what is sure enough; absent where nothing is."
    )
    sure_labels: list[SureAnswer] | None = Field(
        default=None,
        description="With a threshold or a precision, of models that predict sets: the labels that are sure enough, "
        "parents before children; may be empty.",
    )
    certain: bool | None = Field(
        default=None,
        description="With `certain`: true where the exact optimum gives the same label; false says nothing of it.",
    )
    labels: list[AnsweredLabel] = Field(
        default=[],
        description="The answer: one label, or of models that predict sets the set's own labels, the best first, maybe "
        "none. Ancestors that are in the set because of other labels are in their paths alone.",
    )
    top: list[ScoredLabel] = Field(description="The `top_k` best labels, whether or not they are in the answer.")
    path: list[PathStep] | None = Field(
        default=None, description="From the top to the label, for models along a label tree."
    )
    subtree: list[SubtreeNode] | None = Field(
        default=None,
        description="The predicted set of labels, parents before children, for models that predict sets; may be empty.",
    )

    unknown: list[str] | None = Field(
        default=None,
        description="Of records: values of categories that no training row has, as column=value; absent where there "
        "are none.",
    )
    known_terms: int | None = Field(
        default=None,
        description="Of instances with a text: how many different terms of it the model knows. At 0 the text counts "
        "for nothing, and the answer is that to an empty one. Absent without texts.",
    )
    explanation: list[ExplainedStep] | None = Field(
        default=None,
        description="With `explain`: one step, or one for each level of a label tree or label of a predicted set.",
    )


class PredictResponse(Shown, BaseModel):
    """One prediction an instance, in order, and the version that made them."""

    id: str | None = Field(default=None, description="By which feedback names the answer: the request's id.")
    model: str
    version: int
    version_sha256: str = Field(description="Of the version's artefact, as its lineage has it.")
    gap: float | None
    set: bool = Field(default=False, description="The model predicts sets: `labels` may be several, or none.")
    sure_from: UsedThreshold | None = Field(default=None, description="With a threshold or a precision.")
    predictions: list[Prediction]


class ModelInputs(BaseModel):
    """What a version reads of a row of a table."""

    model: str
    version: int
    instance: Literal["text", "record", "features", "numbers"] = Field(
        description="The form of its instances: a text, values by column, numbers by name, or a list of numbers."
    )
    text_columns: list[str] = Field(
        default=[],
        description="Columns of the text, joined by newlines. Of a version of texts whose dataset was deleted: empty.",
    )
    number_columns: list[str] = Field(
        default=[], description="Columns of numbers, in order; empty if they have no names or are more than 10,000."
    )
    category_columns: list[str] = []
    n_numbers: int | None = Field(default=None, description="Of lists of numbers: their length.")
    max_instances: int = Field(description="Instances in one request, at most.")


PredictionFormat = Literal["parquet", "csv", "jsonl", "xlsx"]
MEDIA_TYPES: dict[PredictionFormat, str] = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class SureRows(UsedThreshold):
    """How many rows have a sure label, and what held-out rows promise for just these.

    The precision and its bound are those of labels, never of broader nodes, or with a number as `sure_level` those of
    nodes at that level; of sets, of all their labels together.
    """

    answered: float | None = Field(
        default=None, description="Share of the held-out rows with a sure label; of sets, with at least one."
    )
    asked: float | None = Field(default=None, description="The precision that the request asked for.")
    sure_level: SureLevel = "any"
    n_rows: int
    n_sure: int | None = Field(
        default=None, description="Rows whose label is sure; of sets, rows with a label of which all labels are."
    )
    n_sure_labels: int | None = Field(default=None, description="Of sets: sure labels of all rows.")
    n_labels: int | None = Field(default=None, description="Of sets: labels of all rows.")
    n_broader: int | None = Field(
        default=None, description="Along a label tree: rows without a sure label that have a sure ancestor."
    )
    n_at_level: int | None = Field(
        default=None, description="With a number as `sure_level`: rows with a sure node at that level or below it."
    )
    levels: list[int] | None = Field(
        default=None,
        description="Along a label tree: rows by the level of their deepest sure node, that below the top first. Their "
        "own labels count too.",
    )


class PredictionPlan(BaseModel):
    """What a prediction job will make; nothing is queued."""

    model: str
    version: int
    n_rows: int
    sure: SureRows | None = Field(
        default=None,
        description="With a threshold or a precision: what held-out rows promise. `n_sure` is the number of rows to "
        "be expected, if they are like those.",
    )


class BatchPredictRequest(JobOptions):
    """Let a version answer to the rows of a dataset, into one file."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["predict"] = "predict"
    model: Name = Field(description="Id or name.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the latest.")
    alias: Name | None = Field(default=None, description="Alias instead of a version.")
    dataset: Name = Field(description="Id or name.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="By default the newest.")
    part: Part = Field(default="all", description="All rows, or those of one part of the dataset's own split.")
    format: PredictionFormat = Field(
        default="parquet",
        description="Of the file. Each row of the dataset has the columns of the input, then `label`, `notation`, "
        "`name`, `probability`, `sure`, `sure_ancestor`, `label_2`, `name_2`, `probability_2` and so on, `model` as "
        "NAME@VERSION, `row`, counted from 0, and the scores. Of models that predict sets the names are in the plural, "
        "and the columns are lists, joined by the dataset's separator in CSV and xlsx. A column of the input whose "
        "name the answers have is called `input.NAME`. Along a label tree there is `path`; models of tables have "
        "`unknown`, the values of categories that no training row has; rows with a text `known_terms`, how many "
        "different terms of it the model knows.",
    )
    top_k: int = Field(
        default=1,
        ge=1,
        le=100,
        description="More than one adds `label_2`, `name_2`, `probability_2` and so on, the best first; of models that "
        "predict sets `alternatives`, the best labels that are not in the set, up to so many labels in all.",
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Fills `sure`, whether a label is at least so probable, and along a label tree `sure_ancestor`, "
        "the deepest node that is where the label is not. For models with probabilities.",
    )
    min_precision: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="In place of a threshold: the least one from which answers were right more often than this on rows "
        "held out. Where there is none, no label is sure.",
    )
    sure_level: SureLevel = "any"
    include: Included = None
    exclude: Excluded = None
    language: str | None = Field(
        default=None,
        pattern=LANGUAGE_PATTERN,
        description="Of `name`; by default English, or else the first language that a label has a name in.",
    )
    inputs: bool = Field(
        default=True,
        description="The file has the columns of the input: those of the dataset's file, in their order and with their "
        "text, else what the dataset keeps. If false, it has `id` alone.",
    )
    bom: bool = Field(
        default=False,
        description="A CSV file begins with a byte order mark, by which Excel recognises UTF-8.",
    )

    @model_validator(mode="after")
    def _one_threshold(self) -> Self:
        if self.threshold is not None and self.min_precision is not None:
            raise ValueError("a threshold or a precision is taken, not both")
        return self
