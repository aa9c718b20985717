"""Reads docstrings for the reference: an ``Example:`` becomes a section of code, which Griffe calls ``Examples:``."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


class Examples(Extension):
    """Renames the section."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for each object that is read."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
