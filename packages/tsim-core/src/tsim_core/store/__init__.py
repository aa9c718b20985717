"""Where threads are kept. One protocol, then one file an implementation."""

from __future__ import annotations

from tsim_core.errors import StoreError
from tsim_core.store.base import Store
from tsim_core.store.sqlite import SQLiteStore


def open_store(location: str, *, read_only: bool = False, must_exist: bool = False) -> Store:
    """Open the store at a path or address.

    Args:
        location: A path, or ":memory:".
        read_only: Refuse writes.
        must_exist: A missing store is an error.

    Raises:
        StoreError: If it cannot be opened; see `tsim_core.store.sqlite.SQLiteStore`.
    """
    if location.startswith(("postgresql://", "postgres://")):
        raise StoreError(
            "PostgreSQL stores are not in this version; use the path of a file, such as EpisodicMemory('memory.db')"
        )
    return SQLiteStore(location, read_only=read_only, must_exist=must_exist)


__all__ = ["Store", "open_store"]
