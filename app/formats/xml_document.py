"""XML documents, read as they come: none of their entities may lie elsewhere, and an external DTD is not looked at."""

from __future__ import annotations

from pathlib import Path
from xml.sax import SAXParseException
from xml.sax.handler import ContentHandler

from defusedxml.common import DefusedXmlException
from defusedxml.expatreader import DefusedExpatParser

from app.formats.table import FormatError, row_error, shorten


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
    try:
        parser.parse(str(path))
    except SAXParseException as error:
        raise row_error(error.getLineNumber() or 1, f"not XML: {error.getMessage()}") from None
    except DefusedXmlException:
        raise row_error(parser.getLineNumber() or 1, "an entity is external and is not fetched") from None
    except FormatError:
        raise
    except (LookupError, ValueError):  # expat knows encodings of one byte a character alone
        raise row_error(1, "not XML: the document's encoding is not supported; save it as UTF-8") from None


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
