"""Reads docstrings for the reference.

An ``Example:`` becomes a section of code, which Griffe calls ``Examples:``. A field of a pydantic model is documented
by its ``description``.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from griffe import Attribute, Docstring, ExprCall, ExprKeyword, Extension, Object


class Examples(Extension):
    """Renames the section."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for each object that is read."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)


class Fields(Extension):
    """Takes descriptions for docstrings."""

    def on_attribute(self, *, attr: Attribute, **kwargs: Any) -> None:
        """Called for each attribute that is read."""
        if attr.docstring is None and isinstance(attr.value, ExprCall) and str(attr.value.function) == "Field":
            given = {a.name: a.value for a in attr.value.arguments if isinstance(a, ExprKeyword)}
            if "description" in given:
                text = eval_text(str(given["description"]))
                attr.docstring = Docstring(text, parent=attr, parser="google")
                attr.value = given.get("default")


def eval_text(source: str) -> str:
    """A string of source code, whether or not it holds values that only a run knows."""
    node = ast.parse(source, mode="eval").body
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(p.value) if isinstance(p, ast.Constant) else "..." for p in parts)
