"""How docstrings and comments of fields become the API page: extensions of griffe (see mkdocs.yml)."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_COMMENT = re.compile(r"\s{2}# (?!fmt:|noqa|type:)(.+)$")


class CodeBlocks(griffe.Extension):
    """Doctests become code blocks: without it Markdown takes ``>>>`` for three nested quotations."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence the examples of one object; griffe calls this."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


class FieldComments(griffe.Extension):
    """The comment behind a public field of a class is its description."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Take the comment at the end of the field's last line; griffe calls this."""
        in_a_class = attr.parent is not None and attr.parent.is_class
        if in_a_class and attr.docstring is None and (found := _COMMENT.search(attr.source)):
            attr.docstring = griffe.Docstring(found[1], parent=attr)


def fenced(text: str) -> str:
    """The same text with every doctest in a code block."""
    return _EXAMPLE.sub(lambda example: f"\n```pycon\n{example.group()}\n```", text)
