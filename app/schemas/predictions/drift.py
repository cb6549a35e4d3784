"""How the late answers of a version differ from those to the rows that were held out from its training."""

from pydantic import BaseModel, Field


class ScoreDrift(BaseModel):
    """Scores of the first answers, in bins that have equal shares of the held-out answers."""

    edges: list[float] = Field(
        description="Where the next bin begins, ascending; scores as predictions tell them: of versions that tell "
        "probabilities, their logarithms."
    )
    expected: list[float] = Field(description="Share of the held-out answers in each bin.")
    found: list[float] = Field(description="Share of the late answers in each bin.")
    psi: float = Field(description="Population stability index: the sum of (found - expected) ln(found / expected).")
    psi_by_chance: float = Field(description="What it would be in the mean if nothing but chance had changed.")


class LabelShare(BaseModel):
    """How often one label was answered."""

    label: str
    names: dict[str, str] | None = Field(default=None, description="The preferred name by language.")
    expected: float = Field(description="Share of the held-out answers.")
    found: float = Field(description="Share of the late answers.")


class LabelDrift(BaseModel):
    """Labels of the first answers."""

    total_variation: float = Field(description="Half the sum of |found - expected| over all labels: 0 alike, 1 apart.")
    total_variation_by_chance: float = Field(
        description="What it would be in the mean if nothing but chance had changed."
    )
    moved: list[LabelShare] = Field(description="The labels whose shares have moved the most, up to 20.")


class Drift(BaseModel):
    """Late answers beside held-out ones. Answers to requests that choose labels are left out."""

    model: str
    version: int
    days: int = Field(description="Days, by UTC, that are looked at; the last is today.")
    n_answers: int = Field(description="Answers in these days.")
    n_expected: int = Field(description="Held-out answers, a sample of 20,000 at most; 0 where the version kept none.")
    scores: ScoreDrift | None = Field(description="Null where there is nothing to compare.")
    labels: LabelDrift | None = Field(description="Null where there is nothing to compare.")
