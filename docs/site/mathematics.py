"""Formulas between dollar signs become MathML, which browsers draw: no script."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex makes of $x$ and of $$ x $$.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\\\[(.*?)\\\]</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """The page with its formulas drawn."""
    content = INLINE.sub(lambda found: convert(html.unescape(found[1])), content)
    return DISPLAY.sub(_displayed, content)


def _displayed(found: re.Match[str]) -> str:
    """A formula on a line of its own, in a box that scrolls if it is wider."""
    formula = convert(html.unescape(found[1]).strip(), display="block")
    return f'<div class="formula">{formula}</div>'
