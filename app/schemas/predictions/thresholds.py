"""What answers of a model version are worth from each threshold on."""

from pydantic import BaseModel, Field


class ThresholdPoint(BaseModel):
    """The held-out answers that are at least so probable."""

    threshold: float = Field(description="A probability.")
    precision: float = Field(
        description="Share of those answers that are right; of sets, of all their labels together."
    )
    lower_bound: float = Field(
        description="What that precision exceeds with a confidence of 95 % (Clopper and Pearson)."
    )
    answered: float = Field(description="Share of the held-out rows that have such an answer.")
    depth: float | None = Field(
        default=None, description="Mean level of those answers in the label tree, from 1; 1 without one; null for sets."
    )
    recall: float | None = Field(
        default=None, description="Of sets of labels: share of the held-out rows' labels that are told; else null."
    )


class ThresholdCurve(BaseModel):
    """Precision against coverage, as `threshold` and `min_precision` of predictions have it."""

    model: str
    version: int
    n_rows: int = Field(description="Rows that were held out when the version was chosen.")
    points: list[ThresholdPoint] = Field(description="Up to 512, by ascending thresholds.")
