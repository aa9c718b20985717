"""Reads docstrings for the reference.

An ``Example:`` becomes a section of code, which Griffe calls ``Examples:``. A field of a pydantic model is documented
by its ``description``.
"""

from __future__ import annotations

import re
from pydoc import locate
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
        if attr.docstring is not None or not isinstance(attr.value, ExprCall) or str(attr.value.function) != "Field":
            return
        given = {a.name: a.value for a in attr.value.arguments if isinstance(a, ExprKeyword)}
        if "description" in given:
            field = locate(attr.parent.path).model_fields[attr.name]
            attr.docstring = Docstring(field.description, parent=attr, parser="google")
            attr.value = given.get("default")
