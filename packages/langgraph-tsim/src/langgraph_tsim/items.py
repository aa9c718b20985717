"""An item of the store as a turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from langgraph.store.base import Item, SearchItem
from tsim_core import InputError, Turn

from langgraph_tsim.scope import STORE_ROOT

ITEM, FIELD = "item", "field"  # roles: the turn with the value, and those with its indexed texts

Name = tuple[str, ...]


def thread_name(namespace: Name, key: str) -> Name:
    """Name of the thread that holds an item."""
    return (STORE_ROOT, *namespace, key)


@dataclass(frozen=True, slots=True)
class Record:
    """An item.

    Attributes:
        name: Name of its thread.
        value: Its value, JSON data.
        created_at: When it was first put.
        updated_at: When it was last put.
        ttl: Minutes that it lives after it was last touched; None for ever.
        expires_at: When it ends.
    """

    name: Name
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl: float | None = None
    expires_at: datetime | None = None

    @classmethod
    def new(cls, name: Name, value: Mapping[str, Any], ttl: float | None, before: Record | None) -> Record:
        """An item that is put now.

        Raises:
            InputError: If the value is no JSON data.
        """
        try:
            json.dumps(dict(value), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"the value of {name[-1]!r} in {name[1:-1]} is no JSON data: {error}") from error
        now = datetime.now(UTC)
        return cls(name, dict(value), before.created_at if before is not None else now, now, ttl).touched()

    @classmethod
    def of_turn(cls, name: Name, turn: Turn) -> Record:
        """The item that a turn holds."""
        data = turn.metadata or {}
        until = data["expires_at"]
        return cls(
            name,
            data["value"],
            datetime.fromisoformat(data["created_at"]),
            datetime.fromisoformat(data["updated_at"]),
            data["ttl"],
            until and datetime.fromisoformat(until),
        )

    def turn(self) -> Turn:
        """The turn that holds it."""
        data = {
            "value": self.value,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
            "ttl": self.ttl,
            "expires_at": self.expires_at and self.expires_at.isoformat(),
        }
        return Turn(ITEM, "", id=uuid4().hex, metadata=data)

    def touched(self) -> Record:
        """The item with its time beginning anew."""
        until = None if self.ttl is None else datetime.now(UTC) + timedelta(minutes=self.ttl)
        return replace(self, expires_at=until)

    @property
    def is_over(self) -> bool:
        """Whether it has expired."""
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)

    def item(self) -> Item:
        """As LangGraph's item."""
        return Item(**self._fields())

    def hit(self, score: float | None) -> SearchItem:
        """As LangGraph's search result."""
        return SearchItem(**self._fields(), score=score)

    def _fields(self) -> dict[str, Any]:
        return {
            "namespace": self.name[1:-1],
            "key": self.name[-1],
            "value": self.value,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }
