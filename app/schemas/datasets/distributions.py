"""How the rows of a dataset are spread: what the pictures of its page are drawn from."""

from pydantic import BaseModel, Field


class Histogram(BaseModel):
    """Whole numbers, counted by intervals."""

    edges: list[int] = Field(description="Interval i has the numbers from edge i to that before edge i + 1.")
    counts: dict[str, list[int]] = Field(
        description="By part (train, test, validation) how many rows are in each interval; of features by features."
    )


class LanguageShare(BaseModel):
    """A language that texts are in."""

    language: str = Field(description="Code of ISO 639; other for languages with less than a hundredth of the texts.")
    share: float = Field(description="Of the texts looked at.")


class Languages(BaseModel):
    """The languages of texts, detected by py3langid in an even sample of those with 20 letters or more."""

    n_rows: int = Field(description="Texts that were looked at and whose language was clear.")
    shares: list[LanguageShare] = Field(description="By falling share.")


class PartShift(BaseModel):
    """How test rows differ from training rows."""

    auc: float | None = Field(
        description="How well a classifier tells test rows from training rows, in halves held out from it: 0.5 is not "
        "at all, 1 always (classifier two-sample test, Lopez-Paz and Oquab 2017). Absent where a part has few rows."
    )
    auc_by_chance: float | None = Field(description="The greatest that chance alone would reach, but once in 1,000.")
    label_variation: float = Field(description="Total variation between the label shares of both parts: 0 to 1.")
    label_variation_by_chance: float = Field(description="Its mean, were all rows drawn from one urn.")
