"""Predictions: instances in, labels and scores out."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

_STRICT = ConfigDict(extra="forbid")


class TextInstance(BaseModel):
    model_config = _STRICT
    text: str


class NamedInstance(BaseModel):
    model_config = _STRICT
    features: dict[str, FiniteFloat]


class RecordInstance(BaseModel):
    model_config = _STRICT
    record: dict[str, FiniteFloat | bool | str | None] = Field(
        description="Of models of tables: values by column; one that is left out, or null, is missing."
    )


class SparseInstance(BaseModel):
    model_config = _STRICT
    indices: list[Annotated[int, Field(ge=0, lt=2**31)]]
    values: list[FiniteFloat]


Instance = TextInstance | RecordInstance | NamedInstance | SparseInstance | list[FiniteFloat]


# by RFC 5646, which says more of what may follow one another
LANGUAGE_PATTERN = r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$"


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
        "held out, with a confidence of 95 %. Of sets: labels, all rows' together.",
    )

    include: list[str] | None = Field(
        default=None,
        min_length=1,
        description="Answer with these labels alone; a node of a label tree stands for all below it.",
    )
    exclude: list[str] | None = Field(
        default=None, min_length=1, description="Never answer with these labels, nor with what is below them."
    )
    language: str | None = Field(
        default=None,
        pattern=LANGUAGE_PATTERN,
        description="Tell the labels' names in this language alone, in `name`: a tag as `fi` or `de-AT`, for which "
        "`de` stands in, as `pt-BR` does for `pt`. Without it `names` has them in all.",
    )
    explain: int = Field(
        default=0,
        ge=0,
        le=100,
        description="How many features to name in `explanation` that lifted the label over the runner-up, and how many "
        "that lowered it. Refused, with the reason, where scores are not shared out among features.",
    )


class NamedLabel(BaseModel):
    """A label, with what the hierarchy that the version was trained along told of it."""

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
        default=None, description="What that precision exceeds with a confidence of 95 % (Clopper and Pearson)."
    )
    answered: float | None = Field(default=None, description="Share of the held-out rows that had an answer.")
    depth: float | None = Field(default=None, description="Mean level of those answers in the label tree, from 1.")
    recall: float | None = Field(
        default=None, description="Of sets: share of the held-out rows' labels that such answers have."
    )


class PathStep(NamedLabel):
    """One node on the way from the top of a label tree."""

    margin: float | None = Field(
        description="Its score less that of the best of its siblings; absent for an only child."
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
        default=None, description="Of texts: where the term stands, from and to which character."
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


class Prediction(NamedLabel):
    """The answer for one instance."""

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
    top: list[ScoredLabel]
    path: list[PathStep] | None = Field(
        default=None, description="From the top to the label, for models along a label tree."
    )
    subtree: list[SubtreeNode] | None = Field(
        default=None,
        description="The predicted set of labels, parents before children, for models that predict sets; may be empty.",
    )

    explanation: list[ExplainedStep] | None = Field(
        default=None,
        description="With `explain`: one step, or one for each level of a label tree or label of a predicted set.",
    )


class PredictResponse(BaseModel):
    """One prediction an instance, in order, and the version that made them."""

    id: str | None = Field(default=None, description="By which feedback names the answer: the request's id.")
    model: str
    version: int
    version_sha256: str = Field(description="Of the version's artefact, as its lineage has it.")
    gap: float | None
    sure_from: UsedThreshold | None = Field(default=None, description="With a threshold or a precision.")
    predictions: list[Prediction]
