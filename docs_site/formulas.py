"""Formulas in TeX become MathML, which browsers draw without any script."""

import re
from html import unescape

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.+?)\\\)</span>', re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.+?)\\\]\s*</div>', re.DOTALL)


def drawn(html: str) -> str:
    """A page's HTML with the formulas that Markdown's arithmatex has marked as MathML."""
    html = _DISPLAY.sub(lambda found: convert(unescape(found[1]).strip(), display="block"), html)
    return _INLINE.sub(lambda found: convert(unescape(found[1]).strip()), html)
