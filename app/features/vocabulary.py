"""A vocabulary of concepts with names, for estimators that index texts without a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import scipy.sparse as sp

from app.datasets.recipe_schemas import TextRecipe, default_recipe
from app.features.concept_names import ConceptName
from app.features.named_text import NamedTextFeatures
from app.formats.hierarchies.parsing import parse_hierarchy
from app.formats.hierarchies.source import Bounds
from app.formats.hierarchies.vocabulary import Label, names_in
from app.formats.plain_file import plain_file
from app.hierarchies.formats import format_by_name
from app.hierarchies.schemas import HierarchyOptions
from solvers.labels.name_block import NameBlock

# a file of one's own is read whatever its size
_BOUNDS = Bounds(nodes=1 << 24, depth=1000, characters=1 << 34, seconds=3600.0)


class Vocabulary:
    """Concepts, and the names by which texts mention them.

    Parameters
    ----------
    names : mapping of str to sequence of str
        Of each concept the names to be found in texts, the preferred first; a concept may have none.
    language : str, optional
        Language of names and texts, as a tag. Words are compared by their lemmas where there is a dictionary of the
        language, otherwise as they are written.
    recipe : TextRecipe, optional
        How texts become terms; by default the recipe of the method ``subjects`` in that language.
    """

    def __init__(
        self, names: Mapping[str, Sequence[str]], language: str | None = None, recipe: TextRecipe | None = None
    ) -> None:
        self.names = {concept: tuple(some) for concept, some in names.items()}
        self.language = language
        languages = () if language is None else (language,)
        self.recipe = recipe or default_recipe("subjects", len(self.names), languages, named=True)

    @classmethod
    def read(
        cls,
        path: str | Path,
        language: str | None = None,
        *,
        format: str | None = None,
        tree: str = "first",
        recipe: TextRecipe | None = None,
    ) -> Vocabulary:
        """The concepts of a file in one of the formats of hierarchies; it may be compressed.

        Parameters
        ----------
        path : str or Path
        language : str, optional
            Names in other languages are left out; names without a language are kept. By default all names are kept.
        format : str, optional
            ``skos``, ``csv`` (also Annif's tables), ``mesh``, ...; by default by the file's ending.
        tree : {"first", "deepest", "graph", "refuse"}
            What is done with concepts that have several parents.
        recipe : TextRecipe, optional

        Raises
        ------
        ValueError
            The ending determines no format.
        FormatError
            The file cannot be read; the message names the lines.
        """
        file = Path(path)
        by_name, syntax = format_by_name(file.name)
        found = format or by_name
        if found is None:
            raise ValueError(f"the extension of {file.name!r:.80} does not determine a format: pass one, such as skos")
        with plain_file(file) as plain:
            options = HierarchyOptions.model_validate({"tree": tree, "syntax": syntax if found == "skos" else None})
            parsed = parse_hierarchy(plain, found, options, _BOUNDS)
        known = {label: parsed.labels.get(label, Label()) for label in parsed.tree.names}
        names = {label: names_in(label, some.names, some.alternatives, language) for label, some in known.items()}
        return cls(names, language, recipe)

    def __deepcopy__(self, _: object) -> Vocabulary:
        # it never changes, so clones of an estimator share it
        return self

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self.names):,} concepts{f' in {self.language}' if self.language else ''}>"

    def fit(self, texts: Sequence[str], concepts: Sequence[str]) -> tuple[NamedTextFeatures, sp.csr_matrix, NameBlock]:
        """Learn the terms of texts, and find names in them.

        Parameters
        ----------
        texts : sequence of str
        concepts : sequence of str
            All labels in the order of their columns; those that the vocabulary lacks have no names.

        Returns
        -------
        features : NamedTextFeatures
            ``transform`` makes the rows of other texts.
        X : csr_matrix of float64, shape (n_texts, n_features)
        names : NameBlock
            Which columns are names.

        Raises
        ------
        FitError
            No term is left.
        """
        by_concept = [self.names.get(concept, ()) for concept in concepts]
        names = (ConceptName(number, name) for number, some in enumerate(by_concept) for name in some)
        shown = [some[0] if some else concept for some, concept in zip(by_concept, concepts, strict=True)]
        features, X = NamedTextFeatures.fit(texts, self.recipe, names, shown)
        return features, sp.csr_matrix(X), features.block()
