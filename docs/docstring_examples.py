"""Doctests in docstrings become code blocks on the API page. An extension of griffe (see mkdocs.yml)."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class CodeBlocks(griffe.Extension):
    """Without it Markdown takes ``>>>`` for three nested quotations."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one object; griffe calls this."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The same text with every doctest in a code block."""
    return _EXAMPLE.sub(lambda example: f"\n```pycon\n{example.group()}\n```", text)
