"""What a column's name says of its role, in the languages that tables are mostly written in."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

# the surest first
_LABELS = (
    "label labels etikett etiketten étiquette étiquettes etiqueta etiquetas etichetta etichette rótulo rótulos nimiö "
    "etykieta štítek метка метки ラベル 标签 標籤",
    "class classes klasse klassen classe clase clases klass klasser luokka luokat klasa klasy třída класс 类别 類別 "
    "クラス",
    "category categories kategorie kategorien catégorie catégories categoría categorías categoria categorias categorie "
    "kategori kategorier kategoria kategoriat категория カテゴリ カテゴリー 分类 分類",
    "target targets zielgruppe zielklasse cible objetivo kohde",
    "code codes kode koder koodi koodit código códigos codice codici kod kód код 代码 コード",
    "subject subjects sachgebiet sachgruppe schlagwort schlagwörter sujet sujets materia materias ämne ämnen emne "
    "emner asiasana asiasanat assunto onderwerp",
    "topic topics thema themen thème thèmes tema temas temi aihe aiheet temat тема",
    "y",
)
_TEXTS = (
    "text texts texte textes texto textos testo testi teksti tekst текст title titles titel titre título titolo "
    "otsikko rubrik tittel tytuł název заголовок description descriptions beschreibung descripción descrizione "
    "descrição kuvaus beskrivning beskrivelse opis popis omschrijving описание abstract abstracts zusammenfassung "
    "kurzfassung résumé resumen riassunto resumo tiivistelmä sammanfattning summary content contents inhalt "
    "contenu contenido contenuto conteúdo sisältö innehåll body message messages nachricht mensaje messaggio "
    "mensagem viesti meddelande comment comments kommentar commentaire comentario commento comentário kommentti "
    "review question headline document sentence satz phrase bezeichnung"
)
_IDS = (
    "id ids uid uuid guid identifier identifiers identifiant kennung identificador identificatore tunniste tunnus "
    "identifikator nr ppn isbn doi key rowid"
)
# a weight alone may well be that of a body
_WEIGHTS = (
    "sampleweight instanceweight rowweight exampleweight caseweight zeilengewicht fallgewicht stichprobengewicht "
    "poidséchantillon poidsligne pesomuestra pesofila rivipaino otospaino radvikt"
)
# a code that has one of these words beside it is of something else than a class
_OF_OTHERS = (
    "post postal zip plz country land pays país paese maa area phone dial currency language lang bar color colour "
    "error status state source postinumero"
)
# words that end a German or Finnish compound, as in Produktkategorie
_ENDINGS = ("klasse", "kategorie", "kategoria", "luokka", "kategori", "sachgruppe")


def labels_by_name(names: Sequence[str]) -> list[str]:
    """The names that a column of labels may have, the surest first.

    Names that are a word for labels come before those that contain one, as `ISCO code`.
    """
    found = []
    for place, name in enumerate(names):
        rank = _label_rank(name)
        if rank is not None:
            found.append((rank, place, name))
    return [name for _, _, name in sorted(found)]


def is_sure_label(name: str) -> bool:
    """Whether a name is a word for label itself."""
    return _folded(name) in _LABEL_WORDS[0]


def is_named_text(name: str) -> bool:
    """Whether a name is one that columns of texts have."""
    return not _TEXT_WORDS.isdisjoint(_words(name))


def is_named_id(name: str) -> bool:
    """Whether a name is one that the ids of rows have."""
    words = _words(name)
    return bool(words) and (words[-1] in _ID_WORDS or words[0] in _ID_WORDS)


def is_named_weight(name: str) -> bool:
    """Whether a name leaves no doubt that the weights are those of rows, as `sample_weight`."""
    return "".join(_words(name)) in _WEIGHT_WORDS


def _label_rank(name: str) -> int | None:
    whole = _folded(name)
    for rank, known in enumerate(_LABEL_WORDS):
        if whole in known:
            return rank
    words = _words(name)
    if not _OTHER_WORDS.isdisjoint(words):
        return None
    for rank, known in enumerate(_LABEL_WORDS[:-1], len(_LABEL_WORDS)):
        if words and (words[-1] in known or words[0] in known) and words[-1] not in _ID_WORDS:
            return rank
    return 2 * len(_LABEL_WORDS) if whole.endswith(_ENDINGS) else None


def _folded(name: str) -> str:
    """In small letters, without accents."""
    letters = unicodedata.normalize("NFKD", name.strip().casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _words(name: str) -> list[str]:
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[\W_]+", _folded(parted)) if word]


def _known(words: str | Iterable[str]) -> frozenset[str]:
    return frozenset(map(_folded, words.split() if isinstance(words, str) else words))


_LABEL_WORDS = tuple(map(_known, _LABELS))
_TEXT_WORDS, _ID_WORDS, _WEIGHT_WORDS, _OTHER_WORDS = map(_known, (_TEXTS, _IDS, _WEIGHTS, _OF_OTHERS))
