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
        description="Numbers by name. A column of lists is given as the list, or as its elements `v.0`, `v.1` and "
        "so on."
    )


class RecordInstance(BaseModel):
    model_config = _STRICT
    record: dict[str, FiniteFloat | bool | str | list[FiniteFloat] | None] = Field(
        description="For models of tables: values by column; a column of lists has a list. A value that is left out "
        "or null is missing. Models whose columns are all numbers require every column."
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
    Field(min_length=1, description="Return only these labels. A node of a label tree includes all labels below it."),
]
Excluded = Annotated[
    list[str] | None,
    Field(min_length=1, description="Exclude these labels and all labels below them."),
]


SureLevel = Annotated[
    Annotated[int, Field(ge=1, le=1000)] | Literal["any", "leaves"],
    Field(
        description="For models along a label tree: which answers `min_precision` applies to. any counts answers at "
        "all levels together, including broader nodes; leaves counts only labels; a number counts nodes "
        "at that level, where 1 is just below the top, and only these are sure."
    ),
]


class PredictRequest(BaseModel):
    """Up to ``max_instances`` instances, all of the kind that the model was trained on."""

    model_config = _STRICT

    instances: list[Instance] = Field(min_length=1)
    top_k: int = Field(default=1, ge=1, le=1000, description="Number of labels to return for each instance.")
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Minimum probability of a sure answer. `sure` returns the label, or the deepest node above it in "
        "a label tree, that reaches it; for sets, `sure_labels` returns all labels that reach it. Requires a "
        "model with probabilities, such as those of `auto`.",
    )
    min_precision: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Minimum precision, instead of a threshold. The service uses the lowest threshold at which "
        "answers on held-out rows were right more often than this, with a confidence of 95 % for all "
        "thresholds at once. For sets, the precision is that of the labels of all rows together.",
    )

    sure_level: SureLevel = "any"
    certain: bool = Field(
        default=False,
        description="Return in `certain` whether the exact optimum of the training problem gives the same label. "
        "Requires a model whose duality gap bounds its answers: a linear flat machine that is neither "
        "pooled nor calibrated.",
    )
    least_cost: bool = Field(
        default=False,
        description="Answer with the label of the least expected cost instead of the most probable one, by the "
        "version's calibrated probabilities and its costs. Each label has its `expected_cost`, and `top` begins with "
        "the least. Requires a version of `auto` with the parameter `costs`.",
    )
    include: Included = None
    exclude: Excluded = None
    language: str | None = Field(
        default=None,
        pattern=LANGUAGE_PATTERN,
        description="Return label names only in this language, in `name`. The value is a tag such as `fi` or "
        "`de-AT`. If a label has no name in `de-AT`, its name in `de` is returned; if it has none in "
        "`pt`, its name in `pt-BR` is. By default, `names` has all languages.",
    )
    text_language: str | None = Field(
        default=None,
        pattern=LANGUAGE_PATTERN,
        description="Language of the texts, as a tag such as `fi`, or `auto` to detect it. If hardly any training text "
        "was in it, predictions say so in `unseen_language`. auto reports only languages that are clear, in texts of "
        "at least 40 letters. Predictions do not depend on it.",
    )
    explain: int = Field(
        default=0,
        ge=0,
        le=100,
        description="Number of features to list in `explanation` that raised the label over the runner-up, and "
        "number that lowered it. Rejected, with the reason, if the model's scores cannot be attributed "
        "to features.",
    )


class NamedLabel(BaseModel):
    """A label with its entry in the hierarchy that the version was trained with."""

    label: str
    id: str | None = Field(default=None, description="URI or code of the label, if it differs from the label.")
    notation: str | None = Field(default=None, description="Notation of the label: its code in the vocabulary.")
    name: str | None = Field(
        default=None,
        description="With `language`: the preferred name in that language; absent if the vocabulary has none.",
    )
    names: dict[str, str] | None = Field(default=None, description="Preferred names by language.")
    deprecated: bool = Field(default=False, description="Whether the vocabulary marks the label as deprecated.")


class ScoredLabel(NamedLabel):
    """A label with its score and probability."""

    probability: float | None = Field(
        default=None, description="For models with probabilities, such as those of `auto`."
    )
    expected_cost: float | None = Field(
        default=None,
        description="With `least_cost`: what the label is expected to cost as the answer, in the unit of the costs.",
    )
    score: float | None = Field(
        description="A larger score is more certain. For models of one label with probabilities, it is the logarithm "
        "of the probability. For models that go down a label tree, it is the smallest margin on the label's "
        "path, and only the prediction has a positive one. For models that predict sets, it is the "
        "margin of the node, which is positive in the set, or, with probabilities, the log-odds of the label. "
        "Absent if the label has no rival."
    )


class SureAnswer(NamedLabel):
    """A label that is sure enough."""

    label: str = Field(
        description="The predicted label, the node above it in a label tree that is sure, or one label of a set."
    )
    probability: float


class UsedThreshold(BaseModel):
    """The threshold that decides what is sure."""

    threshold: float | None = Field(
        description="Absent if no threshold reached the precision on the held-out rows; no label of a set is then sure."
    )
    precision: float | None = Field(
        default=None,
        description="Precision on the held-out rows that had such an answer; for sets, on their labels. Absent if "
        "the request gave a threshold.",
    )
    lower_bound: float | None = Field(
        default=None, description="Lower bound of the precision, with a confidence of 95 % for all thresholds at once."
    )
    answered: float | None = Field(default=None, description="Share of the held-out rows that had an answer.")
    depth: float | None = Field(default=None, description="Mean level of those answers in the label tree, from 1.")
    recall: float | None = Field(
        default=None, description="For sets: share of the held-out rows' labels that such answers contain."
    )


class PathStep(NamedLabel):
    """One node on the path from the top of a label tree."""

    margin: float | None = Field(
        description="The node's score minus that of its best sibling. Absent for an only child and for models that "
        "do not go down the tree."
    )


class SubtreeNode(NamedLabel):
    """One label of a predicted set."""

    parent: str | None = Field(description="Parent of the label, which is also in the set; absent just below the top.")
    margin: float = Field(description="Margin of the label: positive, and never larger than the parent's.")


class ExplainedTerm(BaseModel):
    """The contribution of one feature."""

    feature: str | int = Field(description="Name or term of the feature, or its index if features have no names.")
    value: float = Field(description="Value of the feature in the row that the model read.")
    part: float = Field(description="Part of the lead that the feature accounts for.")
    spans: list[tuple[int, int]] | None = Field(
        default=None,
        description="For texts: where the term occurs, as the position of its first character and the position "
        "after its last.",
    )


class ExplainedStep(BaseModel):
    """Why one label or node was preferred to its best rival: the parts, `intercept` and `rest` sum to `lead`."""

    label: str
    name: str | None = Field(default=None, description="With `language`: name of the label.")
    rival: str | None = Field(
        description="The runner-up, or the best sibling along a label tree. Absent if there is none, as in sets."
    )
    rival_name: str | None = Field(default=None, description="With `language`: name of the rival.")
    lead: float = Field(description="The label's score minus the rival's score.")
    intercept: float
    lifted_by: list[ExplainedTerm] = Field(description="Features in order of their parts, the largest first.")
    lowered_by: list[ExplainedTerm] = Field(description="Features in order of their parts, the largest first.")
    rest: float = Field(description="Sum of all parts that are not listed.")


class AnsweredLabel(ScoredLabel):
    """One label of the answer for a row."""

    sure: bool | None = Field(
        default=None, description="With a threshold or a precision: whether the label is sure enough."
    )
    sure_ancestor: str | None = Field(
        default=None,
        description="If the label is not sure enough: the deepest node above it in the label tree that is; with a "
        "number as `sure_level`, its ancestor at that level if that is sure enough.",
    )
    path: list[str] | None = Field(
        default=None, description="The labels from the top of the label tree down to this label, inclusive."
    )
    seen: bool = Field(default=True, description="False if no training row had the label.")


class Prediction(Shown, NamedLabel):
    """The answer for one instance: `labels`, the best label, and the evidence for the answer."""

    score: float | None = Field(description="Absent if the label has no rival.")
    probability: float | None = Field(default=None, description="For models with probabilities.")
    expected_cost: float | None = Field(
        default=None, description="With `least_cost`: what the label is expected to cost as the answer."
    )
    sure: SureAnswer | None = Field(
        default=None,
        description="With a threshold or a precision: the answer that is sure enough; absent if there is none.",
    )
    sure_labels: list[SureAnswer] | None = Field(
        default=None,
        description="With a threshold or a precision, for models that predict sets: the labels that are sure "
        "enough, parents before children. The list may be empty.",
    )
    certain: bool | None = Field(
        default=None,
        description="With `certain`: true if the exact optimum gives the same label. False means that this is not "
        "known.",
    )
    labels: list[AnsweredLabel] = Field(
        default=[],
        description="The answer: one label, or for models that predict sets the labels of the set, the best first. "
        "The list may be empty. Ancestors that are in the set only because of other labels appear only "
        "in the paths of those labels.",
    )
    top: list[ScoredLabel] = Field(description="The `top_k` best labels, whether or not they are in the answer.")
    path: list[PathStep] | None = Field(
        default=None, description="Nodes from the top to the label, for models along a label tree."
    )
    subtree: list[SubtreeNode] | None = Field(
        default=None,
        description="For models that predict sets: the predicted set of labels in the order of `labels`, each after "
        "its parents. The list may be empty.",
    )

    unknown: list[str] | None = Field(
        default=None,
        description="For records: category values that no training row has, as column=value; absent if there are none.",
    )
    known_terms: int | None = Field(
        default=None,
        description="For instances with a text: number of different terms of the text that the model knows. At 0 "
        "the text has no effect, and the answer is the same as for an empty text. Absent without texts.",
    )
    text_language: str | None = Field(
        default=None,
        description="For versions trained with `by_language`: language in which most of the text was read, or `other`.",
    )
    unseen_language: str | None = Field(
        default=None,
        description="With `text_language`: the language of the text, if fewer than 1 % of the training texts were in "
        "it. Absent otherwise, and if the languages of the training texts are not known.",
    )
    explanation: list[ExplainedStep] | None = Field(
        default=None,
        description="With `explain`: one step, or one step for each level of a label tree or each label of a "
        "predicted set.",
    )


class PredictResponse(Shown, BaseModel):
    """One prediction per instance, in order, and the version that made them."""

    id: str | None = Field(default=None, description="Id of the request; feedback refers to the answer by it.")
    model: str
    version: int
    version_sha256: str = Field(description="SHA-256 of the version's artefact, as in its lineage.")
    gap: float | None
    set: bool = Field(
        default=False, description="Whether the model predicts sets: `labels` may then have several labels, or none."
    )
    sure_from: UsedThreshold | None = Field(
        default=None, description="With a threshold or a precision: the threshold that decides what is sure."
    )
    predictions: list[Prediction]


class ModelInputs(BaseModel):
    """The columns that a version reads from a row of a table."""

    model: str
    version: int
    instance: Literal["text", "record", "features", "numbers"] = Field(
        description="Form of the instances: a text, values by column, numbers by name, or a list of numbers."
    )
    text_columns: list[str] = Field(
        default=[],
        description="Columns of the text, joined by newlines. Empty for a version of texts whose dataset an "
        "earlier release deleted, or that was imported.",
    )
    number_columns: list[str] = Field(
        default=[], description="Columns of numbers, in order; empty if they have no names or are more than 10,000."
    )
    category_columns: list[str] = []
    n_numbers: int | None = Field(default=None, description="For models of numbers alone: how many a row has.")
    max_instances: int = Field(description="Maximum number of instances in one request.")


PredictionFormat = Literal["parquet", "csv", "jsonl", "xlsx"]
MEDIA_TYPES: dict[PredictionFormat, str] = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class SureRows(UsedThreshold):
    """The number of rows with a sure label, and their precision as measured on held-out rows.

    The precision and its bound apply to what `sure_level` names: the deepest sure node of each row, which may be
    its label; labels alone; or nodes at one level. For sets, they apply to the labels of all rows together; along a
    label tree, to all sure nodes, those above others too. `answered` and `n_answered` count rows with such an answer.
    """

    counted: Literal["labels", "nodes"] = Field(
        default="labels",
        description="What `precision`, `answered` and `n_answered` count. Nodes of a label tree include labels.",
    )

    answered: float | None = Field(
        default=None, description="Share of the held-out rows with such an answer; for sets, with at least one."
    )
    label_precision: float | None = Field(
        default=None,
        description="With `any` along a label tree: the precision of the held-out rows' sure labels, without those "
        "rows that have only a broader sure node.",
    )
    asked: float | None = Field(default=None, description="The requested precision.")
    sure_level: SureLevel = "any"
    n_rows: int
    n_answered: int | None = Field(
        default=None, description="Rows with such an answer, as `answered` counts held-out rows."
    )
    n_sure: int | None = Field(
        default=None,
        description="Rows whose label is sure; for sets, rows that have a label and whose labels are all sure. With a "
        "number as `sure_level`, only labels at that level are sure. Plans of sets, or with a number, do not have it.",
    )
    n_sure_labels: int | None = Field(default=None, description="For sets: number of sure labels in all rows.")
    n_labels: int | None = Field(default=None, description="For sets: number of labels in all rows.")
    n_broader: int | None = Field(
        default=None, description="For models along a label tree: rows without a sure label that have a sure ancestor."
    )
    n_at_level: int | None = Field(
        default=None, description="With a number as `sure_level`: rows with a sure node at that level."
    )
    levels: list[int] | None = Field(
        default=None,
        description="For models along a label tree: number of rows by the level of their deepest sure node, "
        "starting just below the top. The rows' own labels count as nodes.",
    )

    @property
    def is_set(self) -> bool:
        """Whether answers are sets of labels."""
        return self.n_labels is not None

    @property
    def what(self) -> str:
        """What `answered` and `precision` count, in one word or a few, without an article."""
        if isinstance(self.sure_level, int):
            return f"node at level {self.sure_level}"
        if self.counted == "labels":
            return "label"
        return "node" if self.is_set else "answer at any level"


class PredictionPlan(BaseModel):
    """Forecast of a prediction job; nothing is queued."""

    model: str
    version: int
    n_rows: int
    sure: SureRows | None = Field(
        default=None,
        description="With a threshold or a precision: the forecast from held-out rows. `n_answered` and "
        "`n_sure` are the expected numbers of rows if the rows are like the held-out ones.",
    )


class BatchPredictRequest(JobOptions):
    """Predict the rows of a dataset with one version, and write the predictions to one file."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["predict"] = "predict"
    model: Name = Field(description="Id or name.")
    version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the latest.")
    alias: Name | None = Field(default=None, description="Alias instead of a version.")
    dataset: Name = Field(description="Id or name.")
    dataset_version: int | None = Field(default=None, ge=1, lt=2**31, description="Default: the newest.")
    part: Part = Field(default="all", description="All rows, or those of one part of the dataset's own split.")
    format: PredictionFormat = Field(
        default="parquet",
        description="Format of the file. It has a row for each row of the dataset, with the columns of the input, "
        "then `label`, `notation`, `name`, `probability`, `sure`, `sure_ancestor`, `label_2`, `name_2`, "
        "`probability_2` and so on, `model` as NAME@VERSION, `row`, counted from 0, and the scores. For "
        "models that predict sets, these names are plural and the columns are lists; in CSV and xlsx "
        "the dataset's separator joins the elements. An input column with the same name as a column of "
        "the answers is renamed to `input.NAME`. Models along a label tree add `path`. Models of tables "
        "add `unknown`, the category values that no training row has. Rows with a text have "
        "`known_terms`, the number of different terms of the text that the model knows. Versions trained "
        "with `by_language` add `text_language`, the language in which most of the text was read.",
    )
    top_k: int = Field(
        default=1,
        ge=1,
        le=100,
        description="Number of labels per row. A value above 1 adds `label_2`, `name_2`, `probability_2` and so on, "
        "the best first. For models that predict sets, it adds `alternatives`: the best labels outside "
        "the set, up to this many labels in all.",
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Minimum probability of a sure label. Fills `sure` and, along a label tree, `sure_ancestor`: "
        "the deepest node above the label that reaches the threshold if the label does not. Requires a model with "
        "probabilities.",
    )
    min_precision: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Minimum precision, instead of a threshold. The service uses the lowest threshold at which "
        "answers on held-out rows were right more often than this. If there is none, no label is sure.",
    )
    sure_level: SureLevel = "any"
    least_cost: bool = Field(
        default=False,
        description="Answer with the label of the least expected cost instead of the most probable one. Adds "
        "`expected_cost`, in the unit of the costs that the version was trained with. Requires a version of `auto` "
        "with the parameter `costs`.",
    )
    include: Included = None
    exclude: Excluded = None
    language: str | None = Field(
        default=None,
        pattern=LANGUAGE_PATTERN,
        description="Language of `name`. Default: English, or the first language in which a label has a name.",
    )
    inputs: bool = Field(
        default=True,
        description="Include the columns of the input: the columns of the dataset's file, in their order and with "
        "their original text, or else what the dataset stores. If false, only `id` is included.",
    )
    bom: bool = Field(
        default=False,
        description="Begin a CSV file with a byte order mark, so that Excel recognises UTF-8.",
    )

    target: str | None = Field(
        default=None,
        max_length=2000,
        description="Address of an object to which the job also writes the file: s3://bucket/key or gs://bucket/key, "
        "where the administrator allows it. An object that is there is replaced.",
    )

    @model_validator(mode="after")
    def _one_threshold(self) -> Self:
        if self.threshold is not None and self.min_precision is not None:
            raise ValueError("min_precision and a threshold cannot be combined: pass one of them")
        if self.least_cost and (self.threshold is not None or self.min_precision is not None):
            raise ValueError(
                "least_cost cannot be combined with min_precision or a threshold, which are about the most probable "
                "label"
            )
        return self
