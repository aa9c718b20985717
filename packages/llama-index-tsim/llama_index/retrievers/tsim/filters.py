"""Metadata filters of LlamaIndex: what the core can apply while it searches, and what is applied to its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from tsim_core import Turn


def equalities(filters: MetadataFilters | None) -> dict[str, Any] | None:
    """The filters as values that metadata must have; None when they say more than that."""
    if filters is None:
        return {}
    found: dict[str, Any] = {}
    if filters.condition not in (FilterCondition.AND, None):
        return None
    for filter_ in filters.filters:
        if isinstance(filter_, MetadataFilters):
            nested = equalities(filter_)
        elif filter_.operator == FilterOperator.EQ and filter_.value is not None:
            nested = {filter_.key: filter_.value}
        else:
            nested = None
        if nested is None or any(key in found and found[key] != value for key, value in nested.items()):
            return None
        found |= nested
    return found


def matches(filters: MetadataFilters, metadata: Mapping[str, Any]) -> bool:
    """Whether metadata passes the filters, nested ones included.

    Raises:
        ValueError: If an operator or a condition is unknown. TypeError: If a value cannot be compared.
    """
    passed = [
        matches(filter_, metadata) if isinstance(filter_, MetadataFilters) else _passes(filter_, metadata)
        for filter_ in filters.filters
    ]
    if filters.condition == FilterCondition.OR:
        return not passed or any(passed)
    if filters.condition == FilterCondition.NOT:
        return not any(passed)
    return all(passed)


def _passes(filter_: MetadataFilter, metadata: Mapping[str, Any]) -> bool:
    return build_metadata_filter_fn(lambda _: metadata, MetadataFilters(filters=[filter_]))("")


def turn_metadata(turn: Turn) -> dict[str, Any]:
    """What filters may ask of a turn: its metadata, its role, and its time as ISO 8601 text."""
    metadata: dict[str, Any] = {"role": turn.role}
    if turn.timestamp is not None:
        metadata["timestamp"] = turn.timestamp.isoformat()
    return metadata | dict(turn.metadata or {})
