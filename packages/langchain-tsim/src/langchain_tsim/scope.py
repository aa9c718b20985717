"""Whose memory: from a scope to the name of a thread.

A scope is a sequence of texts, each of which may hold names in braces: ``("{user_id}", "{thread_id}")``. The names are
looked up where a run keeps its ids. An id that is missing is an error: two users never fall into one bucket.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_tsim.errors import ScopeError

Scope = str | Sequence[str]
"""One text or several; ``{name}`` in it is looked up, ``{{`` and ``}}`` are braces."""

Source = tuple[str, object]
"""Where ids may be found: what to call it in an error, and a mapping or an object with attributes."""

_FIELD = re.compile(r"\{\{|\}\}|\{(\w+)\}")


def check_scope(scope: Scope, name: str = "scope") -> tuple[str, ...]:
    """A scope as a tuple of texts.

    Raises:
        ScopeError: If it is empty or holds anything but non-empty texts.
    """
    parts = (scope,) if isinstance(scope, str) else tuple(scope)
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise ScopeError(
            f"{name}={scope!r}: expected a non-empty text or a sequence of them, such as 'alice' or "
            "('{user_id}', '{thread_id}')"
        )
    return parts


def check_recall_scope(scope: Sequence[str], recall_scope: Scope | None) -> tuple[str, ...] | None:
    """The part of ``scope`` over whose threads a recall goes; None for the thread itself.

    Raises:
        ScopeError: If it is not a beginning of ``scope``: what is written would not be found, or other users would.
    """
    if recall_scope is None:
        return None
    parts = check_scope(recall_scope, "recall_scope")
    if parts != tuple(scope[: len(parts)]):
        raise ScopeError(f"recall_scope={parts!r} is no beginning of scope={tuple(scope)!r}")
    return None if len(parts) == len(scope) else parts


def scope_fields(scope: Iterable[str]) -> list[str]:
    """The names in braces, in order, each once."""
    return list(dict.fromkeys(m[1] for part in scope for m in _FIELD.finditer(part) if m[1]))


def resolve_scope(scope: Sequence[str], sources: Sequence[Source] = ()) -> tuple[str, ...]:
    """Put ids into a scope.

    Args:
        scope: What `check_scope` returned.
        sources: Where to look, first come first served. A value of None counts as missing.

    Returns:
        The name of a thread, for `EpisodicMemory.thread`.

    Raises:
        ScopeError: If an id is in none of them, is empty, or is neither text nor a number.
    """
    ids = {field: _find(field, scope, sources) for field in scope_fields(scope)}
    return tuple(_FIELD.sub(lambda m: ids[m[1]] if m[1] else m[0][0], part) for part in scope)


def run_sources(
    *, given: object = None, runtime: object = None, config: Mapping[str, Any] | None = None
) -> list[Source]:
    """Where a run of LangChain or LangGraph keeps its ids, in the order of precedence.

    Args:
        given: Explicit ids.
        runtime: LangGraph's ``Runtime``: its context (a mapping, a dataclass or any object), and its
            ``execution_info`` last.
        config: The ``RunnableConfig``, for its ``configurable``.
    """
    sources: list[Source] = []
    if given is not None:
        sources.append(("the arguments", given))
    if (context := getattr(runtime, "context", None)) is not None:
        sources.append(("runtime.context", context))
    if config is not None:
        sources.append(("config['configurable']", config.get("configurable") or {}))
    if (info := getattr(runtime, "execution_info", None)) is not None:
        sources.append(("runtime.execution_info", {"thread_id": getattr(info, "thread_id", None)}))
    return sources


def _find(field: str, scope: Sequence[str], sources: Sequence[Source]) -> str:
    for label, source in sources:
        value = source.get(field) if isinstance(source, Mapping) else getattr(source, field, None)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | UUID) or value == "":
            raise ScopeError(f"{field}={value!r} in {label} is no id: expected a non-empty text or a number")
        return str(value)
    looked = ", ".join(label for label, _ in sources) or "nowhere"
    raise ScopeError(
        f"the scope {tuple(scope)!r} needs {field!r}, which is not given (looked in: {looked}). Without it memories of "
        "different users would mix"
    )


def current_runtime() -> object | None:
    """LangGraph's runtime when called within a run of a graph, else None."""
    if "langgraph.runtime" not in sys.modules:  # without it there is no run
        return None
    from langgraph.runtime import get_runtime

    try:
        return get_runtime()
    except (KeyError, RuntimeError):
        return None
