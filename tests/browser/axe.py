"""Axe, which finds in a page what keeps people out."""

from pathlib import Path
from typing import Any

import pytest
from browsing import OPEN

_PROGRAM = Path(__file__).parents[2] / "build/browser/node_modules/axe-core/axe.min.js"
# Of what is in order axe would describe every node, which on a long page takes longer than to look at it.
_LOOK = """([nodes, options]) =>
    axe.run(nodes ?? document, {...options, resultTypes: ["violations"]}).then((found) => found.violations)"""
# The style sheet gives the same colours to what has the same tags, classes and states from the page down to it; axe
# looks at those of the reference's fourteen thousand nodes for half a minute.
_ONE_OF_EACH_COLOUR = """() => {
    const kinds = new Map();
    const has_text = (each) => [...each.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    for (const each of document.querySelectorAll("body *"))
        if (each.matches("input, select, textarea, button") || has_text(each)) {
            let kind = "";
            for (let at = each; at; at = at.parentElement) {
                const states = [...at.attributes].filter(({ name }) => !/^(id|href|for|name|value|title)$/.test(name));
                kind += `${at.tagName} ${states.map(({ name, value }) => `${name}=${value}`)}>`;
            }
            if (!kinds.has(kind)) kinds.set(kind, each);
        }
    return [...kinds.values()];
}"""
_COLOURS = {"runOnly": ["color-contrast"]}


def serious_faults(page: Any) -> dict[str, list[str]]:
    """The nodes of each rule that a page breaks in the light or in the dark, all its details being open."""
    if not _PROGRAM.exists():
        pytest.skip("axe-core is not installed: make test-browser")
    page.evaluate(OPEN)
    page.evaluate(_PROGRAM.read_text())
    found = page.evaluate(_LOOK, [None, {"rules": {"color-contrast": {"enabled": False}}}])
    coloured = page.evaluate_handle(_ONE_OF_EACH_COLOUR)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found += page.evaluate(_LOOK, [coloured, _COLOURS])
    return {
        each["id"]: [node["html"][:200] for node in each["nodes"][:3]]
        for each in found
        if each["impact"] in ("serious", "critical")
    }
