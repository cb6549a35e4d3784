"""Annif on a corpus of subjects: its backends by its command line, each with its defaults but for the analyzer.

The vocabulary is a SKOS file of all concepts with their names, the first of which is the preferred one. Scores are
those of ``annif index``, a hundred concepts a text. A neural ensemble learns from a tenth of the rows, which its
sources have not seen, and answers with sources that are trained on all rows.
"""

import json
import resource
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rdflib import RDF, SKOS, Graph, Literal, URIRef

from app.features.concept_names import ConceptName
from benchmarks.serving_programs import AnnifProject, train_sentences

# Khandagale, Xiao and Babbar's trees, as Annif's documentation has them
BONSAI = {"cluster_balanced": "False", "cluster_k": "100", "max_depth": "3"}
# an ensemble's sources in these proportions, of which the best on the measured rows counts: in Annif's favour
WEIGHTS = ("1,{}:1", "1,{}:2", "2,{}:1")
LANGUAGES = {"fi": "finnish", "en": "english", "de": "german"}
LIMIT = 100

Rows = Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True)
class Peer:
    """A project of Annif.

    Attributes
    ----------
    name : str
        For the table.
    seconds : float
        Processor seconds of the training, of all processes.
    scores : float64 array, shape (n_texts, n_concepts)
        -inf of concepts that are not among the first hundred.
    milliseconds : float
        Processor time a text, the program's start included.
    """

    name: str
    seconds: float
    scores: np.ndarray
    milliseconds: float


def peers(
    python: str, train: Rows, test: Rows, concepts: Sequence[str], names: Sequence[ConceptName], language: str
) -> Iterator[list[Peer]]:
    """Each backend with each analyzer; of ensembles all proportions, of which one is to be chosen.

    Parameters
    ----------
    python : str
        The interpreter of an environment that has Annif with nn, omikuji and stwfsa, and simplemma.
    train, test : sequence of (text, URIs)
    concepts : sequence of str
        URIs.
    names : sequence of ConceptName
        Empty: nothing is matched.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "nltk").mkdir()
        train_sentences(python, [text for text, _ in train], folder / "nltk")
        vocabulary = folder / "vocabulary.ttl"
        concept_graph(concepts, names, language).serialize(vocabulary, format="turtle", encoding="utf-8")
        trained_on, asked = (
            documents(folder / file, rows) for file, rows in (("train.tsv", train), ("test.tsv", test))
        )
        most = len(train) - len(train) // 10
        nine, tenth = documents(folder / "nine.tsv", train[:most]), documents(folder / "tenth.tsv", train[most:])
        number = {concept: at for at, concept in enumerate(concepts)}
        annif = AnnifProject(python, folder, "vocabulary")
        first = ("mllm", "bonsai") if names else ("tfidf", "bonsai")
        loaded = False
        for analyzer in (f"snowball({LANGUAGES[language]})", f"simplemma({language})"):
            backends = {"tfidf": ("tfidf", {}), "bonsai": ("omikuji", BONSAI), "parabel": ("omikuji", {})}
            backends |= {"mllm": ("mllm", {})} if names else {}
            sections = [section(key, backend, analyzer, language, more) for key, (backend, more) in backends.items()]
            mixed = [weight.format("bonsai") for weight in WEIGHTS] if names else []
            for at, weights in enumerate(mixed):
                sources = {"sources": f"mllm:{weights}"}
                sections.append(section(f"ensemble{at}", "ensemble", analyzer, language, sources))
            nines = {f"{key}-nine": backends[key] for key in first}
            sections += [section(key, backend, analyzer, language, more) for key, (backend, more) in nines.items()]
            neural = [
                section("nn", "nn_ensemble", analyzer, language, {"sources": ",".join(some)}) for some in (nines, first)
            ]
            if names and not loaded:
                backends["stwfsa"] = ("stwfsa", {})
                sections.append(section("stwfsa", "stwfsa", analyzer, language, {}))
            (folder / "projects.cfg").write_text("\n\n".join([*sections, neural[0]]))
            if not loaded:
                annif.run(["load-vocab", "--force", "vocabulary", str(vocabulary)])
                loaded = True
            seconds: dict[str, float] = {}
            for key in backends:
                began = _processor()
                annif.run(["train", key, str(trained_on)])
                seconds[key] = _processor() - began
                name = f"Annif, {key}" if key == "stwfsa" else f"Annif, {key}, {analyzer}"
                yield [_asked(annif, key, name, seconds[key], asked, len(test), number)]
            label = f"Annif, mllm and bonsai, {analyzer}"
            both = seconds.get("mllm", 0.0) + seconds["bonsai"]
            if mixed:
                yield [
                    _asked(annif, f"ensemble{at}", label, both, asked, len(test), number) for at in range(len(mixed))
                ]
            began = _processor()
            for key in nines:
                annif.run(["train", key, str(nine)])
            annif.run(["train", "nn", str(tenth)])
            took = _processor() - began + sum(seconds[key] for key in first)
            (folder / "projects.cfg").write_text("\n\n".join([*sections, neural[1]]))
            label = f"Annif, neural ensemble of {' and '.join(first)}, {analyzer}"
            yield [_asked(annif, "nn", label, took, asked, len(test), number)]


def _asked(
    annif: AnnifProject, key: str, name: str, seconds: float, asked: Path, n_texts: int, number: dict[str, int]
) -> Peer:
    found, began = annif.folder / f"{key}.jsonl", _processor()
    annif.run(["index", key, str(asked), "--limit", str(LIMIT), "--force", "--output", str(found)])
    took = _processor() - began
    scores = np.full((n_texts, len(number)), -np.inf)
    for row, line in enumerate(found.read_text().splitlines()):
        for each in json.loads(line)["results"]:
            scores[row, number[each["uri"]]] = each["score"]
    return Peer(name, seconds, scores, 1000.0 * took / n_texts)


def section(key: str, backend: str, analyzer: str, language: str, more: dict[str, str]) -> str:
    """A project of the configuration, with further options."""
    about = {"name": key, "language": language, "backend": backend, "analyzer": analyzer, "vocab": "vocabulary", **more}
    return "\n".join([f"[{key}]", *(f"{name}={value}" for name, value in about.items())])


def concept_graph(concepts: Sequence[str], names: Sequence[ConceptName], language: str) -> Graph:
    """The concepts as SKOS, each with a preferred name and perhaps others."""
    graph, named = Graph(), set()
    for each in names:
        kind = SKOS.altLabel if each.concept in named else SKOS.prefLabel
        named.add(each.concept)
        graph.add((URIRef(concepts[each.concept]), kind, Literal(each.name, lang=language)))
    for at, concept in enumerate(concepts):
        graph.add((URIRef(concept), RDF.type, SKOS.Concept))
        if at not in named:
            graph.add((URIRef(concept), SKOS.prefLabel, Literal(concept, lang=language)))
    return graph


def documents(path: Path, rows: Rows) -> Path:
    """A file of texts with the addresses of their concepts, a line each."""
    lines = (f"{' '.join(text.split())}\t{' '.join(f'<{uri}>' for uri in uris)}\n" for text, uris in rows)
    path.write_text("".join(lines))
    return path


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
