"""Filters of a store search: equality, nested values, and the operators that LangGraph's stores share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from langgraph.store.base import MatchCondition
from tsim_core import InputError

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_EQUALITY: dict[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}


def matches(value: Mapping[str, Any], conditions: Mapping[str, Any] | None) -> bool:
    """Whether an item's value meets all conditions.

    Raises:
        InputError: If an operator is unknown.
    """
    return all(_meets(value.get(key), wanted) for key, wanted in (conditions or {}).items())


def _meets(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(key.startswith("$") for key in wanted):
            return all(_compare(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and matches(value, wanted)
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_meets, value, wanted))
    return bool(value == wanted)


def _compare(value: Any, name: str, operand: Any) -> bool:
    if name in _EQUALITY:
        return _EQUALITY[name](value, operand)
    if name not in _ORDER:
        raise InputError(f"unknown operator {name!r} in a filter; known: {', '.join([*_EQUALITY, *_ORDER])}")
    try:
        return _ORDER[name](value, operand)
    except TypeError:  # a missing value, or a text and a number: neither is before the other
        return False


def namespace_matches(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends with a path, whose ``*`` stands for any label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
