"""XML documents, read as they come: none of their entities may lie elsewhere, and an external DTD is not looked at."""

import re
from pathlib import Path
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler
from xml.sax.xmlreader import InputSource

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from app.formats.table import FormatError, row_error, shorten

_HEAD_BYTES = 200
_DECLARES_UTF16 = re.compile(rb"(?:\xef\xbb\xbf)?<\?xml[^>]*encoding\s*=\s*[\"']utf-?16", re.IGNORECASE)


def read_xml(path: Path, handler: ContentHandler, namespaces: bool = False) -> None:
    """Let a handler see a document, with the namespaces of its names resolved or with their prefixes.

    Entities of the document itself are allowed, as many files abbreviate their namespaces so; expat bounds how far they
    swell.

    Raises
    ------
    FormatError
        The file is not XML, or names an entity that the file does not declare.
    """
    parser = _Parser(namespaceHandling=int(namespaces), forbid_dtd=False, forbid_entities=False, forbid_external=True)
    parser.setContentHandler(handler)
    source = InputSource(str(path))
    with path.open("rb") as file:
        # a declaration that can be read so is none in UTF-16: another program has converted the text
        if _DECLARES_UTF16.match(file.read(_HEAD_BYTES)):
            source.setEncoding("utf-8")
    try:
        parser.parse(source)
    except SAXParseException as error:
        column = error.getColumnNumber()
        at = "" if column is None else f", at character {column + 1}"
        raise row_error(error.getLineNumber() or 1, f"not XML: {error.getMessage()}{at}") from None
    except DefusedXmlException:
        raise row_error(parser.getLineNumber() or 1, "an entity is external and is not fetched") from None
    except FormatError:
        raise
    except (LookupError, ValueError):  # expat knows encodings of one byte a character alone
        raise row_error(1, "not XML: the document's encoding is not supported; save it as UTF-8") from None


def oai_fault(code: str, text: str) -> str:
    """What a server of OAI-PMH has answered instead of records."""
    said = " ".join(text.split())
    quoted = f": '{shorten(said)}'" if said else ""
    return f"the OAI-PMH server answered with the error {shorten(code) or 'without a code'} instead of records{quoted}"


class LocatedHandler(ContentHandler):
    """A handler of events that knows on which line the parser is."""

    @property
    def line(self) -> int:
        """The line of the event, from 1."""
        return int(self._locator.getLineNumber() or 1)  # type: ignore[attr-defined]


class _Parser(DefusedExpatParser):  # type: ignore[misc]
    """Leaves an external DTD aside, and refuses what it would have declared."""

    def defused_external_entity_ref_handler(
        self, context: str | None, base: str | None, sysid: str | None, pubid: str | None
    ) -> int:
        """What expat asks before it reads something else: 1 goes on without it."""
        if context is None:  # the DTD
            return 1
        super().defused_external_entity_ref_handler(context, base, sysid, pubid)
        raise AssertionError("external entities are forbidden")

    def skipped_entity_handler(self, name: str, is_pe: bool) -> None:
        """Refuse an entity that the file does not define."""
        if not is_pe:
            line = self.getLineNumber() or 1
            raise row_error(line, f"not XML: the entity '{shorten(name)}' is not declared in the file")
